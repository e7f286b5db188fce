// Words of four bytes from memory, one for each lane of a vector: one load of all bytes, and two shuffles.
#include <algorithm>
#include <bit>

#include "compiler/backends/llvm/emit_memory.h"

namespace tenon::compiler::native {
namespace {

constexpr int64_t kWord = 4;       // bytes of a word
constexpr int64_t kGroup = 16;     // bytes within which a processor shuffles bytes, of four lanes
constexpr int64_t kRegister = 64;  // bytes of a masked load

bool is_true(const llvm::Constant* lanes, unsigned lane) {
  const llvm::Constant* value = lanes->getType()->isVectorTy() ? lanes->getAggregateElement(lane) : lanes;
  return value && value->isOneValue();
}

}  // namespace

Value* MemoryEmitter::load_words(BufferId id, const std::array<Dims, 4>& indices,
                                 const std::array<llvm::Constant*, 4>& inside, llvm::Constant* otherwise) {
  const auto* mask = llvm::dyn_cast_or_null<llvm::Constant>(frame().mask);
  const int64_t lanes = frame().lanes;
  if (!unit_.level.wide() || is_ragged(function().buffer(id)) || (frame().mask && !mask) || lanes % kWord != 0)
    return nullptr;
  const Address address = this->address(id, indices[0]);
  const LaneAccess access = lane_access(address);
  if (access.kind != LaneAccess::kContiguous && access.kind != LaneAccess::kStrided) return nullptr;
  // Byte k of a lane is `distance[k]` bytes after its first one.
  std::array<int64_t, 4> distance{};
  for (size_t k = 0; k < distance.size(); ++k) {
    const auto found = context_.subtract(this->address(id, indices[k]).offset, address.offset).constant();
    if (!found || *found < 0) return nullptr;
    distance[k] = *found;
  }
  const int64_t step = access.step, last = std::ranges::max(distance);
  const int64_t size = (lanes - 1) * step + last + 1, group = 3 * step + last + 1;
  if (size > kRegister || group > kGroup) return nullptr;

  // The bytes that some lane reads. One of them may not be the constant of another lane, whose index leaves a row,
  // unless all bytes of that lane are constants.
  auto* byte = b_.getInt8Ty();
  const auto width = std::bit_ceil(static_cast<uint64_t>(std::max(size, kGroup)));
  std::vector<llvm::Constant*> is_read(width, b_.getFalse());
  std::vector<bool> is_constant(width);
  std::vector<llvm::Constant*> has_bytes;  // of lanes: whether one of its bytes is read
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const bool is_active = !mask || is_true(mask, lane);
    const auto is_inside = [&](size_t k) { return !inside[k] || is_true(inside[k], lane); };
    const bool any = is_inside(0) || is_inside(1) || is_inside(2) || is_inside(3);
    has_bytes.push_back(b_.getInt1(any || !is_active));
    for (size_t k = 0; k < distance.size() && is_active && any; ++k) {
      const auto at = static_cast<size_t>(lane * step + distance[k]);
      if (is_inside(k)) is_read[at] = b_.getTrue();
      else is_constant[at] = true;
    }
  }
  for (size_t i = 0; i < width; ++i) {
    if (is_constant[i] && is_read[i]->isOneValue()) return nullptr;
  }
  auto* type = llvm::FixedVectorType::get(byte, static_cast<unsigned>(width));
  Value* loaded = nullptr;
  auto* fill = llvm::ConstantVector::getSplat(type->getElementCount(),
                                              otherwise ? otherwise : llvm::Constant::getNullValue(byte));
  auto* load_mask = llvm::ConstantVector::get(is_read);
  Value* const from = pointer(address, access.begin, byte);
  auto* lane_mask = llvm::ConstantVector::get(has_bytes);
  const std::tuple key(from, static_cast<Value*>(load_mask), static_cast<Value*>(fill), static_cast<Value*>(lane_mask));
  BlockCache* const cache = frames_.block_cache();
  const bool is_read_only = std::ranges::find(function().params, id) != function().params.end();
  if (cache && is_read_only) {
    if (const auto found = cache->words.find(key); found != cache->words.end()) return found->second;
  }
  auto* load = b_.CreateMaskedLoad(type, from, llvm::Align(1), load_mask, fill);
  set_alias_metadata(load, id);
  loaded = load;

  // Four lanes' bytes into each group of 16 bytes, by whole words, then the bytes of each lane.
  const auto words = static_cast<unsigned>(width) / kWord;
  loaded = b_.CreateBitCast(loaded, llvm::FixedVectorType::get(b_.getInt32Ty(), words));
  std::vector<int> word_of, byte_of;
  for (int64_t first = 0; first < lanes; first += kWord) {
    for (int64_t i = 0; i < kWord; ++i) {
      const int64_t word = first * step / kWord + i;
      word_of.push_back(i * kWord < group && word < words ? static_cast<int>(word) : -1);
    }
    for (int64_t lane = 0; lane < kWord; ++lane) {
      for (const int64_t offset : distance) byte_of.push_back(static_cast<int>(first * kWord + lane * step + offset));
    }
  }
  loaded = b_.CreateShuffleVector(loaded, word_of);
  loaded = b_.CreateBitCast(loaded, llvm::FixedVectorType::get(byte, static_cast<unsigned>(lanes * kWord)));
  loaded = b_.CreateShuffleVector(loaded, byte_of);
  loaded = b_.CreateBitCast(loaded, llvm::FixedVectorType::get(b_.getInt32Ty(), static_cast<unsigned>(lanes)));
  if (otherwise) {
    const uint64_t value = llvm::cast<llvm::ConstantInt>(otherwise)->getZExtValue();
    auto* constants = llvm::ConstantInt::get(loaded->getType(), value * 0x01010101);
    loaded = b_.CreateSelect(lane_mask, loaded, constants);
  }
  if (cache && is_read_only) cache->words.emplace(key, loaded);
  return loaded;
}

}  // namespace tenon::compiler::native
