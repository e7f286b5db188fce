// The tables of Isa: formats of one configuration, and access to an instruction's members by field index.
#pragma once

#include "hw/spec/isa.h"

namespace tenon::spec {

// Checks the rules of isa.h that the widths of fields do not imply. The error says why and what to do, not where.
Status check_combination(const Config& config, const Instruction& instruction);

// In the order of Instruction's alternatives.
std::vector<Format> make_formats(const Config& config);
// dst, src, wgt.
std::vector<Field> make_uop_fields(const Config& config);

// A default instruction of the alternative with index `alternative`, all fields 0.
Instruction make_instruction(size_t alternative);
int64_t get_field(const Instruction& instruction, size_t field);
void set_field(Instruction& instruction, size_t field, int64_t value);

}  // namespace tenon::spec
