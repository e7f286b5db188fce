#include "runtime/native/signature.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "tests/runtime/native/sample.h"

namespace tenon::runtime {
namespace {

using Op = SizeStep::Op;

// f(x: (2*n + 1, m), lengths: (n,), r: (b: n, lengths(b), m)) -> (m // n,), (b: n, lengths(b))
Signature sample_signature() {
  const Size n{{Op::kDim, 0}}, m{{Op::kDim, 1}};
  const Size odd{{Op::kConstant, 2}, {Op::kDim, 0}, {Op::kMultiply}, {Op::kConstant, 1}, {Op::kAdd}};
  const Size lengths{{Op::kIndex, 0}, {Op::kElement, 1}};
  return {
      {{"n", 0, 0, 2, {{Op::kConstant, 1}}}, {"m", 0, 1, 1, {{Op::kConstant, 0}}}},
      {{"x", DType::kF32, {odd, m}}, {"lengths", DType::kI32, {n}}, {"r", DType::kI8, {n, lengths, m}}},
      {{"y", DType::kF64, {{{Op::kDim, 1}, {Op::kDim, 0}, {Op::kFloorDivide}}}}, {"rows", DType::kI16, {n, lengths}}}};
}

TEST(Signature, BindsDimsAndMakesResults) {
  const Signature signature = sample_signature();
  ASSERT_TRUE(verify(signature, "f")) << verify(signature, "f").error().str();
  std::vector<Tensor> params{Tensor(DType::kF32, {5, 7}), Tensor::of<int32_t>({2}, std::vector<int32_t>{3, 1}),
                             Tensor(DType::kI8, {4, 7})};
  const auto dims = bind_dims(signature, params);
  ASSERT_TRUE(dims) << dims.error().str();
  EXPECT_EQ(*dims, (std::vector<int64_t>{2, 7}));
  const auto results = make_results(signature, *dims, params);
  ASSERT_TRUE(results) << results.error().str();
  EXPECT_EQ((*results)[0].shape(), (Shape{3}));
  EXPECT_EQ((*results)[1].shape(), (Shape{4}));
  auto message = [&](std::vector<Tensor> wrong) { return bind_dims(signature, wrong).error().str(); };
  EXPECT_HAS(message({params[0]}), "takes 3 parameters, 1 are given");
  EXPECT_HAS(message({params[0], params[1], Tensor()}), "'r' is missing");
  EXPECT_HAS(message({params[1], params[1], params[2]}), "'x' is f32, not i32");
  EXPECT_HAS(message({Tensor(DType::kF32, {5}), params[1], params[2]}), "'x' has 2 axes in its tensor, not 1");
  EXPECT_HAS(message({Tensor(DType::kF32, {4, 7}), params[1], params[2]}),
             "axis 0 of 'x' has 4 elements, which is the size for no 'n'");
  EXPECT_HAS(message({params[0], params[1], Tensor(DType::kI8, {5, 7})}),
             "'r' has 5 rows, those of the instances up to 1 are 4");
  EXPECT_HAS(message({params[0], params[1], Tensor(DType::kI8, {2, 7})}),
             "'r' has 2 rows, those of the instances up to 0 are 3");
  Signature checked = signature;
  checked.checks = {{{{Op::kDim, 1}, {Op::kConstant, -7}, {Op::kAdd}}, "m is too small"}};
  EXPECT_TRUE(verify(checked, "f"));
  EXPECT_TRUE(bind_dims(checked, params));
  checked.checks[0].size[1].operand = -8;
  EXPECT_HAS(bind_dims(checked, params).error().str(), "m is too small");
  params[1].data<int32_t>()[0] = -3;
  EXPECT_HAS(message(params), "axis 1 of 'r' would have -3 elements in row 0, lengths[0] is -3");
  params[1] = Tensor::of<int32_t>({2}, std::vector<int32_t>{INT32_MAX, 2});
  EXPECT_HAS(message(params), "'r' would have more than 2^31 rows: those up to row 1 are 2147483649");
}

// f(lengths: (n,)), with tables of rows of k * lengths(b) elements.
Signature signature_with_tables(int64_t k) {
  using Kind = SignatureTable::Kind;
  const Size n{{Op::kDim, 0}}, width{{Op::kConstant, k}, {Op::kIndex, 0}, {Op::kElement, 0}, {Op::kMultiply}};
  Signature signature{{{"n", 0, 0, 1, {{Op::kConstant, 0}}}}, {{"lengths", DType::kI64, {n}}}, {}};
  for (const Kind kind : {Kind::kOffsets, Kind::kRows, Kind::kDescending, Kind::kUnused})
    signature.tables.push_back({kind, n, width});
  return signature;
}

TEST(Signature, TablesAreMadeOnceForEqualLengths) {
  using Kind = SignatureTable::Kind;
  const Signature one = signature_with_tables(1), two = signature_with_tables(2);
  ASSERT_TRUE(verify(one, "f"));
  const auto lengths = [](std::vector<int64_t> values) {
    return std::vector{Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values)};
  };
  CallMemory memory;
  const auto made = [&](const Signature& signature, const std::vector<Tensor>& params) {
    EXPECT_TRUE(bind_dims(signature, params, memory));
    auto tables = make_tables(signature, params, memory);
    EXPECT_TRUE(tables) << tables.error().str();
    return *tables;
  };
  const auto first = made(one, lengths({2, 0, 3, 2}));
  using Values = std::vector<int64_t>;
  EXPECT_EQ(*first[0], (Values{0, 2, 2, 5, 7}));
  EXPECT_EQ(*first[1], (Values{0, 0, 2, 2, 2, 3, 3}));
  EXPECT_EQ(*first[2], (Values{2, 0, 3, 1}));
  EXPECT_EQ(first[3], nullptr);
  EXPECT_EQ(memory.num_tables_made, 3u);
  // Another tensor with equal lengths has the same tables; other lengths or sizes have others.
  EXPECT_EQ(made(one, lengths({2, 0, 3, 2})), first);
  EXPECT_EQ(memory.num_tables_made, 3u);
  EXPECT_EQ(*made(two, lengths({2, 0, 3, 2}))[0], (Values{0, 4, 4, 10, 14}));
  EXPECT_EQ(*made(one, lengths({2, 1}))[0], (Values{0, 2, 3}));
  EXPECT_EQ(*made(one, lengths({}))[0], (Values{0}));
  EXPECT_EQ(memory.num_tables_made, 12u);
  const auto message = [&](std::vector<int64_t> values) {
    const std::vector<Tensor> params = lengths(std::move(values));
    EXPECT_TRUE(bind_dims(two, params, memory));
    const auto tables = make_tables(two, params, memory);
    return tables ? "" : tables.error().str();
  };
  EXPECT_HAS(message({4, -3, 1}),
             "row 1 would have -6 elements, all up to it 8, lengths[1] is -3: a size is 0 or more");
  EXPECT_HAS(message({int64_t{1} << 29, int64_t{1} << 30}),
             "row 1 would have 2147483648 elements, all up to it 3221225472, lengths[1] is 1073741824");
  // The numbers of rows that are wider than 0, 1, .. limit - 1; a wider row is an error of any table.
  Signature counts = one;
  counts.tables = {{Kind::kCounts, one.tables[0].count, one.tables[0].width, {{Op::kConstant, 4}}},
                   {Kind::kPositions, one.tables[0].count, one.tables[0].width, {{Op::kConstant, 4}}}};
  ASSERT_TRUE(verify(counts, "f"));
  EXPECT_EQ(*made(counts, lengths({2, 0, 4, 2}))[0], (Values{3, 3, 1, 1}));
  EXPECT_EQ(*made(counts, lengths({2, 0, 4, 2}))[1], (Values{1, 3, 0, 2}));
  EXPECT_EQ(*made(counts, lengths({}))[0], (Values{0, 0, 0, 0}));
  for (const size_t table : {0, 1}) {
    Signature limited = counts;
    limited.tables.erase(limited.tables.begin() + static_cast<ptrdiff_t>(1 - table));
    const std::vector<Tensor> params = lengths({1, 5});
    EXPECT_TRUE(bind_dims(limited, params, memory));
    const auto tables = make_tables(limited, params, memory);
    ASSERT_FALSE(tables);
    EXPECT_HAS(tables.error().str(), "row 1 would have 5 elements, 4 at most, lengths[1] is 5");
  }
  counts.tables[0].limit = {};
  EXPECT_HAS(verify(counts, "f").error().str(), "a table has a malformed size");
  counts.tables[0].limit = {{Op::kIndex, 0}};
  EXPECT_HAS(verify(counts, "f").error().str(), "a table has a malformed size");
  Signature wrong = one;
  wrong.tables[1].width = {{Op::kIndex, 1}};
  EXPECT_HAS(verify(wrong, "f").error().str(), "a table has a malformed size");
}

TEST(Signature, VerifyFindsMalformedSignatures) {
  const std::vector<std::pair<std::string, std::function<void(Signature&)>>> cases = {
      {"dim 'n' is the size of a parameter that does not exist", [](Signature& s) { s.dims[0].param = 3; }},
      {"dim 'n' is the size of axis 2 of 'x'", [](Signature& s) { s.dims[0].axis = 2; }},
      {"dim 'n' is the size of axis 0 of 'r'", [](Signature& s) { s.dims[0].param = 2; }},
      {"divided by 0", [](Signature& s) { s.dims[0].factor = 0; }},
      {"dim 'n' has a malformed size",
       [](Signature& s) {
         s.dims[0].offset = {{Op::kDim, 0}};
       }},
      {"axis 0 of 'x' has a malformed size", [](Signature& s) { s.params[0].axes[0].pop_back(); }},
      {"axis 0 of 'x' has a malformed size", [](Signature& s) { s.params[0].axes[0] = {{Op::kAdd}}; }},
      {"axis 0 of 'lengths' has a malformed size",
       [](Signature& s) {
         s.params[1].axes[0] = {{Op::kDim, 2}};
       }},
      {"axis 0 of 'y' has a malformed size",
       [](Signature& s) {
         s.results[0].axes[0] = {{Op::kIndex, 0}};
       }},
      {"axis 1 of 'r' has a malformed size",
       [](Signature& s) {
         s.params[2].axes[1] = {{Op::kElement, 1}};
       }},
      {"axis 0 of 'y' has a malformed size", [](Signature& s) { s.results[0].axes[0] = {}; }},
      {"the check 'no' has a malformed size",
       [](Signature& s) {
         s.checks = {{{{Op::kDim, 2}}, "no"}};
       }},
      {"result 0 is in place of parameter 3: there is none",
       [](Signature& s) {
         s.in_place = {{0, 3}};
       }},
      {"result 2 is in place of parameter 0: there is none",
       [](Signature& s) {
         s.in_place = {{2, 0}};
       }},
      {"is in place of 'x', which has another type",
       [](Signature& s) {
         s.in_place = {{0, 0}};
       }},
      {"'y' has 33 axes",
       [](Signature& s) {
         s.results[0].axes.assign(33, {{Op::kConstant, 1}});
       }},
  };
  for (const auto& [message, damage] : cases) {
    Signature signature = sample_signature();
    damage(signature);
    const auto status = verify(signature, "f");
    ASSERT_FALSE(status) << message;
    EXPECT_HAS(status.error().str(), message);
  }
}

}  // namespace
}  // namespace tenon::runtime
