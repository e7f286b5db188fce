#include "compiler/plugin/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "compiler/ir/builder.h"
#include "compiler/ir/context.h"
#include "compiler/partition/outline.h"
#include "compiler/partition/pattern_text.h"
#include "compiler/plugin/region.h"
#include "compiler/plugin/target.h"
#include "runtime/library/library.h"
#include "support/try.h"

namespace tenon::compiler::plugin {
namespace {

constexpr uint32_t kMaxRows = 1000, kMaxConstants = 1000;
constexpr uint32_t kMessageBytes = 512;
constexpr std::string_view kAxes = "NCDHW";  // of plain layouts, in their order

// The first byte of an answer.
enum class Answer : char { kDone = 'd', kRefused = 'r', kFailed = 'f' };

// Numbers and texts one after the other, between the two processes.
class Packer {
 public:
  Packer() = default;
  explicit Packer(Answer answer) : bytes_(1, static_cast<char>(answer)) {}
  Packer& number(uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Packer& text(std::string_view text) {
    number(text.size());
    bytes_ += text;
    return *this;
  }
  Packer& text(const char* text) { return this->text(std::string_view(text ? text : "")); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Foreign code has run in the process that wrote the bytes: what is missing reads as 0 or as empty, and `valid` as
// false.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  // After its first byte.
  static Unpacker payload(std::string_view answer) { return Unpacker(answer.substr(1)); }
  bool valid() const { return valid_; }
  Answer answer() {
    const std::string_view first = take(1);
    return first.empty() ? Answer::kFailed : static_cast<Answer>(first[0]);
  }
  uint64_t number() {
    uint64_t value = 0;
    const std::string_view bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view text() { return take(number()); }

 private:
  std::string_view take(uint64_t count) {
    valid_ = valid_ && count <= bytes_.size();
    if (!valid_) return {};
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view bytes_;
  bool valid_ = true;
};

// What a plugin says of itself.
struct Row {
  std::string composite, pattern;
  uint64_t flags = 0;
};
struct Description {
  std::string name, doc;
  uint64_t flags = 0;
  std::vector<Row> rows;
  bool has_accepts = false, has_cost = false, has_boundary = false;
};

// In the child, like all functions that have a ChildOutput.
void fail(ChildOutput& output, std::string_view what) { output.answer(Packer(Answer::kFailed).text(what).bytes()); }

// nullptr after an answer that says what is wrong.
const tn_target* open_target(ChildOutput& output, const std::filesystem::path& file) {
  output.step("opening the file");
  void* opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    fail(output, fmt::format("it cannot be opened: {}", dlerror()));
    return nullptr;
  }
  const auto get = reinterpret_cast<decltype(&tn_target_get)>(dlsym(opened, "tn_target_get"));
  if (!get) {
    fail(output, "it does not export tn_target_get");
    return nullptr;
  }
  output.step("tn_target_get");
  const tn_target* target = get();
  if (!target) fail(output, "tn_target_get returned NULL");
  else if (target->abi == 0 || target->abi > TN_TARGET_ABI) {
    fail(output, fmt::format("it has version {} of compiler/plugin/target.h, this compiler has {}", target->abi,
                             int{TN_TARGET_ABI}));
    target = nullptr;
  }
  return target;
}

void describe(ChildOutput& output, const std::filesystem::path& file) {
  const tn_target* target = open_target(output, file);
  if (!target) return;
  output.step("reading what tn_target_get returned");
  if (!target->compile) return fail(output, "it has no function compile");
  if (target->rows == 0 || target->rows > kMaxRows || !target->row)
    return fail(output, fmt::format("it has {} rows, must have 1 to {}", target->rows, kMaxRows));
  Packer packer(Answer::kDone);
  packer.text(target->name).text(target->doc).number(target->flags).number(target->rows);
  for (uint32_t i = 0; i < target->rows; ++i)
    packer.text(target->row[i].name).text(target->row[i].pattern).number(target->row[i].flags);
  packer.number(target->accepts != nullptr).number(target->cost != nullptr).number(target->boundary != nullptr);
  output.answer(packer.bytes());
}

Description unpack_description(Unpacker& bytes) {
  Description description;
  description.name = bytes.text();
  description.doc = bytes.text();
  description.flags = bytes.number();
  const uint64_t rows = bytes.number();
  for (uint64_t i = 0; i < rows && bytes.valid(); ++i) {
    Row row;
    row.composite = fmt::format("{}.{}", description.name, bytes.text());
    row.pattern = bytes.text();
    row.flags = bytes.number();
    description.rows.push_back(std::move(row));
  }
  description.has_accepts = bytes.number() != 0;
  description.has_cost = bytes.number() != 0;
  description.has_boundary = bytes.number() != 0;
  return description;
}

// Why a target of regions in flat arrays has no row of this pattern; empty: it may have one.
struct Unsupported {
  std::string_view why, help;
};
Unsupported unsupported(const GraphPattern& pattern, bool is_root) {
  using Kind = GraphPattern::Kind;
  constexpr std::string_view kBegin = "begin it with an operator";
  switch (pattern.kind) {
    case Kind::kAny:
    case Kind::kConstant:
      if (is_root) return {"matches values that no operator computes", kBegin};
      break;
    case Kind::kTuple:
      if (is_root) return {"has a tuple as its root", kBegin};
      break;
    case Kind::kField:
      if (is_root)
        return {"has a field as its root",
                "begin it with the operator of the tuple: its results are those of the region"};
      break;
    case Kind::kBranch:
      return {"has an if, and a region is operators of one block",
              "write a row for what an arm computes, where it is matched"};
    case Kind::kFunction:
      return {"has a call of a function, and a region is operators of one block",
              "write a row for what the function computes, where it is matched"};
    case Kind::kOp:
    case Kind::kEither:
    case Kind::kOptional:
    case Kind::kPath: break;
  }
  for (size_t i = 0; i < pattern.parts.size(); ++i) {
    // An alternative, what an optional operator may leave, the end of a path.
    const bool is_same = pattern.kind == Kind::kEither || (pattern.kind == Kind::kOptional && i == 0) ||
                         (pattern.kind == Kind::kPath && i == 2);
    const Unsupported found = unsupported(pattern.parts[i], is_root && is_same);
    if (!found.why.empty()) return found;
  }
  return {};
}

// A plugin whose functions are called; copies of its target share it.
class Plugin {
 public:
  Plugin(std::filesystem::path file, const Limits& limits) : file_(std::move(file)), limits_(limits) {}

  const Description& description() const { return description_; }

  Status open() {
    TENON_TRY_ASSIGN(answer, call_in_child([&](ChildOutput& output) { describe(output, file_); }, limits_));
    Unpacker bytes(*answer);
    if (bytes.answer() != Answer::kDone) return error(std::string(bytes.text()));
    description_ = unpack_description(bytes);
    if (!bytes.valid()) return error("what it says of itself cannot be read");
    if (!runtime::is_library_name(description_.name)) {
      return error(fmt::format("its target is '{}', must be small letters, digits and underscores", description_.name));
    }
    const std::string expected = runtime::library_name(file_);
    if (description_.name != expected) {
      return error(
          fmt::format("its target is '{}', and by its name the file is that of '{}'", description_.name, expected), {},
          "call it NAME.so, libNAME.so or tenon-kernels-NAME.so, where NAME does not begin with lib: the run time "
          "finds it "
          "by this name");
    }
    Context context;
    std::set<std::string_view> names;
    for (const Row& row : description_.rows) {
      composites_.push_back(row.composite);
      if (row.composite.size() == description_.name.size() + 1) return error("a row has no name");
      if (!names.insert(row.composite).second) return error(fmt::format("two rows are called {}", row.composite));
      TENON_TRY_ASSIGN(pattern, read_pattern(context, row.pattern, fmt::format("pattern of {}", row.composite)));
      if (const auto [why, advice] = unsupported(*pattern, true); !why.empty()) {
        return error(fmt::format("the pattern of {}, '{}', {}", row.composite, row.pattern, why), {},
                     std::string(advice));
      }
      patterns_.push_back(*std::move(pattern));
    }
    return {};
  }

  // `self` is this plugin.
  static Target target(const std::shared_ptr<Plugin>& self) {
    const Description& description = self->description_;
    Target target;
    target.name = description.name;
    target.documentation = description.doc;
    target.integer_layers = (description.flags & TN_TARGET_INTEGER_LAYERS) != 0;
    target.failure = [self] { return self->failure_; };
    for (uint32_t row = 0; row < self->patterns_.size(); ++row) {
      const auto accepts = [self, row](Context& context, const Module& module, const Function& function,
                                       const Match&) -> Status {
        TENON_TRY_ASSIGN(flat, flatten_composite(context, module, function, row));
        return self->accepts(*flat);
      };
      const uint64_t flags = description.rows[row].flags;
      target.patterns.push_back({.composite = self->composites_[row],
                                 .pattern = self->patterns_[row],
                                 .accepts = accepts,
                                 .rows = (flags & TN_ROW_ROWS) != 0,
                                 .of_own_results = (flags & TN_ROW_OWN_RESULTS) != 0});
    }
    target.fits = [self](Context& context, const Module& module, const Function& region) -> Status {
      TENON_TRY_ASSIGN(flat, flatten_region(context, module, region, self->composites_));
      if (flat->region().layers == 1) return {};
      if ((self->description_.flags & TN_TARGET_REGIONS) == 0) return error("each match is a region of its own");
      return self->accepts(*flat);
    };
    if (description.has_cost) {
      target.cost = [self](Context& context, const Module& module, const Function& composite, const Costs&) {
        return self->cost(context, module, composite);
      };
    }
    if (description.has_boundary) {
      target.boundary = [self](Context& context, const Module& module, const Function& region) {
        return self->boundary(context, module, region);
      };
    }
    target.generate = [self](Context& context, const Module& module, Symbol, const Function& region) {
      return self->generate(context, module, region);
    };
    return target;
  }

 private:
  using Step = FunctionRef<void(const tn_target&, ChildOutput&)>;

  // The answer, which is Answer::kDone. The first failure is kept: nothing is asked after it.
  Expected<std::string> call(std::string_view function, Step step) {
    if (failure_) return std::unexpected(*failure_);
    const auto in_child = [&](ChildOutput& output) {
      const tn_target* target = open_target(output, file_);
      if (!target) return;
      output.step(function);
      step(*target, output);
    };
    auto answer = call_in_child(in_child, limits_);
    if (!answer) {
      // A machine without room for a process is no fault of the plugin.
      if (answer.error().fault == Fault::kInternal) return std::unexpected(std::move(answer.error()));
      return std::unexpected(failed(answer.error().what));
    }
    Unpacker bytes(*answer);
    switch (bytes.answer()) {
      case Answer::kDone: return answer;
      case Answer::kRefused: return error(fmt::format("{}: {}", description_.name, bytes.text()));
      case Answer::kFailed: return std::unexpected(failed(bytes.text()));
    }
    return std::unexpected(failed(fmt::format("the answer of {} cannot be read", function)));
  }

  Diagnostic failed(std::string_view what) {
    failure_ = error(fmt::format("the plugin {}: {}", description_.name, what), file_.string(),
                     "tenon plugin check finds out more; --fallback interpreter compiles without the plugin")
                   .error();
    return *failure_;
  }

  Status accepts(const FlatRegion& flat) {
    if (failure_) return std::unexpected(*failure_);
    if (!description_.has_accepts) return {};
    std::string key = key_of(flat);
    if (const auto known = accepted_.find(key); known != accepted_.end()) return known->second;
    const auto answer = call("accepts", [&](const tn_target& target, ChildOutput& output) {
      std::array<char, kMessageBytes> message{};
      if (target.accepts(&flat.region(), message.data(), kMessageBytes) == 0)
        return output.answer(Packer(Answer::kDone).bytes());
      message.back() = 0;
      output.answer(Packer(Answer::kRefused).text(message[0] ? message.data() : "accepts refuses it").bytes());
    });
    Status status = answer ? Status() : std::unexpected(answer.error());
    const bool is_answer = status || status.error().fault != Fault::kInternal;
    if (is_answer) accepted_.emplace(std::move(key), status);
    return status;
  }

  // In the child.
  static void answer_failure(ChildOutput& output, std::string_view function, std::array<char, kMessageBytes>& message) {
    message.back() = 0;
    fail(output, fmt::format("{} failed: {}", function, message[0] ? message.data() : "it gives no reason"));
  }

  Expected<Price> cost(Context& context, const Module& module, const Function& composite) {
    const auto row = std::ranges::find(composites_, composite.composite);
    if (row == composites_.end()) return error(fmt::format("no row is called '{}'", composite.composite));
    TENON_TRY_ASSIGN(flat,
                     flatten_composite(context, module, composite, static_cast<uint32_t>(row - composites_.begin())));
    TENON_TRY_ASSIGN(answer, call("cost", [&](const tn_target& target, ChildOutput& output) {
                       std::array<char, kMessageBytes> message{};
                       double seconds = std::nan("");
                       if (target.cost(&flat->region(), &seconds, message.data(), kMessageBytes) != 0)
                         return answer_failure(output, "cost", message);
                       output.answer(Packer(Answer::kDone).number(std::bit_cast<uint64_t>(seconds)).bytes());
                     }));
    const double seconds = std::bit_cast<double>(Unpacker::payload(*answer).number());
    if (!(seconds >= 0 && seconds <= kMostSeconds)) {
      return std::unexpected(failed(fmt::format("cost says that {} takes {} seconds, must be from 0 to {}",
                                                composite.composite, seconds, kMostSeconds)));
    }
    return Price{.seconds = seconds, .source = fmt::format("cost of the plugin {}", description_.name)};
  }

  Expected<Boundary> boundary(Context& context, const Module& module, const Function& region) {
    TENON_TRY_ASSIGN(flat, flatten_region(context, module, region, composites_));
    const tn_region& asked = flat->region();
    const size_t count = size_t{asked.params} + asked.results;
    std::string key = key_of(*flat);
    if (const auto known = boundaries_.find(key); known != boundaries_.end()) return known->second;
    TENON_TRY_ASSIGN(answer, call("boundary", [&](const tn_target& target, ChildOutput& output) {
                       std::array<char, kMessageBytes> message{};
                       std::vector<const char*> layouts(count, "");
                       if (target.boundary(&asked, layouts.data(), message.data(), kMessageBytes) != 0)
                         return answer_failure(output, "boundary", message);
                       Packer packer(Answer::kDone);
                       for (const char* layout : layouts) packer.text(layout);
                       output.answer(packer.bytes());
                     }));
    Unpacker bytes = Unpacker::payload(*answer);
    Boundary boundary;
    for (size_t i = 0; i < count; ++i) {
      const bool is_param = i < asked.params;
      const uint32_t value = is_param ? asked.param[i] : asked.result[i - asked.params];
      auto layout = read_layout(context, asked.value[value], bytes.text());
      if (!layout) {
        return std::unexpected(failed(fmt::format("boundary: the layout of {} {}: {}", is_param ? "param" : "result",
                                                  is_param ? i : i - asked.params, layout.error().what)));
      }
      (is_param ? boundary.params : boundary.results).push_back(*std::move(layout));
    }
    boundaries_.emplace(std::move(key), boundary);
    return boundary;
  }

  // The stored layout with its plain one, which a value can have.
  static Expected<BoundaryLayout> read_layout(Context& context, const tn_value& value, std::string_view stored) {
    if (stored.empty()) return BoundaryLayout{};
    BoundaryLayout layout{.plain = {}, .stored = std::string(stored)};
    for (const char axis : kAxes) {
      if (stored.find(axis) != std::string_view::npos) layout.plain += axis;
    }
    if (layout.plain.size() != value.rank) {
      return error(fmt::format("'{}' has {} of the axes {}, and the value has {}", stored, layout.plain.size(), kAxes,
                               value.rank));
    }
    Module module;
    Function scratch;
    Builder builder(context, module, scratch);
    const runtime::Shape shape(value.sizes, value.sizes + value.rank);
    const Type type = context.tensor(shape, static_cast<DType>(value.dtype));
    TENON_TRY(store_as(context, builder, builder.param(type, "x"), {&layout, 1}, type, context.symbol("x")));
    return layout;
  }

  Expected<RegionKernel> generate(Context& context, const Module& module, const Function& region) {
    TENON_TRY_ASSIGN(flat, flatten_region(context, module, region, composites_));
    const tn_region& asked = flat->region();
    TENON_TRY_ASSIGN(
        answer, call("compile", [&](const tn_target& target, ChildOutput& output) {
          std::array<char, kMessageBytes> message{};
          tn_artifact artifact{};
          artifact.size = sizeof artifact;
          if (target.compile(&asked, &artifact, message.data(), kMessageBytes) != 0)
            return answer_failure(output, "compile", message);
          if (artifact.bytes != 0 && !artifact.data)
            return fail(output, fmt::format("compile returned NULL for {} bytes", artifact.bytes));
          if (artifact.bytes > limits_.memory)
            return fail(output,
                        fmt::format("compile returned {} bytes, must be at most {}", artifact.bytes, limits_.memory));
          if (artifact.constants > kMaxConstants)
            return fail(output, fmt::format("compile returned {} constants, must be at most {}", artifact.constants,
                                            kMaxConstants));
          Packer head(Answer::kDone), tail;
          head.text(artifact.kernel ? artifact.kernel : "run").number(artifact.bytes);
          tail.number(artifact.constants);
          for (uint32_t i = 0; i < artifact.constants; ++i) tail.number(artifact.constant[i]);
          output.answer({head.bytes(), {static_cast<const char*>(artifact.data), artifact.bytes}, tail.bytes()});
        }));
    Unpacker bytes = Unpacker::payload(*answer);
    LibraryCall made{.kernel = fmt::format("{}.{}", description_.name, bytes.text()), .attrs = {}, .operands = {}};
    const std::string_view data = bytes.text();
    runtime::Tensor artifact = runtime::Tensor::for_overwrite(DType::kU8, {static_cast<int64_t>(data.size())});
    std::copy(data.begin(), data.end(), reinterpret_cast<char*>(artifact.bytes().data()));
    made.operands.emplace_back(std::move(artifact));
    for (size_t i = 0; i < asked.params; ++i) made.operands.emplace_back(i);
    const uint64_t constants = bytes.number();
    for (uint64_t i = 0; i < constants && bytes.valid(); ++i) {
      const uint64_t value = bytes.number();
      if (value >= asked.values || !flat->constants()[value])
        return std::unexpected(
            failed(fmt::format("compile wants the value {} at run time, which is no constant", value)));
      made.operands.emplace_back(*flat->constants()[value]);
    }
    if (!bytes.valid()) return std::unexpected(failed("the answer of compile cannot be read"));
    return made;
  }

  std::filesystem::path file_;
  Limits limits_;
  Description description_;
  std::vector<std::string> composites_;
  std::vector<GraphPattern> patterns_;
  std::optional<Diagnostic> failure_;
  // What it has answered, by region.
  std::map<std::string, Status> accepted_;
  std::map<std::string, Boundary> boundaries_;
};

}  // namespace

Expected<TargetRecord> open(const std::filesystem::path& file, const Limits& limits) {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::absolute(file, failed);  // else the system's folders are searched
  const auto plugin = std::make_shared<Plugin>(path, limits);
  if (auto opened = plugin->open(); !opened) {
    const Diagnostic& why = opened.error();
    return error(fmt::format("the plugin is not used: {}{}{}", why.where, why.where.empty() ? "" : ": ", why.what),
                 file.string(), why.help.empty() ? "compiler/plugin/target.h defines what a plugin exports" : why.help);
  }
  return TargetRecord{.name = plugin->description().name,
                      .documentation = plugin->description().doc,
                      .make = [plugin](const TargetOptions&) { return Plugin::target(plugin); }};
}

}  // namespace tenon::compiler::plugin
