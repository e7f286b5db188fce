// The layout of the tree of brackets: a group is one line where it fits, otherwise it is broken from the outside in.
#include "compiler/ir/text/format.h"

#include <algorithm>
#include <span>

#include "compiler/ir/text/format_tree.h"
#include "compiler/ir/text/infix.h"
#include "support/try.h"

namespace tenon::compiler {
namespace layout {
namespace {

constexpr size_t kColumns = 100, kIndent = 2, kContinued = 4;

using Pieces = std::span<const Piece>;

size_t width_of(Pieces pieces) {
  size_t total = 0;
  for (const Piece& piece : pieces) total += piece.width + (piece.space ? 1 : 0);
  return std::min(total, kBroken);
}
bool has_comments(const Group& group) {
  return !group.trailing.empty() || std::ranges::any_of(group.items, [](const Item& item) {
    return !item.before.empty() || !item.trailing.empty() || item.pieces.empty();
  });
}
bool is_braces(const Piece& piece) { return piece.group && piece.group->open == "{"; }

class Layout {
 public:
  std::string run(const Group& file) {
    for (size_t i = 0; i < file.items.size(); ++i) {
      const Item& item = file.items[i];
      if (i > 0) newline(0);
      if (blank_before(file, i)) newline(0);
      leading_comments(item, 0);
      pieces(item.pieces, 0, item.separator == '\0' ? 0 : 1, is_definition(item));
      end(item, item.separator);
    }
    if (!out_.empty()) newline(0);
    return std::move(out_);
  }

 private:
  static bool is_definition(const Item& item) {
    return !item.pieces.empty() && item.pieces[0].kind == Tok::kName &&
           (item.pieces[0].text == "def" || item.pieces[0].text == "loop");
  }
  // Whether the item is an annotation of the next item: the first annotation belongs to the file.
  static bool is_annotation(const Group& file, size_t i) {
    return i > 0 && file.items[i].pieces.size() == 1 && file.items[i].pieces[0].group &&
           file.items[i].pieces[0].group->open == "#[";
  }
  static bool blank_before(const Group& file, size_t i) {
    if (i == 0 || is_annotation(file, i - 1)) return false;
    const Item& item = file.items[i];
    const bool blank_in_source = item.before.empty() ? item.blank : item.before[0].blank;
    return blank_in_source || is_definition(item) || is_definition(file.items[i - 1]) || is_annotation(file, i);
  }

  size_t column() const { return out_.size() - line_; }
  void newline(size_t indent) {
    while (!out_.empty() && out_.back() == ' ') out_.pop_back();
    out_ += '\n';
    line_ = out_.size();
    out_.append(indent, ' ');
  }
  void trailing_comment(std::string_view comment) {
    if (comment.empty()) return;
    if (out_.find_first_not_of(' ', line_) != std::string::npos) out_ += "  ";
    out_ += comment;
  }
  void leading_comments(const Item& item, size_t indent) {
    for (size_t i = 0; i < item.before.size(); ++i) {
      if (i > 0 && item.before[i].blank) newline(indent);
      out_ += item.before[i].text;
      if (item.pieces.empty() && i + 1 == item.before.size()) return;
      newline(indent);
    }
    if (!item.before.empty() && item.blank) newline(indent);
  }
  void end(const Item& item, char separator) {
    if (separator != '\0') out_ += separator;
    trailing_comment(item.trailing);
  }

  void flat(const Piece& piece, bool first) {
    if (piece.space && !first) out_ += ' ';
    if (!piece.group) {
      out_ += piece.text;
      return;
    }
    const Group& group = *piece.group;
    const bool spaced = group.open == "{" && !group.items.empty();
    out_ += group.open;
    if (spaced) out_ += ' ';
    items_flat(group);
    if (spaced) out_ += ' ';
    out_ += group.close;
  }
  void flat(Pieces pieces) {
    for (const Piece& piece : pieces) flat(piece, &piece == &pieces.front());
  }
  void items_flat(const Group& group) {
    for (const Item& item : group.items) {
      if (&item != &group.items.front()) out_ += ' ';
      flat(item.pieces);
      if (item.separator != '\0') out_ += item.separator;
    }
  }

  // Lays out a row of tokens and groups, after whose last line `tail` more columns follow. `open`: braces are broken.
  void pieces(Pieces pieces, size_t indent, size_t tail, bool open = false) {
    if (pieces.empty()) return;
    if (!open && column() + width_of(pieces) + tail <= kColumns) return flat(pieces);
    if (!open && at_signs(pieces, indent, tail)) return;
    // Both arms of an if are laid out in the same way.
    open |= std::ranges::count_if(pieces, is_braces) > 1;
    bool fresh = true;  // the line is still empty
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece& piece = pieces[i];
      if (piece.kind == Tok::kComment) {
        trailing_comment(piece.text);
        newline(indent + kContinued);
        fresh = true;
        continue;
      }
      if (piece.group && must_break(pieces, i, indent, tail, open, fresh)) {
        if (piece.space && !fresh) out_ += ' ';
        broken(*piece.group, indent, columns_after(pieces, i + 1, tail));
      } else {
        flat(piece, fresh);
      }
      fresh = false;
    }
  }

  // The number of columns that must follow piece i - 1 in its line.
  static size_t columns_after(Pieces pieces, size_t i, size_t tail) {
    size_t total = 0;
    for (; i < pieces.size(); ++i) {
      const Piece& piece = pieces[i];
      if (piece.kind == Tok::kComment) return total;
      if (piece.group && !piece.group->type && !piece.group->items.empty()) {
        return total + piece.group->open.size() + (piece.space ? 1 : 0);
      }
      total += piece.width + (piece.space ? 1 : 0);
    }
    return total + tail;
  }
  bool must_break(Pieces pieces, size_t i, size_t indent, size_t tail, bool open, bool fresh) const {
    const Piece& piece = pieces[i];
    if (piece.width >= kBroken) return true;
    if (piece.group->items.empty()) return false;
    if (open && is_braces(piece)) return true;
    if (piece.group->type) return piece.group->open == "(" && indent + piece.width > kColumns;
    return column() + (piece.space && !fresh ? 1 : 0) + piece.width + columns_after(pieces, i + 1, tail) > kColumns;
  }

  // Breaks before the operators of the lowest precedence, where the parts between them fit:
  //   a = b
  //       + c
  bool at_signs(Pieces pieces, size_t indent, size_t tail) {
    int weakest = kHighestPrecedence;
    for (const Piece& piece : pieces) {
      if (piece.infix) weakest = std::min(weakest, find_infix(piece.text)->precedence);
    }
    if (weakest == kHighestPrecedence) return false;
    std::vector<Pieces> rows;
    size_t begin = 0;
    for (size_t i = 0; i <= pieces.size(); ++i) {
      const bool breaks = i == pieces.size() || (pieces[i].infix && find_infix(pieces[i].text)->precedence == weakest);
      if (!breaks || i == begin) continue;
      rows.push_back(pieces.subspan(begin, i - begin));
      begin = i;
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t start = i == 0 ? column() : indent + kContinued;
      if (start + width_of(rows[i]) + (i + 1 == rows.size() ? tail : 0) > kColumns) return false;
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i > 0) newline(indent + kContinued);
      flat(rows[i]);
    }
    return true;
  }

  void broken(const Group& group, size_t indent, size_t tail) {
    const bool block = group.shape == Shape::kBlock || group.shape == Shape::kLoops;
    const bool statements = block || group.shape == Shape::kArms || group.open == "{";
    if (!statements && !has_comments(group)) {
      if (hugged(group, indent, tail)) return;
      size_t content = 0;
      for (const Item& item : group.items) content += item.width() + 2;
      if (indent + kIndent + content <= kColumns) {  // all items in one separate line
        out_ += group.open;
        newline(indent + kIndent);
        items_flat(group);
        newline(indent);
        out_ += group.close;
        return;
      }
    }
    out_ += group.open;
    trailing_comment(group.trailing);
    for (size_t i = 0; i < group.items.size(); ++i) {
      const Item& item = group.items[i];
      newline(indent + kIndent);
      const bool blank = item.before.empty() ? item.blank : item.before[0].blank;
      if (i > 0 && blank) newline(indent + kIndent);
      leading_comments(item, indent + kIndent);
      char separator = item.separator;
      if (statements && !block && !item.pieces.empty()) separator = ',';
      pieces(item.pieces, indent + kIndent, separator == '\0' ? 0 : 1);
      end(item, separator);
    }
    newline(indent);
    out_ += group.close;
  }

  // Lays out a group in which a single item has braces and all other items fit in the lines around it:
  //   f(%a, fn(%x) {
  //     ...
  //   }, %b)
  bool hugged(const Group& group, size_t indent, size_t tail) {
    const Item* open = nullptr;
    for (const Item& item : group.items) {
      const bool nested = group.items.size() == 1 && item.pieces.size() == 1 && item.pieces[0].group;
      if (!nested && std::ranges::none_of(item.pieces, is_braces)) continue;
      if (open) return false;
      open = &item;
    }
    if (!open) return false;
    const auto brace = std::ranges::find_if(
        open->pieces, [](const Piece& piece) { return piece.group != nullptr && (is_braces(piece)); });
    const auto first = brace == open->pieces.end() ? open->pieces.begin() : brace;
    size_t before = column() + group.open.size() + width_of({open->pieces.begin(), first}) + 2;
    size_t after = indent + 1 + group.close.size() + tail;
    for (const Item& item : group.items) {
      if (&item != open) (&item < open ? before : after) += item.width() + 2;
    }
    if (before > kColumns || after > kColumns) return false;
    out_ += group.open;
    for (const Item& item : group.items) {
      if (&item != &group.items.front()) out_ += ' ';
      if (&item == open) pieces(item.pieces, indent, 0, true);
      else flat(item.pieces);
      if (item.separator != '\0') out_ += item.separator;
    }
    out_ += group.close;
    return true;
  }

  std::string out_;
  size_t line_ = 0;  // the offset of the last line
};

}  // namespace
}  // namespace layout

Expected<std::string> format(std::string_view text, std::string_view file) {
  const Source source(text, file);
  TENON_TRY_ASSIGN(tokens, tokenize(source, true));
  TENON_TRY_ASSIGN(tree, compiler::layout::make_tree(source, *tokens));
  return compiler::layout::Layout().run(*tree);
}

}  // namespace tenon::compiler
