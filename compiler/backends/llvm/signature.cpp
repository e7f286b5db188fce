// The signature of a loop function, with its sizes as programs for the runtime.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/backends/llvm/compile.h"
#include "compiler/loop/expr.h"
#include "support/try.h"

namespace tenon::compiler::native {
namespace {

using runtime::Signature;
using runtime::SignatureBuffer;
using runtime::Size;
using Op = runtime::SizeStep::Op;

class SignatureBuilder {
 public:
  SignatureBuilder(TypeContext& context, const loop::Function& function) : context_(context), function_(function) {}

  Expected<Signature> run() {
    TENON_TRY(solve());
    for (const auto& [ids, buffers] :
         {std::pair(&function_.params, &signature_.params), std::pair(&function_.results, &signature_.results)}) {
      for (loop::BufferId id : *ids) {
        const loop::Buffer& buffer = function_.buffer(id);
        SignatureBuffer& described = buffers->emplace_back();
        described.name = context_.name(buffer.name);
        described.dtype = buffer.dtype;
        for (const loop::BufferAxis& axis : buffer.axes) described.axes.push_back(size(axis.extent, &buffer));
      }
    }
    for (const loop::SizeRequirement& requirement : function_.required) {
      TENON_TRY(determined(requirement.size));
      signature_.checks.push_back({size(requirement.size, nullptr), requirement.message});
    }
    for (const loop::Table& table : function_.tables) {
      const bool has_limit = table.limit.node != nullptr;
      if (has_limit) TENON_TRY(determined(table.limit));
      const loop::Buffer rows{.name = table.name, .dtype = runtime::DType::kI64, .axes = {{table.var, table.count}}};
      signature_.tables.push_back({kind(table.kind), size(table.count, nullptr), size(table.width, &rows),
                                   has_limit ? size(table.limit, nullptr) : Size()});
    }
    return std::move(signature_);
  }

 private:
  static runtime::SignatureTable::Kind kind(loop::Table::Kind of_table) {
    using Kind = runtime::SignatureTable::Kind;
    switch (of_table) {
      case loop::Table::Kind::kOffsets: return Kind::kOffsets;
      case loop::Table::Kind::kRows: return Kind::kRows;
      case loop::Table::Kind::kDescending: return Kind::kDescending;
      case loop::Table::Kind::kPositions: return Kind::kPositions;
      case loop::Table::Kind::kCounts: return Kind::kCounts;
    }
    return Kind::kUnused;
  }
  // Solves for each dim variable from a parameter's axis in which all other variables are solved already.
  Status solve() {
    std::set<Symbol> open(function_.dims.begin(), function_.dims.end());
    while (!open.empty()) {
      const auto found = std::ranges::find_if(open, [&](Symbol var) { return solve(var, open); });
      if (found == open.end()) return undetermined(*open.begin());
      open.erase(found);
    }
    return {};
  }
  Status determined(Dim dim) const {
    Status status;
    for_each_variable(dim, [&](Symbol var) {
      if (status && std::ranges::find(order_, var) == order_.end()) status = undetermined(var);
    });
    return status;
  }
  std::unexpected<Diagnostic> undetermined(Symbol var) const {
    return error(fmt::format("no parameter's size determines '{}'", context_.name(var)),
                 fmt::format("@{}", context_.name(function_.name)));
  }
  bool solve(Symbol var, const std::set<Symbol>& open) {
    for (size_t param = 0; param < function_.params.size(); ++param) {
      const loop::Buffer& buffer = function_.buffer(function_.params[param]);
      const size_t packed = packed_axes(buffer);
      for (size_t axis = packed; axis < buffer.rank(); ++axis) {
        const auto linear = context_.linear_in(var, buffer.axes[axis].extent);
        if (!linear) continue;
        const auto factor = linear->first.constant();
        if (!factor || *factor == 0 || applies(linear->second)) continue;
        bool solvable = true;
        for_each_variable(linear->second, [&](Symbol other) { solvable &= !open.contains(other); });
        if (!solvable) continue;
        signature_.dims.push_back({std::string(context_.name(var)), static_cast<uint32_t>(param),
                                   static_cast<uint32_t>(axis - (packed > 0 ? packed - 1 : 0)), *factor,
                                   size(linear->second, nullptr)});
        order_.push_back(var);
        return true;
      }
    }
    return false;
  }
  static bool applies(Dim dim) {
    return std::ranges::any_of(dim.node->terms, [](const DimTerm& term) {
      return std::ranges::any_of(term.factors, [](const DimAtom* factor) {
        return factor->kind == DimAtom::Kind::kApply || std::ranges::any_of(factor->args, applies);
      });
    });
  }

  Size size(Dim dim, const loop::Buffer* buffer) {
    Size result;
    write(dim, buffer, result);
    return result;
  }
  void write(Dim dim, const loop::Buffer* buffer, Size& out) {
    if (dim.node->terms.empty()) out.push_back({Op::kConstant, 0});
    bool is_sum = false;
    for (const DimTerm& term : dim.node->terms) {
      bool is_product = term.coefficient != 1 || term.factors.empty();
      if (is_product) out.push_back({Op::kConstant, term.coefficient});
      for (const DimAtom* factor : term.factors) {
        write(*factor, buffer, out);
        if (std::exchange(is_product, true)) out.push_back({Op::kMultiply, 0});
      }
      if (std::exchange(is_sum, true)) out.push_back({Op::kAdd, 0});
    }
  }
  void write(const DimAtom& atom, const loop::Buffer* buffer, Size& out) {
    for (Dim arg : atom.args) write(arg, buffer, out);
    switch (atom.kind) {
      case DimAtom::Kind::kVariable: {
        if (const auto axis = buffer ? std::ranges::find(buffer->axes, atom.name, &loop::BufferAxis::var)
                                     : std::vector<loop::BufferAxis>::const_iterator();
            buffer && axis != buffer->axes.end()) {
          out.push_back({Op::kIndex, axis - buffer->axes.begin()});
        } else {
          out.push_back({Op::kDim, std::ranges::find(order_, atom.name) - order_.begin()});
        }
        break;
      }
      case DimAtom::Kind::kFloorDivide: out.push_back({Op::kFloorDivide, 0}); break;
      case DimAtom::Kind::kMin:
      case DimAtom::Kind::kMax:
        for (size_t i = 1; i < atom.args.size(); ++i)
          out.push_back({atom.kind == DimAtom::Kind::kMin ? Op::kMin : Op::kMax, 0});
        break;
      case DimAtom::Kind::kApply: {
        const auto param = std::ranges::find(function_.params, atom.name,
                                             [&](loop::BufferId id) { return function_.buffer(id).name; });
        out.push_back({Op::kElement, param - function_.params.begin()});
        break;
      }
      case DimAtom::Kind::kErased:
      case DimAtom::Kind::kInvalid: break;  // loop::verify() refuses them
    }
  }

  TypeContext& context_;
  const loop::Function& function_;
  Signature signature_;
  std::vector<Symbol> order_;  // of the dims
};

}  // namespace

Expected<Signature> signature_of(TypeContext& context, const loop::Function& function) {
  return SignatureBuilder(context, function).run();
}

}  // namespace tenon::compiler::native
