// Parsing of loop functions in tests.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "compiler/loop/text.h"

namespace tenon::compiler::loop {

// Parses a function; an error fails the test, which continues with an empty function.
inline Function must_parse(TypeContext& context, std::string_view text) {
  auto function = parse(context, text, "f.tn");
  EXPECT_TRUE(function) << function.error().str() << "\n" << text;
  return function ? std::move(*function) : Function{};
}

}  // namespace tenon::compiler::loop
