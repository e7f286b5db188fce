// The random numbers of sim/fuzz: a seed is a module for good.
#pragma once

#include "sim/fuzz/random.h"

namespace tenon::compiler::fuzz {

using sim::fuzz::Random;

}  // namespace tenon::compiler::fuzz
