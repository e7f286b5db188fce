// What was measured, in one SQLite file: for each operator on each level of a processor the choice that was fastest,
// and every trial, so that a search goes on where it ended.
//
// Several processes may use one file at a time; a write is one transaction. Errors: a file that is no SQLite file, is
// damaged, belongs to another program, or was written by a newer version; nothing of it is then used.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/kernels/choice.h"
#include "support/diagnostic.h"

namespace tenon::compiler::tune {

struct Trial {
  kernels::Choice choice;
  double ratio = 1;  // its time by that of the default, measured in turns
};
struct Record {
  kernels::Choice choice;      // the best
  double seconds = 0;          // CPU time of a call
  double default_seconds = 0;  // without records
};

class Records {
 public:
  // A file that is not there is made.
  static Expected<Records> open(const std::filesystem::path& path);
  // It must be there, and stays as it is.
  static Expected<Records> open_to_read(const std::filesystem::path& path);
  Records(Records&&) noexcept;
  Records& operator=(Records&&) noexcept;
  ~Records();

  Expected<std::optional<Record>> find(const std::string& key, const std::string& level) const;
  Expected<std::vector<Trial>> trials(const std::string& key, const std::string& level) const;
  // Takes the place of an earlier record; trials join those that are there.
  Status put(const std::string& key, const std::string& level, const Record& record, const std::vector<Trial>& trials);
  // By operator, of the first of these levels that has one.
  Expected<std::map<std::string, kernels::Choice>> best(const std::vector<std::string>& levels) const;

 private:
  struct State;
  explicit Records(std::unique_ptr<State> state);
  static Expected<Records> open(const std::filesystem::path& path, bool writes);
  std::unique_ptr<State> state_;
};

// For CpuOptions::choices: what a file knows about these levels, the best level first.
Expected<kernels::Choices> read_choices(const std::filesystem::path& path, const std::vector<std::string>& levels);
// For CpuOptions::level_choices: of this level or, where that has no record, of the one that has the same instructions
// but for dot products of bytes: code without those is made for one of the two only.
Expected<kernels::Choices> read_level_choices(const std::filesystem::path& path, const std::string& level);

}  // namespace tenon::compiler::tune
