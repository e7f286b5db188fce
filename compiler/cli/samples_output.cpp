#include "compiler/cli/samples_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/targets/targets.h"
#include "support/output.h"

namespace tenon::cli {

void SamplesOutput::operators(const std::string& name, const std::string& placements) const {
  if (!json_) print_stdout("Operators of {}\n{}\n", name, placements);
}

void SamplesOutput::work(const std::map<std::string, int64_t>& macs) {
  int64_t all = 0, accelerator = 0;
  for (const auto& [target, count] : macs) {
    const compiler::TargetRecord* record = compiler::find_target(compiler::kind_of(target));
    all += count, accelerator += record && record->of_configuration ? count : 0;
  }
  const double percent = all ? 100.0 * static_cast<double>(accelerator) / static_cast<double>(all) : 0;
  rows_.emplace_back("MACs", fmt::format("{}, {:.1f} % on the accelerator", all, percent));
  if (json_) result_.field("macs", all).field("accelerator_macs", accelerator);
}

void SamplesOutput::heading(size_t samples) const {
  if (!json_) print_stdout("Accuracy over {} samples\n", samples);
}

void SamplesOutput::accuracy(const std::string& label, const std::string& key, const runtime::Accuracy& accuracy) {
  rows_.emplace_back("accuracy, " + label, fmt::format("{:.2f} %", accuracy.percent()));
  if (json_) result_.field(key, accuracy.percent());
  else print_stdout("  {:<28} {:6.2f} %\n", label, accuracy.percent());
}

void SamplesOutput::samples(size_t count) {
  if (json_) result_.field("samples", count);
}

void SamplesOutput::result(size_t sample, const std::string& name, const std::string& text) const {
  if (!json_) print_stdout("  sample {}, {}: {}\n", sample, name, text);
}

void SamplesOutput::time(std::vector<double> seconds, std::span<const driver::Info* const> accelerators) {
  if (seconds.empty()) return;
  std::ranges::nth_element(seconds, seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2));
  const double milliseconds = 1e3 * seconds[seconds.size() / 2];
  std::vector<std::string_view> uris;
  for (const driver::Info* accelerator : accelerators) uris.push_back(accelerator->uri);
  const std::string text =
      fmt::format("{:.3g} ms{}", milliseconds,
                  uris.empty() ? "" : fmt::format(", transfers and {} included", fmt::join(uris, ", ")));
  rows_.emplace_back("time of a sample, median", text);
  if (json_) result_.field("milliseconds", milliseconds);
  else print_stdout("\nTime of a sample, from inputs to results\n  {:<28} {}\n", "median", text);
}

void SamplesOutput::comparison(size_t samples, const compiler::Comparison& comparison) {
  const std::string text = fmt::format(
      "{} samples, {} layers, {} elements: {}", samples, comparison.layers(), comparison.elements(),
      comparison.exact() ? "equal bit for bit"
      : comparison.differing() == 0
          ? fmt::format("equal, integers bit for bit and results in floats to {:g} of their size",
                        compiler::Comparison::kTolerance)
          : fmt::format(
                "equal bit for bit; the results of {} samples differ from the reference, because the CPU rounds "
                "a float before an integer otherwise",
                comparison.differing()));
  rows_.emplace_back("device against integer reference", text);
  if (json_) result_.field("layers_compared", comparison.layers()).field("elements_compared", comparison.elements());
  else print_stdout("\nDevice against integer reference\n  {}\n", text);
}

namespace {

// Exact where it is small: 784 bytes are not 0 KiB.
std::string bytes_text(uint64_t bytes) {
  constexpr uint64_t kExact = 10240;
  return bytes < kExact ? fmt::format("{} bytes", bytes) : fmt::format("{} KiB", (bytes + 1023) >> 10);
}

// What the launches of a model need on the device: instructions and constants, tensors between layers, boundary
// tensors.
uint64_t device_bytes(const runtime::Executable& executable) {
  uint64_t bytes = 0;
  for (const runtime::AcceleratorProgram& program : executable.programs) {
    bytes += program.constants.size() + program.instructions.size() * sizeof(program.instructions[0]) +
             program.workspace_bytes;
    for (const auto* slots : {&program.inputs, &program.outputs}) {
      for (const runtime::TensorSlot& slot : *slots)
        bytes += static_cast<uint64_t>(runtime::element_count(slot.shape) * runtime::bytes(slot.dtype));
    }
  }
  return bytes;
}

}  // namespace

void SamplesOutput::figures(const runtime::Analysis& analysis, const runtime::ReportInput& report) {
  const runtime::Executable& executable = *report.executable;
  const runtime::MemoryRecord& memory = report.profile->memory;
  if (json_) {
    result_.field("peak_bytes", memory.peak_bytes)
        .field("arena_bytes", memory.arena_bytes)
        .field("allocations", memory.allocations)
        .field("device_bytes", device_bytes(executable))
        .field("cycles", analysis.cycles)
        .field("utilization", analysis.utilization)
        .field("read_bytes", analysis.read_bytes)
        .field("write_bytes", analysis.write_bytes)
        .field("launches", analysis.launches);
    result_.key("accelerators").begin_array();
    for (const runtime::AcceleratorCost& cost : analysis.accelerators) {
      result_.begin_object()
          .field("target", cost.device)
          .field("config", cost.config->name)
          .field("cycles", cost.cycles)
          .field("utilization", cost.utilization)
          .field("read_bytes", cost.read_bytes)
          .field("write_bytes", cost.write_bytes)
          .field("launches", cost.launches)
          .end();
    }
    result_.end();
    return;
  }
  print_stdout("\nMemory of a run\n  {:<28} {}, {} of it planned; {} results allocated separately\n", "tensors, peak",
               bytes_text(memory.peak_bytes), bytes_text(memory.arena_bytes), memory.allocations);
  if (!executable.programs.empty())
    print_stdout("  {:<28} {}\n", "on the accelerator", bytes_text(device_bytes(executable)));
  for (const runtime::AcceleratorCost& cost : analysis.accelerators) {
    if (cost.launches == 0) continue;
    const driver::Info* device = device_of(report, *cost.config);
    print_stdout("\nAccelerator {}, a sample\n", cost.config->name);
    print_stdout("  {:<28} {:.0f}{}\n", "cycles", cost.cycles, device->cycle_accurate ? "" : "  (cycle model)");
    print_stdout("  {:<28} {:.1f} % of {} MACs a cycle\n", "utilization", 100 * cost.utilization,
                 cost.config->macs_per_cycle());
    print_stdout("  {:<28} {:.0f} read, {:.0f} written\n", "DRAM bytes", cost.read_bytes, cost.write_bytes);
  }
}

void SamplesOutput::file(const std::string& label, const std::string& path) const {
  if (!json_ && !path.empty()) print_stdout("{}: {}\n", label, path);
}

void SamplesOutput::verified(const std::string& second, const std::string& first, size_t samples, double cycles,
                             double utilization, const compiler::Comparison* comparison) {
  if (json_) {
    result_.field("verified_samples", samples).field("verified_cycles", cycles);
    return;
  }
  print_stdout("\n{}\n  {} samples equal to {}{}; {:.0f} cycles a sample, utilization {:.1f} %\n", second, samples,
               first, comparison ? fmt::format(", {} layers bit for bit", comparison->layers()) : "", cycles,
               100 * utilization);
}

void SamplesOutput::finish() {
  if (json_) print_stdout("{}", result_.end().str());
}

}  // namespace tenon::cli
