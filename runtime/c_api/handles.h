// What the opaque types of tenon.h are.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/accelerator.h"
#include "runtime/c_api/guarded.h"
#include "runtime/c_api/tenon.h"
#include "runtime/executable/executable.h"
#include "runtime/executable/value.h"
#include "runtime/train/trainer.h"
#include "runtime/vm/session.h"
#include "support/diagnostic.h"

struct tenon_error {
  tenon::Diagnostic diagnostic;
  std::string text;
};

struct tenon_value {
  tenon::runtime::Value value;
};

struct tenon_port {
  const tenon::runtime::Port* port;
  std::string type;
};

struct tenon_program {
  std::shared_ptr<const tenon::runtime::Executable> executable;
  std::vector<tenon_port> inputs, outputs;
  std::vector<const tenon::spec::Config*> configurations;
};

struct tenon_device {
  std::shared_ptr<tenon::driver::Accelerator> accelerator;
};

struct tenon_session {
  // What the session refers to outlives it, so the session is the last member.
  std::shared_ptr<const tenon::runtime::Executable> executable;
  std::vector<std::shared_ptr<tenon::driver::Accelerator>> accelerators;
  std::atomic<bool> cancelled = false;
  std::optional<tenon::runtime::Session> session;
};

struct tenon_ticket {
  std::shared_ptr<const tenon::runtime::Executable> executable;
  tenon::runtime::Ticket ticket;
};

struct tenon_trainer {
  std::shared_ptr<const tenon::runtime::Executable> executable;
  std::vector<std::shared_ptr<tenon::driver::Accelerator>> accelerators;
  std::vector<std::string> names;  // of the weights
  std::optional<tenon::runtime::Trainer> trainer;
};

namespace tenon::runtime::c_api {

// The session's options of the caller's struct, which may be NULL; `function` is the function of tenon.h that has it.
// The accelerators of the devices are to outlive the session.
struct DevicesAndOptions {
  std::vector<std::shared_ptr<driver::Accelerator>> accelerators;
  SessionOptions options;
};
Expected<DevicesAndOptions> session_options(const tenon_session_options* given, const char* function);

}  // namespace tenon::runtime::c_api
