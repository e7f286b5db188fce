// The reader of values from JSON: events of the JSON text, and a stack of the values that are open.
#include <fmt/format.h>

#include "runtime/value_parts.h"
#include "support/json.h"
#include "support/number.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

class JsonValueReader {
 public:
  using Type = ValueTarget::Type;
  using Kind = JsonEvent::Kind;

  JsonValueReader(std::string_view text, const TextOrigin& origin, Type type, ValueTarget& target)
      : text_(text), origin_(origin), type_(type), target_(target), string_origin_(origin) {}

  Status read() {
    Status status;
    const auto fault = read_json(text_, [&](const JsonEvent& event) {
      status = on(event);
      return status.has_value();
    });
    TENON_TRY(status);
    if (!fault) return {};
    return error(
        fmt::format("expected {} in JSON: {}", target_.str(open_.empty() ? type_ : open_.back().type), fault->problem),
        location(text_, fault->offset, origin_));
  }

 private:
  struct Open {
    enum class Form : uint8_t {
      kTuple,        // [v, ...]
      kData,         // {"constructor": "C", "fields": [...]}
      kFields,       // the list of the fields
      kLists,        // [[1, 2], [3, 4]], a tensor without a head
      kTensor,       // {"dtype": "f32", "shape": [2, 2], "data": [1, 2, 3, 4]}
      kTensorShape,  // lists of the tensor
      kTensorData,
    };
    Form form = Form::kTuple;
    Type type = nullptr;
    std::span<const Type> fields = {};
    size_t next = 0;  // the field to read
  };
  using Form = Open::Form;

  // Where the value of a key follows.
  enum class Member : uint8_t { kNone, kConstructor, kFields, kDType, kShape, kData };

  Status on(const JsonEvent& event) {
    if (open_.empty()) return value(type_, event);
    Open& inner = open_.back();
    switch (inner.form) {
      case Form::kTuple:
      case Form::kFields: {
        if (event.kind == Kind::kEndArray) return end_fields(event);
        if (inner.next == inner.fields.size()) return fields_differ(event);
        return value(inner.fields[inner.next++], event);
      }
      case Form::kData: return data_member(event);
      case Form::kTensor: return tensor_member(event);
      case Form::kTensorShape: return shape_size(event);
      case Form::kLists:
      case Form::kTensorData: return element(event);
    }
    return {};
  }

  Status value(Type type, const JsonEvent& event) {
    const ValueTarget::Level level = target_.level(type);
    if (level.kind == ValueKind::kFunction || level.kind == ValueKind::kReference)
      return fail(event, fmt::format("a value of {} cannot be given", target_.str(type)), kNoValueHelp);
    if (event.kind == Kind::kString) {
      // The location is exact where the string has no escapes, as texts of values have none. Events come in order.
      string_origin_ =
          origin_at(text_.substr(string_at_, event.offset + 1 - string_at_), std::string_view::npos, string_origin_);
      string_at_ = event.offset + 1;
      return read_value_text(event.text, string_origin_, type, target_);
    }
    if (level.kind == ValueKind::kTuple && event.kind == Kind::kBeginArray) {
      open_.push_back({Form::kTuple, type, level.fields});
      return {};
    }
    if (level.kind == ValueKind::kData && event.kind == Kind::kBeginObject) {
      open_.push_back({Form::kData, type});
      constructors_.emplace_back();
      return {};
    }
    if (level.kind != ValueKind::kTensor) return wrong(type, event);
    level_ = level;
    shape_.reset();
    if (event.kind == Kind::kBeginObject) {
      lists_.reset();
      open_.push_back({Form::kTensor, type});
      return {};
    }
    lists_.emplace(level.dtype, level.shape.size());
    if (event.kind == Kind::kBeginArray && lists_->may_open()) {
      lists_->open();
      open_.push_back({Form::kLists, type});
      return {};
    }
    if (!add(event)) return wrong(type, event);
    return finish_tensor(lists_->finish({}, level_), type, event);
  }

  // An element of the tensor that is read: a number, true or false, null for NaN, or the text of an infinity.
  bool add(const JsonEvent& event) {
    switch (event.kind) {
      case Kind::kNull: return lists_->add("nan");
      case Kind::kNumber:
      case Kind::kBoolean:
      case Kind::kString: return lists_->add(event.text);
      default: return false;
    }
  }

  Status element(const JsonEvent& event) {
    const Open inner = open_.back();
    if (event.kind == Kind::kBeginArray && lists_->may_open()) {
      lists_->open();
      return {};
    }
    if (event.kind != Kind::kEndArray) return add(event) ? Status() : wrong(inner.type, event);
    if (auto closed = lists_->close(); !closed) return located(std::move(closed), inner.type, event);
    if (lists_->depth() > 0) return {};
    open_.pop_back();
    if (inner.form == Form::kTensorData) return {};
    return finish_tensor(lists_->finish({}, level_), inner.type, event);
  }

  Status tensor_member(const JsonEvent& event) {
    const Type type = open_.back().type;
    switch (event.kind) {
      case Kind::kKey:
        if (event.text == "dtype") member_ = Member::kDType;
        else if (event.text == "shape") member_ = Member::kShape;
        else if (event.text == "data") member_ = Member::kData;
        else return fail(event, fmt::format("expected \"dtype\", \"shape\" or \"data\" of {}", target_.str(type)));
        return {};
      case Kind::kString:
        if (member_ != Member::kDType || event.text != name(level_.dtype)) return wrong(type, event);
        return {};
      case Kind::kBeginArray:
        if (member_ == Member::kShape && !shape_) {
          shape_.emplace();
          open_.push_back({Form::kTensorShape, type});
          return {};
        }
        if (member_ == Member::kData && !lists_) {
          lists_.emplace(level_.dtype, 1);
          lists_->open();
          open_.push_back({Form::kTensorData, type});
          return {};
        }
        return wrong(type, event);
      case Kind::kEndObject: {
        if (!lists_) return fail(event, fmt::format("expected \"data\" of {}", target_.str(type)));
        open_.pop_back();
        return finish_tensor(lists_->finish_flat(shape_, level_), type, event);
      }
      default: return wrong(type, event);
    }
  }

  Status shape_size(const JsonEvent& event) {
    if (event.kind == Kind::kEndArray) {
      open_.pop_back();
      return {};
    }
    const auto size = event.kind == Kind::kNumber ? parse_number<int64_t>(event.text) : std::nullopt;
    if (size && *size >= 0) shape_->push_back(*size);
    if (size && *size >= 0 && checked_bytes(DType::kBool, *shape_)) return {};
    return fail(event, fmt::format("expected the sizes of {}", target_.str(open_.back().type)));
  }

  Status finish_tensor(Expected<Tensor> tensor, Type type, const JsonEvent& event) {
    if (!tensor) return located(std::unexpected(std::move(tensor.error())), type, event);
    target_.make_tensor(std::move(*tensor));
    return {};
  }

  Status data_member(const JsonEvent& event) {
    const Type type = open_.back().type;
    auto& constructor = constructors_.back();
    switch (event.kind) {
      case Kind::kKey:
        if (event.text == "constructor" && !constructor) member_ = Member::kConstructor;
        else if (event.text == "fields" && constructor && !constructor->filled) member_ = Member::kFields;
        else return fail(event, fmt::format("expected \"constructor\" and then \"fields\" of {}", target_.str(type)));
        return {};
      case Kind::kString: {
        if (member_ != Member::kConstructor) return wrong(type, event);
        const auto found = target_.constructor(type, event.text);
        if (!found) {
          return fail(event, fmt::format("expected {}", target_.str(type)),
                      constructors_help(target_, type, event.text));
        }
        constructor = Chosen{*found};
        member_ = Member::kNone;
        return {};
      }
      case Kind::kBeginArray:
        if (member_ != Member::kFields) return wrong(type, event);
        member_ = Member::kNone;
        constructor->filled = true;
        open_.push_back({Form::kFields, type, constructor->which.fields});
        return {};
      case Kind::kEndObject: {
        if (!constructor || (!constructor->filled && !constructor->which.fields.empty()))
          return fail(event, fmt::format("expected \"constructor\" and \"fields\" of {}", target_.str(type)));
        target_.make_data(type, constructor->which.index, constructor->which.fields.size());
        constructors_.pop_back();
        open_.pop_back();
        return {};
      }
      default: return wrong(type, event);
    }
  }

  Status end_fields(const JsonEvent& event) {
    const Open& inner = open_.back();
    if (inner.next < inner.fields.size()) return fields_differ(event);
    if (inner.form == Form::kTuple) target_.make_tuple(inner.fields.size());
    open_.pop_back();
    return {};
  }

  Status fields_differ(const JsonEvent& event) const {
    const Open& inner = open_.back();
    return fail(event, fmt::format("expected {} field{} of {}", inner.fields.size(),
                                   inner.fields.size() == 1 ? "" : "s", target_.str(inner.type)));
  }
  std::unexpected<Diagnostic> wrong(Type type, const JsonEvent& event) const {
    return fail(event, fmt::format("expected {}", target_.str(type)));
  }
  Status located(Status status, Type type, const JsonEvent& event) const {
    status.error().what = fmt::format("expected {}: {}", target_.str(type), status.error().what);
    status.error().where = location(text_, event.offset, origin_);
    return status;
  }
  std::unexpected<Diagnostic> fail(const JsonEvent& event, std::string what, std::string help = {}) const {
    const bool quoted = event.kind == Kind::kString || event.kind == Kind::kKey;
    return error(fmt::format("{}, found {}", what, found_at(text_, event.offset + (quoted ? 1 : 0))),
                 location(text_, event.offset, origin_), std::move(help));
  }

  struct Chosen {
    ValueTarget::Constructor which;
    bool filled = false;  // the fields have been read
  };

  std::string_view text_;
  const TextOrigin& origin_;
  Type type_;
  ValueTarget& target_;
  std::vector<Open> open_;                           // outermost first
  std::vector<std::optional<Chosen>> constructors_;  // of the open constructed values
  TextOrigin string_origin_;                         // of the last string that is a value
  size_t string_at_ = 0;                             // its offset
  Member member_ = Member::kNone;                    // of the innermost value
  ValueTarget::Level level_;                         // of the tensor that is read, of which there is one at a time
  std::optional<Shape> shape_;                       // as stated
  std::optional<TensorLists> lists_;
};

}  // namespace

Status read_value_json(std::string_view text, const TextOrigin& origin, ValueTarget::Type type, ValueTarget& target) {
  return JsonValueReader(text, origin, type, target).read();
}

}  // namespace tenon::runtime
