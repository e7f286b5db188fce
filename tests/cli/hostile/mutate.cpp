#include "tests/cli/hostile/mutate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

size_t below(Random& random, size_t limit) { return limit < 2 ? 0 : random() % limit; }

template <class List>
auto& one_of(List& list, Random& random) {
  return list[below(random, std::size(list))];
}

constexpr std::array<uint64_t, 16> kExtremes = {0,
                                                1,
                                                2,
                                                3,
                                                7,
                                                127,
                                                255,
                                                256,
                                                65535,
                                                1 << 20,
                                                uint64_t{1} << 31,
                                                (uint64_t{1} << 31) - 1,
                                                uint64_t{1} << 40,
                                                (uint64_t{1} << 63) - 1,
                                                uint64_t{1} << 63,
                                                UINT64_MAX};

// A field of a message in protobuf's wire format.
struct Field {
  uint32_t number = 0;
  int type = 0;
  uint64_t value = 0;      // type 0
  std::string bytes = {};  // types 1, 2 and 5
  std::vector<Field> fields = {};
  bool message = false;  // type 2: `fields` say what is in it
};
using Fields = std::vector<Field>;

std::optional<uint64_t> read_varint(std::string_view& text) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !text.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(text.front());
    text.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<Fields> parse(std::string_view text) {
  Fields fields;
  while (!text.empty()) {
    const auto key = read_varint(text);
    if (!key || *key >> 3 == 0 || *key >> 3 > 1000) return std::nullopt;
    Field field{.number = static_cast<uint32_t>(*key >> 3), .type = static_cast<int>(*key & 7)};
    size_t size = 0;
    if (field.type == 0 || field.type == 2) {
      const auto value = read_varint(text);
      if (!value) return std::nullopt;
      field.value = *value;
      if (field.type == 2) size = *value;
    } else if (field.type == 1) {
      size = 8;
    } else if (field.type == 5) {
      size = 4;
    } else {
      return std::nullopt;
    }
    if (size > text.size()) return std::nullopt;
    field.bytes = text.substr(0, size);
    text.remove_prefix(size);
    if (field.type == 2 && size > 0) {
      if (auto inner = parse(field.bytes)) field.fields = std::move(*inner), field.message = true;
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

void write_varint(std::string& text, uint64_t value) {
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  text += static_cast<char>(value);
}

std::string write(const Fields& fields) {
  std::string text;
  for (const Field& field : fields) {
    write_varint(text, uint64_t{field.number} << 3 | static_cast<uint64_t>(field.type));
    if (field.type == 0) {
      write_varint(text, field.value);
      continue;
    }
    const std::string bytes = field.message ? write(field.fields) : field.bytes;
    if (field.type == 2) write_varint(text, bytes.size());
    text += bytes;
  }
  return text;
}

// Every list of fields in the message, outermost first.
void lists_of(Fields& fields, std::vector<Fields*>& lists) {
  lists.push_back(&fields);
  for (Field& field : fields) {
    if (field.message) lists_of(field.fields, lists);
  }
}

}  // namespace

std::string mutate_bytes(std::string file, Random& random) {
  for (size_t count = 1 + below(random, 4); count > 0 && !file.empty(); --count) {
    // Headers are at the front or at the back.
    const size_t zone = below(random, 3), edge = std::min<size_t>(file.size(), 512);
    const size_t at = zone == 0   ? below(random, edge)
                      : zone == 1 ? file.size() - 1 - below(random, edge)
                                  : below(random, file.size());
    const size_t size = std::min(file.size() - at, size_t{1} << below(random, 10));
    switch (below(random, 8)) {
      case 0: file[at] = static_cast<char>(random()); break;
      case 1: file[at] ^= static_cast<char>(1 << below(random, 8)); break;
      case 2: std::fill_n(file.begin() + static_cast<ptrdiff_t>(at), std::min<size_t>(size, 8), '\xff'); break;
      case 3: std::fill_n(file.begin() + static_cast<ptrdiff_t>(at), std::min<size_t>(size, 8), '\0'); break;
      case 4: file.erase(at, size); break;
      case 5: file.insert(at, file.substr(at, size)); break;
      case 6: file.insert(at, std::string(size, static_cast<char>(random()))); break;
      case 7: file.resize(at); break;
    }
  }
  return file;
}

std::string mutate_text(std::string file, Random& random) {
  static constexpr std::array<std::string_view, 18> kNumbers = {"0",
                                                                "-1",
                                                                "1",
                                                                "3",
                                                                "1.5",
                                                                "1e31072",
                                                                "-1e400",
                                                                "99999999999999999999",
                                                                "9223372036854775807",
                                                                "-0",
                                                                "4294967296",
                                                                "65536",
                                                                "nan",
                                                                "inf",
                                                                "0x7",
                                                                "1e-9",
                                                                "null",
                                                                "007"};
  for (size_t count = 1 + below(random, 3); count > 0 && !file.empty(); --count) {
    size_t begin = below(random, file.size());
    const auto is_word = [&](size_t i) { return std::isalnum(static_cast<uint8_t>(file[i])) || file[i] == '_'; };
    while (begin > 0 && is_word(begin) && is_word(begin - 1)) --begin;
    while (begin + 1 < file.size() && !is_word(begin)) ++begin;
    size_t end = begin + 1;
    while (end < file.size() && is_word(end)) ++end;
    const size_t line = file.rfind('\n', begin) + 1, next = std::min(file.find('\n', begin), file.size() - 1) + 1;
    switch (below(random, 8)) {
      case 0:
      case 1:
      case 2: file.replace(begin, end - begin, one_of(kNumbers, random)); break;
      case 3: file.erase(begin, end - begin); break;
      case 4: file.insert(begin, file.substr(begin, end - begin)); break;
      case 5: file.insert(line, file.substr(line, next - line)); break;
      case 6: file.erase(line, next - line); break;
      case 7: file.insert(begin, std::string(1 + below(random, 2000), one_of("[{(\"'%#:,=-\n\xff\0;", random))); break;
    }
  }
  return below(random, 8) == 0 ? mutate_bytes(std::move(file), random) : file;
}

std::string mutate_protobuf(const std::string& file, Random& random) {
  auto message = parse(file);
  if (!message) return file;
  for (size_t count = 1 + below(random, 3); count > 0; --count) {
    std::vector<Fields*> lists;
    lists_of(*message, lists);
    std::erase_if(lists, [](const Fields* list) { return list->empty(); });
    if (lists.empty()) break;
    Fields& list = *one_of(lists, random);
    const size_t at = below(random, list.size());
    Field& field = list[at];
    switch (below(random, 7)) {
      case 0: list.erase(list.begin() + static_cast<ptrdiff_t>(at)); break;
      case 1: list.insert(list.begin() + static_cast<ptrdiff_t>(at), Field(field)); break;
      case 2: std::swap(field, one_of(list, random)); break;
      case 3: field.number = 1 + static_cast<uint32_t>(below(random, 20)); break;
      default: {  // contents: extreme, another field's of the same kind, or damaged
        if (field.type == 0) {
          field.value = one_of(kExtremes, random);
          break;
        }
        std::vector<Field> others;
        for (const Fields* other : lists) {
          for (const Field& candidate : *other) {
            if (candidate.type == field.type && candidate.number == field.number) others.push_back(candidate);
          }
        }
        if (below(random, 3) != 0) field = Field(one_of(others, random));
        else
          field.bytes = mutate_bytes(field.message ? write(field.fields) : field.bytes, random), field.message = false;
      }
    }
  }
  return write(*message);
}

}  // namespace tenon::test
