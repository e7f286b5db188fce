// Sizes and checks of shapes; the values that a run takes and gives, and the runs that a session keeps.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "runtime/vm/run.h"
#include "support/try.h"

namespace tenon::runtime {

// Sizes.

// Reads the registers into sizes_.
Status Run::sizes(std::span<const Register> registers) {
  sizes_.clear();
  for (const Register r : registers) {
    const Word& word = at(r);
    if (word.tag != Tag::kScalar || (word.dtype != kUnknownSize && !word.is_scalar(DType::kI64)))
      return wrong(r, "a size");
    if (word.dtype == kUnknownSize) sizes_.emplace_back();
    else sizes_.emplace_back(word.bits);
  }
  return {};
}

namespace {

constexpr Word kUnknown(Tag::kScalar, kUnknownSize);

std::string shape_text(const Word& word) {
  if (word.tag == Tag::kTensor) return describe(static_cast<const TensorObject*>(word.object)->tensor);
  return fmt::format("{} ()", name(static_cast<DType>(word.dtype)));
}
bool is_tensor(const Word& word) {
  return word.tag == Tag::kTensor || (word.tag == Tag::kScalar && word.dtype != kUnknownSize);
}
std::span<const int64_t> shape_of(const Word& word) {
  if (word.tag != Tag::kTensor) return {};
  return static_cast<const TensorObject*>(word.object)->tensor.shape();
}
DType dtype_of_word(const Word& word) {
  return word.tag == Tag::kTensor ? static_cast<const TensorObject*>(word.object)->tensor.dtype()
                                  : static_cast<DType>(word.dtype);
}

}  // namespace

Status Run::execute(const ComputeSize& compute) {
  TENON_TRY(sizes(compute.sizes));
  const auto value = compute.value.empty() ? std::nullopt : evaluate(compute.value, sizes_);
  write(compute.to, value ? scalar_word(*value) : kUnknown);
  return {};
}

Status Run::execute(const BindSize& bind) {
  const Word& word = at(bind.tensor);
  if (!is_tensor(word)) return wrong(bind.tensor, "a tensor");
  TENON_TRY(sizes(bind.sizes));
  Word result = kUnknown;
  const auto shape = shape_of(word);
  const auto factor = evaluate(bind.factor, sizes_), offset = evaluate(bind.offset, sizes_);
  int64_t room = 0;
  if (bind.axis < shape.size() && factor && offset && *factor != 0 &&
      !__builtin_sub_overflow(shape[bind.axis], *offset, &room) && !(room == INT64_MIN && *factor == -1) &&
      room % *factor == 0 && room / *factor >= 0) {
    result = scalar_word(room / *factor);
  }
  write(bind.to, result);
  return {};
}

Status Run::execute(const CheckShape& check) {
  const Word& word = at(check.tensor);
  if (!is_tensor(word)) return wrong(check.tensor, "a tensor");
  TENON_TRY(sizes(check.known));
  const auto fail = [&](std::string_view why) {
    return error(fmt::format("{} is {}, must be {}{}", check.subject, shape_text(word), check.expected, why));
  };
  if (!std::ranges::all_of(sizes_, [](const auto& size) { return size.has_value(); })) return fail("");
  TENON_TRY(sizes(check.sizes));
  const auto shape = shape_of(word);
  if (dtype_of_word(word) != check.dtype || shape.size() != check.axes.size()) return fail("");
  for (size_t i = 0; i < shape.size(); ++i) {
    if (check.axes[i].empty()) continue;
    const auto size = evaluate(check.axes[i], sizes_);
    if (size && *size != shape[i]) return fail("");
    if (!size && check.strict) return fail(fmt::format(": no input determines the size of axis {}", i));
  }
  return {};
}

Status Run::execute(const CheckSize& check) {
  TENON_TRY(sizes({&check.size, 1}));
  if (!sizes_[0] || (*sizes_[0] >= check.low && *sizes_[0] <= check.high)) return {};
  return error(fmt::format("{} is {}, must be in {}..{}", check.subject, *sizes_[0], check.low,
                           check.high == INT64_MAX ? "" : std::to_string(check.high)));
}

// Inputs and results.

Expected<Word> Run::import(const Tensor& tensor) {
  if (!tensor) return error("an input has an empty tensor", executable_.name);
  const Word word = heap_.tensor(heap_.share(tensor), false);
  if (word.tag == Tag::kEmpty) return no_memory();
  return word;
}

// The word of an input. Lists are long, so the work is a list too.
Expected<Word> Run::import(const Value& input) {
  struct Open {
    const Value* value;
    Object* owner;  // of the word to fill; nullptr: the input itself
    uint32_t index;
  };
  std::unordered_map<const ValueObject*, Object*> made;
  std::vector<Open> open{{&input, nullptr, 0}};
  Word result;
  const auto fail = [&](std::unexpected<Diagnostic> problem) {
    heap_.release(result);
    return problem;
  };
  while (!open.empty()) {
    const auto [value, owner, index] = open.back();
    open.pop_back();
    if (!*value) return fail(error("an input has a missing value", executable_.name));
    const ValueObject& object = *value->object;
    Word word;
    if (object.kind == ValueObject::Kind::kTensor) {
      auto imported = import(object.tensor);
      if (!imported) return fail(std::unexpected(std::move(imported.error())));
      word = *imported;
    } else if (object.kind != ValueObject::Kind::kData) {
      return fail(error("an input holds a function or a reference", executable_.name));
    } else {
      const bool known =
          object.type == kTupleType
              ? object.constructor == 0
              : object.type < executable_.types.size() &&
                    object.constructor < executable_.types[object.type].constructors.size() &&
                    object.fields.size() == executable_.types[object.type].constructors[object.constructor].fields;
      if (!known) return fail(error("an input has a value of no type of the model", executable_.name));
      word.id = object.constructor;
      const auto before = made.find(&object);
      if (object.fields.empty()) {
        word.tag = Tag::kConstructor;
        word.bits = object.type;
      } else if (before != made.end()) {
        word.tag = Tag::kCell;
        word.object = before->second;
        Heap::retain(word);
      } else {
        word.tag = Tag::kCell;
        word.object = heap_.make(Tag::kCell, object.type, static_cast<uint32_t>(object.fields.size()));
        if (!word.object) return fail(no_memory());
        made.emplace(&object, word.object);
        for (uint32_t i = 0; i < object.fields.size(); ++i) open.push_back({&object.fields[i], word.object, i});
      }
    }
    if (owner) owner->words()[index] = word;
    else result = word;
  }
  return result;
}

// The value of a word.
Value Run::give(const Word& word, Given& made) {
  struct Open {
    const Word* word;
    Value* to;
  };
  Value result;
  std::vector<Open> open{{&word, &result}};
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    if (from->is_object()) {
      if (const auto before = made.find(from->object); before != made.end()) {
        *to = before->second;
        continue;
      }
    }
    *to = Value::tuple({});
    ValueObject& object = *to->object;
    switch (from->tag) {
      case Tag::kEmpty: to->object.reset(); break;
      case Tag::kScalar:
        object.kind = ValueObject::Kind::kTensor;
        if (from->dtype == kUnknownSize) break;
        object.tensor = Tensor::for_overwrite(static_cast<DType>(from->dtype), {});
        __builtin_memcpy(object.tensor.bytes().data(), &from->bits, object.tensor.bytes().size());
        break;
      case Tag::kTensor:
        object.kind = ValueObject::Kind::kTensor;
        object.tensor = static_cast<const TensorObject*>(from->object)->tensor;
        break;
      case Tag::kConstructor:
        object.type = static_cast<uint32_t>(from->bits);
        object.constructor = from->id;
        break;
      case Tag::kCell:
        object.type = from->object->id;
        object.constructor = from->id;
        break;
      case Tag::kFunction:
      case Tag::kClosure: object.kind = ValueObject::Kind::kFunction; break;
      case Tag::kReference: object.kind = ValueObject::Kind::kReference; break;
    }
    if (!from->is_object()) continue;
    made.emplace(from->object, *to);
    if (from->tag != Tag::kCell && from->tag != Tag::kReference) continue;
    object.fields.resize(from->object->length);
    for (uint32_t i = 0; i < from->object->length; ++i) open.push_back({&from->object->words()[i], &object.fields[i]});
  }
  return result;
}

void Session::State::add(Profile made, bool ended) {
  const auto first = static_cast<int32_t>(profile.launches.size());
  for (CallRecord& call : made.calls) {
    if (profile.calls.size() >= kMaxCallRecords) break;
    if (call.launch >= 0) call.launch += first;
    profile.calls.push_back(std::move(call));
  }
  std::ranges::move(made.launches, std::back_inserter(profile.launches));
  if (ended) {
    ++profile.runs;
    profile.memory = made.memory;
  }
}

std::unique_ptr<Run> Session::State::take_run() {
  {
    const std::lock_guard lock(mutex);
    if (!idle.empty()) {
      std::unique_ptr<Run> run = std::move(idle.back());
      idle.pop_back();
      return run;
    }
  }
  return std::make_unique<Run>(*this);
}

void Session::State::give_back(std::unique_ptr<Run> run, bool ended) {
  buffers.age();
  const std::lock_guard lock(mutex);
  if (options.profile) add(std::move(run->profile()), ended);
  idle.push_back(std::move(run));
}

Expected<std::vector<Value>> Session::State::run(std::span<const Value> inputs) {
  std::unique_ptr<Run> run = take_run();
  auto results = run->run(inputs);
  give_back(std::move(run), results.has_value());
  return results;
}

Status Session::State::run(std::span<const Tensor> inputs, std::vector<Tensor>& results) {
  std::unique_ptr<Run> run = take_run();
  Status status = run->run(inputs, results);
  give_back(std::move(run), status.has_value());
  return status;
}

}  // namespace tenon::runtime
