#include "compiler/partition/costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/macs.h"
#include "compiler/ir/operator.h"
#include "compiler/partition/target_record.h"
#include "support/file.h"
#include "support/json.h"
#include "support/number.h"
#include "support/suggest.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr double kMaxFigure = 1e15;

// The numbers of a costs file by their paths, as "devices.accel.mhz".
class Figures {
 public:
  static Expected<Figures> read(std::string_view text, const std::string& source) {
    Figures figures(source);
    Status status;
    std::vector<std::string> path;
    const auto fault = read_json(text, [&](const JsonEvent& event) {
      using Kind = JsonEvent::Kind;
      switch (event.kind) {
        case Kind::kKey: path.back() = event.text; return true;
        case Kind::kBeginObject:
          if (path.size() == 3) break;
          path.emplace_back();
          return true;
        case Kind::kEndObject: path.pop_back(); return true;
        case Kind::kNumber: {
          if (path.empty()) break;
          const auto number = parse_number<double>(event.text);
          if (!number || !(*number >= 0 && *number <= kMaxFigure) || (*number == 0 && !may_be_zero(path.back()))) break;
          figures.values_[join(path)] = *number;
          return true;
        }
        case Kind::kNull:
        case Kind::kBoolean:
        case Kind::kString:
        case Kind::kBeginArray:
        case Kind::kEndArray: break;
      }
      const std::string entry = path.empty() ? "costs" : join(path);
      status = error(fmt::format("the entry {} must be a number {}, at most {:g}, found {}", entry,
                                 !path.empty() && may_be_zero(path.back()) ? "of at least 0" : "above 0", kMaxFigure,
                                 event.text.empty() ? "another value" : event.text),
                     source, "tenon tune --costs FILE writes a file that is right");
      return false;
    });
    if (fault) return error(fmt::format("the file is no JSON: {}", fault->problem), source);
    TENON_TRY(status);
    return figures;
  }

  Expected<double> need(const std::string& path) {
    const auto found = take(path);
    if (found) return *found;
    return error(fmt::format("the entry {} is missing", path), source_,
                 "tenon tune --costs FILE measures the entries of this machine");
  }
  std::optional<double> take(const std::string& path) {
    const auto found = values_.find(path);
    if (found == values_.end()) return std::nullopt;
    const double value = found->second;
    values_.erase(found);
    return value;
  }
  // The devices that have an entry.
  std::vector<std::string> devices() const {
    std::vector<std::string> names;
    for (const auto& [path, value] : values_) {
      const size_t dot = path.rfind('.');
      if (!path.starts_with("devices.") || dot < 8) continue;
      const std::string name = path.substr(8, dot - 8);
      if (names.empty() || names.back() != name) names.push_back(name);
    }
    return names;
  }
  // An error where entries are left that nothing has taken.
  Status finish() const {
    if (values_.empty()) return {};
    const std::string& path = values_.begin()->first;
    const std::string entry = path.substr(path.rfind('.') + 1);
    return error(fmt::format("the entry {} is not known", path), source_,
                 suggest(entry, {"gmacs_f32", "gmacs_i8", "gbytes", "call_ns", "launch_ns", "mhz", "memory_gbytes"}));
  }

 private:
  static bool may_be_zero(std::string_view entry) { return entry == "launch_ns" || entry == "call_ns"; }
  explicit Figures(std::string source) : source_(std::move(source)) {}
  static std::string join(const std::vector<std::string>& path) {
    std::string text;
    for (const std::string& part : path) text += (text.empty() ? "" : ".") + part;
    return text;
  }

  std::string source_;
  std::map<std::string, double> values_;
};

double count(const Dims& dims) {
  double elements = 1;
  for (const Dim dim : dims) elements *= static_cast<double>(dim.constant().value_or(1));
  return elements;
}

double tensor_bytes(const runtime::Tensor& tensor) {
  return static_cast<double>(runtime::element_count(tensor.shape())) * runtime::bytes(tensor.dtype());
}

bool has_byte_factors(const Module& module, const Function& function, const Apply& apply) {
  if (const auto* id = std::get_if<ConstId>(&apply.args[0])) return runtime::bytes(module.constant(*id).dtype()) == 1;
  const auto* var = std::get_if<VarId>(&apply.args[0]);
  const TensorType* type = var ? function.type(*var).tensor() : nullptr;
  return type && runtime::bytes(type->dtype) == 1;
}

Price price_of(double macs, double gmacs, double bytes, double gbytes, double extra_ns) {
  const double products = macs / (gmacs * 1e9), copies = bytes / (gbytes * 1e9);
  return {.seconds = std::max(products, copies) + extra_ns * 1e-9,
          .source = products >= copies ? fmt::format("{:.3g} MACs at {:.3g} GMAC/s", macs, gmacs)
                                       : fmt::format("{:.3g} bytes at {:.3g} GB/s", bytes, gbytes)};
}

}  // namespace

const Costs::Device* Costs::device(std::string_view target) const {
  auto found = devices.find(target);
  if (found == devices.end()) found = devices.find(kind_of(target));
  return found == devices.end() ? nullptr : &found->second;
}

Expected<Costs> parse_costs(std::string_view text, const std::string& source) {
  TENON_TRY_ASSIGN(figures, Figures::read(text, source));
  Costs costs{.source = source, .devices = {}};
  TENON_TRY_ASSIGN(version, figures->need("version"));
  if (*version != 1) return error(fmt::format("the entry version is {}, this program reads 1", *version), source);
  for (const auto& [name, figure] : {std::pair{"cpu.gmacs_f32", &costs.gmacs_f32},
                                     {"cpu.gmacs_i8", &costs.gmacs_i8},
                                     {"cpu.gbytes", &costs.gbytes},
                                     {"cpu.call_ns", &costs.call_ns}}) {
    TENON_TRY_ASSIGN(value, figures->need(name));
    *figure = *value;
  }
  for (const std::string& name : figures->devices()) {
    const std::string path = "devices." + name + ".";
    TENON_TRY_ASSIGN(launch, figures->need(path + "launch_ns"));
    costs.devices[name] = {.launch_ns = *launch,
                           .gbytes = figures->take(path + "gbytes"),
                           .mhz = figures->take(path + "mhz"),
                           .gmacs_f32 = figures->take(path + "gmacs_f32"),
                           .gmacs_i8 = figures->take(path + "gmacs_i8"),
                           .memory_gbytes = figures->take(path + "memory_gbytes")};
  }
  TENON_TRY(figures->finish());
  return costs;
}

Expected<Costs> read_costs(const std::filesystem::path& path) {
  TENON_TRY_ASSIGN(text, read_text(path));
  return parse_costs(*text, path.string());
}

std::string to_json(const Costs& costs) {
  Json out;
  out.begin_object().field("version", 1).key("cpu").begin_object();
  out.field("gmacs_f32", costs.gmacs_f32).field("gmacs_i8", costs.gmacs_i8).field("gbytes", costs.gbytes);
  out.field("call_ns", costs.call_ns).end().key("devices").begin_object();
  for (const auto& [name, device] : costs.devices) {
    out.key(name).begin_object().field("launch_ns", device.launch_ns);
    for (const auto& [entry, value] : {std::pair{"gbytes", device.gbytes},
                                       {"mhz", device.mhz},
                                       {"gmacs_f32", device.gmacs_f32},
                                       {"gmacs_i8", device.gmacs_i8},
                                       {"memory_gbytes", device.memory_gbytes}}) {
      if (value) out.field(entry, *value);
    }
    out.end();
  }
  return out.end().end().str();
}

double bytes_of(Type type) {
  double total = 0;
  for (const Type part : type.parts()) {
    if (const TensorType* tensor = part.tensor()) total += count(tensor->dims) * runtime::bytes(tensor->dtype);
  }
  return total;
}

Work work_of(const Module& module, const Function& function, const Block& block, std::span<const size_t> bindings) {
  Work work;
  std::vector<bool> counted(function.vars.size());  // values inside, and those that are read
  for (const size_t i : bindings) counted[index(block.bindings[i].var)] = true;
  double products = 0, byte_products = 0;
  for (const size_t i : bindings) {
    const Binding& binding = block.bindings[i];
    const auto* apply = std::get_if<Apply>(&binding.value);
    // A view copies nothing.
    if (!apply || apply->op->elements == Elements::kSame) continue;
    double elements = 0;
    for (const Type part : function.type(binding.var).parts()) {
      if (part.tensor()) elements += count(part.tensor()->dims);
    }
    const auto macs = static_cast<double>(macs_of(module, function, binding.var, *apply));
    work.macs += macs > 0 ? macs : elements;
    products += macs;
    if (macs > 0 && has_byte_factors(module, function, *apply)) byte_products += macs;
    for_each_operand(binding.value, [&](const Atom& atom) {
      if (const auto* id = std::get_if<ConstId>(&atom)) work.bytes += tensor_bytes(module.constant(*id));
      const auto* var = std::get_if<VarId>(&atom);
      if (!var || counted[index(*var)]) return;
      counted[index(*var)] = true;
      work.bytes += bytes_of(function.type(*var));
    });
    if (i == bindings.back()) work.bytes += bytes_of(function.type(binding.var));
  }
  work.bytes_wide = 2 * byte_products > products;
  return work;
}

Price cpu_price(const Costs& costs, const Work& work) {
  if (work.macs == 0) return {.seconds = 0, .source = "a view"};
  return price_of(work.macs, work.bytes_wide ? costs.gmacs_i8 : costs.gmacs_f32, work.bytes, costs.gbytes,
                  costs.call_ns);
}

Expected<Price> device_price(const Costs& costs, const std::string& target, const Work& work) {
  const Costs::Device* device = costs.device(target);
  const std::string_view entry = work.bytes_wide ? "gmacs_i8" : "gmacs_f32";
  const auto lacks = [&](std::string_view name) {
    return error(fmt::format("the entry devices.{}.{} is missing", target, name), costs.source,
                 "add it, or leave the target out of --targets");
  };
  if (!device) return lacks("launch_ns");
  const auto gmacs = work.bytes_wide ? device->gmacs_i8 : device->gmacs_f32;
  if (!gmacs) return lacks(entry);
  return price_of(work.macs, *gmacs, work.bytes, device->memory_gbytes.value_or(costs.gbytes), 0);
}

}  // namespace tenon::compiler
