#include "compiler/lower/lifetimes.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/passes/memory.h"
#include "runtime/executable/storage.h"

namespace tenon::compiler {
namespace {

using runtime::Register;
using runtime::Registers;

void for_each_read(const runtime::Operation& operation, const auto& visit) {
  std::visit(
      [&]<class T>(const T& x) {
        if constexpr (requires { x.args; }) std::ranges::for_each(x.args, visit);
        if constexpr (std::is_same_v<T, runtime::Return>) std::ranges::for_each(x.values, visit);
      },
      operation);
}

void for_each_write(const runtime::Operation& operation, const auto& visit) {
  std::visit(
      [&]<class T>(const T& x) {
        if constexpr (requires { x.results; }) std::ranges::for_each(x.results, visit);
        if constexpr (std::is_same_v<T, runtime::LoadConstant>) visit(x.to);
      },
      operation);
}

}  // namespace

void insert_kills(runtime::Function& function) {
  std::vector<size_t> last(function.registers, 0);
  for (size_t i = 0; i < function.code.size(); ++i) {
    const auto mark = [&](Register r) { last[r] = i; };
    for_each_write(function.code[i].operation, mark);
    for_each_read(function.code[i].operation, mark);
  }
  std::vector<Registers> dying(function.code.size());
  for (Register r = 0; r < function.registers; ++r) dying[last[r]].push_back(r);
  std::vector<runtime::Instruction> with_kills;
  for (size_t i = 0; i < function.code.size(); ++i) {
    const bool ends = std::holds_alternative<runtime::Return>(function.code[i].operation);
    with_kills.push_back(std::move(function.code[i]));
    if (!ends && !dying[i].empty()) with_kills.push_back({runtime::Kill{std::move(dying[i])}, ""});
  }
  function.code = std::move(with_kills);
}

void place_results(runtime::Function& function, const std::map<Register, int64_t>& bytes) {
  const auto call = [&](const runtime::StoredResult& one) -> runtime::CallNative& {
    return std::get<runtime::CallNative>(function.code[one.first].operation);
  };
  std::vector<PlannedTensor> lives;
  const auto stored = runtime::stored_results(function);
  for (const runtime::StoredResult& one : stored) {
    constexpr int64_t kStep = kMemoryAlignment;
    static_assert(kStep % runtime::kPlaceAlignment == 0);
    const auto known = bytes.find(call(one).results[one.result]);
    lives.push_back({.first = one.first,
                     .last = one.last,
                     .bytes = known == bytes.end() ? 0 : (known->second + kStep - 1) / kStep * kStep,
                     .leaves = one.leaves});
  }
  const MemoryPlan plan = place_tensors(std::move(lives));
  for (size_t i = 0; i < stored.size(); ++i) {
    const PlannedTensor& tensor = plan.tensors[i];
    if (tensor.offset == PlannedTensor::kOutside) continue;
    auto& places = call(stored[i]).places;
    places.resize(call(stored[i]).results.size());
    places[stored[i].result] = {static_cast<uint64_t>(tensor.offset), static_cast<uint64_t>(tensor.bytes)};
  }
  function.arena_bytes = static_cast<uint64_t>(plan.arena);
}

}  // namespace tenon::compiler
