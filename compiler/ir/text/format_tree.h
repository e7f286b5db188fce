// The text form as nested brackets: what the formatter lays out.
//
// Semantics: a Group is what stands between two brackets (the outermost one is the file and has none), split into items
// by commas and semicolons; an item is a row of tokens and groups. Every token but separators is in the tree once, in
// order; comments hang on the item that they stand before or behind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/base/lexer.h"

namespace tenon::compiler::layout {

inline constexpr size_t kBroken = size_t{1} << 40;  // the width of what does not fit in one line, however long

struct Group;

// A token, a comment behind which the line must end, or a group.
struct Piece {
  Tok kind = Tok::kEnd;
  std::string text;
  std::unique_ptr<Group> group;
  bool space = false;  // before it, where it follows another one in its line
  bool infix = false;  // an operator between two operands
  size_t width = 0;    // in one line, without the space; at least kBroken where that cannot be

  bool is(std::string_view punct) const { return kind == Tok::kPunct && !group && text == punct; }
};

struct Comment {
  std::string text;
  bool blank = false;  // a blank line stands before it
};

struct Item {
  std::vector<Comment> before;  // each in a line of its own
  bool blank = false;           // a blank line stands before it, or before the last of the comments
  std::vector<Piece> pieces;
  char separator = '\0';  // ',' ';' or none
  std::string behind;     // a comment in the line of the separator

  size_t width() const;  // without the separator
};

enum class Shape : uint8_t {
  kFile,
  kList,   // ( ) and [ ], and the braces of a type definition
  kBlock,  // { let %x = a; b }
  kArms,   // { A => a, B => b }
  kLoops,  // { for i in (n) { ... } a[i] = b; } of a loop function: each statement has a line
};

struct Group {
  Shape shape = Shape::kList;
  std::string open, close;  // brackets
  bool type = false;        // [...] of a type: never broken
  bool loops = false;       // in a loop function
  std::string behind;       // a comment in the line of the opening bracket
  std::vector<Item> items;
};

// The tokens, comments among them, as a tree; an error for brackets that do not match.
Expected<Group> make_tree(const Source& source, const std::vector<Token>& tokens);

}  // namespace tenon::compiler::layout
