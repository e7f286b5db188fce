#include "compiler/cli/executable_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/lower/listing.h"
#include "compiler/lower/memory.h"
#include "support/output.h"

namespace tenon::cli {
namespace {

using runtime::Executable;

std::string_view reason_of(compiler::Outside outside) {
  switch (outside) {
    case compiler::Outside::kEscapes: return "may outlive the frame";
    case compiler::Outside::kUnbounded: return "no bound of its size is known, or its function is entered again";
    case compiler::Outside::kOtherKernel: return "made by a reference kernel, a library or the accelerator";
  }
  return "";
}

// "f32 (n, 4)"
std::string buffer_text(const runtime::SignatureBuffer& buffer, const std::vector<std::string>& dims) {
  std::vector<std::string> axes;
  for (const runtime::Size& axis : buffer.axes) axes.push_back(compiler::text_of(axis, dims));
  return fmt::format("{} ({})", name(buffer.dtype), fmt::join(axes, ", "));
}

}  // namespace

void print_code(const Executable& e, const runtime::Function& function) {
  print_stdout("\nfunction @{}: {} parameters, {} registers\n", function.name, function.params.size(),
               function.registers);
  const auto unit = std::ranges::find_if(
      e.units, [&](const runtime::Unit& found) { return &e.functions[found.function] == &function; });
  if (unit != e.units.end()) {
    std::vector<std::string_view> params;
    for (const bool own : unit->own) params.push_back(own ? "own" : "shared");
    std::string several = unit->batched ? "one of @" + e.functions[*unit->batched].name : "executed one by one";
    if (unit->joined_axes > 0) several = fmt::format("one of the rows along {} axes", unit->joined_axes);
    print_stdout("  a unit of batches: its parameters are {}; several calls are {}\n", fmt::join(params, ", "),
                 several);
  }
  for (size_t i = 0; i < function.code.size(); ++i) {
    const auto& [operation, layer] = function.code[i];
    const std::string text = compiler::text_of(e, operation);
    if (layer.empty()) print_stdout("{:>5}  {}\n", i, text);
    else print_stdout("{:>5}  {:<56} # {}\n", i, text, layer);
  }
}

void print_plan(const Executable& e, std::string_view only) {
  for (const runtime::Function& function : e.functions) {
    if (!only.empty() && function.name != only) continue;
    const auto planned = compiler::planned_results(function, e.natives);
    if (planned.empty()) continue;
    const compiler::FrameMemory memory = compiler::frame_memory(function, e.natives);
    print_stdout("@{}: {} bytes planned for {} results, {} live at once, {} without reuse; {} allocated when made\n",
                 function.name, memory.arena, memory.placed, memory.peak, memory.total, memory.outside);
    for (const compiler::PlannedResult& result : planned) {
      const std::string text = compiler::text_of(e, function.code[result.call].operation);
      if (result.slot.bytes != 0)
        print_stdout("  {:>5}..{:<5} {:>10} bytes at {:<10} {}{}\n", result.call, result.last_use, result.slot.bytes,
                     result.slot.offset, text, result.in_place ? "  # in place" : "");
      else print_stdout("  {:>5}        allocated: {}: {}\n", result.call, reason_of(result.outside), text);
    }
  }
}

void print_native_kernel(const runtime::NativeKernel& kernel) {
  const KernelTexts texts = texts_of(kernel);
  print_stdout("  {}: ({}) -> ({})", kernel.name, fmt::join(texts.params, ", "), fmt::join(texts.results, ", "));
  if (!texts.dims.empty()) print_stdout(" for any {}", fmt::join(texts.dims, ", "));
  print_stdout("\n");
  for (const std::string& check : texts.checks) print_stdout("    check {}\n", check);
  for (const std::string& temporary : texts.temporaries) print_stdout("    temporary {}\n", temporary);
  for (const runtime::GpuLaunch& launch : kernel.launches) {
    std::vector<std::string> grid;
    for (const runtime::Size& blocks : launch.grid) grid.push_back(compiler::text_of(blocks, texts.dims));
    print_stdout("    launch {}: {} blocks of {} threads\n", launch.entry, fmt::join(grid, " x "),
                 fmt::join(launch.threads, " x "));
  }
}

void print_native_code(const runtime::NativeCode& native) {
  print_stdout("\nnative code for {}: levels {}, {} bytes\n", native.triple, fmt::join(native.levels, ", "),
               native.object.size());
  for (const runtime::NativeKernel& each : native.kernels) print_native_kernel(each);
}

void print_signature(const Executable& e) {
  print_stdout("{}\n", e.name);
  for (const auto& [key, value] : e.facts) print_stdout("  {}: {}\n", key, value);
  for (uint32_t i = 0; i < e.main().params.size(); ++i) {
    const bool is_state = std::ranges::find(e.states, i, &runtime::StateTensor::param) != e.states.end();
    print_stdout("  {}   {}\n", is_state ? "state" : "input", to_string(e.main().params[i]));
  }
  for (const runtime::Port& port : e.main().results) print_stdout("  output  {}\n", to_string(port));
  for (const runtime::DataType& type : e.types) {
    print_stdout("  type    {}:", type.name);
    for (const runtime::DataConstructor& c : type.constructors) print_stdout(" {}/{}", c.name, c.fields);
    print_stdout("\n");
  }
}

void print_constants(const Executable& e) {
  for (size_t i = 0; i < e.constants.size(); ++i) {
    const runtime::Tensor& constant = e.constants[i];
    print_stdout("  {:>5}  {} {}, {} bytes\n", i, name(constant.dtype()), runtime::to_string(constant.shape()),
                 constant.bytes().size());
  }
}

KernelTexts texts_of(const runtime::NativeKernel& kernel) {
  KernelTexts texts;
  for (const runtime::SignatureDim& dim : kernel.signature.dims) texts.dims.push_back(dim.name);
  const auto list = [&](const std::vector<runtime::SignatureBuffer>& buffers) {
    std::vector<std::string> all;
    for (const runtime::SignatureBuffer& buffer : buffers) all.push_back(buffer_text(buffer, texts.dims));
    return all;
  };
  texts.params = list(kernel.signature.params);
  texts.results = list(kernel.signature.results);
  texts.temporaries = list(kernel.temporaries);
  for (const runtime::SizeCheck& check : kernel.signature.checks)
    texts.checks.push_back(
        fmt::format("{} >= 0, else \"{}\"", compiler::text_of(check.size, texts.dims), check.message));
  return texts;
}

}  // namespace tenon::cli
