// The accelerator as a target of partitioning: the operators that it supports, and code generation for regions of the
// IR.
#pragma once

#include "compiler/backends/accel/compile.h"
#include "compiler/partition/target_record.h"

namespace tenon::compiler::accel {

// The patterns that `config` supports:
//   accel.conv2d           requantize(conv2d(x, constant), constants)
//   accel.conv2d_add       requantize_add(conv2d(x, constant), constants, residual)
//   accel.dense            requantize(dense(x, constant), constants), x perhaps flattened: then it is a convolution
//                          whose kernel is the whole map
//   accel.dense_add        the same with a residual
//   accel.add              requantize_add(cast(x), constants, residual)
//   accel.requantize       requantize(cast(x), constants)
//   accel.global_sum_pool  requantize(global_sum_pool(x), constants)
//   accel.matmul           requantize(matmul(a, b), constants) of matrices of 2, 3 or 4 dims, equally many of a and b;
//                          the constants along the last axis, or equal ones along another. b is perhaps a transpose of
//                          the last two dims. Heads of x [t, h * d] or [n, t, h * d] need no transpose:
//                            a, b    transpose(reshape(x, [n, t, h, d]), [0, 2, 1, 3]), of b also [0, 2, 3, 1]
//                            result  reshape(transpose(requantize(...), [0, 2, 1, 3]), [.., t, h * d])
//   accel.max_pool2d       max_pool2d(x), and that of a requantized layer, which is fused with it
// Shapes must be static; supports() checks the other limits. Values cross the boundary in the layout of
// boundary_layout().
// Programs are compiled with these options; prices are those of layers that are not fused. `name` is the target's, by
// which a costs file has its figures.
Target make_target(const spec::Config& config, const ScheduleOptions& options = {}, const std::string& name = "accel");
std::vector<TargetRecord> records();

}  // namespace tenon::compiler::accel
