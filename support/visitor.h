// Several lambdas as one visitor of a std::variant: a kind that none of them takes does not compile.
#pragma once

namespace tenon {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

}  // namespace tenon
