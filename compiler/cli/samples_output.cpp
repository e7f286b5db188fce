#include "compiler/cli/samples_output.h"

#include <fmt/format.h>

namespace tenon::cli {

void SamplesOutput::operators(const std::string& name, const std::string& placements) const {
  if (!json_) fmt::print("Operators of {}\n{}\n", name, placements);
}

void SamplesOutput::heading(size_t samples) const {
  if (!json_) fmt::print("Accuracy over {} samples\n", samples);
}

void SamplesOutput::accuracy(const std::string& label, const std::string& key, const runtime::Accuracy& accuracy) {
  rows_.emplace_back("accuracy, " + label, fmt::format("{:.2f} %", accuracy.percent()));
  if (json_) result_.field(key, accuracy.percent());
  else fmt::print("  {:<28} {:6.2f} %\n", label, accuracy.percent());
}

void SamplesOutput::samples(size_t count) {
  if (json_) result_.field("samples", count);
}

void SamplesOutput::comparison(size_t samples, const compiler::Comparison& comparison) {
  const std::string text = fmt::format(
      "{} samples, {} layers, {} elements: {}", samples, comparison.layers(), comparison.elements(),
      comparison.exact() ? "equal bit for bit"
      : comparison.differing() == 0
          ? fmt::format("equal, integers bit for bit and results in floats to {:g} of their size",
                        compiler::Comparison::kTolerance)
          : fmt::format(
                "equal bit for bit; the results of {} samples differ from the reference, because the CPU rounds "
                "a float before an integer otherwise",
                comparison.differing()));
  rows_.emplace_back("device against integer reference", text);
  if (json_) result_.field("layers_compared", comparison.layers()).field("elements_compared", comparison.elements());
  else fmt::print("\nDevice against integer reference\n  {}\n", text);
}

void SamplesOutput::figures(const runtime::Analysis& analysis, const runtime::MemoryRecord& memory,
                            const driver::Info* accelerator) {
  if (json_) {
    result_.field("peak_bytes", memory.peak_bytes)
        .field("arena_bytes", memory.arena_bytes)
        .field("allocations", memory.allocations)
        .field("cycles", analysis.cycles)
        .field("utilization", analysis.utilization)
        .field("read_bytes", analysis.read_bytes)
        .field("write_bytes", analysis.write_bytes)
        .field("launches", analysis.launches);
    return;
  }
  fmt::print("\nMemory of the tensors, a run\n  {:<28} {} KiB, {} of it planned; {} results allocated separately\n",
             "peak", memory.peak_bytes >> 10, memory.arena_bytes >> 10, memory.allocations);
  if (analysis.launches == 0) return;
  fmt::print("\nAccelerator {}, a sample\n", accelerator->config.name);
  fmt::print("  {:<28} {:.0f}{}\n", "cycles", analysis.cycles, accelerator->cycle_accurate ? "" : "  (cycle model)");
  fmt::print("  {:<28} {:.1f} % of {} MACs a cycle\n", "utilization", 100 * analysis.utilization,
             accelerator->config.macs_per_cycle());
  fmt::print("  {:<28} {:.0f} read, {:.0f} written\n", "DRAM bytes", analysis.read_bytes, analysis.write_bytes);
}

void SamplesOutput::file(const std::string& label, const std::string& path) const {
  if (!json_ && !path.empty()) fmt::print("{}: {}\n", label, path);
}

void SamplesOutput::verified(const std::string& second, const std::string& first, size_t samples, double cycles,
                             double utilization, const compiler::Comparison* comparison) {
  if (json_) {
    result_.field("verified_samples", samples).field("verified_cycles", cycles);
    return;
  }
  fmt::print("\n{}\n  {} samples equal to {}{}; {:.0f} cycles a sample, utilization {:.1f} %\n", second, samples, first,
             comparison ? fmt::format(", {} layers bit for bit", comparison->layers()) : "", cycles, 100 * utilization);
}

void SamplesOutput::finish() {
  if (json_) fmt::print("{}", result_.end().str());
}

}  // namespace tenon::cli
