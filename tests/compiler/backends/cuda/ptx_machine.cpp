#include "tests/compiler/backends/cuda/ptx_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>

#include "runtime/dtype.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

using Words = std::vector<std::string>;
__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

// --- Values: registers hold the bits of any type, in their low bytes ---

template <class T>
T as(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
uint64_t bits_of(T value) {
  if constexpr (std::is_integral_v<T>) return static_cast<uint64_t>(value);  // of signed types: extended
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// Calls f with a value of the C++ type that a PTX type names; false: none does.
template <class F>
bool with_type(const std::string& type, F f) {
  if (type == "f32") return f(float{}), true;
  if (type == "f64") return f(double{}), true;
  if (type == "s8") return f(int8_t{}), true;
  if (type == "u8" || type == "b8") return f(uint8_t{}), true;
  if (type == "s16") return f(int16_t{}), true;
  if (type == "u16" || type == "b16") return f(uint16_t{}), true;
  if (type == "s32") return f(int32_t{}), true;
  if (type == "u32" || type == "b32") return f(uint32_t{}), true;
  if (type == "s64") return f(int64_t{}), true;
  if (type == "u64" || type == "b64") return f(uint64_t{}), true;
  return false;
}
size_t size_of(const std::string& type) {
  size_t size = 0;
  with_type(type, [&](auto value) { size = sizeof(value); });
  return size;
}

Words split(const std::string& text, char at) {
  Words words(1);
  for (const char c : text) {
    if (c == at) words.emplace_back();
    else words.back() += c;
  }
  return words;
}
bool contains(const Words& words, const char* word) { return std::ranges::find(words, word) != words.end(); }

// --- Operations on values ---

using Operation = std::function<uint64_t(uint64_t, uint64_t, uint64_t)>;

template <class T>
T with_rounding(const Words& names, T value) {
  if (contains(names, "rni")) return std::nearbyint(value);
  if (contains(names, "rmi")) return std::floor(value);
  if (contains(names, "rpi")) return std::ceil(value);
  return contains(names, "rzi") ? std::trunc(value) : value;
}

template <class To, class From>
uint64_t converted(const Words& names, From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    const From rounded = with_rounding(names, value);
    if (std::isnan(rounded)) return 0;
    if (rounded <= static_cast<From>(std::numeric_limits<To>::min())) return bits_of(std::numeric_limits<To>::min());
    if (rounded >= static_cast<From>(std::numeric_limits<To>::max())) return bits_of(std::numeric_limits<To>::max());
    return bits_of(static_cast<To>(rounded));
  } else if constexpr (std::is_floating_point_v<From> && std::is_same_v<From, To>) {
    return bits_of(with_rounding(names, value));
  } else {
    return bits_of(static_cast<To>(value));
  }
}

// Between f32 and f16, the nearest value.
std::optional<Operation> half_conversion(const Words& names) {
  const std::string &to = names[names.size() - 2], &from = names.back();
  if (to == "f32" && from == "f16") {
    return [](uint64_t a, uint64_t, uint64_t) {
      runtime::Half half;
      half.bits = as<uint16_t>(a);
      return bits_of(static_cast<float>(half));
    };
  }
  if (to == "f16" && from == "f32")
    return [](uint64_t a, uint64_t, uint64_t) { return uint64_t{runtime::Half(as<float>(a)).bits}; };
  return std::nullopt;
}

std::optional<Operation> conversion(const Words& names) {
  if (auto half = half_conversion(names)) return half;
  std::optional<Operation> made;
  with_type(names[names.size() - 2], [&](auto to) {
    with_type(names.back(), [&](auto from) {
      made = [names](uint64_t a, uint64_t, uint64_t) { return converted<decltype(to)>(names, as<decltype(from)>(a)); };
    });
  });
  return made;
}

template <class T>
std::optional<Operation> comparison_of(const std::string& name) {
  const auto make = [](auto compare) -> Operation {
    return [compare](uint64_t a, uint64_t b, uint64_t) { return uint64_t{compare(as<T>(a), as<T>(b))}; };
  };
  const auto unordered = [](T a, T b) { return a != a || b != b; };
  if (name == "lt" || name == "lo") return make([](T a, T b) { return a < b; });
  if (name == "gt" || name == "hi") return make([](T a, T b) { return a > b; });
  if (name == "le" || name == "ls") return make([](T a, T b) { return a <= b; });
  if (name == "ge" || name == "hs") return make([](T a, T b) { return a >= b; });
  if (name == "eq") return make([](T a, T b) { return a == b; });
  if (name == "ne") return make([=](T a, T b) { return !unordered(a, b) && a != b; });
  if (name == "ltu") return make([](T a, T b) { return !(a >= b); });
  if (name == "gtu") return make([](T a, T b) { return !(a <= b); });
  if (name == "leu") return make([](T a, T b) { return !(a > b); });
  if (name == "geu") return make([](T a, T b) { return !(a < b); });
  if (name == "equ") return make([=](T a, T b) { return unordered(a, b) || a == b; });
  if (name == "neu") return make([](T a, T b) { return !(a == b); });
  if (name == "nan") return make([=](T a, T b) { return unordered(a, b); });
  if (name == "num") return make([=](T a, T b) { return !unordered(a, b); });
  return std::nullopt;
}

template <class F>
Operation on_two(F f) {
  return [f](uint64_t a, uint64_t b, uint64_t) { return f(a, b); };
}

template <class T>
std::optional<Operation> float_operation(const std::string& name) {
  const auto make = [](auto f) -> Operation {
    return [f](uint64_t a, uint64_t b, uint64_t c) { return bits_of<T>(f(as<T>(a), as<T>(b), as<T>(c))); };
  };
  if (name == "add") return make([](T a, T b, T) { return a + b; });
  if (name == "sub") return make([](T a, T b, T) { return a - b; });
  if (name == "mul") return make([](T a, T b, T) { return a * b; });
  if (name == "div") return make([](T a, T b, T) { return a / b; });
  if (name == "fma") return make([](T a, T b, T c) { return std::fma(a, b, c); });
  if (name == "rcp") return make([](T a, T, T) { return T{1} / a; });
  if (name == "sqrt") return make([](T a, T, T) { return std::sqrt(a); });
  if (name == "neg") return make([](T a, T, T) { return -a; });
  if (name == "abs") return make([](T a, T, T) { return std::fabs(a); });
  if (name == "min") return make([](T a, T b, T) { return std::fmin(a, b); });
  if (name == "max") return make([](T a, T b, T) { return std::fmax(a, b); });
  return std::nullopt;
}

template <class T>
std::optional<Operation> integer_operation(const Words& names) {
  using U = std::make_unsigned_t<T>;
  using Wide = std::conditional_t<std::is_signed_v<T>, Int128, Uint128>;
  static constexpr uint32_t kBits = 8 * sizeof(T);
  const std::string& name = names[0];
  const auto make = [](auto f) -> Operation {
    return on_two([f](uint64_t a, uint64_t b) { return bits_of<T>(static_cast<T>(f(as<T>(a), as<T>(b)))); });
  };
  if (name == "add") return make([](T a, T b) { return static_cast<U>(static_cast<U>(a) + static_cast<U>(b)); });
  if (name == "sub") return make([](T a, T b) { return static_cast<U>(static_cast<U>(a) - static_cast<U>(b)); });
  if (name == "mul" && contains(names, "wide"))
    return on_two([](uint64_t a, uint64_t b) { return static_cast<uint64_t>(Wide{as<T>(a)} * as<T>(b)); });
  if (name == "mul" && contains(names, "hi")) return make([](T a, T b) { return (Wide{a} * b) >> kBits; });
  if (name == "mul") return make([](T a, T b) { return static_cast<U>(static_cast<Wide>(a) * b); });
  if (name == "mad") {
    return [](uint64_t a, uint64_t b, uint64_t c) {
      return bits_of<T>(static_cast<T>(static_cast<U>(static_cast<Wide>(as<T>(a)) * as<T>(b) + as<T>(c))));
    };
  }
  if (name == "div") return make([](T a, T b) { return b == 0 ? T(-1) : T(Wide{a} / b); });
  if (name == "rem") return make([](T a, T b) { return b == 0 ? a : T(Wide{a} % b); });
  if (name == "neg") return make([](T a, T) { return static_cast<U>(0 - static_cast<U>(a)); });
  if (name == "abs")
    return make([](T a, T) { return a < 0 ? static_cast<U>(0 - static_cast<U>(a)) : static_cast<U>(a); });
  if (name == "min") return make([](T a, T b) { return std::min(a, b); });
  if (name == "max") return make([](T a, T b) { return std::max(a, b); });
  if (name == "and") return make([](T a, T b) { return a & b; });
  if (name == "or") return make([](T a, T b) { return a | b; });
  if (name == "xor") return make([](T a, T b) { return a ^ b; });
  if (name == "not") return make([](T a, T) { return ~a; });
  if (name == "shl") {
    return on_two([](uint64_t a, uint64_t b) {
      const auto by = as<uint32_t>(b);
      return by >= kBits ? 0 : bits_of<T>(static_cast<T>(static_cast<U>(as<T>(a)) << by));
    });
  }
  if (name == "shr") {
    return on_two([](uint64_t a, uint64_t b) {
      return bits_of<T>(static_cast<T>(Wide{as<T>(a)} >> std::min<uint32_t>(as<uint32_t>(b), kBits)));
    });
  }
  if (name == "clz") return make([](T a, T) { return std::countl_zero(static_cast<U>(a)); });
  if (name == "popc") return make([](T a, T) { return std::popcount(static_cast<U>(a)); });
  if (name == "bfe" && std::is_unsigned_v<T>) {
    return [](uint64_t a, uint64_t at, uint64_t length) {
      return (static_cast<uint64_t>(as<T>(a)) >> (at & 255)) & ((uint64_t{1} << (length & 255)) - 1);
    };
  }
  if (name == "shf" && contains(names, "l")) {
    return [](uint64_t low, uint64_t high, uint64_t by) {
      const uint64_t both = (uint64_t{as<uint32_t>(high)} << 32) | as<uint32_t>(low);
      return (both << (by & 31)) >> 32 & UINT32_MAX;
    };
  }
  return std::nullopt;
}

std::optional<Operation> operation(const Words& names) {
  const std::string &name = names[0], &type = names.back();
  if (name == "cvt") return conversion(names);
  if (name == "selp") return [](uint64_t a, uint64_t b, uint64_t p) { return p ? a : b; };
  if (name == "mov" || name == "cvta") return [](uint64_t a, uint64_t, uint64_t) { return a; };
  if (type == "pred") {
    if (name == "and") return on_two([](uint64_t a, uint64_t b) { return a & b & 1; });
    if (name == "or") return on_two([](uint64_t a, uint64_t b) { return (a | b) & 1; });
    if (name == "xor") return on_two([](uint64_t a, uint64_t b) { return (a ^ b) & 1; });
    if (name == "not") return on_two([](uint64_t a, uint64_t) { return ~a & 1; });
    return std::nullopt;
  }
  std::optional<Operation> made;
  with_type(type, [&](auto value) {
    using T = decltype(value);
    if (name == "setp") made = comparison_of<T>(names[1]);
    else if constexpr (std::is_floating_point_v<T>) made = float_operation<T>(name);
    else made = integer_operation<T>(names);
  });
  return made;
}

// --- Programs ---

enum class Kind : uint8_t {
  kOperation,
  kPack,
  kLoad,
  kStore,
  kBranch,
  kReturn,
  kBarrier,
  kShuffle,
  kCall,
  kSwap,
  kCopy,
  kNone
};

struct Operand {
  enum Form : uint8_t { kRegister, kConstant, kThread, kParam, kLocal } form = kConstant;
  size_t index = 0;    // of the register, special register or parameter
  uint64_t value = 0;  // of the constant; the offset of an address
};

struct Instruction {
  Kind kind = Kind::kNone;
  std::optional<size_t> predicate = {};
  bool negated = false;
  Operation compute = {};
  std::vector<Operand> to = {}, from = {};
  std::vector<size_t> params = {};  // of a call: the caller's, for each of the callee's
  size_t bytes = 0, target = 0, callee = 0, returned = 0;
  std::function<uint64_t(uint64_t)> extended = {};  // of a load: the element in a register
  std::string text = {};
};

struct Routine {
  std::string name;
  std::vector<Instruction> code;
  size_t registers = 0, params = 0, local_bytes = 0;
  std::vector<size_t> parameters;  // in `params`, in their order
  std::optional<size_t> result;
};

// An address of shared memory, or of a thread's own, has one of these bits.
constexpr uint64_t kShared = uint64_t{1} << 62, kLocal = uint64_t{1} << 61;

struct Frame {
  std::vector<uint64_t> registers, params;
  std::vector<std::byte> local;
};

}  // namespace

struct PtxMachine::Program {
  std::vector<Routine> functions;
  std::map<std::string, size_t> by_name;
  std::map<std::string, std::vector<std::byte>> globals;
  std::map<std::string, uint64_t> shared;  // addresses
  size_t shared_bytes = 0;
};

namespace {

using Program = PtxMachine::Program;

std::string trimmed(std::string text) {
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!text.empty() && is_space(static_cast<unsigned char>(text.front()))) text.erase(text.begin());
  while (!text.empty() && is_space(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

// The text between commas, but for those in brackets and braces.
Words operands_of(const std::string& text) {
  Words words(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' || c == '[' || c == '(';
    depth -= c == '}' || c == ']' || c == ')';
    if (c == ',' && depth == 0) words.emplace_back();
    else words.back() += c;
  }
  for (std::string& word : words) word = trimmed(std::move(word));
  if (words.size() == 1 && words[0].empty()) words.clear();
  return words;
}

class Reader {
 public:
  explicit Reader(const std::string& text) {
    for (const std::string& line : split(text, '\n')) text_ += line.substr(0, line.find("//")) + "\n";
  }

  Expected<std::unique_ptr<Program>> run() {
    // Functions call those that stand before them, or are declared.
    for (size_t at = 0; at < text_.size();) {
      const size_t entry = text_.find(".entry", at), function = text_.find(".func", at);
      const size_t next = std::min(entry, function), variables_end = std::min(next, text_.size());
      variables(text_.substr(at, variables_end - at));
      if (next == std::string::npos) break;
      const size_t brace = text_.find('{', next), semicolon = text_.find(';', next);
      if (semicolon < brace) {  // a declaration
        at = semicolon + 1;
        continue;
      }
      size_t end = brace + 1;
      for (int depth = 1; depth > 0; ++end) depth += text_[end] == '{' ? 1 : text_[end] == '}' ? -1 : 0;
      TENON_TRY(this->function(text_.substr(next, brace - next), text_.substr(brace + 1, end - brace - 2)));
      at = end;
    }
    return std::move(program_);
  }

 private:
  // Variables of the module: .global .align 8 .b8 name[24] = {..};
  void variables(const std::string& text) {
    for (const std::string& statement : split(text, ';')) {
      const size_t bracket = statement.find('[');
      if (bracket == std::string::npos) continue;
      const size_t name_at = statement.find_last_of(" \t\n", bracket) + 1;
      const std::string name = statement.substr(name_at, bracket - name_at);
      const size_t bytes = std::stoul(statement.substr(bracket + 1));
      if (statement.find(".shared") != std::string::npos) {
        add_shared(name, bytes);
        continue;
      }
      std::vector<std::byte>& memory = program_->globals[name];
      memory.resize(bytes);
      const size_t values = statement.find('{');
      if (values == std::string::npos) continue;
      size_t at = 0;
      for (const std::string& value : split(statement.substr(values + 1), ','))
        memory[at++] = static_cast<std::byte>(std::stoul(value));
    }
  }
  void add_shared(const std::string& name, size_t bytes) {
    program_->shared[name] = kShared + program_->shared_bytes;
    program_->shared_bytes += (bytes + 15) / 16 * 16;
  }

  Status function(const std::string& head, const std::string& body) {
    function_ = {};
    registers_.clear(), params_.clear(), locals_.clear(), labels_.clear(), jumps_.clear();
    const size_t name_end = head.rfind('(');
    const size_t name_at = head.find_last_of(" \t\n)", name_end - 1) + 1;
    function_.name = trimmed(head.substr(name_at, name_end - name_at));
    const size_t result = head.find("func_retval0");
    if (result != std::string::npos) function_.result = param("func_retval0");
    for (const std::string& each : split(head.substr(name_end + 1, head.find(')', name_end) - name_end - 1), ',')) {
      const std::string declared = trimmed(each);
      if (!declared.empty()) function_.parameters.push_back(param(declared.substr(declared.find_last_of(" \t\n") + 1)));
    }
    for (size_t at = 0; at < body.size();) {
      // Braces around statements are scopes.
      if (std::isspace(static_cast<unsigned char>(body[at])) != 0 || body[at] == '{' || body[at] == '}') {
        ++at;
        continue;
      }
      const size_t end = std::min(body.find_first_of(";:", at), body.size());
      const std::string statement = trimmed(body.substr(at, end - at));
      if (end < body.size() && body[end] == ':') labels_[statement] = function_.code.size();
      else TENON_TRY(this->statement(statement));
      at = end + 1;
    }
    function_.code.push_back({.kind = Kind::kReturn, .text = "ret"});
    for (const auto& [instruction, label] : jumps_) function_.code[instruction].target = labels_.at(label);
    function_.registers = registers_.size(), function_.params = params_.size();
    program_->by_name[function_.name] = program_->functions.size();
    program_->functions.push_back(std::move(function_));
    return {};
  }

  size_t param(const std::string& name) { return params_.try_emplace(name, params_.size()).first->second; }
  size_t reg(const std::string& name) { return registers_.try_emplace(name, registers_.size()).first->second; }

  Operand operand(const std::string& text) {
    constexpr const char* kSpecial[] = {"%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z"};
    for (size_t i = 0; i < std::size(kSpecial); ++i)
      if (text == kSpecial[i]) return {.form = Operand::kThread, .index = i};
    if (text[0] == '[') {
      const std::string inside = text.substr(1, text.size() - 2);
      const size_t plus = inside.find('+');
      Operand address = operand(trimmed(inside.substr(0, plus)));
      if (plus != std::string::npos) address.value += static_cast<uint64_t>(std::stoll(inside.substr(plus + 1)));
      return address;
    }
    if (text.starts_with("0f")) return {.value = std::stoull(text.substr(2), nullptr, 16)};
    if (text.starts_with("0d")) return {.value = std::stoull(text.substr(2), nullptr, 16)};
    if (std::isdigit(static_cast<unsigned char>(text[0])) != 0) return {.value = std::stoull(text, nullptr, 0)};
    if (text[0] == '-') return {.value = static_cast<uint64_t>(std::stoll(text))};
    if (params_.contains(text)) return {.form = Operand::kParam, .index = param(text)};
    if (locals_.contains(text)) return {.value = locals_.at(text)};
    if (program_->shared.contains(text)) return {.value = program_->shared.at(text)};
    if (program_->globals.contains(text))
      return {.value = reinterpret_cast<uint64_t>(program_->globals.at(text).data())};
    return {.form = Operand::kRegister, .index = reg(text)};
  }
  std::vector<Operand> operands(const std::string& text) {
    std::vector<Operand> found;
    if (text[0] != '{') return {operand(text)};
    for (const std::string& each : operands_of(text.substr(1, text.size() - 2))) found.push_back(operand(each));
    return found;
  }

  Status statement(std::string text) {
    Instruction made{.text = text};
    if (text[0] == '.') return declaration(text);
    if (text[0] == '@') {
      made.negated = text[1] == '!';
      const size_t space = text.find_first_of(" \t"), at = made.negated ? 2 : 1;
      made.predicate = reg(text.substr(at, space - at));
      text = trimmed(text.substr(space));
    }
    const size_t space = std::min(text.find_first_of(" \t"), text.size());
    const Words names = split(text.substr(0, space), '.'), words = operands_of(text.substr(space));
    TENON_TRY(instruction(names, words, made));
    if (made.kind != Kind::kNone) function_.code.push_back(std::move(made));
    return {};
  }
  Status declaration(const std::string& text) {
    const size_t bracket = text.find('['), name_end = bracket == std::string::npos ? text.size() : bracket;
    const size_t name_at = text.find_last_of(" \t", name_end - 1) + 1;
    const std::string name = text.substr(name_at, name_end - name_at);
    if (text.starts_with(".param")) param(name);
    if (bracket == std::string::npos) return {};
    const size_t bytes = std::stoul(text.substr(bracket + 1));
    if (text.starts_with(".shared")) add_shared(name, bytes);
    if (text.starts_with(".local")) {
      locals_[name] = kLocal + function_.local_bytes;
      function_.local_bytes += (bytes + 15) / 16 * 16;
    }
    return {};
  }

  Status instruction(const Words& names, const Words& words, Instruction& made) {
    const std::string& name = names[0];
    if (name == "ret" || name == "exit" || name == "trap") {
      made.kind = Kind::kReturn;
    } else if (name == "bra") {
      made.kind = Kind::kBranch;
      jumps_.emplace_back(function_.code.size(), words[0]);
    } else if (name == "bar" || name == "barrier") {
      made.kind = Kind::kBarrier;
    } else if (name == "call") {
      made.kind = Kind::kCall;
      const auto inside = [](const std::string& list) { return operands_of(list.substr(1, list.size() - 2)); };
      made.returned = param(inside(words[0])[0]);
      if (!program_->by_name.contains(words[1])) return error(fmt::format("no function '{}'", words[1]), made.text);
      made.callee = program_->by_name.at(words[1]);
      for (const std::string& each : inside(words[2])) made.params.push_back(param(each));
    } else if (name == "ld" || name == "st") {
      made.kind = name == "ld" ? Kind::kLoad : Kind::kStore;
      made.bytes = size_of(names.back());
      with_type(names.back(),
                [&](auto value) { made.extended = [](uint64_t bits) { return bits_of(as<decltype(value)>(bits)); }; });
      made.to = operands(words[0]), made.from = operands(words[1]);
    } else if (name == "shfl") {
      made.kind = Kind::kShuffle;
      if (!contains(names, "idx") || words[4] != "-1") return unsupported(made);
      made.to = {operand(words[0])};
      for (size_t i = 1; i < 4; ++i) made.from.push_back(operand(words[i]));
    } else if (name == "atom" && contains(names, "cas")) {
      made.kind = Kind::kSwap;
      made.bytes = size_of(names.back());
      made.to = {operand(words[0])};
      for (size_t i = 1; i < 4; ++i) made.from.push_back(operand(words[i]));
    } else if (name == "cp") {
      if (contains(names, "commit_group") || contains(names, "wait_group")) return {};
      made.kind = Kind::kCopy;
      for (const std::string& word : words) made.from.push_back(operand(word));
      if (made.from.size() == 3) made.from.push_back(made.from.back());
    } else if (name == "mov" && (words[0][0] == '{' || words[1][0] == '{')) {
      made.kind = Kind::kPack;
      made.to = operands(words[0]), made.from = operands(words[1]);
      made.bytes = size_of(names.back()) / std::max(made.to.size(), made.from.size());
    } else {
      auto compute = operation(names);
      if (!compute || words.size() > 4) return unsupported(made);
      made.kind = Kind::kOperation;
      made.compute = std::move(*compute);
      made.to = {operand(words[0])};
      for (size_t i = 1; i < words.size(); ++i) made.from.push_back(operand(words[i]));
      made.from.resize(3);
    }
    return {};
  }
  static Status unsupported(const Instruction& made) {
    return error("the machine of the tests does not have this instruction", made.text);
  }

  std::string text_;
  std::unique_ptr<Program> program_ = std::make_unique<Program>();
  Routine function_;
  std::map<std::string, size_t> registers_, params_, labels_;
  std::map<std::string, uint64_t> locals_;
  std::vector<std::pair<size_t, std::string>> jumps_;
};

// --- Execution ---

class ThreadBlock {
 public:
  ThreadBlock(const Program& program, const std::array<uint32_t, 3>& block, const std::array<uint32_t, 3>& threads)
      : program_(program), block_(block), threads_(threads), shared_(program.shared_bytes) {}

  Status run(const Routine& entry, const std::vector<uint64_t>& arguments) {
    const size_t count = size_t{threads_[0]} * threads_[1] * threads_[2];
    frames_.assign(count, frame_of(entry));
    for (Frame& frame : frames_)
      for (size_t i = 0; i < arguments.size(); ++i) frame.params[entry.parameters[i]] = arguments[i];
    at_.assign(count, 0), state_.assign(count, State::kRuns);
    for (;;) {
      for (size_t first = 0; first < count; first += kWarp) {
        std::vector<size_t> warp;
        for (size_t thread = first; thread < std::min(count, first + kWarp); ++thread) warp.push_back(thread);
        TENON_TRY(execute(entry, warp));
      }
      std::optional<size_t> barrier;
      for (size_t thread = 0; thread < count; ++thread) {
        if (state_[thread] != State::kWaits) continue;
        if (barrier.value_or(at_[thread]) != at_[thread])
          return error("threads of a block wait at different barriers", entry.code[*barrier - 1].text);
        barrier = at_[thread], state_[thread] = State::kRuns;
      }
      if (!barrier) return {};
    }
  }

 private:
  static constexpr size_t kWarp = 32;
  enum class State : uint8_t { kRuns, kWaits, kShuffles, kEnded };  // kShuffles: waits for its warp

  static Frame frame_of(const Routine& function) {
    return {.registers = std::vector<uint64_t>(function.registers, 0xdeadbeefdeadbeefu),
            .params = std::vector<uint64_t>(function.params),
            .local = std::vector<std::byte>(function.local_bytes)};
  }

  // Until all threads wait or have ended. Threads of a called function end where it returns.
  Status execute(const Routine& function, const std::vector<size_t>& warp) {
    std::vector<size_t> active;
    for (;;) {
      size_t at = SIZE_MAX;
      for (const size_t thread : warp)
        if (state_[thread] == State::kRuns) at = std::min(at, at_[thread]);
      if (at == SIZE_MAX) {
        if (std::ranges::none_of(warp, [&](size_t thread) { return state_[thread] == State::kShuffles; })) return {};
        TENON_TRY(shuffle(function, warp));
        continue;
      }
      const Instruction& instruction = function.code[at];
      active.clear();
      for (const size_t thread : warp) {
        if (state_[thread] != State::kRuns || at_[thread] != at) continue;
        ++at_[thread];
        const auto& predicate = instruction.predicate;
        if (!predicate || ((frames_[thread].registers[*predicate] & 1) != 0) != instruction.negated)
          active.push_back(thread);
      }
      if (!active.empty()) TENON_TRY(step(instruction, active));
    }
  }

  Status step(const Instruction& instruction, const std::vector<size_t>& active) {
    switch (instruction.kind) {
      case Kind::kBranch:
        for (const size_t thread : active) at_[thread] = instruction.target;
        return {};
      case Kind::kReturn:
        for (const size_t thread : active) state_[thread] = State::kEnded;
        return {};
      case Kind::kBarrier:
      case Kind::kShuffle:
        for (const size_t thread : active)
          state_[thread] = instruction.kind == Kind::kBarrier ? State::kWaits : State::kShuffles;
        return {};
      case Kind::kCall: return call(instruction, active);
      default:
        for (const size_t thread : active) TENON_TRY(alone(instruction, thread));
        return {};
    }
  }

  Status alone(const Instruction& instruction, size_t thread) {
    Frame& frame = frames_[thread];
    const auto value = [&](size_t i) { return read(instruction.from[i], thread); };
    switch (instruction.kind) {
      case Kind::kOperation: {
        const Operand& to = instruction.to[0];
        frame.registers[to.index] = instruction.compute(value(0), value(1), value(2));
        return {};
      }
      case Kind::kPack: {
        uint64_t whole = 0;
        const uint64_t bits = 8 * instruction.bytes, mask = (uint64_t{1} << bits) - 1;
        for (size_t i = 0; i < instruction.from.size(); ++i)
          whole |= instruction.from.size() == 1 ? value(i) : (value(i) & mask) << (bits * i);
        for (size_t i = 0; i < instruction.to.size(); ++i)
          frame.registers[instruction.to[i].index] = instruction.to.size() == 1 ? whole : (whole >> (bits * i)) & mask;
        return {};
      }
      case Kind::kLoad:
        for (size_t i = 0; i < instruction.to.size(); ++i) {
          uint64_t bits = 0;
          if (instruction.from[0].form == Operand::kParam) bits = frame.params[instruction.from[0].index];
          else
            TENON_TRY(
                copy(&bits, instruction, address(instruction.from[0], thread) + i * instruction.bytes, thread, true));
          frame.registers[instruction.to[i].index] = instruction.extended(bits);
        }
        return {};
      case Kind::kStore:
        for (size_t i = 0; i < instruction.from.size(); ++i) {
          uint64_t bits = value(i);
          if (instruction.to[0].form == Operand::kParam) frame.params[instruction.to[0].index] = bits;
          else
            TENON_TRY(
                copy(&bits, instruction, address(instruction.to[0], thread) + i * instruction.bytes, thread, false));
        }
        return {};
      case Kind::kSwap: {
        uint64_t bits = 0, next = value(2);
        const uint64_t at = address(instruction.from[0], thread);
        TENON_TRY(copy(&bits, instruction, at, thread, true));
        if (bits == (value(1) & (~uint64_t{0} >> (64 - 8 * instruction.bytes))))
          TENON_TRY(copy(&next, instruction, at, thread, false));
        frame.registers[instruction.to[0].index] = bits;
        return {};
      }
      case Kind::kCopy: {
        const uint64_t bytes = value(2), read = std::min(bytes, value(3) & UINT32_MAX);
        std::array<std::byte, 16> word{};
        Instruction part = instruction;
        part.bytes = read;
        if (read > 0) TENON_TRY(copy(word.data(), part, address(instruction.from[1], thread), thread, true));
        part.bytes = bytes;
        return copy(word.data(), part, address(instruction.from[0], thread), thread, false);
      }
      default: return error("the machine of the tests does not have this instruction", instruction.text);
    }
  }

  // shfl.sync.idx, at which all threads of the warp have arrived.
  Status shuffle(const Routine& function, const std::vector<size_t>& warp) {
    const size_t at = at_[warp[0]];
    const bool all = warp.size() == kWarp && std::ranges::all_of(warp, [&](size_t thread) {
                       return state_[thread] == State::kShuffles && at_[thread] == at;
                     });
    const Instruction& instruction = function.code[at - 1];
    if (!all) return error("a shuffle that some threads of a warp do not execute", instruction.text);
    for (const size_t thread : warp) state_[thread] = State::kRuns;
    std::vector<uint64_t> values;
    for (const size_t thread : warp) values.push_back(read(instruction.from[0], thread));
    for (size_t lane = 0; lane < kWarp; ++lane) {
      const uint64_t source = read(instruction.from[1], warp[lane]), mask = read(instruction.from[2], warp[lane]),
                     segment = mask >> 8 & 31;
      frames_[warp[lane]].registers[instruction.to[0].index] = values[(lane & segment) | (source & 31 & ~segment)];
    }
    return {};
  }

  Status call(const Instruction& instruction, const std::vector<size_t>& active) {
    const Routine& callee = program_.functions[instruction.callee];
    std::vector<Frame> callers;
    std::vector<size_t> returns;
    for (const size_t thread : active) {
      Frame frame = frame_of(callee);
      for (size_t i = 0; i < instruction.params.size(); ++i)
        frame.params[callee.parameters[i]] = frames_[thread].params[instruction.params[i]];
      callers.push_back(std::exchange(frames_[thread], std::move(frame)));
      returns.push_back(std::exchange(at_[thread], 0));
    }
    TENON_TRY(execute(callee, active));
    for (size_t i = 0; i < active.size(); ++i) {
      const uint64_t result = frames_[active[i]].params[*callee.result];
      frames_[active[i]] = std::move(callers[i]);
      frames_[active[i]].params[instruction.returned] = result;
      at_[active[i]] = returns[i], state_[active[i]] = State::kRuns;
    }
    return {};
  }

  uint64_t read(const Operand& operand, size_t thread) const {
    switch (operand.form) {
      case Operand::kRegister: return frames_[thread].registers[operand.index];
      case Operand::kThread: return special(operand.index, static_cast<uint32_t>(thread));
      default: return operand.value;
    }
  }
  uint64_t special(size_t index, uint32_t thread) const {
    if (index >= 3) return block_[index - 3];
    const std::array<uint32_t, 3> position{thread % threads_[0], thread / threads_[0] % threads_[1],
                                           thread / threads_[0] / threads_[1]};
    return position[index];
  }
  uint64_t address(const Operand& operand, size_t thread) const {
    return operand.form == Operand::kRegister ? read(operand, thread) + operand.value : operand.value;
  }
  // Between memory and `bytes`.
  Status copy(void* bytes, const Instruction& instruction, uint64_t address, size_t thread, bool loads) {
    std::byte* memory = nullptr;
    const size_t size = instruction.bytes;
    const auto inside = [&](std::vector<std::byte>& of, uint64_t offset) -> bool {
      if (offset > of.size() || size > of.size() - offset) return false;
      memory = of.data() + offset;
      return true;
    };
    if ((address & kShared) != 0) {
      if (!inside(shared_, address - kShared)) return error("an address outside of shared memory", instruction.text);
    } else if ((address & kLocal) != 0) {
      if (!inside(frames_[thread].local, address - kLocal))
        return error("an address outside of a thread's memory", instruction.text);
    } else {
      memory = reinterpret_cast<std::byte*>(address);
    }
    if (address % std::max<size_t>(std::bit_floor(size), 1) != 0)
      return error("an address that is not aligned", instruction.text);
    if (loads) std::memcpy(bytes, memory, size);
    else std::memcpy(memory, bytes, size);
    return {};
  }

  const Program& program_;
  const std::array<uint32_t, 3> block_, threads_;
  std::vector<std::byte> shared_;
  std::vector<Frame> frames_;  // of the threads
  std::vector<size_t> at_;
  std::vector<State> state_;
};

}  // namespace

PtxMachine::PtxMachine(std::unique_ptr<Program> program) : program_(std::move(program)) {}
PtxMachine::PtxMachine(PtxMachine&&) noexcept = default;
PtxMachine::~PtxMachine() = default;

Expected<PtxMachine> PtxMachine::load(const std::string& text) {
  TENON_TRY_ASSIGN(program, Reader(text).run());
  return PtxMachine(std::move(*program));
}

Status PtxMachine::launch(const std::string& entry, const std::array<uint32_t, 3>& grid,
                          const std::array<uint32_t, 3>& threads, const std::vector<uint64_t>& arguments) {
  const auto found = program_->by_name.find(entry);
  if (found == program_->by_name.end()) return error(fmt::format("no entry '{}'", entry));
  const Routine& function = program_->functions[found->second];
  if (function.parameters.size() != arguments.size())
    return error(fmt::format("'{}' has {} parameters, not {}", entry, function.parameters.size(), arguments.size()));
  for (uint32_t z = 0; z < grid[2]; ++z) {
    for (uint32_t y = 0; y < grid[1]; ++y) {
      for (uint32_t x = 0; x < grid[0]; ++x)
        TENON_TRY(ThreadBlock(*program_, {x, y, z}, threads).run(function, arguments));
    }
  }
  return {};
}

}  // namespace tenon::compiler
