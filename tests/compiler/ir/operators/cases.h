// The reader of cases.npz, which make_cases.py generates and describes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/text.h"
#include "runtime/dtype.h"
#include "runtime/npy.h"

namespace tenon::compiler {

struct OperatorCase {
  std::string call, model;  // empty: the case has none
  std::vector<runtime::Tensor> inputs, results;
};

inline std::string text_of(const runtime::Tensor& bytes) {
  return {reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size()};
}

// The cases by name.
inline std::map<std::string, OperatorCase> operator_cases() {
  auto archive = runtime::load_npz(std::string(TENON_SOURCE_DIR) + "/tests/compiler/ir/operators/cases.npz");
  EXPECT_TRUE(archive) << archive.error().str();
  std::map<std::string, OperatorCase> cases;
  if (!archive) return cases;
  for (const auto& [key, tensor] : *archive) {  // sorted: digits, then letters
    const size_t slash = key.find('/');
    OperatorCase& test_case = cases[key.substr(0, slash)];
    const std::string part = key.substr(slash + 1);
    if (part == "onnx") {
      test_case.model = text_of(tensor);
    } else if (part == "tn") {
      test_case.call = text_of(tensor);
    } else if (std::isdigit(static_cast<unsigned char>(part[0])) != 0) {
      test_case.results.push_back(tensor);
    } else {
      test_case.inputs.push_back(tensor);
    }
  }
  return cases;
}

// The call as a function of its inputs, whose declared result type is the type of the stored results, if it has some.
inline Expected<Module> parse_operator_case(Context& context, const std::string& name, const OperatorCase& test_case) {
  std::string params, type, call = test_case.call;
  for (size_t i = 0; i < test_case.inputs.size(); ++i) {
    params += fmt::format("{}%{}: {}", i ? ", " : "", static_cast<char>('a' + i),
                          context.str(context.type_of(test_case.inputs[i])));
  }
  for (const runtime::Tensor& result : test_case.results)
    type += (type.empty() ? "" : ", ") + context.str(context.type_of(result));
  if (test_case.results.size() > 1) type = "(" + type + ")";
  // Sizes that depend on the data are checked at run time.
  for (const char* op : {"compress", "non_max_suppression", "nonzero", "unique"}) {
    if (call.starts_with(op) && !type.empty()) call = fmt::format("match_cast({}, {})", call, type);
  }
  if (!type.empty()) type.insert(0, "-> ");
  return parse(context, fmt::format("#[version = \"1\"]\ndef @main({}) {} {{ {} }}\n", params, type, call), {}, name);
}

// Compares integers exactly and floats with a relative tolerance of 5e-5; NaN equals NaN.
inline void expect_near(const runtime::Tensor& have, const runtime::Tensor& want, const std::string& where) {
  ASSERT_EQ(have.dtype(), want.dtype()) << where;
  ASSERT_EQ(have.shape(), want.shape()) << where;
  runtime::with_dtype<runtime::kAnyDType>(have.dtype(), [&]<class T>(T) {
    const auto x = have.data<T>(), y = want.data<T>();
    for (size_t i = 0; i < x.size(); ++i) {
      if constexpr (std::is_floating_point_v<T>) {
        const bool same = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]));
        ASSERT_TRUE(same || std::abs(x[i] - y[i]) <= T(5e-5) * (1 + std::abs(y[i])))
            << where << ": element " << i << " is " << x[i] << ", must be " << y[i];
      } else {
        ASSERT_EQ(static_cast<runtime::Wide<T>>(x[i]), static_cast<runtime::Wide<T>>(y[i]))
            << where << ": element " << i;
      }
    }
  });
}

}  // namespace tenon::compiler
