// Batching rules of functions of two elements, which broadcast.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

constexpr BatchingRow kBinary[] = {
    {ops::kAdd, broadcast},          {ops::kSubtract, broadcast},    {ops::kMultiply, broadcast},
    {ops::kDivide, broadcast},       {ops::kFloorDivide, broadcast}, {ops::kRemainder, broadcast},
    {ops::kModulo, broadcast},       {ops::kPower, broadcast},       {ops::kMaximum, broadcast},
    {ops::kMinimum, broadcast},      {ops::kEqual, broadcast},       {ops::kNotEqual, broadcast},
    {ops::kLess, broadcast},         {ops::kLessEqual, broadcast},   {ops::kGreater, broadcast},
    {ops::kGreaterEqual, broadcast}, {ops::kLogicalAnd, broadcast},  {ops::kLogicalOr, broadcast},
    {ops::kLogicalXor, broadcast},   {ops::kBitwiseAnd, broadcast},  {ops::kBitwiseOr, broadcast},
    {ops::kBitwiseXor, broadcast},   {ops::kShiftLeft, broadcast},   {ops::kShiftRight, broadcast},
};

}  // namespace

std::span<const BatchingRow> binary_batching() { return kBinary; }

}  // namespace tenon::compiler::batching
