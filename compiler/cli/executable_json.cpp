// An executable as JSON.
#include <fmt/format.h>

#include "compiler/cli/executable_text.h"
#include "compiler/lower/listing.h"
#include "compiler/lower/memory.h"
#include "hw/spec/config.h"
#include "support/json.h"

namespace tenon::cli {
namespace {

using runtime::Executable;

void add_ports(Json& json, std::string_view key, const std::vector<runtime::Port>& ports) {
  json.key(key).begin_array();
  for (const runtime::Port& port : ports) {
    json.begin_object().field("name", port.name).field("type", type_text(port));
    if (port.is_tensor()) {
      json.field("dtype", name(port.dtype)).key("shape").begin_array();
      for (const int64_t size : port.shape) json.value(size);
      json.end();
    }
    json.end();
  }
  json.end();
}

void add_texts(Json& json, std::string_view key, const std::vector<std::string>& texts) {
  json.key(key).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end();
}

void add_functions(Json& json, const Executable& e) {
  json.key("functions").begin_array();
  for (const runtime::Function& function : e.functions) {
    const compiler::FrameMemory memory = compiler::frame_memory(function, e.natives);
    json.begin_object().field("name", function.name).field("registers", function.registers);
    add_ports(json, "inputs", function.params);
    add_ports(json, "outputs", function.results);
    json.field("arena_bytes", function.arena_bytes).field("peak_bytes", memory.peak);
    json.field("allocated_results", memory.outside).key("code").begin_array();
    for (const auto& [operation, layer] : function.code)
      json.begin_object().field("text", compiler::text_of(e, operation)).field("layer", layer).end();
    json.end().end();
  }
  json.end();
}

void add_natives(Json& json, const Executable& e) {
  json.key("natives").begin_array();
  for (const runtime::NativeCode& native : e.natives) {
    json.begin_object().field("triple", native.triple).field("bytes", native.object.size());
    add_texts(json, "levels", native.levels);
    json.key("kernels").begin_array();
    for (const runtime::NativeKernel& kernel : native.kernels) {
      const KernelTexts texts = texts_of(kernel);
      json.begin_object().field("name", kernel.name).field("launches", kernel.launches.size());
      add_texts(json, "dims", texts.dims);
      add_texts(json, "params", texts.params);
      add_texts(json, "results", texts.results);
      add_texts(json, "checks", texts.checks);
      json.end();
    }
    json.end().end();
  }
  json.end();
}

void add_programs(Json& json, const Executable& e) {
  json.key("programs").begin_array();
  for (const runtime::AcceleratorProgram& program : e.programs) {
    json.begin_object().field("name", program.name).field("config", program.config.name);
    json.field("config_hash", fmt::format("{:016x}", spec::hash(program.config)));
    json.field("memory", spec::to_string(program.memory));
    json.field("layers", program.layers.size()).field("slots", program.instructions.size());
    json.field("constant_bytes", program.constants.size()).field("workspace_bytes", program.workspace_bytes).end();
  }
  json.end();
}

}  // namespace

std::string executable_json(const Executable& e) {
  Json json;
  json.begin_object().field("name", e.name);
  json.key("facts").begin_object();
  for (const auto& [key, value] : e.facts) json.field(key, value);
  json.end();
  add_ports(json, "inputs", e.main().params);
  add_ports(json, "outputs", e.main().results);
  add_functions(json, e);
  json.key("constants").begin_array();
  for (const runtime::Tensor& constant : e.constants) {
    json.begin_object().field("dtype", name(constant.dtype())).key("shape").begin_array();
    for (const int64_t size : constant.shape()) json.value(size);
    json.end().field("bytes", constant.bytes().size()).end();
  }
  json.end();
  add_natives(json, e);
  if (e.compiled) {
    json.key("compiled").begin_object().field("triple", e.compiled->triple);
    json.field("bytes", e.compiled->object.size()).end();
  }
  if (!e.units.empty()) {
    json.key("units").begin_array();
    for (const runtime::Unit& unit : e.units) {
      json.begin_object().field("function", e.functions[unit.function].name);
      if (unit.batched) json.field("batched", e.functions[*unit.batched].name);
      if (unit.joined_axes > 0) json.field("joined_axes", unit.joined_axes);
      json.key("own").begin_array();
      for (const bool own : unit.own) json.value(own);
      json.end().key("own_results").begin_array();
      for (const bool own : unit.own_results) json.value(own);
      json.end().end();
    }
    json.end();
  }
  if (!e.states.empty()) {
    json.key("states").begin_array();
    for (const runtime::StateTensor& state : e.states) {
      json.begin_object().field("param", e.main().params[state.param].name).field("result", state.result);
      if (state.first) json.field("first", *state.first);
      json.end();
    }
    json.end();
  }
  add_programs(json, e);
  return json.end().str();
}

}  // namespace tenon::cli
