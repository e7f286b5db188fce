#include "compiler/targets/targets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

const TargetRecord* find_target(std::string_view name) {
  const auto records = target_records();
  const auto found = std::ranges::find(records, name, &TargetRecord::name);
  return found == records.end() ? nullptr : &*found;
}

std::vector<std::string_view> target_names() {
  std::vector<std::string_view> names;
  for (const TargetRecord& record : target_records()) names.push_back(record.name);
  return names;
}

Expected<std::vector<Target>> make_targets(std::span<const std::string> names, const TargetOptions& options) {
  std::vector<Target> targets;
  for (const TargetRecord& record : target_records()) {
    if (record.of_configuration && options.accelerator && std::ranges::find(names, record.name) == names.end())
      targets.push_back(record.make(options));
  }
  for (const std::string& name : names) {
    const TargetRecord* record = find_target(name);
    if (!record)
      return error(fmt::format("there is no target '{}'", name), {},
                   fmt::format("the targets are {}", fmt::join(target_names(), ", ")));
    if (record->of_configuration && !options.accelerator)
      return error(fmt::format("the target {} requires a configuration", name));
    targets.push_back(record->make(options));
  }
  return targets;
}

}  // namespace tenon::compiler
