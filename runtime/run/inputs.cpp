#include "runtime/run/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "runtime/element_text.h"
#include "runtime/npy.h"
#include "support/printable.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

// A scalar of this dtype; nothing where the text is no literal of it.
std::optional<Tensor> literal(const std::string& text, DType dtype) {
  std::optional<Tensor> scalar;
  with_dtype<kAnyDType>(dtype, [&]<class T>(T) {
    if (const auto value = parse_element<T>(text)) scalar = Tensor::of<T>({}, std::array{*value});
  });
  return scalar;
}

// Assigns the arguments to the slots, then reads them.
class Assignment {
 public:
  Assignment(std::span<const InputSlot> slots, const InputErrors& errors)
      : slots_(slots), errors_(errors), sources_(slots.size()), tensors_(slots.size()) {}

  Expected<std::vector<Tensor>> read(std::span<const std::string> arguments) {
    for (const std::string& argument : arguments) TENON_TRY(assign(argument));
    TENON_TRY(assign_unnamed());
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (!tensors_[i]) TENON_TRY(load(i));
    }
    return std::move(tensors_);
  }

 private:
  bool assigned(size_t slot) const { return tensors_[slot] || !sources_[slot].empty(); }

  std::unexpected<Diagnostic> fail(std::string what) const {
    std::string help = errors_.help;
    if (help.empty()) {
      std::vector<std::string> inputs;
      for (const InputSlot& slot : slots_) inputs.push_back(fmt::format("{}: {}", printable(slot.name), slot.type));
      help = inputs.empty() ? "the model has no inputs" : fmt::format("the inputs are {}", fmt::join(inputs, ", "));
    }
    return error(std::move(what), errors_.where, std::move(help), errors_.fault);
  }

  // The slot whose name and '=' the argument begins with. Names of models may hold '=' themselves: the longest one.
  std::optional<size_t> named_slot(std::string_view argument) const {
    if (argument.starts_with('%')) argument.remove_prefix(1);
    std::optional<size_t> found;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const std::string& name = slots_[i].name;
      if (!argument.starts_with(name) || !argument.substr(name.size()).starts_with('=')) continue;
      if (!found || name.size() > slots_[*found].name.size()) found = i;
    }
    return found;
  }

  Status assign(const std::string& argument) {
    if (const auto slot = named_slot(argument)) {
      const std::string& name = slots_[*slot].name;
      if (assigned(*slot)) return fail(fmt::format("input '{}' is given twice", printable(name)));
      sources_[*slot] = argument.substr((argument.starts_with('%') ? 1 : 0) + name.size() + 1);
      if (sources_[*slot].empty()) return fail(fmt::format("input '{}' is empty", printable(name)));
      return {};
    }
    std::error_code ignored;
    const size_t equals = argument.find('=');
    if (equals != std::string::npos && !std::filesystem::exists(argument.substr(0, argument.rfind(':')), ignored)) {
      return fail(fmt::format("no input is named '{}'", argument.substr(argument.starts_with('%') ? 1 : 0, equals)));
    }
    if (argument.ends_with(".npz")) return assign_members(argument);
    unnamed_.push_back(argument);
    return {};
  }

  // The members that have inputs' names; the archive may hold others too, as labels.
  Status assign_members(const std::string& path) {
    TENON_TRY_ASSIGN(names, npz_names(path));
    bool any = false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (std::ranges::find(*names, slots_[i].name) == names->end()) continue;
      if (assigned(i)) return fail(fmt::format("input '{}' is given twice", printable(slots_[i].name)));
      TENON_TRY_ASSIGN(tensor, load_npz(path, slots_[i].name));
      tensors_[i] = std::move(*tensor);
      any = true;
    }
    if (any) return {};
    std::ranges::sort(*names);
    return fail(fmt::format("no tensor of {} has the name of an input; its tensors are {} (as {}:{})", path,
                            fmt::join(*names, ", "), path, names->empty() ? "NAME" : names->front()));
  }

  Status assign_unnamed() {
    size_t next = 0;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (assigned(i)) continue;
      if (next == unnamed_.size()) {
        return fail(
            fmt::format("input '{}' is missing, the model takes {}", printable(slots_[i].name), slots_[i].type));
      }
      sources_[i] = unnamed_[next++];
    }
    if (next == unnamed_.size()) return {};
    if (slots_.size() == 1) return fail(fmt::format("input '{}' is given twice", printable(slots_[0].name)));
    return fail("there are more arguments than inputs");
  }

  Status load(size_t slot) {
    if (const auto dtype = slots_[slot].literal_dtype) {
      if (auto scalar = literal(sources_[slot], *dtype)) {
        tensors_[slot] = std::move(*scalar);
        return {};
      }
    }
    TENON_TRY_ASSIGN(tensor, load_tensor(sources_[slot]));
    tensors_[slot] = std::move(*tensor);
    return {};
  }

  std::span<const InputSlot> slots_;
  const InputErrors& errors_;
  std::vector<std::string> sources_;  // of each slot; empty: none yet, or a tensor from an archive
  std::vector<Tensor> tensors_;
  std::vector<std::string> unnamed_;
};

}  // namespace

Expected<Tensor> load_tensor(std::string_view source) {
  const auto colon = source.rfind(':');
  const std::string path(source.substr(0, colon));
  if (!path.ends_with(".npz")) return load_npy(std::string(source));
  return load_npz(path, colon == std::string_view::npos ? std::string_view() : source.substr(colon + 1));
}

std::vector<InputSlot> input_slots(std::span<const Port> params) {
  std::vector<InputSlot> slots;
  for (const Port& port : params) {
    slots.push_back({port.name, type_text(port),
                     port.shape.empty() && port.is_tensor() ? std::optional(port.dtype) : std::nullopt});
  }
  return slots;
}

Expected<std::vector<Tensor>> read_inputs(std::span<const InputSlot> slots, std::span<const std::string> arguments,
                                          const InputErrors& errors) {
  return Assignment(slots, errors).read(arguments);
}

}  // namespace tenon::runtime
