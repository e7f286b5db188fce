// The recursive-descent parser of modules, in two passes: first constants, type definitions and the headers of all
// functions, so that calls and constructors may refer to later definitions; then the bodies.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/ir/adjoint.h"
#include "compiler/ir/text.h"
#include "compiler/ir/text/constant_reader.h"
#include "compiler/ir/text/expression_reader.h"
#include "compiler/ir/text/merge.h"
#include "compiler/ir/text/printer.h"
#include "compiler/ir/verifier.h"
#include "compiler/loop/text.h"
#include "runtime/npy.h"
#include "support/try.h"

namespace tenon::compiler {
namespace {

constexpr std::string_view kVersion = "1";
constexpr std::string_view kTextMember = "module";
constexpr size_t kMaxProblems = 20;  // the limit of reported errors

// Joins several errors into one Diagnostic, which prints each of them as it would print it alone.
Diagnostic joined(std::vector<Diagnostic> problems) {
  Diagnostic first = std::move(problems[0]);
  for (size_t i = 1; i < problems.size(); ++i) first.more.push_back(std::move(problems[i]));
  return first;
}

class Parser {
 public:
  Parser(Context& context, const Source& source, std::vector<Token> tokens, std::span<const std::byte> side,
         const InferOptions& options)
      : context_(context),
        source_(source),
        cursor_(source, std::move(tokens)),
        types_(context, cursor_, defined_),
        side_bytes_(side),
        options_(options) {}

  void set_importer(const Importer* importer) { importer_ = importer; }
  // Sets the content of a side file that has been read already.
  void set_side(runtime::Npz side) { side_ = std::move(side), side_is_set_ = true; }

  Expected<Module> run() {
    TENON_TRY(header());
    TENON_TRY(imports());
    find_definitions();
    items();
    if (problems_.empty()) {
      for (const auto& [name, offset] : adts_) {
        report(offset, check(context_, module_, name, module_.adts.at(name)));
      }
      for (const auto& [name, offset] : libraries_) {
        report(offset, check(context_, module_, *module_.library(name)));
      }
    }
    if (differentiates_ && problems_.empty()) {
      if (Status status = declare_adjoints(context_, module_); !status) problems_.push_back(std::move(status.error()));
    }
    // An error in a header would cause errors at every use of it.
    if (!problems_.empty()) return std::unexpected(joined(std::move(problems_)));
    for (Body& body : bodies_) {
      if (!module_.function(body.name)->result) undeclared_.emplace(body.name, &body);
    }
    for (Body& body : bodies_) {
      infer(body, 0);
      if (problems_.size() >= kMaxProblems) break;
    }
    if (problems_.empty()) {
      for (const auto& [name, offset] : annotated_)
        report(offset, check_annotations(context_, module_, *module_.function(name)));
    }
    if (!problems_.empty()) return std::unexpected(joined(std::move(problems_)));
    return std::move(module_);
  }

 private:
  struct Body {
    Symbol name;
    size_t at;
    TypeScope scope;
    Locals locals;
    enum class State : uint8_t { kWaiting, kOpen, kDone, kFailed } state = State::kWaiting;
  };

  void report(size_t offset, std::optional<Finding> finding) {
    if (finding) problems_.push_back(source_.error_at(offset, finding->what, finding->help).error());
  }

  Status header() {
    if (!cursor_.is("#[") || cursor_.peek(1).text != "version") {
      return cursor_.fail("expected the version", "a module starts with #[version = \"1\"]");
    }
    const size_t offset = cursor_.offset();
    TENON_TRY_ASSIGN(annotations, cursor_.annotations());
    for (const auto& [key, value] : *annotations) {
      auto* text = std::get_if<std::string>(&value);
      if (key == "version" && value != Attr{std::string(kVersion)}) {
        return source_.error_at(offset, fmt::format("version {} is not supported", text ? *text : "without quotes"),
                                fmt::format("the supported version is \"{}\"", kVersion));
      }
      if (key == "side" && !text) return source_.error_at(offset, "the side file's name must be in quotes");
      if (key != "version" && key != "side") {
        return source_.error_at(offset, fmt::format("a module has no annotation '{}'", key),
                                "the annotations are version = \"1\" and side = \"weights.npz\"");
      }
    }
    if (!annotations->contains("side") || side_is_set_) return {};
    auto side = runtime::Npz::open(side_bytes_, std::get<std::string>(annotations->at("side")));
    if (!side) return source_.error_at(offset, "the side file: " + side.error().what, side.error().help);
    side_ = std::move(*side);
    return {};
  }

  // import "layers.tn";
  Status imports() {
    while (cursor_.accept_name("import")) {
      const size_t offset = cursor_.offset();
      TENON_TRY_ASSIGN(name, cursor_.take(Tok::kString, "a file's name, as \"layers.tn\""));
      TENON_TRY(cursor_.expect(";"));
      if (importer_ == nullptr || !*importer_)
        return source_.error_at(offset, "this text cannot import others", "a module in a file can");
      auto imported = (*importer_)(*name);
      if (!imported) {
        if (!imported.error().where.empty()) return std::unexpected(std::move(imported.error()));
        return source_.error_at(offset, imported.error().what, imported.error().help);
      }
      auto conflict = merge(context_, module_, **imported);
      if (!conflict.empty())
        return source_.error_at(offset, fmt::format("{} has another definition in an imported module", conflict));
    }
    for (const auto& [name, adt] : module_.adts) defined_.insert(name);
    return {};
  }

  // Collects the names of all types, so that a definition may use a later definition.
  void find_definitions() {
    const size_t start = cursor_.at();
    for (; cursor_.peek().kind != Tok::kEnd; cursor_.skip()) {
      if (cursor_.is_name("type") && cursor_.peek(1).kind == Tok::kName)
        defined_.insert(context_.symbol(cursor_.peek(1).text));
      differentiates_ |= (cursor_.is_name("gradient") || cursor_.is_name("pullback")) && cursor_.is("(", 1);
    }
    cursor_.go(start);
    // The types of adjoints are declared when all types are known.
    if (!differentiates_) return;
    const std::set<Symbol> names = defined_;
    for (const Symbol name : names) defined_.insert(adjoint_name(context_, name));
  }

  // Parses all items; after an error in an item, it continues with the next item.
  void items() {
    Annotations annotations;
    while (cursor_.peek().kind != Tok::kEnd && problems_.size() < kMaxProblems) {
      const size_t start = cursor_.at();
      if (Status status = item(annotations); !status) {
        problems_.push_back(std::move(status.error()));
        if (cursor_.at() == start) cursor_.skip();
        to_next_item();
      }
    }
  }

  void to_next_item() {
    while (cursor_.peek().kind != Tok::kEnd && !at_item()) cursor_.skip();
  }
  // Whether the line starts with a keyword that cannot begin a line of a body.
  bool at_item() const {
    const bool begins = cursor_.is_name("def") || cursor_.is_name("type") || cursor_.is_name("const") ||
                        cursor_.is_name("extern") || cursor_.is_name("loop") || cursor_.is("#[");
    return begins && source_.location(cursor_.offset()).second == 1;
  }

  struct Annotations {
    std::map<std::string, Attr> list;
    size_t at = 0;
  };

  Status item(Annotations& annotations) {
    if (cursor_.is("#[")) {
      annotations.at = cursor_.offset();
      TENON_TRY_ASSIGN(list, cursor_.annotations());
      annotations.list = std::move(*list);
      return {};
    }
    if (cursor_.accept_name("const")) return constant();
    if (cursor_.accept_name("type")) return definition();
    if (cursor_.accept_name("extern")) return library();
    if (cursor_.is_name("loop")) {
      if (!std::exchange(annotations.list, {}).empty()) {
        return source_.error_at(annotations.at, "a loop function has no annotations");
      }
      return loop_function();
    }
    if (!cursor_.accept_name("def")) return cursor_.fail("expected const, type, extern, loop or def");
    Body body;
    TENON_TRY(signature(body));
    Function& function = *module_.function(body.name);
    if (!annotations.list.empty()) annotated_.emplace_back(body.name, annotations.at);
    for (auto& [key, value] : std::exchange(annotations.list, {})) {
      auto* text = std::get_if<std::string>(&value);
      if (const auto* axes = std::get_if<int64_t>(&value);
          axes && key == "joined_axes" && *axes > 0 && *axes <= UINT32_MAX) {
        function.joined_axes = static_cast<uint32_t>(*axes);
        continue;
      }
      if (!text || (key != "target" && key != "composite" && key != "batched" && key != "gradient")) {
        return source_.error_at(
            annotations.at, fmt::format("a function has no annotation '{}' of this kind", key),
            "the annotations are target, composite, batched, gradient, as gradient = \"...\", and joined_axes = 2");
      }
      if (key == "batched") function.batched = context_.symbol(*text);
      else if (key == "gradient") function.gradient = context_.symbol(*text);
      else (key == "target" ? function.target : function.composite) = *text;
    }
    body.at = cursor_.at();
    TENON_TRY(skip_body());
    bodies_.push_back(std::move(body));
    return {};
  }

  Status constant() {
    const size_t offset = cursor_.offset();
    TENON_TRY_ASSIGN(name, cursor_.take(Tok::kConstant, "a constant, as $0"));
    if (constants_.contains(*name)) return source_.error_at(offset, fmt::format("${} is defined twice", *name));
    TENON_TRY(cursor_.expect(":"));
    const size_t type_at = cursor_.offset();
    TypeScope none;
    TENON_TRY_ASSIGN(type, types_.type(none));
    TENON_TRY(cursor_.expect("="));
    TENON_TRY_ASSIGN(tensor, read_constant(context_, cursor_, *name, *type, type_at, side_));
    TENON_TRY(cursor_.expect(";"));
    constants_.emplace(*name, module_.add_constant(std::move(*tensor)));
    return {};
  }

  // type List[A] { Cons(A, List[A]), Nil }
  Status definition() {
    const size_t offset = cursor_.offset();
    TENON_TRY_ASSIGN(text, cursor_.take(Tok::kName, "a type's name"));
    const Symbol name = context_.symbol(*text);
    TENON_TRY(capital(offset, *text));
    if (module_.adts.contains(name)) return source_.error_at(offset, fmt::format("{} is defined twice", *text));
    Adt adt;
    TypeScope scope;
    TENON_TRY(types_.variables(scope));
    adt.params = scope.unclassified;
    scope.types = std::move(scope.unclassified);
    scope.unclassified.clear();
    TENON_TRY(cursor_.expect("{"));
    TENON_TRY(cursor_.list("}", [&]() -> Status {
      const size_t constructor_at = cursor_.offset();
      Constructor constructor;
      TENON_TRY_ASSIGN(constructor_text, cursor_.take(Tok::kName, "a constructor's name"));
      TENON_TRY(capital(constructor_at, *constructor_text));
      constructor.name = context_.symbol(*constructor_text);
      const bool again =
          std::ranges::find(adt.constructors, constructor.name, &Constructor::name) != adt.constructors.end();
      if (again || module_.constructor(constructor.name)) {
        return source_.error_at(constructor_at, fmt::format("there are two constructors {}", *constructor_text));
      }
      if (cursor_.accept("(")) {
        TENON_TRY(cursor_.list(")", [&]() -> Status {
          TENON_TRY_ASSIGN(field, types_.type(scope));
          constructor.fields.push_back(*field);
          return {};
        }));
      }
      adt.constructors.push_back(std::move(constructor));
      return {};
    }));
    module_.adts.emplace(name, std::move(adt));
    adts_.emplace(name, offset);
    return {};
  }
  Status capital(size_t offset, const std::string& text) const {
    if (text[0] >= 'A' && text[0] <= 'Z' && text != "Tensor" && text != "Ref") return {};
    return source_.error_at(offset, fmt::format("{} cannot be defined", text),
                            "names of types and constructors start with a capital; Tensor and Ref are reserved");
  }

  Expected<Symbol> global_name() {
    const size_t offset = cursor_.offset();
    TENON_TRY_ASSIGN(text, cursor_.take(Tok::kGlobal, "a function's name, as @main"));
    const Symbol name = context_.symbol(*text);
    if (module_.globals.contains(name)) return source_.error_at(offset, fmt::format("@{} is defined twice", *text));
    return name;
  }

  // extern @sort[n](Tensor[(n,), f32]) -> Tensor[(n,), f32] = "library.sort";
  Status library() {
    const size_t offset = cursor_.offset();
    TENON_TRY_ASSIGN(name, global_name());
    Library library;
    TypeScope scope;
    TENON_TRY(types_.variables(scope));
    const std::vector<Symbol> order = scope.unclassified;
    TENON_TRY(cursor_.expect("("));
    TENON_TRY(cursor_.list(")", [&]() -> Status {
      TENON_TRY_ASSIGN(param, types_.type(scope));
      library.params.push_back(*param);
      return {};
    }));
    TENON_TRY(cursor_.expect("->"));
    TENON_TRY_ASSIGN(result, types_.type(scope));
    library.result = *result;
    TENON_TRY(cursor_.expect("="));
    TENON_TRY_ASSIGN(symbol, cursor_.take(Tok::kString, "the library's symbol, as \"blas.gemm\""));
    library.symbol = std::move(*symbol);
    TENON_TRY(cursor_.expect(";"));
    TypeReader::classify(scope, order);
    for (Type& param : library.params) param = types_.opened(scope, param);
    library.bounds = scope.bounds;
    library.dims = scope.dims;
    library.types = scope.types;
    libraries_.emplace(*name, offset);
    module_.globals.emplace(*name, std::move(library));
    return {};
  }

  // loop @f[n](%x: Tensor[(n,), f32]) -> (%y: Tensor[(n,), f32]) { ... }
  Status loop_function() {
    const size_t begin = cursor_.at();
    cursor_.skip();
    const size_t offset = cursor_.offset();
    TENON_TRY(global_name());
    cursor_.go(begin);
    TENON_TRY_ASSIGN(function, loop::parse(context_, cursor_));
    const Symbol name = function->name;
    module_.globals.emplace(name, std::move(*function));
    report(offset, check(context_, module_, name, *module_.loop_function(name)));
    return {};
  }

  // def @f[N](%x: TYPE, ...) -> TYPE
  Status signature(Body& body) {
    TENON_TRY_ASSIGN(name, global_name());
    body.name = *name;
    Function function;
    TENON_TRY(types_.variables(body.scope));
    const std::vector<Symbol> order = body.scope.unclassified;
    TENON_TRY(cursor_.expect("("));
    TENON_TRY(cursor_.list(")", [&]() -> Status {
      const size_t offset = cursor_.offset();
      TENON_TRY_ASSIGN(param, cursor_.take(Tok::kLocal, "a parameter, as %x"));
      TENON_TRY(cursor_.expect(":"));
      TENON_TRY_ASSIGN(type, types_.type(body.scope));
      const auto id = static_cast<VarId>(function.vars.size());
      function.vars.push_back({*type, context_.symbol(*param), span(offset)});
      function.params.push_back(id);
      if (body.locals.emplace(*param, id).second) return {};
      return source_.error_at(offset, fmt::format("%{} is defined twice", *param));
    }));
    if (cursor_.accept("->")) {
      TENON_TRY_ASSIGN(result, types_.type(body.scope));
      function.result = *result;
    } else if (!cursor_.is("{")) {
      return cursor_.fail("expected '->' and the result's type, or the body");
    }
    TypeReader::classify(body.scope, order);
    for (VarId param : function.params) {
      Type& type = function.vars[index(param)].type;
      type = types_.opened(body.scope, type);
    }
    function.bounds = body.scope.bounds;
    function.dims = body.scope.dims;
    function.types = body.scope.types;
    module_.globals.emplace(*name, std::move(function));
    return {};
  }

  Status skip_body() {
    if (!cursor_.is("{")) return cursor_.fail("expected '{'");
    int depth = 0;
    const size_t start = cursor_.offset();
    do {
      if (cursor_.peek().kind == Tok::kEnd || at_item()) {
        const auto [line, column] = source_.location(start);
        return cursor_.fail("expected '}'", fmt::format("the '{{' of line {} is not closed", line));
      }
      if (cursor_.is("{")) ++depth;
      if (cursor_.is("}")) --depth;
      cursor_.skip();
    } while (depth > 0);
    return {};
  }

  // Infers one function, after the functions whose undeclared results it depends on.
  void infer(Body& body, int depth) {
    if (body.state != Body::State::kWaiting) return;
    body.state = Body::State::kOpen;
    Status status = callees(body, depth);
    const bool callees_inferred = body.state == Body::State::kOpen;
    if (status && callees_inferred) status = function(body);
    if (!status) problems_.push_back(std::move(status.error()));
    body.state = status && callees_inferred ? Body::State::kDone : Body::State::kFailed;
  }
  // Infers the functions without a declared result that the body refers to. Where one of them fails, the body fails
  // without another message.
  Status callees(Body& body, int depth) {
    if (undeclared_.empty()) return {};
    cursor_.go(body.at);
    int open = 0;
    do {
      const Token token = cursor_.peek();
      if (token.kind == Tok::kEnd) break;
      if (cursor_.is("{")) ++open;
      if (cursor_.is("}")) --open;
      cursor_.skip();
      auto found = token.kind == Tok::kGlobal ? undeclared_.find(context_.symbol(token.text)) : undeclared_.end();
      if (found == undeclared_.end()) continue;
      Body& callee = *found->second;
      if (callee.state == Body::State::kOpen || depth > kMaxNesting) {
        return source_.error_at(token.offset, fmt::format("the result of @{} must be annotated", token.text),
                                "add -> TYPE after its parameters: the function calls itself, or its chain of calls is "
                                "too long");
      }
      const size_t at = cursor_.at();
      infer(callee, depth + 1);
      cursor_.go(at);
      if (callee.state == Body::State::kFailed) body.state = Body::State::kFailed;
    } while (open > 0);
    return {};
  }

  // The body is built in a draft; the entry of the module stays a header until the draft is complete.
  Status function(Body& body) {
    cursor_.go(body.at);
    Draft draft(context_, *module_.function(body.name));
    const std::function<SpanId(size_t)> make_span = [this](size_t offset) { return span(offset); };
    ExpressionReader reader(context_, module_, cursor_, types_, constants_, draft, std::move(body.scope),
                            std::move(body.locals), make_span);
    TENON_TRY_ASSIGN(block, reader.block(0));
    draft.function.body = std::move(*block);
    TENON_TRY_ASSIGN(done, elaborate(context_, module_, std::move(draft), options_, source_,
                                     [this](SpanId id) { return offsets_[index(id)]; }));
    *module_.function(body.name) = std::move(*done);
    return {};
  }

  SpanId span(size_t offset) {
    const auto [line, column] = source_.location(offset);
    offsets_.resize(module_.spans.size(), 0);
    offsets_.push_back(offset);
    return module_.add_span(Span{std::string(source_.file()), "", "", line, column});
  }

  Context& context_;
  const Source& source_;
  Cursor cursor_;
  std::set<Symbol> defined_;
  bool differentiates_ = false;  // whether the text has a gradient or a pullback
  TypeReader types_;
  std::span<const std::byte> side_bytes_;
  const Importer* importer_ = nullptr;
  runtime::Npz side_;
  bool side_is_set_ = false;
  InferOptions options_;
  Module module_;
  std::vector<Diagnostic> problems_;
  Constants constants_;
  std::map<Symbol, size_t> adts_, libraries_;         // the offsets of their definitions
  std::vector<std::pair<Symbol, size_t>> annotated_;  // functions, with the offsets of their annotations
  std::vector<Body> bodies_;
  std::map<Symbol, Body*> undeclared_;  // functions without a declared result
  std::vector<size_t> offsets_;         // by span
};

}  // namespace

Expected<Module> parse(Context& context, std::string_view text, std::span<const std::byte> side, std::string_view file,
                       const InferOptions& options, const Importer& importer) {
  const Source source(text, file);
  TENON_TRY_ASSIGN(tokens, tokenize(source));
  Parser parser(context, source, std::move(*tokens), side, options);
  parser.set_importer(&importer);
  return parser.run();
}

// The text is a member of the archive as the constants are, so that only one reader must be safe against hostile bytes.
Expected<Module> from_binary(Context& context, std::span<const std::byte> bytes, std::string_view file) {
  constexpr const char* kHelp = "tenon convert writes a module into a .tnb";
  auto members = runtime::Npz::open(bytes, file);
  if (!members) return error("not a module in the binary form: " + members.error().what, members.error().where, kHelp);
  if (!members->contains(kTextMember)) return error("the archive has no module", std::string(file), kHelp);
  const auto text = members->read(kTextMember);
  if (!text) return error("not a module in the binary form: " + text.error().what, text.error().where, kHelp);
  if (text->dtype() != DType::kU8) return error("the archive has no module", std::string(file), kHelp);
  const auto characters = text->bytes();
  const Source source({reinterpret_cast<const char*>(characters.data()), characters.size()}, file);
  TENON_TRY_ASSIGN(tokens, tokenize(source));
  Parser parser(context, source, std::move(*tokens), {}, {});
  parser.set_side(std::move(*members));
  return parser.run();
}

std::vector<std::byte> to_binary(const Context& context, const Module& module) {
  PrintedModule printed = print_parts(context, module, {});
  const auto text = std::as_bytes(std::span(printed.text));
  runtime::Tensor tensor(DType::kU8, {static_cast<int64_t>(text.size())});
  std::ranges::copy(text, tensor.bytes().begin());
  printed.side.emplace(kTextMember, std::move(tensor));
  return runtime::to_npz(printed.side, true);
}

}  // namespace tenon::compiler
