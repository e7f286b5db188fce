// The exhaustiveness of patterns: a search for a value that no row matches (Maranget, "Warnings for pattern matching",
// JFP 17(3), 2007, section 3). Where one row matches every value, nothing is missing; and a set of rows that was found
// to match every value is not searched again, so that the search is linear where each row tells about few columns.
#include "compiler/ir/patterns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace tenon::compiler {
namespace {

constexpr int kMaxSteps = 100000;

using PatternRow = std::vector<const MatchPattern*>;  // nullptr matches any value
using PatternRows = std::vector<PatternRow>;
using Witness = std::optional<std::vector<std::string>>;

class Search {
 public:
  Search(const Context& context, const Module& module) : context_(context), module_(module) {}

  bool exhausted() const { return steps_ > kMaxSteps; }

  // A vector of `width` values that no row matches.
  Witness missing(const PatternRows& rows, size_t width) {
    if (++steps_ > kMaxSteps) return std::nullopt;
    if (rows.empty()) return Witness(std::in_place, width, "_");
    if (std::ranges::any_of(rows, [](const PatternRow& row) { return std::ranges::all_of(row, wild); }))
      return std::nullopt;
    if (covered_.contains(rows)) return std::nullopt;
    Witness witness = missing_head(rows, width);
    if (!witness) covered_.insert(rows);
    return witness;
  }

 private:
  Witness missing_head(const PatternRows& rows, size_t width) {
    const MatchPattern* head = nullptr;
    for (const PatternRow& row : rows) {
      if (!wild(row[0])) head = row[0];
    }
    if (!head) {
      Witness witness = missing(without_head(rows), width - 1);
      if (witness) witness->insert(witness->begin(), "_");
      return witness;
    }
    if (auto* tuple = std::get_if<TuplePattern>(&head->form)) {
      return joined(missing(specialized(rows, nullptr, tuple->fields.size()), tuple->fields.size() + width - 1), "",
                    tuple->fields.size());
    }
    const auto decl = module_.constructor(std::get<ConstructPattern>(head->form).constructor);
    for (const Constructor& constructor : decl->adt->constructors) {
      const size_t fields = constructor.fields.size();
      Witness found = joined(missing(specialized(rows, &constructor, fields), fields + width - 1),
                             std::string(context_.name(constructor.name)), fields);
      if (found) return found;
    }
    return std::nullopt;
  }

  static bool wild(const MatchPattern* pattern) {
    return !pattern || std::holds_alternative<AnyPattern>(pattern->form) ||
           std::holds_alternative<BindPattern>(pattern->form);
  }
  static PatternRows without_head(const PatternRows& rows) {
    PatternRows tails;
    for (const PatternRow& row : rows) {
      if (wild(row[0])) tails.emplace_back(row.begin() + 1, row.end());
    }
    return tails;
  }
  // The rows that match this constructor (or a tuple), with its fields in front.
  static PatternRows specialized(const PatternRows& rows, const Constructor* constructor, size_t fields) {
    PatternRows result;
    for (const PatternRow& row : rows) {
      PatternRow open;
      if (wild(row[0])) {
        open.assign(fields, nullptr);
      } else {
        const std::vector<MatchPattern>* inner = nullptr;
        if (auto* tuple = std::get_if<TuplePattern>(&row[0]->form)) inner = &tuple->fields;
        else if (auto* construct = std::get_if<ConstructPattern>(&row[0]->form)) {
          if (constructor && construct->constructor == constructor->name) inner = &construct->fields;
        }
        if (!inner || inner->size() != fields) continue;
        for (const MatchPattern& field : *inner) open.push_back(&field);
      }
      open.insert(open.end(), row.begin() + 1, row.end());
      result.push_back(std::move(open));
    }
    return result;
  }
  static Witness joined(Witness witness, const std::string& name, size_t fields) {
    if (!witness) return witness;
    const auto end = witness->begin() + static_cast<ptrdiff_t>(fields);
    std::string text = fmt::format("{}", fmt::join(witness->begin(), end, ", "));
    if (name.empty() || fields > 0) text = fmt::format("({}{})", text, name.empty() && fields == 1 ? "," : "");
    witness->erase(witness->begin(), end);
    witness->insert(witness->begin(), name + text);
    return witness;
  }

  const Context& context_;
  const Module& module_;
  int steps_ = 0;
  std::set<PatternRows> covered_;  // the rows match every value
};

}  // namespace

Expected<std::optional<std::string>> uncovered(const Context& context, const Module& module,
                                               std::span<const Arm> arms) {
  PatternRows rows;
  for (const Arm& arm : arms) rows.push_back({&arm.pattern});
  Search search(context, module);
  Witness witness = search.missing(rows, 1);
  if (search.exhausted()) return error("the match has too many patterns to be checked", "", "split the match");
  if (!witness) return std::nullopt;
  return witness->front();
}

}  // namespace tenon::compiler
