// Damaged files: what a disk, a careless editor or an enemy makes of a good one, repeatable by the generator's seed.
#pragma once

#include <random>
#include <string>

namespace tenon::test {

using Random = std::mt19937;

// Bytes: some set, swapped, removed, doubled or inserted, a part of the file moved, the end cut off.
std::string mutate_bytes(std::string file, Random& random);

// A text of words and numbers: numbers become extreme ones, words, lines and signs go, come twice, or change places.
std::string mutate_text(std::string file, Random& random);

// A protobuf message, by its structure: varints become extreme, fields go, come twice, change numbers, or take the
// contents of others. What is no message stays as it is.
std::string mutate_protobuf(const std::string& file, Random& random);

}  // namespace tenon::test
