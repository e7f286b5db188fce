// Traces and reports of profiles; no other code makes any.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "driver/accelerator.h"
#include "runtime/executable/executable.h"
#include "runtime/profile/profile.h"

namespace tenon::runtime {

struct ReportInput {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // rows of the caller: accuracy, data set, command
  const Executable* executable = nullptr;
  const Profile* profile = nullptr;
  std::vector<const driver::Info*> devices = {};  // that the programs ran on; none where they are not known
};

// A self-contained HTML page: summary, the model coloured by device, cycles per layer, roofline, timeline of the
// engines. The page loads nothing else and needs only a browser.
std::string make_report(const ReportInput& input);

// Chrome's trace event JSON, as Perfetto (ui.perfetto.dev) opens it: the machine's calls on the wall clock, and each
// accelerator's engines and layers, in time of its own clock, one launch after another.
std::string make_trace(const ReportInput& input);

// The device of the configuration; nullptr where there is none.
const driver::Info* device_of(const ReportInput& input, const spec::Config& config);

}  // namespace tenon::runtime
