// Recursive descent in two passes: first constants, type definitions and the headers of all functions, so that calls
// and constructors are known whatever the order; then the bodies.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/text.h"
#include "compiler/ir/text/constant_reader.h"
#include "compiler/ir/text/expression_reader.h"
#include "compiler/ir/try.h"
#include "compiler/ir/verifier.h"
#include "runtime/file.h"

namespace tenon::compiler {
namespace {

constexpr std::string_view kVersion = "1";

class Parser {
 public:
  Parser(Context& context, const Source& source, std::vector<Token> tokens, std::span<const std::byte> side)
      : context_(context),
        source_(source),
        cursor_(source, std::move(tokens)),
        types_(context, cursor_, defined_),
        side_(side) {}

  Expected<Module> run() {
    TENON_TRY(header());
    find_definitions();
    TENON_TRY(items());
    for (const auto& [name, offset] : adts_) {
      if (auto finding = check(context_, module_, name, module_.adts.at(name))) {
        return source_.error_at(offset, finding->what, finding->help);
      }
    }
    for (const auto& [name, offset] : libraries_) {
      if (auto finding = check(context_, module_, *module_.library(name))) {
        return source_.error_at(offset, finding->what, finding->help);
      }
    }
    for (Body& body : bodies_) TENON_TRY(function(body));
    return std::move(module_);
  }

 private:
  struct Body {
    Symbol name;
    size_t at;
    TypeScope scope;
    Locals locals;
  };

  Status header() {
    if (!cursor_.is("#[") || cursor_.peek(1).text != "version") {
      return cursor_.fail("expected the version", "a module starts with #[version = \"1\"]");
    }
    const size_t offset = cursor_.offset();
    TENON_TAKE(marks, cursor_.marks());
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

  // The names of all types, so that a definition may name a later one.
  void find_definitions() {
    const size_t start = cursor_.at();
    for (; cursor_.peek().kind != Tok::kEnd; cursor_.skip()) {
      if (cursor_.is_name("type") && cursor_.peek(1).kind == Tok::kName)
        defined_.insert(context_.symbol(cursor_.peek(1).text));
    }
    cursor_.go(start);
  }

  Status items() {
    std::map<std::string, Attr> marks;
    size_t marks_at = 0;
    while (cursor_.peek().kind != Tok::kEnd) {
      if (cursor_.is("#[")) {
        marks_at = cursor_.offset();
        TENON_TAKE(list, cursor_.marks());
        marks = std::move(*list);
      } else if (cursor_.accept_name("const")) {
        TENON_TRY(constant());
      } else if (cursor_.accept_name("type")) {
        TENON_TRY(definition());
      } else if (cursor_.accept_name("extern")) {
        TENON_TRY(library());
      } else if (cursor_.accept_name("def")) {
        Body body;
        TENON_TRY(signature(body));
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
        body.at = cursor_.at();
        TENON_TRY(skip_body());
        bodies_.push_back(std::move(body));
      } else {
        return cursor_.fail("expected const, type, extern or def");
      }
    }
    return {};
  }

  Status constant() {
    const size_t offset = cursor_.offset();
    TENON_TAKE(name, cursor_.take(Tok::kConstant, "a constant, as $0"));
    if (constants_.contains(*name)) return source_.error_at(offset, fmt::format("${} is defined twice", *name));
    TENON_TRY(cursor_.expect(":"));
    const size_t type_at = cursor_.offset();
    TypeScope none;
    TENON_TAKE(type, types_.type(none));
    TENON_TRY(cursor_.expect("="));
    TENON_TAKE(tensor, read_constant(context_, cursor_, *type, type_at, side_));
    TENON_TRY(cursor_.expect(";"));
    constants_.emplace(*name, module_.add_constant(std::move(*tensor)));
    return {};
  }

  // type List[A] { Cons(A, List[A]), Nil }
  Status definition() {
    const size_t offset = cursor_.offset();
    TENON_TAKE(text, cursor_.take(Tok::kName, "a type's name"));
    const Symbol name = context_.symbol(*text);
    TENON_TRY(capital(offset, *text));
    if (module_.adts.contains(name)) return source_.error_at(offset, fmt::format("{} is defined twice", *text));
    Adt adt;
    TypeScope scope;
    TENON_TRY(types_.variables(scope));
    adt.params = scope.undecided;
    scope.types = std::move(scope.undecided);
    scope.undecided.clear();
    TENON_TRY(cursor_.expect("{"));
    TENON_TRY(cursor_.list("}", [&]() -> Status {
      const size_t constructor_at = cursor_.offset();
      Constructor constructor;
      TENON_TAKE(constructor_text, cursor_.take(Tok::kName, "a constructor's name"));
      TENON_TRY(capital(constructor_at, *constructor_text));
      constructor.name = context_.symbol(*constructor_text);
      const bool again =
          std::ranges::find(adt.constructors, constructor.name, &Constructor::name) != adt.constructors.end();
      if (again || module_.constructor(constructor.name)) {
        return source_.error_at(constructor_at, fmt::format("there are two constructors {}", *constructor_text));
      }
      if (cursor_.accept("(")) {
        TENON_TRY(cursor_.list(")", [&]() -> Status {
          TENON_TAKE(field, types_.type(scope));
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
                            "names of types and constructors start with a capital; Tensor and Ref are taken");
  }

  Expected<Symbol> global_name() {
    const size_t offset = cursor_.offset();
    TENON_TAKE(text, cursor_.take(Tok::kGlobal, "a function's name, as @main"));
    const Symbol name = context_.symbol(*text);
    if (module_.globals.contains(name)) return source_.error_at(offset, fmt::format("@{} is defined twice", *text));
    return name;
  }

  // extern @sort[n](Tensor[(n,), f32]) -> Tensor[(n,), f32] = "library.sort";
  Status library() {
    const size_t offset = cursor_.offset();
    TENON_TAKE(name, global_name());
    Library library;
    TypeScope scope;
    TENON_TRY(types_.variables(scope));
    const std::vector<Symbol> order = scope.undecided;
    TENON_TRY(cursor_.expect("("));
    TENON_TRY(cursor_.list(")", [&]() -> Status {
      TENON_TAKE(param, types_.type(scope));
      library.params.push_back(*param);
      return {};
    }));
    TENON_TRY(cursor_.expect("->"));
    TENON_TAKE(result, types_.type(scope));
    library.result = *result;
    TENON_TRY(cursor_.expect("="));
    TENON_TAKE(symbol, cursor_.take(Tok::kString, "the library's symbol, as \"blas.gemm\""));
    library.symbol = std::move(*symbol);
    TENON_TRY(cursor_.expect(";"));
    TypeReader::decide(scope, order);
    library.dims = scope.dims;
    library.types = scope.types;
    libraries_.emplace(*name, offset);
    module_.globals.emplace(*name, std::move(library));
    return {};
  }

  // def @f[N](%x: TYPE, ...) -> TYPE
  Status signature(Body& body) {
    TENON_TAKE(name, global_name());
    body.name = *name;
    Function function;
    TENON_TRY(types_.variables(body.scope));
    const std::vector<Symbol> order = body.scope.undecided;
    TENON_TRY(cursor_.expect("("));
    TENON_TRY(cursor_.list(")", [&]() -> Status {
      const size_t offset = cursor_.offset();
      TENON_TAKE(param, cursor_.take(Tok::kLocal, "a parameter, as %x"));
      TENON_TRY(cursor_.expect(":"));
      TENON_TAKE(type, types_.type(body.scope));
      const auto id = static_cast<VarId>(function.vars.size());
      function.vars.push_back({*type, context_.symbol(*param), span(offset)});
      function.params.push_back(id);
      if (body.locals.emplace(*param, id).second) return {};
      return source_.error_at(offset, fmt::format("%{} is defined twice", *param));
    }));
    TENON_TRY(cursor_.expect("->"));
    TENON_TAKE(result, types_.type(body.scope));
    function.result = *result;
    TypeReader::decide(body.scope, order);
    function.dims = body.scope.dims;
    function.types = body.scope.types;
    module_.globals.emplace(*name, std::move(function));
    return {};
  }

  Status skip_body() {
    if (!cursor_.is("{")) return cursor_.fail("expected '{'");
    int depth = 0;
    do {
      if (cursor_.peek().kind == Tok::kEnd) return cursor_.fail("expected '}'");
      if (cursor_.is("{")) ++depth;
      if (cursor_.is("}")) --depth;
      cursor_.skip();
    } while (depth > 0);
    return {};
  }

  // The body is built beside the module, whose entry stays a header until it is done.
  Status function(Body& body) {
    cursor_.go(body.at);
    Draft draft(context_);
    draft.function = *module_.function(body.name);
    const std::function<SpanId(size_t)> make_span = [this](size_t offset) { return span(offset); };
    ExpressionReader reader(context_, module_, cursor_, types_, constants_, draft, std::move(body.scope),
                            std::move(body.locals), make_span);
    TENON_TAKE(block, reader.block(0));
    draft.function.body = std::move(*block);
    TENON_TAKE(done, elaborate(context_, module_, std::move(draft), source_,
                               [this](SpanId id) { return offsets_[index(id)]; }));
    *module_.function(body.name) = std::move(*done);
    return {};
  }

  SpanId span(size_t offset) {
    const auto [line, column] = source_.place(offset);
    offsets_.resize(module_.spans.size(), 0);
    offsets_.push_back(offset);
    return module_.add_span(Span{std::string(source_.file()), "", "", line, column});
  }

  Context& context_;
  const Source& source_;
  Cursor cursor_;
  std::set<Symbol> defined_;
  TypeReader types_;
  std::span<const std::byte> side_;
  Module module_;
  Constants constants_;
  std::map<Symbol, size_t> adts_, libraries_;  // and where they are defined
  std::vector<Body> bodies_;
  std::vector<size_t> offsets_;  // by span
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
