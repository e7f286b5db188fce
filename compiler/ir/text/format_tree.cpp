// The construction of the tree: matching brackets, items, comments, widths and spaces.
#include "compiler/ir/text/format_tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/text/infix.h"
#include "support/try.h"

namespace tenon::compiler::layout {
namespace {

constexpr size_t kMaxDepth = 400;  // of brackets: the parser allows half of this depth, with at most two brackets each

bool is_open(const Token& token) {
  return token.kind == Tok::kPunct &&
         (token.text == "(" || token.text == "[" || token.text == "{" || token.text == "#[");
}
bool is_close(const Token& token) {
  return token.kind == Tok::kPunct && (token.text == ")" || token.text == "]" || token.text == "}");
}
std::string_view partner(std::string_view open) { return open == "(" ? ")" : open == "{" ? "}" : "]"; }

bool is_keyword(std::string_view name) {
  static constexpr std::string_view kKeywords[] = {"let",    "if",   "else",  "match", "def",
                                                   "extern", "type", "const", "in"};
  return std::ranges::find(kKeywords, name) != std::end(kKeywords);
}
// The additional keywords of loop functions, as in where (i) below (n).
bool is_loop_keyword(std::string_view name) {
  static constexpr std::string_view kKeywords[] = {"at", "where", "below", "and", "or"};
  return is_keyword(name) || std::ranges::find(kKeywords, name) != std::end(kKeywords);
}

// Whether an operand ends with this piece, so that an operator after it is an infix operator.
bool ends_operand(const Piece& piece) {
  if (piece.group) return true;
  return piece.kind != Tok::kPunct && !(piece.kind == Tok::kName && is_keyword(piece.text));
}

class Tree {
 public:
  Tree(const Source& source, const std::vector<Token>& tokens) : source_(source), tokens_(tokens) {}

  Expected<Group> run() {
    Group file;
    file.shape = Shape::kFile;
    TENON_TRY(fill(file, 0));
    if (token().kind == Tok::kEnd) return file;
    return source_.error_at(token().offset, fmt::format("unexpected '{}'", token().text));
  }

 private:
  const Token& token() const { return tokens_[at_]; }
  std::string_view text(const Token& token) const {
    return source_.text().substr(token.offset, token.end - token.offset);
  }
  // The number of line ends between a token and the previous token.
  size_t lines_before(size_t at) const {
    if (at == 0) return 0;
    const std::string_view gap = source_.text().substr(tokens_[at - 1].end, tokens_[at].offset - tokens_[at - 1].end);
    return static_cast<size_t>(std::ranges::count(gap, '\n'));
  }

  // Reads up to the closing bracket, which stays unread.
  Status fill(Group& group, size_t depth) {
    if (depth > kMaxDepth) return source_.error_at(token().offset, "nested too deeply");
    Item item;
    auto finish = [&] { this->finish(group, item); };
    while (token().kind != Tok::kEnd && !is_close(token())) {
      if (token().kind == Tok::kComment) {
        comment(group, item);
        continue;
      }
      if (statements(group) && !item.pieces.empty() && ends_item(item) && token().text != "else") finish();
      if (item.pieces.empty()) item.blank = lines_before(at_) >= 2 && !(group.items.empty() && item.before.empty());
      if (token().kind == Tok::kPunct && (token().text == "," || token().text == ";")) {
        item.separator = token().text[0];
        ++at_;
        finish();  // a comment before the separator follows it in the output
        continue;
      }
      if (is_open(token())) {
        TENON_TRY(bracket(group, item, depth));
        // An arm whose value is a block needs no comma.
        if (item.pieces.size() >= 2 && item.pieces[item.pieces.size() - 2].is("=>") &&
            item.pieces.back().group->open == "{" && !(token().kind == Tok::kPunct && token().text == ",")) {
          finish();
        }
        continue;
      }
      item.pieces.push_back({token().kind, std::string(text(token())), nullptr, false, false, 0});
      if (item.pieces.size() >= 2 && at_ > 0 && tokens_[at_ - 1].end == token().offset &&
          (tokens_[at_ - 1].kind == Tok::kInteger || tokens_[at_ - 1].kind == Tok::kFloat) &&
          token().kind == Tok::kName) {  // 0.5f32
        item.pieces[item.pieces.size() - 2].text += item.pieces.back().text;
        item.pieces.pop_back();
      }
      ++at_;
    }
    if (!item.pieces.empty() || !item.before.empty()) finish();
    return {};
  }

  void finish(Group& group, Item& item) {
    if (!item.pieces.empty() && item.pieces.back().kind == Tok::kComment) {
      item.trailing = std::move(item.pieces.back().text);
      item.pieces.pop_back();
    }
    spaces(group, item);
    group.items.push_back(std::move(item));
    item = {};
  }

  // Whether braces end an item: annotations and definitions of types and functions in the file; loops, stages and ifs
  // in a loop function.
  static bool statements(const Group& group) { return group.shape == Shape::kFile || group.shape == Shape::kLoops; }
  static bool ends_item(const Item& item) {
    const Piece& last = item.pieces.back();
    if (!last.group) return false;
    return last.group->open == "{" || (last.group->open == "#[" && item.pieces.size() == 1);
  }

  void comment(Group& group, Item& item) {
    const bool same_line = at_ > 0 && lines_before(at_) == 0;
    const Token& found = token();
    const bool blank = lines_before(at_) >= 2;
    ++at_;
    if (!item.pieces.empty()) {
      if (statements(group) && ends_item(item)) {
        if (same_line) {
          item.trailing = found.text;
        } else {  // the comment belongs to the next item
          finish(group, item);
          item.before.push_back({found.text, blank});
        }
        return;
      }
      item.pieces.push_back({Tok::kComment, found.text, nullptr, false, false, 0});
    } else if (same_line && item.before.empty() && group.items.empty() && group.shape != Shape::kFile &&
               group.trailing.empty()) {
      group.trailing = found.text;
    } else if (same_line && item.before.empty() && !group.items.empty() && group.items.back().trailing.empty()) {
      group.items.back().trailing = found.text;
    } else {
      item.before.push_back({found.text, blank && !(group.items.empty() && item.before.empty())});
    }
  }

  Status bracket(const Group& parent, Item& item, size_t depth) {
    const Token& open = token();
    auto group = std::make_unique<Group>();
    group->open = open.text;
    group->close = partner(open.text);
    const Piece* previous = item.pieces.empty() ? nullptr : &item.pieces.back();
    const bool after_name = previous && (previous->kind == Tok::kName || previous->kind == Tok::kGlobal);
    if (open.text == "[") group->type = after_name;
    if (open.text == "(") group->type = parent.type || (previous && (previous->is("->") || previous->is(":")));
    group->loops =
        parent.loops || (!item.pieces.empty() && item.pieces[0].text == "loop" && parent.shape == Shape::kFile);
    if (open.text == "{") group->shape = group->loops ? Shape::kLoops : Shape::kBlock;
    ++at_;
    TENON_TRY(fill(*group, depth + 1));
    if (token().kind == Tok::kEnd) {
      return source_.error_at(open.offset, fmt::format("'{}' is not closed", open.text));
    }
    if (token().text != group->close) {
      return source_.error_at(token().offset, fmt::format("expected '{}', found '{}'", group->close, token().text));
    }
    ++at_;
    const bool definition = !item.pieces.empty() && item.pieces[0].text == "type";
    if (group->shape == Shape::kBlock && definition) group->shape = Shape::kList;
    if (group->shape == Shape::kBlock && has_arms(*group)) group->shape = Shape::kArms;
    if (group->shape == Shape::kList && group->items.size() > 1 && !group->items.back().pieces.empty()) {
      group->items.back().separator = '\0';  // the last comma is printed only where each item has a line
    }
    item.pieces.push_back({Tok::kPunct, open.text, std::move(group), false, false, 0});
    return {};
  }

  static bool has_arms(const Group& braces) {
    return std::ranges::any_of(braces.items, [](const Item& item) {
      return std::ranges::any_of(item.pieces, [](const Piece& piece) { return piece.is("=>"); });
    });
  }

  // Computes the spaces between the pieces, the infix operators and the widths.
  static void spaces(const Group& group, Item& item) {
    std::vector<Piece>& pieces = item.pieces;
    for (size_t i = 0; i < pieces.size(); ++i) {
      Piece& piece = pieces[i];
      const Piece* previous = i > 0 ? &pieces[i - 1] : nullptr;
      if (!piece.group && piece.kind == Tok::kPunct && find_infix(piece.text)) {
        piece.infix = previous && ends_operand(*previous);
      }
      piece.space = previous && spaced(group, *previous, piece, i);
      // The space in `1 .5` distinguishes it from 1.5; a number after a dot is a field, as in %x.1.5; 1..512 are
      // bounds.
      const bool after_number = previous && (previous->kind == Tok::kInteger || previous->kind == Tok::kFloat);
      const bool bounds = i + 1 < pieces.size() && pieces[i + 1].is(".");
      if (piece.is(".") && after_number && !bounds && !(i >= 2 && pieces[i - 2].is("."))) piece.space = true;
      piece.width = piece.kind == Tok::kComment ? kBroken : piece.group ? width(*piece.group) : piece.text.size();
    }
  }
  // Dims have no spaces around *, as in 2*n.
  static bool tight_sign(const Group& group, const Piece& piece) { return piece.is("*") && group.type; }
  static bool spaced(const Group& group, const Piece& left, const Piece& right, size_t at) {
    if (left.is(".") || right.is(".") || right.is(":")) return false;
    // key=value of a call has no spaces; in an annotation it has spaces.
    if ((left.is("=") && at == 2) || (right.is("=") && at == 1)) {
      if (group.open == "(") return false;
    }
    if (left.is("-") && !left.infix) return false;  // -x
    if (tight_sign(group, left) || tight_sign(group, right)) return false;
    if (right.group && right.group->open != "{") {
      if (left.group) return left.group->open == "#[";
      if (left.kind == Tok::kPunct) return true;
      return left.kind == Tok::kName && (group.loops ? is_loop_keyword : is_keyword)(left.text);
    }
    return true;
  }
  static size_t width(const Group& group) {
    if (!group.trailing.empty()) return kBroken;
    const bool braces = group.open == "{";
    size_t total = group.open.size() + group.close.size() + (braces && !group.items.empty() ? 2 : 0);
    if (group.shape == Shape::kArms || (group.shape == Shape::kLoops && !group.items.empty())) return kBroken;
    if (group.shape == Shape::kBlock && group.items.size() > 1) return kBroken;
    for (const Item& item : group.items) {
      if (!item.before.empty() || !item.trailing.empty()) return kBroken;
      total += item.width() + (item.separator == '\0' ? 0 : 1) + (&item == &group.items.back() ? 0 : 1);
    }
    return std::min(total, kBroken);
  }

  const Source& source_;
  const std::vector<Token>& tokens_;
  size_t at_ = 0;
};

}  // namespace

size_t Item::width() const {
  size_t total = 0;
  for (const Piece& piece : pieces) total += piece.width + (piece.space ? 1 : 0);
  return std::min(total, kBroken);
}

Expected<Group> make_tree(const Source& source, const std::vector<Token>& tokens) { return Tree(source, tokens).run(); }

}  // namespace tenon::compiler::layout
