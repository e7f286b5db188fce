// The text form of dims.
#include <algorithm>

#include "compiler/base/dim.h"

namespace tenon::compiler {
namespace {

using AtomKind = DimAtom::Kind;

class Writer {
 public:
  explicit Writer(FunctionRef<std::string_view(Symbol)> name) : name_(name) {}

  std::string sum(std::vector<DimTerm> terms) const {
    if (terms.empty()) return "0";
    struct Part {
      bool negative;
      std::string text;
      bool is_constant;
      auto operator<=>(const Part&) const = default;
    };
    std::vector<Part> parts;
    take_remainders(terms, [&](int64_t times, const std::string& text) {
      parts.push_back({times < 0, size_of(times) == "1" ? text : size_of(times) + "*(" + text + ")", false});
    });
    if (auto folded = extreme_plus(terms); folded && parts.empty()) return *folded;
    for (const DimTerm& term : terms) {
      const bool negative = term.coefficient < 0;
      parts.push_back({negative, product(term), term.factors.empty()});
    }
    // Positive terms come first, sorted by name; the constant comes last.
    std::ranges::sort(parts, {},
                      [](const Part& part) { return std::tuple(part.is_constant, part.negative, part.text); });
    std::string text;
    for (const Part& part : parts) {
      if (!text.empty()) text += part.negative ? " - " : " + ";
      else if (part.negative) text += "-";
      // A minus in front binds tighter than // and %.
      const bool guard =
          text == "-" && (part.text.find(" // ") != std::string::npos || part.text.find(" % ") != std::string::npos);
      text += guard ? "(" + part.text + ")" : part.text;
    }
    return text;
  }

 private:
  static std::string size_of(int64_t coefficient) {
    return std::to_string(coefficient < 0 ? 0 - static_cast<uint64_t>(coefficient)
                                          : static_cast<uint64_t>(coefficient));
  }
  std::string sum(Dim dim) const { return sum(dim.node->terms); }

  // The text of an operand of a product or division.
  std::string operand(Dim dim) const {
    std::string text = sum(dim);
    return text.find_first_of(" -*") != std::string::npos && !closed(text) ? "(" + text + ")" : text;
  }
  // Whether the text is a call, as min(n, 4).
  static bool closed(const std::string& text) {
    const size_t open = text.find('(');
    if (open == std::string::npos || open == 0 || text.find_first_of(" *-") < open) return false;
    int depth = 0;
    for (size_t i = open; i < text.size(); ++i) {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
      if (depth == 0) return i + 1 == text.size();
    }
    return false;
  }

  std::string list(const std::vector<Dim>& dims, bool set, int64_t plus = 0) const {
    std::vector<std::string> texts;
    for (Dim dim : dims) {
      std::vector<DimTerm> terms = dim.node->terms;
      if (plus != 0) {
        if (terms.empty() || !terms[0].factors.empty()) terms.insert(terms.begin(), DimTerm{{}, 0});
        terms[0].coefficient += plus;
        if (terms[0].coefficient == 0) terms.erase(terms.begin());
      }
      texts.push_back(sum(std::move(terms)));
    }
    if (set) {  // constants come last, as in min(n, 4)
      std::ranges::sort(texts, {}, [](const std::string& text) {
        return std::pair(text.find_first_not_of("-0123456789") == std::string::npos, text);
      });
    }
    std::string joined;
    for (const std::string& text : texts) joined += (joined.empty() ? "" : ", ") + text;
    return joined;
  }

  std::string atom(const DimAtom& atom) const {
    switch (atom.kind) {
      case AtomKind::kVariable: return std::string(name_(atom.name));
      case AtomKind::kFloorDivide: return dividend(atom.args[0]) + " // " + operand(atom.args[1]);
      case AtomKind::kMin: return "min(" + list(atom.args, true) + ")";
      case AtomKind::kMax: return "max(" + list(atom.args, true) + ")";
      case AtomKind::kApply: return std::string(name_(atom.name)) + "(" + list(atom.args, false) + ")";
      case AtomKind::kErased: return "?";
      case AtomKind::kInvalid: return "invalid";
    }
    return "";
  }
  // A product needs no parentheses: 2*n // 16 is (2*n) // 16.
  std::string dividend(Dim dim) const {
    const auto& terms = dim.node->terms;
    if (terms.size() == 1 && terms[0].coefficient > 0) return product(terms[0]);
    return operand(dim);
  }

  // The text of the term without its sign.
  std::string product(const DimTerm& term) const {
    const std::string coefficient = size_of(term.coefficient);
    if (term.factors.empty()) return coefficient;
    std::vector<std::string> texts;
    const bool alone = term.factors.size() == 1 && coefficient == "1";
    for (const DimAtom* factor : term.factors) {
      std::string text = atom(*factor);
      if (factor->kind == AtomKind::kFloorDivide && !alone) text.insert(0, "(").append(")");
      texts.push_back(std::move(text));
    }
    std::ranges::sort(texts);
    std::string joined = coefficient == "1" ? "" : coefficient;
    for (const std::string& text : texts) joined += (joined.empty() ? "" : "*") + text;
    return joined;
  }

  // Removes terms of the form k*a - k*c*(a // c), which is k*(a % c), and passes each to `found`.
  template <class F>
  void take_remainders(std::vector<DimTerm>& terms, F&& found) const {
    struct Remainder {
      std::string text;
      int64_t times;
      DimTerm floor;
      std::vector<DimTerm> parts;
    };
    std::vector<Remainder> candidates;
    for (const DimTerm& term : terms) {
      for (const DimAtom* factor : term.factors) {
        if (factor->kind != AtomKind::kFloorDivide) continue;
        const Dim by = factor->args[1];
        Monomial others = term.factors;
        others.erase(std::ranges::find(others, factor));
        int64_t divisor = 1;
        if (others.empty() && by.constant()) divisor = *by.constant();
        else if (others.size() != 1 || by.atom() != others[0]) continue;
        if (term.coefficient == INT64_MIN || term.coefficient % divisor != 0) continue;
        const int64_t times = -(term.coefficient / divisor);
        Remainder next{dividend(factor->args[0]) + " % " + operand(by), times, term, {}};
        bool present = true;
        for (const DimTerm& part : factor->args[0].node->terms) {
          int64_t coefficient;
          present &= !__builtin_mul_overflow(part.coefficient, times, &coefficient);
          present &= part.factors.empty() || std::ranges::count(terms, DimTerm{part.factors, coefficient}) > 0;
          next.parts.push_back({part.factors, coefficient});
        }
        if (present) candidates.push_back(std::move(next));
      }
    }
    std::ranges::sort(candidates, {}, &Remainder::text);
    for (const Remainder& next : candidates) {
      // An earlier candidate may have removed a part.
      auto has = [&](const DimTerm& term) { return std::ranges::count(terms, term) > 0; };
      if (!has(next.floor)) continue;
      if (!std::ranges::all_of(next.parts, [&](const DimTerm& part) { return part.factors.empty() || has(part); })) {
        continue;
      }
      std::vector<DimTerm> remaining = terms;
      std::erase(remaining, next.floor);
      bool fits = true;
      for (const DimTerm& part : next.parts) {
        if (!part.factors.empty()) {
          std::erase(remaining, part);
          continue;
        }
        auto constant = std::ranges::find_if(remaining, [](const DimTerm& term) { return term.factors.empty(); });
        if (constant == remaining.end()) constant = remaining.insert(remaining.begin(), DimTerm{{}, 0});
        fits &= !__builtin_sub_overflow(constant->coefficient, part.coefficient, &constant->coefficient);
        if (constant->coefficient == 0) remaining.erase(constant);
      }
      if (!fits) continue;
      terms = std::move(remaining);
      found(next.times, next.text);
    }
  }

  // min(a, b) + 3 as min(a + 3, b + 3): the normal form subtracts the least constant from every argument.
  std::optional<std::string> extreme_plus(const std::vector<DimTerm>& terms) const {
    if (terms.size() != 2 || !terms[0].factors.empty() || terms[1].coefficient != 1 || terms[1].factors.size() != 1) {
      return std::nullopt;
    }
    const DimAtom& atom = *terms[1].factors[0];
    if (atom.kind != AtomKind::kMin && atom.kind != AtomKind::kMax) return std::nullopt;
    for (Dim arg : atom.args) {
      const auto& inner = arg.node->terms;
      int64_t sum = 0;
      if (!inner.empty() && inner[0].factors.empty() &&
          __builtin_add_overflow(inner[0].coefficient, terms[0].coefficient, &sum)) {
        return std::nullopt;
      }
    }
    return (atom.kind == AtomKind::kMin ? "min(" : "max(") + list(atom.args, true, terms[0].coefficient) + ")";
  }

  FunctionRef<std::string_view(Symbol)> name_;
};

}  // namespace

std::string str(const DimRange& range) {
  return std::to_string(range.lo.value_or(0)) + ".." + (range.hi ? std::to_string(*range.hi) : "");
}

std::string str(Dim dim, FunctionRef<std::string_view(Symbol)> name) { return Writer(name).sum(dim.node->terms); }

}  // namespace tenon::compiler
