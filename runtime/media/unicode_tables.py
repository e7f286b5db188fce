"""Writes unicode_tables.cpp, the properties of code points that tokenizers go by: python3 unicode_tables.py >FILE

The tables are those of Python's unicodedata; their version is in the first comment of the file."""
import unicodedata

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)  # decomposed by arithmetic


def ranges(is_member):
    """The members as (first, last)."""
    result = []
    for c in filter(is_member, CODE_POINTS):
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def category(*names):
    return lambda c: any(unicodedata.category(chr(c)).startswith(name) for name in names)


def runs(mapping):
    """Pairs as (first, last, distance between two, what is added to each)."""
    result = []
    for c, to in sorted(mapping.items()):
        last = result[-1] if result else None
        if last and to - c == last[3] and c - last[1] in ((1, 2) if last[0] == last[1] else (last[2],)):
            last[2] = c - last[1]
            last[1] = c
        else:
            result.append([c, c, 1, to - c])
    return result


def quoted(text):
    return "".join(x if unicodedata.category(x)[0] in "LNS" else f"\\U{ord(x):08x}" for x in text)


def texts(mapping, longest=90, gap=8):
    """Pairs as (first, what it and those after it become); those in small gaps between pairs stay themselves."""
    result = []
    for c, to in sorted(mapping.items()):
        if result:
            first, text = result[-1]
            more = text + "".join(map(chr, range(first + len(text), c))) + chr(to)
            if c - first - len(text) <= gap and len(quoted(more)) <= longest:
                result[-1] = first, more
                continue
        result.append((c, chr(to)))
    return [(first, quoted(text)) for first, text in result]


def stripped(c):
    return [ord(x) for x in unicodedata.normalize("NFD", chr(c)) if unicodedata.category(x) != "Mn"]


def table(declaration, rows):
    print(f"\n{declaration}[] = {{")
    line = "   "
    for row in rows:
        text = " {" + ", ".join(row) + "},"
        if len(line) + len(text) > 120:
            print(line)
            line = "   "
        line += text
    print(line)
    print("};")


def hexadecimal(*values):
    return [f"{v:#x}" if v >= 0 else str(v) for v in values]


lower = {c: [ord(x) for x in chr(c).lower()] for c in CODE_POINTS}
lower = {c: to[0] for c, to in lower.items() if len(to) == 1 and to[0] != c}
accents = set(c for c in CODE_POINTS if category("Mn")(c))
strip = {c: stripped(c) for c in CODE_POINTS if c not in accents and c not in HANGUL}
strip = {c: to for c, to in strip.items() if to != [c]}
assert all(1 <= len(to) <= 3 for to in strip.values())

print(f"""// Properties of code points, of Unicode {unicodedata.unidata_version}: written by unicode_tables.py.
// clang-format off
#include "runtime/media/unicode.h"

namespace tenon::runtime {{
namespace {{""")
table("constexpr CodeRange kRemoved", (hexadecimal(*r) for r in ranges(
    lambda c: c == 0xFFFD or category("Cc", "Cf", "Co")(c) and chr(c) not in "\t\n\r")))
table("constexpr CodeRange kAccents", (hexadecimal(*r) for r in ranges(lambda c: c in accents)))
table("constexpr CodeRange kPunctuation", (hexadecimal(*r) for r in ranges(
    lambda c: category("P")(c) or 33 <= c <= 126 and not chr(c).isalnum())))
table("constexpr CodeRun kLower", (hexadecimal(*r[:2]) + [str(r[2]), str(r[3])] for r in runs(lower)))
table("constexpr CodeText kStripped", ([f"{c:#x}", f'U"{text}"'] for c, text in texts(
    {c: to[0] for c, to in strip.items() if len(to) == 1})))
table("constexpr CodeExpansion kExpanded", (
    [f"{c:#x}", "{" + ", ".join(hexadecimal(*to)) + "}"] for c, to in sorted(strip.items()) if len(to) > 1))
print("""
}  // namespace

const UnicodeTables& unicode_tables() {
  static constexpr UnicodeTables kTables{kRemoved, kAccents, kPunctuation, kLower, kStripped, kExpanded};
  return kTables;
}

}  // namespace tenon::runtime""")
