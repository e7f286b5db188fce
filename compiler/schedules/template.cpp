#include "compiler/schedules/template.h"

namespace tenon::compiler::schedules {

Symbol results_of(const TemplateStages& stages) {
  return std::visit([](const auto& of_template) { return of_template.results; }, stages);
}

Status apply_template(TypeContext& context, loop::Schedule& schedule, const TemplateStages& stages,
                      const Machine& machine, const ChooseOption& choose) {
  struct Visitor {
    TypeContext& context;
    loop::Schedule& schedule;
    const Machine& machine;
    const ChooseOption& choose;

    Status operator()(const ProductStages& x) const { return schedule_product(context, schedule, x, machine, choose); }
    Status operator()(const ConvolutionStages& x) const {
      return schedule_convolution(context, schedule, x, machine, choose);
    }
    Status operator()(const TransposedConvolutionStages& x) const {
      return schedule_transposed_convolution(context, schedule, x, machine, choose);
    }
    Status operator()(const WindowStages& x) const { return schedule_windows(context, schedule, x, machine, choose); }
  };
  return std::visit(Visitor{context, schedule, machine, choose}, stages);
}

}  // namespace tenon::compiler::schedules
