// Live ranges of variables, at the positions of bindings in the order of the text.
#include "compiler/ir/liveness.h"

#include <gtest/gtest.h>

#include "compiler/ir/text.h"

namespace tenon::compiler {
namespace {

class LivenessTest : public testing::Test {
 protected:
  void read(const std::string& text) {
    auto module = parse(context_, "#[version = \"1\"]\n" + text);
    ASSERT_TRUE(module) << module.error().str();
    module_ = std::move(*module);
    function_ = module_.function(context_.symbol("main"));
    ASSERT_TRUE(function_);
    live_ = find_liveness(*function_, function_->body);
  }
  VarId var(std::string_view name) const {
    for (size_t i = 0; i < function_->vars.size(); ++i) {
      if (context_.name(function_->vars[i].name) == name) return static_cast<VarId>(i);
    }
    ADD_FAILURE() << "no variable " << name;
    return {};
  }
  // "FIRST-LAST", and "/WHOLE" where the last use of the whole value is another one.
  std::string range(std::string_view name) const {
    const size_t i = index(var(name));
    std::string text = std::to_string(live_.first[i]) + "-" + std::to_string(live_.last_use[i]);
    if (live_.last_whole_use[i] != live_.last_use[i]) text += "/" + std::to_string(live_.last_whole_use[i]);
    return text;
  }

  Context context_;
  Module module_;
  const Function* function_ = nullptr;
  Liveness live_;
};

TEST_F(LivenessTest, StraightLine) {
  read(R"(def @main(%x: Tensor[(4,), f32], %unused: Tensor[(4,), f32]) {
    let %a = tanh(%x);
    let %b = relu(%a);
    let %dead = relu(%a);
    let %c = add(%b, %x);
    %c
  })");
  EXPECT_EQ(range("x"), "0-4");
  EXPECT_EQ(range("unused"), "0-0");
  EXPECT_EQ(range("a"), "1-3");
  EXPECT_EQ(range("b"), "2-4");
  EXPECT_EQ(range("dead"), "3-3");
  EXPECT_EQ(range("c"), "4-4");
}

TEST_F(LivenessTest, ArmsFollowTheirIfOneAfterAnother) {
  read(R"(def @main(%c: Tensor[(), bool], %x: Tensor[(4,), f32], %y: Tensor[(4,), f32]) {
    let %r = if (%c) {
      let %a = tanh(%x);
      let %b = relu(%a);
      %b
    } else {
      %y
    };
    let %s = relu(%r);
    %s
  })");
  EXPECT_EQ(range("c"), "0-1");
  EXPECT_EQ(range("x"), "0-2");
  EXPECT_EQ(range("a"), "2-3");
  EXPECT_EQ(range("b"), "3-3") << "read as the result of its arm";
  EXPECT_EQ(range("y"), "0-3") << "read as the result of an arm without bindings";
  EXPECT_EQ(range("r"), "1-4");
}

TEST_F(LivenessTest, AProjectionReadsOneFieldAndNotTheTuple) {
  read(R"(def @main(%x: Tensor[(4,), f32]) {
    let %t = (%x, %x);
    let %a = %t.0;
    let %b = relu(%a);
    %b
  })");
  EXPECT_EQ(range("t"), "1-2/1");
  EXPECT_EQ(range("a"), "2-3");
}

TEST_F(LivenessTest, ALambdaReadsAllThatItsBodyCaptures) {
  read(R"(def @main(%x: Tensor[(4,), f32]) {
    let %a = tanh(%x);
    let %f = fn (%y: Tensor[(4,), f32]) { add(%a, %y) };
    let %b = relu(%x);
    let %c = %f(%b);
    %c
  })");
  EXPECT_EQ(range("a"), "1-2");
  EXPECT_EQ(range("f"), "2-4");
  EXPECT_EQ(range("b"), "3-4");
}

}  // namespace
}  // namespace tenon::compiler
