// The targets that a model can be compiled for. The table of the code generators is made from the folders of
// compiler/backends, so nothing else knows one by name. The CPU is no target: it computes what none does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/partition/target_record.h"

namespace tenon::compiler {

std::span<const TargetRecord> target_records();
std::vector<std::string_view> target_names();
// nullptr where no target has the name.
const TargetRecord* find_target(std::string_view name);

// The targets of these names, in the order of their preference, after those of the configuration that are not named. An
// error for an unknown name, and for a target that requires a configuration where there is none.
Expected<std::vector<Target>> make_targets(std::span<const std::string> names, const TargetOptions& options);

}  // namespace tenon::compiler
