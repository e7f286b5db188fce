#include "compiler/loop/in_flight.h"

#include <fmt/format.h>

#include <utility>

namespace tenon::compiler::loop {

void InFlight::begin(const Copy& copy, bool has_source) {
  open_.push_back({copy, has_source});
  ++targets_[{copy.to, copy.to_element}];
  if (has_source) ++sources_[{copy.from, copy.from_element}];
}

std::vector<InFlight::Copy> InFlight::wait(int64_t groups) {
  std::vector<Copy> arrived;
  const auto end = [](std::map<Element, int64_t>& counts, const Element& element) {
    const auto found = counts.find(element);
    if (--found->second == 0) counts.erase(found);
  };
  while (std::ssize(groups_) > groups) {
    for (const Begun& begun : groups_.front()) {
      arrived.push_back(begun.copy);
      end(targets_, {begun.copy.to, begun.copy.to_element});
      if (begun.has_source) end(sources_, {begun.copy.from, begun.copy.from_element});
    }
    groups_.pop_front();
  }
  return arrived;
}

Status InFlight::fail(BufferId buffer, int64_t element, std::string_view finding) const {
  Diagnostic diagnostic =
      state_.fail(fmt::format("element {} of {} {}", element, state_.name(buffer), finding)).error();
  diagnostic.help = "commit the copies and wait for their group first";
  return std::unexpected(std::move(diagnostic));
}

Status InFlight::read(BufferId buffer, int64_t element) const {
  if (targets_.contains({buffer, element})) return fail(buffer, element, "is read while it is in flight");
  return {};
}

Status InFlight::write(BufferId buffer, int64_t element) const {
  if (targets_.contains({buffer, element})) return fail(buffer, element, "is written while it is in flight");
  if (sources_.contains({buffer, element}))
    return fail(buffer, element, "is written while an asynchronous copy reads it");
  return {};
}

Status InFlight::release(BufferId buffer) const {
  const auto first = targets_.lower_bound({buffer, 0});
  if (first == targets_.end() || first->first.first != buffer) return {};
  return fail(buffer, first->first.second, "is in flight where the buffer ends");
}

}  // namespace tenon::compiler::loop
