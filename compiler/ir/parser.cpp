// Recursive descent in two passes: first constants and the headers of all functions, so that calls know their types
// whatever the order; then the bodies.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>

#include "compiler/ir/builder.h"
#include "compiler/ir/lexer.h"
#include "compiler/ir/text.h"
#include "compiler/ir/try.h"
#include "runtime/file.h"

namespace tenon::compiler {
namespace {

constexpr int kMaxNesting = 200;
constexpr std::string_view kVersion = "1";

class Parser {
 public:
  Parser(Context& context, const Source& source, std::vector<Token> tokens, std::span<const std::byte> side)
      : context_(context), source_(source), tokens_(std::move(tokens)), side_(side) {}

  Expected<Module> run() {
    if (Status status = header(); !status) return std::unexpected(status.error());
    struct Body {
      Symbol name;
      size_t at;
      std::unordered_map<std::string, Atom> locals;
    };
    std::vector<Body> bodies;
    std::map<std::string, Attr> marks;
    size_t marks_at = 0;
    while (peek().kind != Tok::kEnd) {
      if (is("#[")) {
        marks_at = peek().offset;
        TENON_TAKE(list, mark_list());
        marks = std::move(*list);
      } else if (is_name("const")) {
        if (Status status = constant(); !status) return std::unexpected(status.error());
      } else if (is_name("def")) {
        Body body;
        if (Status status = signature(body.name, body.locals); !status) return std::unexpected(status.error());
        Function& function = *module_.function(body.name);
        for (auto& [key, value] : marks) {
          auto* text = std::get_if<std::string>(&value);
          if (!text || (key != "target" && key != "composite")) {
            return source_.error_at(marks_at, fmt::format("a function has no mark '{}' of that kind", key),
                                    "target = \"...\" and composite = \"...\" are known");
          }
          (key == "target" ? function.target : function.composite) = *text;
        }
        marks.clear();
        body.at = at_;
        if (Status status = skip_body(); !status) return std::unexpected(status.error());
        bodies.push_back(std::move(body));
      } else {
        return fail("expected const or def");
      }
    }
    for (Body& body : bodies) {
      at_ = body.at;
      locals_ = std::move(body.locals);
      // The body is built beside the module, whose entry stays a header until it is done.
      Function function = *module_.function(body.name);
      if (Status status = block(function); !status) return std::unexpected(status.error());
      *module_.function(body.name) = std::move(function);
    }
    return std::move(module_);
  }

 private:
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is(std::string_view punct) const { return peek().kind == Tok::kPunct && peek().text == punct; }
  bool is_name(std::string_view name) const { return peek().kind == Tok::kName && peek().text == name; }
  bool accept(std::string_view punct) {
    if (!is(punct)) return false;
    ++at_;
    return true;
  }
  std::unexpected<Diagnostic> fail(std::string what, std::string help = {}) const {
    what += peek().kind == Tok::kEnd ? ", found the end" : fmt::format(", found '{}'", peek().text);
    return source_.error_at(peek().offset, std::move(what), std::move(help));
  }
  Status expect(std::string_view punct) {
    if (accept(punct)) return {};
    return fail(fmt::format("expected '{}'", punct));
  }
  Expected<std::string> take(Tok kind, std::string_view what) {
    if (peek().kind != kind) return fail(fmt::format("expected {}", what));
    return tokens_[at_++].text;
  }
  Expected<int64_t> integer() {
    const bool negative = accept("-");
    const Token token = peek();
    if (token.kind != Tok::kInteger) return fail("expected an integer");
    ++at_;
    uint64_t size = 0;
    const auto [end, problem] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), size);
    const uint64_t limit = uint64_t{std::numeric_limits<int64_t>::max()} + (negative ? 1 : 0);
    if (problem != std::errc() || size > limit)
      return source_.error_at(token.offset, "the integer needs more than 64 bits");
    return static_cast<int64_t>(negative ? 0 - size : size);
  }

  // An integer or a float, as an attribute.
  Expected<Attr> number() {
    const size_t minus = is("-") ? 1 : 0;
    const Token& token = peek(minus);
    if (token.kind == Tok::kInteger) {
      TENON_TAKE(value, integer());
      return Attr{*value};
    }
    double value = 0;
    if (token.kind == Tok::kName && token.text == "inf") value = std::numeric_limits<double>::infinity();
    else if (token.kind != Tok::kFloat) return fail("expected a number");
    else if (std::from_chars(token.text.data(), token.text.data() + token.text.size(), value).ec != std::errc()) {
      return source_.error_at(token.offset, "the number is beyond the range of a double");
    }
    at_ += 1 + minus;
    return Attr{minus ? -value : value};
  }

  Expected<Attr> attribute() {
    if (peek().kind == Tok::kString) return Attr{tokens_[at_++].text};
    if (!accept("[")) return number();
    std::vector<int64_t> integers;
    std::vector<double> floats;
    bool real = false;
    while (!accept("]")) {
      TENON_TAKE(value, number());
      real |= std::holds_alternative<double>(*value);
      if (auto* integer = std::get_if<int64_t>(&*value)) {
        integers.push_back(*integer);
        floats.push_back(static_cast<double>(*integer));
      } else {
        floats.push_back(std::get<double>(*value));
      }
      if (!accept(",") && !is("]")) return fail("expected ',' or ']'");
    }
    return real ? Attr{std::move(floats)} : Attr{std::move(integers)};
  }

  Expected<std::map<std::string, Attr>> mark_list() {
    std::map<std::string, Attr> marks;
    if (Status status = expect("#["); !status) return std::unexpected(status.error());
    while (!accept("]")) {
      TENON_TAKE(key, take(Tok::kName, "a name"));
      if (Status status = expect("="); !status) return std::unexpected(status.error());
      TENON_TAKE(value, attribute());
      marks.emplace(*key, std::move(*value));
      if (!accept(",") && !is("]")) return fail("expected ',' or ']'");
    }
    return marks;
  }

  Status header() {
    if (!is("#[") || peek(1).text != "version") {
      return fail("expected the version", "a module starts with #[version = \"1\"]");
    }
    const size_t offset = peek().offset;
    TENON_TAKE(marks, mark_list());
    const Attr version = (*marks)["version"];
    if (version != Attr{std::string(kVersion)}) {
      auto* text = std::get_if<std::string>(&version);
      return source_.error_at(offset, fmt::format("version {} is not known", text ? *text : "without quotes"),
                              fmt::format("this reader knows version \"{}\"", kVersion));
    }
    int64_t wanted = 0;
    if (auto found = marks->find("side_bytes"); found != marks->end()) {
      if (auto* value = std::get_if<int64_t>(&found->second)) wanted = *value;
    }
    if (wanted != static_cast<int64_t>(side_.size())) {
      return source_.error_at(offset, fmt::format("the side file must have {} bytes, it has {}", wanted, side_.size()),
                              "text and side file belong together: write both again");
    }
    auto found = marks->find("side_checksum");
    if (wanted > 0 && (found == marks->end() || found->second != Attr{fmt::format("{:016x}", checksum(side_))})) {
      return source_.error_at(offset, "the side file's checksum is not the one stated",
                              "text and side file belong together: write both again");
    }
    return {};
  }

  Expected<Dim> dim(int depth = 0) {
    if (depth > kMaxNesting) return fail("nested too deeply");
    bool negative = accept("-");
    Dim sum = context_.dim(0);
    while (true) {
      Dim term = context_.dim(negative ? -1 : 1);
      do {
        Dim factor;
        if (accept("(")) {
          TENON_TAKE(inner, dim(depth + 1));
          if (Status status = expect(")"); !status) return std::unexpected(status.error());
          factor = *inner;
        } else if (peek().kind == Tok::kName) {
          const Symbol variable = context_.symbol(peek().text);
          if (std::ranges::find(dims_, variable) == dims_.end()) {
            return fail("the dim variable is not declared", "declare it behind the function's name, as @f[N](...)");
          }
          ++at_;
          factor = context_.dim(variable);
        } else {
          TENON_TAKE(value, integer());
          factor = context_.dim(*value);
        }
        term = context_.multiply(term, factor);
      } while (accept("*"));
      sum = context_.add(sum, term);
      if (!is("+") && !is("-")) return sum;
      negative = is("-");
      ++at_;
    }
  }

  Expected<Type> type(int depth = 0) {
    if (depth > kMaxNesting) return fail("nested too deeply");
    if (accept("(")) {
      std::vector<Type> fields;
      while (!accept(")")) {
        TENON_TAKE(field, type(depth + 1));
        fields.push_back(*field);
        if (!accept(",") && !is(")")) return fail("expected ',' or ')'");
      }
      return context_.tuple(std::move(fields));
    }
    if (!is_name("Tensor")) return fail("expected a type", "as Tensor[(N, 64), f32] or a tuple of types");
    ++at_;
    if (Status status = expect("["); !status) return std::unexpected(status.error());
    if (Status status = expect("("); !status) return std::unexpected(status.error());
    Dims dims;
    while (!accept(")")) {
      const size_t offset = peek().offset;
      TENON_TAKE(size, dim());
      if (size->constant().value_or(0) < 0) return source_.error_at(offset, "a size must not be negative");
      dims.push_back(*size);
      if (!accept(",") && !is(")")) return fail("expected ',' or ')'");
    }
    if (Status status = expect(","); !status) return std::unexpected(status.error());
    const size_t offset = peek().offset;
    TENON_TAKE(text, take(Tok::kName, "a dtype"));
    auto dtype = runtime::parse_dtype(*text);
    if (!dtype) return source_.error_at(offset, dtype.error().what, dtype.error().help);
    if (Status status = expect("]"); !status) return std::unexpected(status.error());
    return context_.tensor(std::move(dims), *dtype);
  }

  // const $0: TYPE = side(OFFSET) or [VALUES];
  Status constant() {
    ++at_;
    const size_t offset = peek().offset;
    TENON_TAKE(name, take(Tok::kConstant, "a constant, as $0"));
    if (constants_.contains(*name)) return source_.error_at(offset, fmt::format("${} is defined twice", *name));
    if (Status status = expect(":"); !status) return status;
    const size_t type_at = peek().offset;
    dims_.clear();
    TENON_TAKE(type, this->type());
    if (Status status = expect("="); !status) return status;
    const TensorType* tensor_type = type->tensor();
    const auto shape = tensor_type ? tensor_type->shape() : std::nullopt;
    if (!shape) return source_.error_at(type_at, "a constant must be a tensor of known sizes");
    // The size is checked against what there is before any memory is taken.
    int64_t count = 1;
    for (int64_t size : *shape) {
      count *= std::max<int64_t>(size, 0);
      if (count > (int64_t{1} << 40)) return source_.error_at(type_at, "the constant is too large");
    }
    runtime::Tensor tensor;
    if (is_name("side")) {
      ++at_;
      if (Status status = expect("("); !status) return status;
      const size_t start_at = peek().offset;
      TENON_TAKE(start, integer());
      if (Status status = expect(")"); !status) return status;
      const auto room = static_cast<int64_t>(side_.size());
      const int64_t length = count * runtime::bytes(tensor_type->dtype);
      if (*start < 0 || *start > room || length > room - *start) {
        return source_.error_at(
            start_at, fmt::format("bytes {} .. {} lie beyond the side file of {}", *start, *start + length, room));
      }
      tensor = runtime::Tensor(tensor_type->dtype, *shape);
      std::ranges::copy(side_.subspan(*start, length), tensor.bytes().begin());
    } else {
      const size_t list_at = peek().offset;
      if (!is("[")) return fail("expected side(OFFSET) or a list of values");
      TENON_TAKE(list, attribute());
      std::vector<double> reals;
      auto* integers = std::get_if<std::vector<int64_t>>(&*list);
      if (auto* values = std::get_if<std::vector<double>>(&*list)) reals = *values;
      const size_t found = integers ? integers->size() : reals.size();
      if (static_cast<int64_t>(found) != count) {
        return source_.error_at(list_at, fmt::format("{} values for {}", found, context_.str(*type)));
      }
      tensor = runtime::Tensor(tensor_type->dtype, *shape);
      if (!fill(tensor, integers, reals)) {
        return source_.error_at(list_at, fmt::format("a value is none of {}", runtime::name(tensor.dtype())));
      }
    }
    if (Status status = expect(";"); !status) return status;
    constants_.emplace(*name, module_.add_constant(std::move(tensor)));
    return {};
  }

  template <class T>
  static bool fill_as(runtime::Tensor& tensor, const std::vector<int64_t>* integers, const std::vector<double>& reals) {
    auto out = tensor.data<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      if constexpr (std::is_floating_point_v<T>) {
        out[i] = integers ? static_cast<T>((*integers)[i]) : static_cast<T>(reals[i]);
      } else {
        if (!integers) return false;
        out[i] = static_cast<T>((*integers)[i]);
        if (static_cast<int64_t>(out[i]) != (*integers)[i]) return false;
      }
    }
    return true;
  }
  static bool fill(runtime::Tensor& tensor, const std::vector<int64_t>* integers, const std::vector<double>& reals) {
    switch (tensor.dtype()) {
      case DType::kBool: return fill_as<bool>(tensor, integers, reals);
      case DType::kI8: return fill_as<int8_t>(tensor, integers, reals);
      case DType::kU8: return fill_as<uint8_t>(tensor, integers, reals);
      case DType::kI16: return fill_as<int16_t>(tensor, integers, reals);
      case DType::kU16: return fill_as<uint16_t>(tensor, integers, reals);
      case DType::kI32: return fill_as<int32_t>(tensor, integers, reals);
      case DType::kI64: return fill_as<int64_t>(tensor, integers, reals);
      case DType::kF32: return fill_as<float>(tensor, integers, reals);
      case DType::kF64: return fill_as<double>(tensor, integers, reals);
    }
    return false;
  }

  // def @f[N](%x: TYPE, ...) -> TYPE
  Status signature(Symbol& name, std::unordered_map<std::string, Atom>& locals) {
    ++at_;
    const size_t name_at = peek().offset;
    TENON_TAKE(text, take(Tok::kGlobal, "a function's name, as @main"));
    name = context_.symbol(*text);
    if (module_.globals.contains(name)) return source_.error_at(name_at, fmt::format("@{} is defined twice", *text));
    Function function;
    dims_.clear();
    if (accept("[")) {
      while (!accept("]")) {
        TENON_TAKE(dim, take(Tok::kName, "a dim variable"));
        dims_.push_back(context_.symbol(*dim));
        if (!accept(",") && !is("]")) return fail("expected ',' or ']'");
      }
    }
    function.dims = dims_;
    Builder builder(context_, module_, function);
    if (Status status = expect("("); !status) return status;
    while (!accept(")")) {
      const size_t offset = peek().offset;
      builder.at(span_at(offset));
      TENON_TAKE(param, take(Tok::kLocal, "a parameter, as %x"));
      if (Status status = expect(":"); !status) return status;
      TENON_TAKE(type, this->type());
      if (!locals.emplace(*param, builder.param(*type, *param)).second) {
        return source_.error_at(offset, fmt::format("%{} is defined twice", *param));
      }
      if (!accept(",") && !is(")")) return fail("expected ',' or ')'");
    }
    if (Status status = expect("->"); !status) return status;
    TENON_TAKE(result, type());
    function.result = *result;
    module_.globals.emplace(name, std::move(function));
    return {};
  }

  Status skip_body() {
    if (!is("{")) return fail("expected '{'");
    int depth = 0;
    do {
      if (peek().kind == Tok::kEnd) return fail("expected '}'");
      if (is("{")) ++depth;
      if (is("}")) --depth;
      ++at_;
    } while (depth > 0);
    return {};
  }

  Status block(Function& function) {
    Builder builder(context_, module_, function);
    dims_ = function.dims;
    ++at_;
    while (is_name("let")) {
      ++at_;
      const size_t offset = peek().offset;
      TENON_TAKE(name, take(Tok::kLocal, "a variable, as %x"));
      if (locals_.contains(*name)) return source_.error_at(offset, fmt::format("%{} is defined twice", *name));
      std::optional<Type> wanted;
      if (accept(":")) {
        TENON_TAKE(type, this->type());
        wanted = *type;
      }
      if (Status status = expect("="); !status) return status;
      TENON_TAKE(value, expression(builder, *name, 0));
      if (wanted) {
        TENON_TAKE(found, builder.type_of(*value));
        if (*found != *wanted) {
          return source_.error_at(
              offset, fmt::format("%{} is declared {}, but is {}", *name, context_.str(*wanted), context_.str(*found)));
        }
      }
      if (Status status = expect(";"); !status) return status;
      locals_.emplace(*name, *value);
    }
    const size_t offset = peek().offset;
    TENON_TAKE(result, expression(builder, "", 0));
    const Type declared = function.result;
    builder.finish(*result);
    if (function.result != declared) {
      return source_.error_at(offset, fmt::format("the function returns {}, but its result is {}",
                                                  context_.str(declared), context_.str(function.result)));
    }
    return expect("}");
  }

  SpanId span_at(size_t offset) {
    const auto [line, column] = source_.place(offset);
    return module_.add_span(Span{std::string(source_.file()), "", "", line, column});
  }

  // Binds what is no atom; a failed rule is shown at the expression.
  Expected<Atom> bound(Builder& builder, size_t offset, Value value, std::string_view name) {
    builder.at(span_at(offset));
    Expected<Atom> atom = builder.bind(std::move(value), context_.symbol(name));
    if (!atom) return source_.error_at(offset, atom.error().what, atom.error().help);
    return atom;
  }

  Expected<Atom> expression(Builder& builder, std::string_view name, int depth) {
    if (depth > kMaxNesting) return fail("nested too deeply");
    const size_t offset = peek().offset;
    // The name belongs to the outermost binding: to a projection, if one follows.
    TENON_TAKE(atom, primary(builder, name, depth));
    while (accept(".")) {
      TENON_TAKE(field, integer());
      if (*field < 0 || *field > UINT32_MAX) return source_.error_at(offset, "there is no such field");
      atom = bound(builder, offset, Project{*atom, static_cast<uint32_t>(*field)}, name);
      if (!atom) return atom;
    }
    return atom;
  }

  Expected<Atom> primary(Builder& builder, std::string_view name, int depth) {
    const Token token = peek();
    switch (token.kind) {
      case Tok::kLocal: {
        auto found = locals_.find(token.text);
        if (found == locals_.end()) return fail("the variable is not defined");
        ++at_;
        return found->second;
      }
      case Tok::kConstant: {
        auto found = constants_.find(token.text);
        if (found == constants_.end()) return fail("the constant is not defined");
        ++at_;
        return found->second;
      }
      case Tok::kGlobal: {
        ++at_;
        Atoms args;
        runtime::Attrs attrs;
        if (Status status = arguments(builder, args, nullptr, depth); !status) return std::unexpected(status.error());
        return bound(builder, token.offset, Call{context_.symbol(token.text), std::move(args)}, name);
      }
      case Tok::kName: {
        const Operator* op = context_.find_operator(token.text);
        if (!op) return source_.error_at(token.offset, fmt::format("there is no operator '{}'", token.text));
        ++at_;
        Atoms args;
        runtime::Attrs attrs;
        if (Status status = arguments(builder, args, &attrs, depth); !status) return std::unexpected(status.error());
        auto complete = complete_attrs(*op, std::move(attrs));
        if (!complete) return source_.error_at(token.offset, complete.error().what, complete.error().help);
        return bound(builder, token.offset, Apply{op, std::move(*complete), std::move(args)}, name);
      }
      case Tok::kPunct: {
        if (!accept("(")) break;
        Atoms fields;
        bool tuple = is(")");
        while (!accept(")")) {
          TENON_TAKE(field, expression(builder, "", depth + 1));
          fields.push_back(*field);
          if (accept(",")) tuple = true;
          else if (!is(")")) return fail("expected ',' or ')'");
        }
        if (!tuple) return fields[0];
        return bound(builder, token.offset, Tuple{std::move(fields)}, name);
      }
      case Tok::kEnd:
      case Tok::kInteger:
      case Tok::kFloat:
      case Tok::kString: break;
    }
    return fail("expected an expression");
  }

  // (a, b, key=value): attributes only where `attrs` is given, behind the arguments.
  Status arguments(Builder& builder, Atoms& args, runtime::Attrs* attrs, int depth) {
    if (Status status = expect("("); !status) return status;
    while (!accept(")")) {
      if (attrs && peek().kind == Tok::kName && peek(1).kind == Tok::kPunct && peek(1).text == "=") {
        const Token key = peek();
        at_ += 2;
        TENON_TAKE(value, attribute());
        if (!attrs->emplace(key.text, std::move(*value)).second) {
          return source_.error_at(key.offset, fmt::format("attribute '{}' is given twice", key.text));
        }
      } else {
        TENON_TAKE(arg, expression(builder, "", depth + 1));
        args.push_back(*arg);
      }
      if (!accept(",") && !is(")")) return fail("expected ',' or ')'");
    }
    return {};
  }

  Context& context_;
  const Source& source_;
  std::vector<Token> tokens_;
  std::span<const std::byte> side_;
  size_t at_ = 0;
  Module module_;
  std::unordered_map<std::string, ConstId> constants_;
  std::unordered_map<std::string, Atom> locals_;
  std::vector<Symbol> dims_;  // declared by the function at hand
};

}  // namespace

Expected<Module> parse(Context& context, std::string_view text, std::span<const std::byte> side,
                       std::string_view file) {
  const Source source(text, file);
  auto tokens = tokenize(source);
  if (!tokens) return forward_error(tokens);
  return Parser(context, source, std::move(*tokens), side).run();
}

namespace {
std::filesystem::path side_path(std::filesystem::path path) { return path.replace_extension(".bin"); }
}  // namespace

Status save(const Context& context, const Module& module, const std::filesystem::path& path) {
  const Text text = print(context, module);
  if (!text.side.empty()) {
    if (Status status = runtime::write_file(side_path(path), text.side); !status) return status;
  }
  return runtime::write_file(path, text.text);
}

Expected<Module> load(Context& context, const std::filesystem::path& path) {
  auto text = runtime::read_file(path);
  if (!text) return forward_error(text);
  std::vector<std::byte> side;
  const std::string_view view(reinterpret_cast<const char*>(text->data()), text->size());
  // Whether there is a side file, the header says; without it a file of that name is none of ours.
  if (view.substr(0, view.find('\n')).find("side_bytes") != std::string_view::npos) {
    auto bytes = runtime::read_file(side_path(path));
    if (!bytes) return forward_error(bytes);
    side = std::move(*bytes);
  }
  return parse(context, view, side, path.string());
}

}  // namespace tenon::compiler
