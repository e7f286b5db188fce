// A reference to a callable object, as std::function_ref of C++26: the type of a parameter that is called and not kept.
// It is two words, allocates nothing, and a function that takes it is compiled once, not once for each lambda.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace tenon {

template <class Signature>
class FunctionRef;

// The callable object must live as long as the reference, which for an argument is the call.
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> && std::is_invocable_r_v<Result, F&, Args...> &&
           !std::is_function_v<std::remove_reference_t<F>>)
      FunctionRef(F&& callable)  // NOLINT(google-explicit-constructor): a lambda is the argument
      : callable_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> Result {
          return std::invoke(*static_cast<std::remove_reference_t<F>*>(object), std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(callable_, std::forward<Args>(args)...); }

 private:
  void* callable_;
  Result (*call_)(void*, Args...);
};

}  // namespace tenon
