#include "compiler/targets/targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "support/try.h"

namespace tenon::compiler {

std::vector<std::vector<TargetRecord>> target_families();  // generated

std::span<const TargetRecord> target_records() {
  static const auto* const kRecords = [] {
    auto* records = new std::vector<TargetRecord>;
    for (const auto& family : target_families()) records->insert(records->end(), family.begin(), family.end());
    return records;
  }();
  return *kRecords;
}

Expected<std::vector<TargetRecord>> with_targets(std::span<const TargetRecord> added) {
  std::vector<TargetRecord> records(target_records().begin(), target_records().end());
  for (const TargetRecord& record : added) {
    if (record.name == "cpu" || find_target(record.name, records)) {
      return error(fmt::format("two targets are called '{}'", record.name), {}, "give the added one another name",
                   Fault::kUsage);
    }
    records.push_back(record);
  }
  return records;
}

const TargetRecord* find_target(std::string_view name, std::span<const TargetRecord> records) {
  const auto found = std::ranges::find(records, name, &TargetRecord::name);
  return found == records.end() ? nullptr : &*found;
}

std::vector<std::string_view> target_names(std::span<const TargetRecord> records) {
  std::vector<std::string_view> names;
  for (const TargetRecord& record : records) names.push_back(record.name);
  return names;
}

Expected<std::vector<Target>> make_targets(std::span<const std::string> names, const TargetOptions& options,
                                           std::span<const TargetRecord> added) {
  TENON_TRY_ASSIGN(records, with_targets(added));
  const auto is_named = [&](const TargetRecord& record) {
    return std::ranges::find(names, record.name) != names.end();
  };
  std::vector<Target> targets;
  for (const TargetRecord& record : added) {
    if (!is_named(record)) targets.push_back(record.make(options));
  }
  for (const TargetRecord& record : target_records()) {
    if (record.of_configuration && options.accelerator && !is_named(record)) targets.push_back(record.make(options));
  }
  for (const std::string& name : names) {
    const TargetRecord* record = find_target(name, *records);
    if (!record)
      return error(fmt::format("there is no target '{}'", name), {},
                   fmt::format("the targets are {}", fmt::join(target_names(*records), ", ")));
    if (record->of_configuration && !options.accelerator)
      return error(fmt::format("the target {} requires a configuration", name));
    targets.push_back(record->make(options));
  }
  return targets;
}

}  // namespace tenon::compiler
