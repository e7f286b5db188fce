#include "compiler/fuzz/inputs.h"

#include <fmt/format.h>

#include "compiler/fuzz/types.h"
#include "support/try.h"

namespace tenon::compiler::fuzz {
namespace {

constexpr int64_t kMaxInputBytes = 1 << 24;

class InputMaker {
 public:
  InputMaker(Context& context, const Module& module, const Sizes& sizes, Random& random)
      : context_(context),
        sizes_(sizes),
        random_(random),
        scratch_(clone(module)),
        types_(context, random, scratch_, {}) {}

  Expected<RunValue> value(Type type, int depth) {
    if (++made_ > 10000) return error("an input would be too large");
    if (auto* tensor = type.tensor()) {
      runtime::Shape shape;
      for (Dim dim : tensor->dims) {
        const auto size = evaluate(dim, sizes_);
        if (!size || *size < 0) return error(fmt::format("the size {} has no value", context_.str(dim)));
        shape.push_back(*size);
      }
      const auto bytes = runtime::checked_bytes(tensor->dtype, shape);
      if (!bytes || *bytes > kMaxInputBytes) return error("an input would be too large");
      return RunValue(types_.constant(tensor->dtype, shape));
    }
    if (auto* tuple = type.tuple()) {
      TENON_TRY_ASSIGN(fields, values(tuple->fields, depth));
      return RunValue::tuple(std::move(*fields));
    }
    if (auto* adt = type.adt()) {
      const auto& constructors = scratch_.adts.at(adt->name).constructors;
      const Constructor* constructor = &types_.smallest(*adt);
      if (depth > 0) {
        constructor =
            &constructors[static_cast<size_t>(random_.between(0, static_cast<int64_t>(constructors.size()) - 1))];
      } else if (depth < -200) {
        return error(fmt::format("{} has no finite value", context_.str(type)));
      }
      TENON_TRY_ASSIGN(fields, values(types_.fields(*adt, *constructor), depth - 1));
      return RunValue::data(constructor->name, std::move(*fields));
    }
    return error(fmt::format("an input cannot be {}", context_.str(type)));
  }

 private:
  Expected<std::vector<RunValue>> values(const std::vector<Type>& types, int depth) {
    std::vector<RunValue> made;
    for (Type type : types) {
      TENON_TRY_ASSIGN(next, value(type, depth));
      made.push_back(std::move(*next));
    }
    return made;
  }

  Context& context_;
  const Sizes& sizes_;
  Random& random_;
  Module scratch_;
  Types types_;
  int64_t made_ = 0;
};

}  // namespace

Expected<std::vector<RunValue>> random_inputs(Context& context, const Module& module, const Function& function,
                                              Random& random) {
  Sizes sizes;
  for (Symbol name : function.dims) {
    auto bound = function.bounds.find(name);
    const DimRange range = bound == function.bounds.end() ? DimRange{} : bound->second;
    const int64_t lo = range.lo.value_or(0), hi = range.hi.value_or(INT64_MAX);
    const int64_t first = lo > 0 || random.chance(5) ? lo : 1;
    const int64_t last = std::max<int64_t>(first, random.chance(6) ? kLargestSize : 4);
    sizes.emplace(name, std::min(hi, random.between(first, last)));
  }
  InputMaker maker(context, module, sizes, random);
  std::vector<RunValue> inputs;
  for (VarId param : function.params) {
    TENON_TRY_ASSIGN(value, maker.value(function.type(param), static_cast<int>(random.between(2, 5))));
    inputs.push_back(std::move(*value));
  }
  return inputs;
}

}  // namespace tenon::compiler::fuzz
