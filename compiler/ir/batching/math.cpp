// Batching rules of functions of one element.
#include "compiler/ir/batching/rules.h"

namespace tenon::compiler::batching {
namespace {

constexpr BatchingRow kMath[] = {
    {ops::kAbs, elementwise},        {ops::kNegate, elementwise},     {ops::kSign, elementwise},
    {ops::kReciprocal, elementwise}, {ops::kExp, elementwise},        {ops::kExpm1, elementwise},
    {ops::kLog, elementwise},        {ops::kLog1p, elementwise},      {ops::kSqrt, elementwise},
    {ops::kRsqrt, elementwise},      {ops::kErf, elementwise},        {ops::kSin, elementwise},
    {ops::kCos, elementwise},        {ops::kTan, elementwise},        {ops::kAsin, elementwise},
    {ops::kAcos, elementwise},       {ops::kAtan, elementwise},       {ops::kSinh, elementwise},
    {ops::kCosh, elementwise},       {ops::kAsinh, elementwise},      {ops::kAcosh, elementwise},
    {ops::kAtanh, elementwise},      {ops::kFloor, elementwise},      {ops::kCeil, elementwise},
    {ops::kRound, elementwise},      {ops::kTrunc, elementwise},      {ops::kIsNan, elementwise},
    {ops::kIsInf, elementwise},      {ops::kLogicalNot, elementwise}, {ops::kBitwiseNot, elementwise},
};

}  // namespace

std::span<const BatchingRow> math_batching() { return kMath; }

}  // namespace tenon::compiler::batching
