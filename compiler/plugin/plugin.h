// Code generators of a user's as targets: shared objects with the C interface of target.h, whose functions run in
// processes of their own (child.h).
#pragma once

#include <filesystem>

#include "compiler/partition/target_record.h"
#include "compiler/plugin/child.h"

namespace tenon::compiler::plugin {

// The record of the plugin's target, beside those of compiler/targets. Errors name the file and the function: it cannot
// be opened, has no tn_target_get or another version, or what it says of itself is wrong, as a pattern.
//
// The target supports nothing more once a function of it has failed, and Target::failure says why.
Expected<TargetRecord> open(const std::filesystem::path& file, const Limits& limits = {});

}  // namespace tenon::compiler::plugin
