// The way of every function of a C interface, of tenon.h or tenon_compiler.h: exceptions and errors become tenon_error.
#pragma once

#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <utility>

#include "runtime/c_api/tenon.h"
#include "support/diagnostic.h"

namespace tenon::runtime::c_api {

// Each library defines these two. Never null: without memory for an error, the one error that says so, which
// tenon_error_free() does not free.
tenon_error* make_error(Diagnostic diagnostic) noexcept;
tenon_error* out_of_memory() noexcept;

// An error for the first argument that is NULL; `function` is the function of the interface.
using Argument = std::pair<const char*, const void*>;
inline Status require(const char* function, std::initializer_list<Argument> arguments) {
  for (const auto& [name, value] : arguments) {
    if (value) continue;
    return error(std::string("the argument ") + name + " is NULL", function, "see its declaration", Fault::kUsage);
  }
  return {};
}

// Calls body(), which returns a Status, and passes its error or exception on.
template <class Body>
tenon_error* guarded(Body&& body) noexcept {
  try {
    Status status = body();
    return status ? nullptr : make_error(std::move(status.error()));
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& e) {
    try {
      return make_error({std::string("internal error: ") + e.what(), {}, {}, Fault::kInternal});
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    }
  }
}

}  // namespace tenon::runtime::c_api
