// The templates as one: what a kernel says of its stages, and the steps of the template that schedules them.
//
// The kernel names its stages when it emits them, so a template is matched by the kind of its stages; what else must
// hold is checked by each of its steps. A new template is a kind of stages here, and its steps in a file of its own.
#pragma once

#include <variant>

#include "compiler/schedules/convolution.h"
#include "compiler/schedules/product.h"
#include "compiler/schedules/sliding_window.h"
#include "compiler/schedules/transposed_convolution.h"

namespace tenon::compiler::schedules {

using TemplateStages = std::variant<ProductStages, ConvolutionStages, TransposedConvolutionStages, WindowStages>;

// The stage that computes results.
Symbol results_of(const TemplateStages& stages);

// Applies the steps of the template of these stages; stops at the first one that is refused.
Status apply_template(TypeContext& context, loop::Schedule& schedule, const TemplateStages& stages,
                      const Machine& machine, const ChooseOption& choose);

}  // namespace tenon::compiler::schedules
