// Lists the inputs of an executable of Tenon and runs it on zeros, by the C++ wrapper of the C interface.
#include <cstdio>
#include <tenon.hpp>

int main(int count, char** arguments) {
  using namespace tenon::api;
  try {
    const Program program(count > 1 ? arguments[1] : "");
    std::vector<Value> inputs;
    for (const Port& port : program.inputs()) {
      std::printf("%s: %s\n", port.name.c_str(), port.type.c_str());
      inputs.push_back(Value::tensor(port.dtype, port.sizes));
    }
    for (const Value& result : Session(program).run(inputs)) std::printf("%zu axes\n", result.sizes().size());
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return e.fault();
  }
}
