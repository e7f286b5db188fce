// The reader of values from text: a stack of the tuples and constructed values that are open.
#include <fmt/format.h>

#include "runtime/value_parts.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

class ValueParser {
 public:
  using Type = ValueTarget::Type;

  ValueParser(std::string_view text, const TextOrigin& origin, ValueTarget& target)
      : text_(text), origin_(origin), target_(target) {}

  Status read(Type type) {
    TENON_TRY(open(type));
    while (!open_.empty()) {
      Open& inner = open_.back();
      if (inner.next < inner.fields.size()) {
        if (inner.next > 0) TENON_TRY(expect(',', inner));
        TENON_TRY(open(inner.fields[inner.next++]));  // `inner` is invalid from here on
      } else {
        if (inner.tuple() && inner.fields.size() == 1) accept(',');
        TENON_TRY(expect(')', inner));
        make(inner);
        open_.pop_back();
      }
    }
    blanks();
    if (at_ == text_.size()) return {};
    return fail(at_, fmt::format("expected the end of the {}", target_.str(type)));
  }

 private:
  struct Open {
    Type type = nullptr;
    std::string_view name = {};  // of the constructor; empty: a tuple
    uint32_t constructor = 0;
    std::span<const Type> fields = {};
    size_t next = 0;  // the field to read

    bool tuple() const { return name.empty(); }
  };

  // The start of a value, and all of it where it has no fields.
  Status open(Type type) {
    blanks();
    const ValueTarget::Level level = target_.level(type);
    switch (level.kind) {
      case ValueKind::kTensor: return tensor(type, level);
      case ValueKind::kData: return data(type);
      case ValueKind::kTuple: {
        if (!accept('(')) return fail(at_, fmt::format("expected {}", target_.str(type)));
        open_.push_back({.type = type, .fields = level.fields});
        return {};
      }
      case ValueKind::kFunction:
      case ValueKind::kReference: break;
    }
    return fail(at_, fmt::format("a value of {} cannot be given", target_.str(type)), kNoValueHelp);
  }

  Status data(Type type) {
    const size_t start = at_;
    const std::string_view name = word();
    const auto constructor = target_.constructor(type, name);
    if (!constructor) {
      return fail(start, fmt::format("expected {}", target_.str(type)), constructors_help(target_, type, name));
    }
    const Open value{type, name, constructor->index, constructor->fields};
    if (value.fields.empty()) {
      make(value);
      return {};
    }
    TENON_TRY(expect('(', value));
    open_.push_back(value);
    return {};
  }

  void make(const Open& value) {
    if (value.tuple()) target_.make_tuple(value.fields.size());
    else target_.make_data(value.type, value.constructor, value.fields.size());
  }

  // Tensor[SHAPE, DTYPE] and nested lists, or the lists alone; of rank 0 a number with its dtype, or without.
  Status tensor(Type type, const ValueTarget::Level& level) {
    const size_t start = at_;
    const auto wrong = [&](size_t at) { return fail(at, fmt::format("expected {}", target_.str(type))); };
    std::optional<Shape> sizes;
    constexpr std::string_view kHead = "Tensor[";
    if (text_.substr(at_).starts_with(kHead)) {
      at_ += kHead.size();
      TENON_TRY_ASSIGN(stated, shape(type));
      sizes = std::move(*stated);
      blanks();
      if (!accept(',')) return wrong(at_);
      blanks();
      const size_t dtype_at = at_;
      if (word() != name(level.dtype)) return wrong(dtype_at);
      if (!accept(']')) return wrong(at_);
      blanks();
    }
    TensorLists lists(level.dtype, level.shape.size());
    do {
      blanks();
      const size_t at = at_;
      if (lists.may_open()) {
        if (!accept('[')) return wrong(at);
        lists.open();
        blanks();
        if (!text_.substr(at_).starts_with(']')) continue;
      } else if (std::string_view element = word(); !lists.add(element)) {
        const std::string_view dtype = name(level.dtype);
        if (lists.depth() > 0 || !element.ends_with(dtype)) return wrong(at);
        element.remove_suffix(dtype.size());
        if (!lists.add(element)) return wrong(at);
      }
      for (blanks(); lists.depth() > 0 && !accept(','); blanks()) {
        if (!accept(']')) return fail(at_, fmt::format("expected ',' or ']' in {}", target_.str(type)));
        TENON_TRY(located(lists.close(), at_ - 1, type));
      }
    } while (lists.depth() > 0);
    auto tensor = lists.finish(sizes, level);
    if (!tensor) return located(std::unexpected(std::move(tensor.error())), start, type);
    target_.make_tensor(std::move(*tensor));
    return {};
  }

  // The error of a tensor's lists, with its location and the type.
  Status located(Status status, size_t at, Type type) const {
    if (status) return {};
    status.error().what = fmt::format("expected {}: {}", target_.str(type), status.error().what);
    status.error().where = location(text_, at, origin_);
    return status;
  }

  // "(2, 3)", "(2,)", "()"
  Expected<Shape> shape(Type type) {
    Shape sizes;
    const size_t start = at_;
    const auto wrong = [&](size_t at) {
      return fail(at, fmt::format("expected {}, with its sizes as (2, 3)", target_.str(type)));
    };
    if (!accept('(')) return wrong(at_);
    for (blanks(); !accept(')'); blanks()) {
      const size_t at = at_;
      const auto size = parse_number<int64_t>(word());
      if (!size || *size < 0) return wrong(at);
      sizes.push_back(*size);
      blanks();
      if (!accept(',') && !text_.substr(at_).starts_with(')')) return wrong(at_);
    }
    if (!checked_bytes(DType::kBool, sizes)) return wrong(start);
    return sizes;
  }

  void blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool accept(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string_view word() {
    const size_t start = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }
  Status expect(char c, const Open& value) {
    blanks();
    if (accept(c)) return {};
    return fail(at_, fmt::format("expected '{}': {} has {} field{}", c,
                                 value.tuple() ? target_.str(value.type) : std::string(value.name), value.fields.size(),
                                 value.fields.size() == 1 ? "" : "s"));
  }
  // The error "WHAT, found 'WORD'".
  std::unexpected<Diagnostic> fail(size_t at, std::string what, std::string help = {}) const {
    if (text_.substr(at).starts_with("...")) help = "the text is abbreviated; --instances prints values in full";
    return error(fmt::format("{}, found {}", what, found_at(text_, at)), location(text_, at, origin_), std::move(help));
  }

  std::string_view text_;
  const TextOrigin& origin_;
  ValueTarget& target_;
  size_t at_ = 0;
  std::vector<Open> open_;  // outermost first
};

}  // namespace

Status read_value_text(std::string_view text, const TextOrigin& origin, ValueTarget::Type type, ValueTarget& target) {
  return ValueParser(text, origin, target).read(type);
}

}  // namespace tenon::runtime
