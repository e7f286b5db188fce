// Matches: nested patterns that together cover every value, some values more than once.
#include <algorithm>

#include "compiler/fuzz/body.h"

namespace tenon::compiler::fuzz {

MatchPattern Body::leaf(Type type) {
  if (random_.chance(30)) return {AnyPattern{}};
  return {BindPattern{builder_.declare(type, random_.chance(60) ? fresh("p") : "")}};
}

std::vector<MatchPattern> Body::cover(Type type, int depth) {
  constexpr size_t kMaxPatterns = 7;
  std::vector<MatchPattern> patterns;
  if (depth <= 0 || random_.chance(20)) return {leaf(type)};
  // One of the fields is matched further, the others are leaves.
  auto spread = [&](const std::vector<Type>& types, auto make) {
    const size_t deep = types.empty() || random_.chance(50)
                            ? types.size()
                            : static_cast<size_t>(random_.between(0, static_cast<int64_t>(types.size()) - 1));
    std::vector<MatchPattern> inner;
    if (deep < types.size()) inner = cover(types[deep], depth - 1);
    for (size_t i = 0; i < std::max<size_t>(1, inner.size()); ++i) {
      std::vector<MatchPattern> fields;
      for (size_t j = 0; j < types.size(); ++j) fields.push_back(j == deep ? std::move(inner[i]) : leaf(types[j]));
      patterns.push_back(make(std::move(fields)));
    }
  };
  if (auto* adt = type.adt()) {
    for (const Constructor& constructor : builder_.module().adts.at(adt->name).constructors) {
      if (patterns.size() >= kMaxPatterns) {
        patterns.push_back(leaf(type));
        break;
      }
      spread(types_.fields(*adt, constructor), [&](std::vector<MatchPattern> fields) {
        return MatchPattern{ConstructPattern{constructor.name, std::move(fields)}};
      });
    }
  } else if (auto* tuple = type.tuple(); tuple && !tuple->fields.empty()) {
    spread(tuple->fields,
           [](std::vector<MatchPattern> fields) { return MatchPattern{TuplePattern{std::move(fields)}}; });
  } else {
    patterns.push_back(leaf(type));
  }
  return patterns;
}

// The variables of a pattern; those below a constructor are smaller than the matched value.
void Body::bound_by(const MatchPattern& pattern, bool smaller, bool inside, std::vector<Local>& found) const {
  if (auto* bind = std::get_if<BindPattern>(&pattern.form)) {
    found.push_back({.atom = bind->var, .type = builder_.function().type(bind->var), .smaller = smaller && inside});
  } else if (auto* construct = std::get_if<ConstructPattern>(&pattern.form)) {
    for (const MatchPattern& field : construct->fields) bound_by(field, smaller, true, found);
  } else if (auto* tuple = std::get_if<TuplePattern>(&pattern.form)) {
    for (const MatchPattern& field : tuple->fields) bound_by(field, smaller, inside, found);
  }
}

Body::Made Body::match(const Local& subject, Type type, int depth, bool recursion) {
  if (!constructible(type)) return std::nullopt;
  std::vector<MatchPattern> patterns = cover(subject.type, recursion ? 1 : 2);
  if (recursion && patterns.size() == 1 && std::holds_alternative<BindPattern>(patterns[0].form)) {
    patterns = cover(subject.type, 3);
  }
  if (patterns.size() > 1 && random_.chance(25)) {  // the remaining patterns as one
    patterns.resize(static_cast<size_t>(random_.between(1, static_cast<int64_t>(patterns.size()) - 1)));
    patterns.push_back(leaf(subject.type));
  }
  if (random_.chance(20)) {  // an arm that covers some of the values before the others
    auto others = cover(subject.type, 2);
    const auto which = random_.between(0, static_cast<int64_t>(others.size()) - 1);
    patterns.insert(patterns.begin(), std::move(others[static_cast<size_t>(which)]));
  }
  Case value{subject.atom, {}};
  const bool before = may_recur_;
  if (recursion) may_recur_ = true;
  const int64_t recursions = recursions_;
  int64_t most = recursions;
  for (MatchPattern& pattern : patterns) {
    std::vector<Local> locals;
    bound_by(pattern, subject.smaller || recursion, subject.smaller, locals);
    recursions_ = recursions;  // one arm is evaluated
    auto body = block(type, depth > 0 ? random_.between(0, 2) : 0, locals);
    most = std::max(most, recursions_);
    if (!body) {
      may_recur_ = before;
      return std::nullopt;
    }
    value.arms.push_back({std::move(pattern), std::move(*body)});
  }
  recursions_ = most;
  may_recur_ = before;
  return bind(std::move(value));
}

}  // namespace tenon::compiler::fuzz
