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

Status check_accelerators(std::span<const AcceleratorOptions> accelerators) {
  for (size_t i = 0; i < accelerators.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const spec::Config &first = accelerators[k].config, &second = accelerators[i].config;
      const bool equal = spec::hash(first) == spec::hash(second);
      if (equal && first.name == second.name)
        return error(fmt::format("the configuration {} is given twice", first.name), {},
                     "an accelerator of each configuration is possible: give each of them once", Fault::kUsage);
      if (equal)
        return error(fmt::format("the configurations {} and {} differ in their names alone", first.name, second.name),
                     {}, "give one of them", Fault::kUsage);
      if (first.name == second.name)
        return error(fmt::format("two configurations are called {}, and differ:\n{}", first.name,
                                 spec::difference(first, second)),
                     {}, "give one of them another name", Fault::kUsage);
    }
  }
  return {};
}

namespace {

// The record for the i-th accelerator.
TargetRecord record_of(const TargetRecord& record, std::span<const AcceleratorOptions> accelerators, size_t i) {
  TargetRecord made = record;
  if (accelerators.size() > 1) {
    made.name = fmt::format("{}:{}", record.name, accelerators[i].config.name);
    made.documentation = fmt::format("{}, configuration {}", record.documentation, accelerators[i].config.name);
  }
  made.make = [make = record.make, name = made.name, accelerator = accelerators[i]](const TargetOptions& options) {
    TargetOptions own = options;
    own.name = name;
    own.accelerator = accelerator;
    return make(own);
  };
  return made;
}

}  // namespace

Expected<std::vector<TargetRecord>> with_targets(std::span<const TargetRecord> added,
                                                 std::span<const AcceleratorOptions> accelerators) {
  TENON_TRY(check_accelerators(accelerators));
  std::vector<TargetRecord> records;
  for (const TargetRecord& record : target_records()) {
    const bool is_for_each = record.of_configuration && !accelerators.empty();
    if (!is_for_each) records.push_back(record);
    for (size_t i = 0; is_for_each && i < accelerators.size(); ++i)
      records.push_back(record_of(record, accelerators, i));
  }
  for (const TargetRecord& record : added) {
    const bool is_known = std::ranges::any_of(
        target_records(), [&](const TargetRecord& known) { return kind_of(known.name) == kind_of(record.name); });
    if (record.name == "cpu" || is_known || find_target(record.name, records)) {
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

Expected<std::vector<Target>> make_targets(std::span<const std::string> names,
                                           std::span<const AcceleratorOptions> accelerators,
                                           const TargetOptions& options, std::span<const TargetRecord> added) {
  TENON_TRY_ASSIGN(records, with_targets(added, accelerators));
  const auto is_named = [&](const TargetRecord& record) {
    return std::ranges::find(names, record.name) != names.end();
  };
  std::vector<Target> targets;
  for (const TargetRecord& record : added) {
    if (!is_named(record)) targets.push_back(record.make(options));
  }
  for (const TargetRecord& record : std::span(*records).first(records->size() - added.size())) {
    if (record.of_configuration && !accelerators.empty() && !is_named(record)) targets.push_back(record.make(options));
  }
  for (const std::string& name : names) {
    const TargetRecord* record = find_target(name, *records);
    if (!record)
      return error(fmt::format("there is no target '{}'", name), {},
                   fmt::format("the targets are {}", fmt::join(target_names(*records), ", ")));
    if (record->of_configuration && accelerators.empty())
      return error(fmt::format("the target {} requires a configuration", name));
    targets.push_back(record->make(options));
  }
  return targets;
}

}  // namespace tenon::compiler
