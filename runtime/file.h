// Whole files in and out: hw/spec's, under this folder's name.
#pragma once

#include "hw/spec/file.h"

namespace tenon::runtime {

using tenon::read_file;
using tenon::write_file;

}  // namespace tenon::runtime
