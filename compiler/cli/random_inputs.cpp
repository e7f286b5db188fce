#include "compiler/cli/random_inputs.h"

#include <fmt/format.h>

#include <random>
#include <span>

#include "runtime/dtype.h"
#include "runtime/npy.h"
#include "runtime/run/inputs.h"

namespace tenon::cli {
namespace {

using runtime::Tensor;

Tensor random_input(const runtime::Port& port, std::mt19937& random) {
  Tensor tensor(port.dtype, port.shape);
  runtime::with_dtype<runtime::kAnyDType>(port.dtype, [&]<class T>(T) {
    for (T& x : tensor.data<T>()) {
      if constexpr (runtime::is_real<T>) x = static_cast<T>((static_cast<double>(random() % 4097) - 2048) / 2048);
      else x = static_cast<T>(random() % 2);
    }
  });
  return tensor;
}

}  // namespace

Expected<std::vector<Tensor>> random_inputs(std::span<const runtime::Port> ports, const std::string& model) {
  std::vector<Tensor> values;
  std::mt19937 random(1);
  for (const runtime::Port& port : ports) {
    if (!port.is_static())
      return error(fmt::format("input {} has no fixed shape", to_string(port)), model,
                   "bind its sizes with --shapes, or give inputs with --input");
    if (!runtime::checked_bytes(port.dtype, port.shape))
      return error("the input " + runtime::to_string(port) + " is too large for any machine", model);
    values.push_back(random_input(port, random));
  }
  return values;
}

Expected<std::vector<Tensor>> bench_inputs(const runtime::Executable& executable, const std::string& file) {
  if (file.empty()) return random_inputs(executable.main().params, executable.name);
  return runtime::read_inputs(runtime::input_slots(executable.main().params), std::span(&file, 1),
                              {.where = executable.name});
}

Status save_results(const std::string& file, const runtime::Executable& executable,
                    const std::vector<Tensor>& results) {
  runtime::NamedTensors named;
  for (size_t i = 0; i < results.size(); ++i) named.emplace(executable.main().results[i].name, results[i]);
  return runtime::save_npz(file, named);
}

}  // namespace tenon::cli
