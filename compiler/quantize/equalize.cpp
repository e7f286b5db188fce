#include "compiler/quantize/equalize.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "compiler/ir/operator.h"
#include "compiler/quantize/chains.h"

namespace tenon::compiler {
namespace {

using runtime::Tensor;

constexpr double kLeastFactor = 1.0 / 64;  // of a channel that is nearly dead

// Weights [out][in of a group][kernel] with the groups of their operator.
struct Weights {
  size_t out, in, kernel, groups;

  static Weights of(const Chain& chain, const Tensor& tensor) {
    const auto out = static_cast<size_t>(tensor.shape()[0]), in = static_cast<size_t>(tensor.shape()[1]);
    const size_t groups =
        chain.anchor->op->is(ops::kConv2d) ? static_cast<size_t>(int_attr(chain.anchor->attrs, "groups")) : 1;
    return {out, in, static_cast<size_t>(tensor.size()) / (out * in), groups};
  }
  bool is_depthwise() const { return in == 1 && groups > 1; }
  size_t inputs() const { return in * groups; }
  // Visits (input channel, output channel, elements of the kernel).
  template <class T, class F>
  void visit(std::span<T> values, F&& visit) const {
    for (size_t o = 0; o < out; ++o) {
      for (size_t i = 0; i < in; ++i)
        visit(o / (out / groups) * in + i, o, values.subspan((o * in + i) * kernel, kernel));
    }
  }
};

// By input channel: the largest magnitude, relative to the largest of its output channel.
void widen_columns(const Weights& weights, std::span<const float> values, std::vector<double>& columns) {
  const auto largest = [](std::span<const float> kernel) {
    double most = 0;
    for (const float value : kernel) most = std::max(most, std::abs(double{value}));
    return most;
  };
  std::vector<double> rows(weights.out);
  weights.visit(values, [&](size_t, size_t o, auto kernel) { rows[o] = std::max(rows[o], largest(kernel)); });
  weights.visit(values, [&](size_t i, size_t o, auto kernel) {
    if (rows[o] > 0) columns[i] = std::max(columns[i], largest(kernel) / rows[o]);
  });
}

// Equalizes one function.
class Equalizer {
 public:
  Equalizer(Module& module, Function& function, const std::vector<ChannelStatistics>& channels)
      : module_(module), function_(function), channels_(channels), uses_(use_counts(function)) {}

  size_t run() {
    const std::vector<bool> feeds =
        feeding_integers(function_, [&](const Binding& b) { return is_integer_product(function_, b); });
    const Chains chains = find_chains(module_, function_, function_.body, uses_, feeds);
    size_t changed = 0;
    for (const auto& chain : chains.at_root) {
      if (!chain || !has_free_scale(*chain)) continue;
      const VarId root = function_.body.bindings[chain->members.back()].var;
      std::vector<const Chain*> users;
      for (const auto& user : chains.at_root) {
        if (user && user->anchor->args[0] == Atom(root) && pads_with_zeros(*user)) users.push_back(&*user);
      }
      if (users.empty() || users.size() != uses_[index(root)]) continue;
      changed += equalize(*chain, users, channels_[index(root)]);
    }
    return changed;
  }

 private:
  static bool has_free_scale(const Chain& chain) {
    const bool unbounded = std::isinf(chain.after.lo) && std::isinf(chain.after.hi);
    return !chain.residual && (unbounded || (chain.after.lo == 0 && chain.after.hi > 0));
  }

  static bool pads_with_zeros(const Chain& chain) {
    return !chain.anchor->op->is(ops::kConv2d) || int_attr(chain.anchor->attrs, "pad_value") == 0;
  }

  // The weights or the bias of an operator of the chain, in a copy, since another operator may use the constant.
  Tensor& constant(const Chain& chain, size_t member) {
    Atom& atom = std::get<Apply>(function_.body.bindings[chain.members[member]].value).args[1];
    atom = module_.add_constant(module_.constant(std::get<ConstId>(atom)).clone());
    return module_.constants[index(std::get<ConstId>(atom))];
  }

  bool equalize(const Chain& chain, const std::vector<const Chain*>& users, const ChannelStatistics& channels) {
    std::vector<double> columns(channels.lo.size());
    bool depthwise = true;
    for (const Chain* user : users) {
      const Tensor& tensor = weights_of(*user);
      const Weights weights = Weights::of(*user, tensor);
      if (weights.inputs() != columns.size()) return false;
      depthwise &= weights.is_depthwise();
      widen_columns(weights, tensor.data<float>(), columns);
    }
    const std::vector<double> factors = factors_of(channels, columns, depthwise, chain.after.hi);
    if (std::ranges::all_of(factors, [](double f) { return f == 1; })) return false;
    scale_results(chain, factors);
    for (const Chain* user : users) {
      const Weights weights = Weights::of(*user, weights_of(*user));
      weights.visit(constant(*user, 0).data<float>(), [&](size_t i, size_t, auto kernel) {
        for (float& value : kernel) value = static_cast<float>(value * factors[i]);
      });
    }
    return true;
  }

  static std::vector<double> factors_of(const ChannelStatistics& channels, const std::vector<double>& columns,
                                        bool depthwise, double bound) {
    std::vector<double> ranges, factors;
    for (size_t i = 0; i < columns.size(); ++i) {
      ranges.push_back(std::max(std::abs(double{channels.lo[i]}), std::abs(double{channels.hi[i]})));
      factors.push_back(columns[i] == 0 ? 0 : depthwise ? ranges[i] : std::sqrt(ranges[i] / columns[i]));
    }
    const double most = std::ranges::max(factors);
    for (size_t i = 0; i < factors.size(); ++i) {
      if (factors[i] == 0 || ranges[i] == 0) {
        factors[i] = 1;
        continue;
      }
      factors[i] = std::max(factors[i] / most, kLeastFactor);
      if (std::isfinite(bound)) factors[i] = std::min(1.0, std::max(factors[i], ranges[i] / bound));
    }
    return factors;
  }

  void scale_results(const Chain& chain, const std::vector<double>& factors) {
    const auto divide = [&](std::span<float> values) {
      const size_t row = values.size() / factors.size();
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(values[i] / factors[i / row]);
    };
    divide(constant(chain, 0).data<float>());
    if (chain.bias) divide(constant(chain, 1).data<float>());
  }

  // As they are now: a chain may have been equalized with the one before it.
  const Tensor& weights_of(const Chain& chain) const {
    return module_.constant(std::get<ConstId>(chain.anchor->args[1]));
  }

  Module& module_;
  Function& function_;
  const std::vector<ChannelStatistics>& channels_;
  std::vector<uint32_t> uses_;
};

}  // namespace

Equalized equalize(const Module& module, const Distributions& observed) {
  Equalized result{clone(module), 0};
  for (const auto& [name, channels] : observed.channels)
    result.layers += Equalizer(result.module, *result.module.function(name), channels).run();
  return result;
}

}  // namespace tenon::compiler
