// The tree of nested brackets of a text, which the formatter lays out.
//
// Semantics: a Group is the content of a pair of brackets (the outermost group is the file and has no brackets), split
// into items by commas and semicolons; an item is a row of tokens and groups. Every token except separators is in the
// tree once, in order; a comment belongs to the item that it precedes or follows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/base/lexer.h"

namespace tenon::compiler::layout {

inline constexpr size_t kBroken = size_t{1} << 40;  // the width of a piece that must be broken into several lines

struct Group;

// A token, a comment (which ends the line), or a group.
struct Piece {
  Tok kind = Tok::kEnd;
  std::string text;
  std::unique_ptr<Group> group;
  bool space = false;  // a space precedes the piece, unless it is the first in its line
  bool infix = false;  // an operator between two operands
  size_t width = 0;    // in one line, without the space; at least kBroken where the piece must be broken

  bool is(std::string_view punct) const { return kind == Tok::kPunct && !group && text == punct; }
};

struct Comment {
  std::string text;
  bool blank = false;  // a blank line precedes the comment
};

struct Item {
  std::vector<Comment> before;  // each in a separate line
  bool blank = false;           // a blank line precedes the item, or the last of the comments
  std::vector<Piece> pieces;
  char separator = '\0';  // ',' ';' or none
  std::string trailing;   // a comment in the line of the separator

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
  std::string trailing;     // a comment in the line of the opening bracket
  std::vector<Item> items;
};

// The tree of the tokens, including comments; an error for brackets that do not match.
Expected<Group> make_tree(const Source& source, const std::vector<Token>& tokens);

}  // namespace tenon::compiler::layout
