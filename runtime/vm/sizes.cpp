#include "runtime/vm/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "support/try.h"

namespace tenon::runtime {
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

Status Sizes::read(std::span<const Register> registers) {
  values_.clear();
  for (const Register r : registers) {
    const Word& word = frames_.at(r);
    if (word.tag != Tag::kScalar || (word.dtype != kUnknownSize && !word.is_scalar(DType::kI64)))
      return frames_.is_not(r, "a size");
    if (word.dtype == kUnknownSize) values_.emplace_back();
    else values_.emplace_back(word.bits);
  }
  return {};
}

Status Sizes::execute(const ComputeSize& compute) {
  TENON_TRY(read(compute.sizes));
  const auto value = compute.value.empty() ? std::nullopt : evaluate(compute.value, values_);
  frames_.write(compute.to, value ? scalar_word(*value) : kUnknown);
  return {};
}

Status Sizes::execute(const BindSize& bind) {
  const Word& word = frames_.at(bind.tensor);
  if (!is_tensor(word)) return frames_.is_not(bind.tensor, "a tensor");
  TENON_TRY(read(bind.sizes));
  Word result = kUnknown;
  const auto shape = shape_of(word);
  const auto factor = evaluate(bind.factor, values_), offset = evaluate(bind.offset, values_);
  int64_t room = 0;
  if (bind.axis < shape.size() && factor && offset && *factor != 0 &&
      !__builtin_sub_overflow(shape[bind.axis], *offset, &room) && !(room == INT64_MIN && *factor == -1) &&
      room % *factor == 0 && room / *factor >= 0) {
    result = scalar_word(room / *factor);
  }
  frames_.write(bind.to, result);
  return {};
}

Status Sizes::execute(const CheckShape& check) {
  const Word& word = frames_.at(check.tensor);
  if (!is_tensor(word)) return frames_.is_not(check.tensor, "a tensor");
  TENON_TRY(read(check.known));
  const auto fail = [&](std::string_view why) {
    return error(fmt::format("{} is {}, must be {}{}", check.subject, shape_text(word), check.expected, why));
  };
  if (!std::ranges::all_of(values_, [](const auto& size) { return size.has_value(); })) return fail("");
  TENON_TRY(read(check.sizes));
  const auto shape = shape_of(word);
  if (dtype_of_word(word) != check.dtype || shape.size() != check.axes.size()) return fail("");
  for (size_t i = 0; i < shape.size(); ++i) {
    if (check.axes[i].empty()) continue;
    const auto size = evaluate(check.axes[i], values_);
    if (size && *size != shape[i]) return fail("");
    if (!size && check.strict) return fail(fmt::format(": no input determines the size of axis {}", i));
  }
  return {};
}

Status Sizes::execute(const CheckSize& check) {
  TENON_TRY(read({&check.size, 1}));
  if (!values_[0] || (*values_[0] >= check.low && *values_[0] <= check.high)) return {};
  return error(fmt::format("{} is {}, must be in {}..{}", check.subject, *values_[0], check.low,
                           check.high == INT64_MAX ? "" : std::to_string(check.high)));
}

}  // namespace tenon::runtime
