// The targets that a model can be compiled for. The table of the code generators is made from the folders of
// compiler/backends, so nothing else knows one by name; a user adds those of plugins (compiler/plugin).
// The CPU is no target: it computes what none does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/partition/target_record.h"

namespace tenon::compiler {

// Of the code generators in compiler/backends.
std::span<const TargetRecord> target_records();

// An error where two of them have the same configuration, or configurations that differ under the same name.
Status check_accelerators(std::span<const AcceleratorOptions> accelerators);

// Those, and others that a user has added. Of several accelerators, each has a target of its own, which is called after
// its configuration, as accel:tiny instead of accel. An error where two targets have one name, and of
// check_accelerators().
Expected<std::vector<TargetRecord>> with_targets(std::span<const TargetRecord> added,
                                                 std::span<const AcceleratorOptions> accelerators = {});

std::vector<std::string_view> target_names(std::span<const TargetRecord> records = target_records());
// nullptr where no target has the name.
const TargetRecord* find_target(std::string_view name, std::span<const TargetRecord> records = target_records());

// The targets of these names, in the order of their preference, after those that are not named: the added ones, in
// their order, and those of the accelerators, in theirs. An error for an unknown name, for a target that requires a
// configuration where there is none, and as with_targets().
Expected<std::vector<Target>> make_targets(std::span<const std::string> names,
                                           std::span<const AcceleratorOptions> accelerators,
                                           const TargetOptions& options, std::span<const TargetRecord> added = {});

}  // namespace tenon::compiler
