// Whether the samples of a calibration say anything about the ranges that are taken from them.
#pragma once

#include <string>

#include "compiler/quantize/calibrate.h"

namespace tenon::compiler {

// Warnings, a line each: values of layers that were one number in all samples, samples that are all equal or far too
// few, and inputs most of whose range one outlier takes. An error where all values of all layers were 0,
// so that there is no range at all.
Expected<std::string> range_warnings(const Context& context, const Module& module, Symbol entry, const Samples& samples,
                                     const Ranges& ranges);

}  // namespace tenon::compiler
