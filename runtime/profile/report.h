// Traces and reports of profiles; no other code makes any.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "driver/accelerator.h"
#include "runtime/executable/executable.h"
#include "runtime/profile/profile.h"

namespace tenon::runtime {

// What a node of the graph costs on a target, by the figures of a costs file.
struct NodePrice {
  std::string target;  // "cpu", or as GraphNode::device
  double seconds = 0;
  std::string source;  // of the figure, as "740212 cycles at 100 MHz"
  // By how many seconds the model's total would change if the node alone were there: 0 where it is; nullopt where the
  // user has forbidden it.
  std::optional<double> change = {};
};

struct ReportInput {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  // rows of the caller: accuracy, data set, command
  const Executable* executable = nullptr;
  const Profile* profile = nullptr;
  std::vector<const driver::Info*> devices = {};              // that the programs ran on; none where they are not known
  std::map<std::string, std::vector<NodePrice>> prices = {};  // by node of the graph; none where there are no figures
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
