// Tuning records in a SQLite file: the fastest knob settings of each operator on each level of a processor, and all
// trials, so that a later search continues from them.
//
// Several processes may use one file at a time; a write is one transaction. Errors: a file that is not a SQLite file,
// is damaged, belongs to another program, or has a newer version; nothing of such a file is used.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/kernels/knob.h"
#include "support/diagnostic.h"

namespace tenon::compiler::tune {

struct Trial {
  kernels::KnobSettings settings;
  double ratio = 1;  // time relative to the default, measured, interleaved
};
struct Record {
  kernels::KnobSettings settings;  // the fastest
  double seconds = 0;              // CPU time of a call
  double default_seconds = 0;      // without records
};

class Records {
 public:
  // Opens a file for writing, and creates it if it does not exist.
  static Expected<Records> open(const std::filesystem::path& path);
  // Opens an existing file, which is not modified.
  static Expected<Records> open_to_read(const std::filesystem::path& path);
  Records(Records&&) noexcept;
  Records& operator=(Records&&) noexcept;
  ~Records();

  Expected<std::optional<Record>> find(const std::string& key, const std::string& level) const;
  Expected<std::vector<Trial>> trials(const std::string& key, const std::string& level) const;
  // Replaces an earlier record, and adds trials to the stored ones.
  Status put(const std::string& key, const std::string& level, const Record& record, const std::vector<Trial>& trials);
  // The best settings by operator, from the first of these levels that has a record.
  Expected<std::map<std::string, kernels::KnobSettings>> best(const std::vector<std::string>& levels) const;

 private:
  struct State;
  explicit Records(std::unique_ptr<State> state);
  static Expected<Records> open(const std::filesystem::path& path, bool writes);
  std::unique_ptr<State> state_;
};

// For CpuOptions::knobs: the records of a file for these levels, the best level first.
Expected<kernels::KnobLookup> read_knobs(const std::filesystem::path& path, const std::vector<std::string>& levels);
// For CpuOptions::level_knobs: the records of this level or, where it has none, of the level with the same instructions
// except for byte dot products. Code without byte dot products is compiled for one of the two only.
Expected<kernels::KnobLookup> read_level_knobs(const std::filesystem::path& path, const std::string& level);

}  // namespace tenon::compiler::tune
