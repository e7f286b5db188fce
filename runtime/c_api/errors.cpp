// Errors of the C interface.
#include "runtime/c_api/handles.h"

namespace tenon::runtime::c_api {
namespace {

tenon_error* no_memory_error() {
  static tenon_error error{{"there is not enough memory", {}, {}, Fault::kInternal},
                           "error: there is not enough memory"};
  return &error;
}

}  // namespace

tenon_error* out_of_memory() noexcept { return no_memory_error(); }

tenon_error* make_error(Diagnostic diagnostic) noexcept {
  try {
    std::string text = diagnostic.str();
    return new tenon_error{std::move(diagnostic), std::move(text)};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

}  // namespace tenon::runtime::c_api

using tenon::runtime::c_api::out_of_memory;

uint32_t tenon_api_version(void) { return TENON_API_VERSION; }
const char* tenon_version(void) { return TENON_VERSION; }

tenon_fault tenon_error_fault(const tenon_error* error) { return static_cast<tenon_fault>(error->diagnostic.fault); }
const char* tenon_error_what(const tenon_error* error) { return error->diagnostic.what.c_str(); }
const char* tenon_error_where(const tenon_error* error) { return error->diagnostic.where.c_str(); }
const char* tenon_error_help(const tenon_error* error) { return error->diagnostic.help.c_str(); }
const char* tenon_error_text(const tenon_error* error) { return error->text.c_str(); }
tenon_error* tenon_error_create(int32_t fault, const char* what, const char* where, const char* help) {
  try {
    const auto text = [](const char* given) { return std::string(given ? given : ""); };
    const bool known = fault == TENON_FAULT_INPUT || fault == TENON_FAULT_USAGE;
    return tenon::runtime::c_api::make_error(
        {text(what), text(where), text(help), known ? static_cast<tenon::Fault>(fault) : tenon::Fault::kInternal});
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}
void tenon_error_free(tenon_error* error) {
  if (error != out_of_memory()) delete error;
}
