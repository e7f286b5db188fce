// A visitor of a std::variant that consists of several lambdas. The visit does not compile when no lambda accepts one
// of the variant's alternatives.
#pragma once

namespace tenon {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

}  // namespace tenon
