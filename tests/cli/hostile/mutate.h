// Damaged files: a good file after the damage of a disk, a careless editor or an attacker, repeatable by the seed.
#pragma once

#include <random>
#include <string>

namespace tenon::test {

using Random = std::mt19937;

// Bytes: some set, swapped, removed, doubled or inserted, a part of the file moved, the end cut off.
std::string mutate_bytes(std::string file, Random& random);

// A text of words and literals: literals become extreme, words, lines and signs are removed, repeated or swapped.
std::string mutate_text(std::string file, Random& random);

// A protobuf message, by its structure: varints become extreme, fields are removed, repeated, renumbered, or get the
// contents of others. Bytes that are not a message stay unchanged.
std::string mutate_protobuf(const std::string& file, Random& random);

}  // namespace tenon::test
