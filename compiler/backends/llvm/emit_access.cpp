// Loads and stores.
#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/backends/llvm/emit_memory.h"
#include "compiler/base/dim_prover.h"

namespace tenon::compiler::native {
namespace {

constexpr int64_t kRegisterLanes = 16;  // lanes that a strided load or store handles at a time

// The first active lane and the number of active lanes of a constant mask whose active lanes are contiguous.
std::optional<std::pair<unsigned, unsigned>> active_range(const llvm::Value* mask) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  if (!constant) return std::nullopt;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  const auto is_active = [&](unsigned lane) { return constant->getAggregateElement(lane)->isOneValue(); };
  unsigned first = 0, end = lanes;
  while (first < lanes && !is_active(first)) ++first;
  while (end > first && !is_active(end - 1)) --end;
  for (unsigned i = first; i < end; ++i) {
    if (!is_active(i)) return std::nullopt;
  }
  return end > first ? std::optional(std::pair(first, end - first)) : std::nullopt;
}

// The lanes that are inactive in every value of the mask, as far as its operands show.
std::vector<bool> never_active(const llvm::Value* mask, unsigned lanes) {
  std::vector<bool> never(lanes);
  if (const auto* constant = llvm::dyn_cast<llvm::Constant>(mask)) {
    for (unsigned i = 0; i < lanes; ++i) {
      const llvm::Constant* lane = constant->getAggregateElement(i);
      never[i] = lane && lane->isNullValue();
    }
  } else if (const auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(mask)) {
    const bool conjunction = operation->getOpcode() == llvm::Instruction::And;
    if (!conjunction && operation->getOpcode() != llvm::Instruction::Or) return never;
    const auto left = never_active(operation->getOperand(0), lanes),
               right = never_active(operation->getOperand(1), lanes);
    for (unsigned i = 0; i < lanes; ++i) never[i] = conjunction ? left[i] || right[i] : left[i] && right[i];
  }
  return never;
}

}  // namespace

// --- Values of the current block ---

Value* MemoryEmitter::stored_value(const BlockCache& cache, const Address& address, const LaneAccess& access,
                                   llvm::Type* element) {
  const auto offset = access.begin.node ? access.begin.constant() : std::nullopt;
  if (frame().mask || !offset || (access.kind != LaneAccess::kUniform && access.kind != LaneAccess::kContiguous))
    return nullptr;
  const auto buffer = cache.stored.find(address.base);
  if (buffer == cache.stored.end()) return nullptr;
  const auto found = buffer->second.find(*offset);
  if (found == buffer->second.end()) return nullptr;
  if (access.kind == LaneAccess::kContiguous) element = llvm::FixedVectorType::get(element, frame().lanes);
  return found->second->getType() == element ? found->second : nullptr;
}

void MemoryEmitter::remember_store(const Address& address, const LaneAccess& access, Value* value) {
  BlockCache* const cache = llvm::isa<llvm::AllocaInst>(address.base) ? frames_.block_cache() : nullptr;
  if (!cache) return;
  const auto offset = access.begin.node ? access.begin.constant() : std::nullopt;
  if (!value || !offset) {
    cache->stored.erase(address.base);
    return;
  }
  const auto size = [](Value* stored) -> int64_t {
    const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(stored->getType());
    return vector ? vector->getNumElements() : 1;
  };
  auto& buffer = cache->stored[address.base];
  std::erase_if(buffer, [&](const auto& stored) {
    return stored.first < *offset + size(value) && *offset < stored.first + size(stored.second);
  });
  buffer.emplace(*offset, value);
}

// --- Loads ---

Value* MemoryEmitter::load(BufferId id, const Dims& indices, llvm::Constant* otherwise) {
  if (const auto found = frame().exchanged.find({id, indices}); found != frame().exchanged.end()) return found->second;
  const bool is_read_only =
      !alias_scopes_.empty() && std::ranges::find(function().params, id) != function().params.end();
  const std::tuple key(id, indices, frame().mask, static_cast<Value*>(otherwise), frame().lanes);
  if (BlockCache* const cache = is_read_only ? frames_.block_cache() : nullptr) {
    if (const auto found = cache->loads.find(key); found != cache->loads.end()) return found->second;
  }
  const Address address = this->address(id, indices);
  const LaneAccess access = lane_access(address);
  const DType dtype = function().buffer(id).dtype;
  if (BlockCache* const cache = frames_.block_cache(); cache && dtype != DType::kBool) {
    if (Value* stored = stored_value(*cache, address, access, frames_.memory_type(dtype))) return stored;
  }
  Value* const loaded = load_from_memory(id, address, access, otherwise);
  if (BlockCache* const cache = is_read_only ? frames_.block_cache() : nullptr) cache->loads.emplace(key, loaded);
  return loaded;
}

Value* MemoryEmitter::load_from_memory(BufferId id, const Address& address, const LaneAccess& access,
                                       llvm::Constant* otherwise) {
  const DType dtype = function().buffer(id).dtype;
  Value* loaded = nullptr;
  if (access.kind == LaneAccess::kUniform) {
    llvm::Type* element = frames_.memory_type(dtype);
    auto* result =
        b_.CreateAlignedLoad(element, pointer(address, access.begin, element), alignment(access.begin, dtype));
    set_alias_metadata(result, id);
    loaded = result;
  } else {
    loaded = load_vector(id, address, access, otherwise);
  }
  return dtype == DType::kBool ? b_.CreateICmpNE(loaded, llvm::Constant::getNullValue(loaded->getType())) : loaded;
}

Value* MemoryEmitter::load_vector(BufferId id, const Address& address, const LaneAccess& access,
                                  llvm::Constant* otherwise) {
  auto* type = llvm::FixedVectorType::get(frames_.memory_type(function().buffer(id).dtype), frame().lanes);
  // If all lanes are inside stack memory, a mask would only prevent LLVM from turning the memory into registers.
  const auto begin = access.kind == LaneAccess::kContiguous ? access.begin.constant() : std::nullopt;
  const auto* stack = llvm::dyn_cast<llvm::AllocaInst>(address.base);
  const bool is_inside =
      begin && stack && *begin >= 0 &&
      static_cast<uint64_t>(*begin) + frame().lanes <= stack->getAllocatedType()->getArrayNumElements();
  Value* mask = is_inside ? nullptr : frame().mask;
  llvm::Constant* fill = otherwise ? otherwise : llvm::Constant::getNullValue(type);
  if (access.kind == LaneAccess::kStrided) {
    if (Value* strided = load_strided(address, access, type, fill, id)) return strided;
  }
  if (access.kind == LaneAccess::kPanels && !mask) return load_panels(id, address, access, type);
  if (access.kind != LaneAccess::kContiguous && access.kind != LaneAccess::kReversed)
    return load_scattered(id, address, type, mask, fill);
  return load_contiguous(id, address, access, type, mask, otherwise);
}

// A load for each panel, or one for adjacent panels.
Value* MemoryEmitter::load_panels(BufferId id, const Address& address, const LaneAccess& access,
                                  llvm::FixedVectorType* type) {
  const auto lanes = static_cast<int64_t>(type->getNumElements()), length = lanes / std::ssize(access.panels);
  llvm::Type* element = type->getElementType();
  Value* result = nullptr;
  for (int64_t first = 0, next = 0; first < lanes; first = next) {
    const Dim begin = access.panels[static_cast<size_t>(first / length)];
    next = first + length;
    while (next < lanes &&
           context_.subtract(access.panels[static_cast<size_t>(next / length)], begin).constant() == next - first)
      next += length;
    auto* part =
        b_.CreateAlignedLoad(llvm::FixedVectorType::get(element, static_cast<unsigned>(next - first)),
                             pointer(address, begin, element), llvm::Align(element->getScalarSizeInBits() / 8));
    set_alias_metadata(part, id);
    std::vector<int> spread, joined;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const bool in_part = lane >= first && lane < next;
      spread.push_back(in_part ? static_cast<int>(lane - first) : -1);
      joined.push_back(static_cast<int>(in_part ? lanes + lane : lane));
    }
    Value* whole = b_.CreateShuffleVector(part, spread);
    result = result ? b_.CreateShuffleVector(result, whole, joined) : whole;
  }
  return result;
}

Value* MemoryEmitter::load_scattered(BufferId id, const Address& address, llvm::FixedVectorType* type, Value* mask,
                                     llvm::Constant* fill) {
  const llvm::Align align(type->getScalarSizeInBits() / 8);
  Value* from = lane_pointers(address, type->getElementType());
  llvm::Instruction* result = nullptr;
  Value* loaded = nullptr;
  if (mask && !llvm::isa<llvm::Constant>(mask) && !unit_.level.masks && constant_elements(id).value_or(0) > 0) {
    // Inactive lanes load the first element, which avoids a branch for each lane.
    from = b_.CreateSelect(mask, from, frames_.splat(address.base));
    result = b_.CreateMaskedGather(type, from, align, frames_.all_lanes(), fill);
    loaded = b_.CreateSelect(mask, result, fill);
  } else {
    loaded = result = b_.CreateMaskedGather(type, from, align, mask ? mask : frames_.all_lanes(), fill);
  }
  set_alias_metadata(result, id);
  return loaded;
}

Value* MemoryEmitter::load_contiguous(BufferId id, const Address& address, const LaneAccess& access,
                                      llvm::FixedVectorType* type, Value* mask, llvm::Constant* otherwise) {
  llvm::Type* element = type->getElementType();
  const llvm::Align align(element->getScalarSizeInBits() / 8);
  llvm::Constant* fill = otherwise ? otherwise : llvm::Constant::getNullValue(type);
  const bool reversed = access.kind == LaneAccess::kReversed;
  Value* from = pointer(address, access.begin, element);
  if (const auto* constant = mask && !reversed ? llvm::dyn_cast<llvm::Constant>(mask) : nullptr;
      constant && fill->getSplatValue()) {
    std::vector<llvm::Constant*> wanted;
    for (unsigned i = 0; i < frame().lanes; ++i) wanted.push_back(constant->getAggregateElement(i));
    if (Value* loaded = load_constant_mask(id, from, element, wanted, fill->getSplatValue())) return loaded;
  }
  if (mask && !reversed && needs_register_loads(type, mask))
    return load_by_registers(type, from, align, mask, fill, id);
  llvm::Instruction* result = nullptr;
  if (!mask) result = b_.CreateAlignedLoad(type, from, align);
  else result = b_.CreateMaskedLoad(type, from, align, reversed ? b_.CreateVectorReverse(mask) : mask, fill);
  Value* loaded = reversed ? b_.CreateVectorReverse(result) : result;
  if (!mask && otherwise && frame().mask) loaded = b_.CreateSelect(frame().mask, loaded, otherwise);
  set_alias_metadata(result, id);
  return loaded;
}

// The elements that a constant mask selects, and `fill` in the other lanes, for levels without masked loads, where LLVM
// would load each element separately. All elements between the first and the last selected one are in the buffer, too.
Value* MemoryEmitter::load_constant_mask(BufferId id, Value* pointer, llvm::Type* element,
                                         std::span<llvm::Constant* const> wanted, llvm::Constant* fill) {
  if (unit_.level.masks) return nullptr;
  const auto is_wanted = [](const llvm::Constant* lane) { return lane->isOneValue(); };
  const auto first = std::ranges::find_if(wanted, is_wanted) - wanted.begin(), lanes = std::ssize(wanted);
  auto last = lanes - 1;
  while (last > first && !is_wanted(wanted[static_cast<size_t>(last)])) --last;
  if (first == lanes)
    return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(static_cast<unsigned>(lanes)), fill);
  const auto size = last - first + 1;
  auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(size));
  auto* loaded = b_.CreateAlignedLoad(type, first == 0 ? pointer : b_.CreateGEP(element, pointer, i64(first)),
                                      llvm::Align(element->getScalarSizeInBits() / 8));
  set_alias_metadata(loaded, id);
  std::vector<int> from;
  for (ptrdiff_t i = 0; i < lanes; ++i)
    from.push_back(static_cast<int>(is_wanted(wanted[static_cast<size_t>(i)]) ? i - first : size));
  return b_.CreateShuffleVector(loaded, llvm::ConstantVector::getSplat(type->getElementCount(), fill), from);
}

// Every step-th element, shuffled out of vectors that are loaded whole. `otherwise` must be equal in all lanes. Returns
// nullptr if the active lanes are unknown.
Value* MemoryEmitter::load_strided(const Address& address, const LaneAccess& access, llvm::FixedVectorType* type,
                                   llvm::Constant* otherwise, BufferId id) {
  const auto* active = frame().mask ? llvm::dyn_cast<llvm::Constant>(frame().mask) : nullptr;
  if (frame().mask && !active) return nullptr;
  // In stack memory, which becomes registers, the loads of all remainders modulo the step use the same vectors.
  const auto begin = access.begin.constant();
  const auto* stack = begin && *begin >= 0 ? llvm::dyn_cast<llvm::AllocaInst>(address.base) : nullptr;
  const StridedLoad load{address, access, type->getElementType(),          active, otherwise->getSplatValue(),
                         id,      stack,  stack ? *begin % access.step : 0};
  // Registers of stack memory are loaded without a mask.
  const auto filled = [&](Value* loaded) {
    return active && stack ? b_.CreateSelect(frame().mask, loaded, otherwise) : loaded;
  };
  const auto lanes = static_cast<int64_t>(frame().lanes);
  Value* result = nullptr;
  for (int64_t first = 0; first < lanes; first += kRegisterLanes) {
    const int64_t count = std::min(kRegisterLanes, lanes - first);
    Value* group = load_strided_lanes(load, first, count);
    if (lanes <= kRegisterLanes) return filled(group);
    std::vector<int> spread, joined;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const bool in_group = lane >= first && lane < first + count;
      spread.push_back(in_group ? static_cast<int>(lane - first) : -1);
      joined.push_back(static_cast<int>(in_group ? lanes + lane : lane));
    }
    group = b_.CreateShuffleVector(group, spread);
    result = result ? b_.CreateShuffleVector(result, group, joined) : group;
  }
  return filled(result);
}

// `count` lanes of a strided load, starting with `first`. If all of their elements are in one register, it is loaded
// once; otherwise as many vectors as the step is long, of which the last one ends with the last element.
Value* MemoryEmitter::load_strided_lanes(const StridedLoad& load, int64_t first, int64_t count) {
  const int64_t step = load.access.step, origin = first * step - load.shift, span = (count - 1) * step + 1 + load.shift;
  const bool in_one_register = span <= kRegisterLanes;
  const int64_t width = in_one_register ? kRegisterLanes : count;
  Value* group = nullptr;
  for (int64_t i = 0; i < (in_one_register ? 1 : step); ++i) {
    const int64_t begin = in_one_register ? 0 : std::min(i * count, span - count);
    std::vector<llvm::Constant*> wanted(static_cast<size_t>(width), b_.getFalse());
    std::vector<int> from;  // indices into the group so far and this vector
    for (int64_t lane = 0; lane < count; ++lane) {
      const int64_t element = lane * step + load.shift, index = element - begin;
      const bool is_loaded = index >= 0 && index < width && element >= i * count;
      from.push_back(static_cast<int>(is_loaded ? (group ? count : 0) + index : lane));
      if (is_loaded && load.is_active(first + lane)) wanted[static_cast<size_t>(index)] = b_.getTrue();
    }
    const bool is_inside =
        load.stack && *load.access.begin.constant() + origin + begin + width <=
                          static_cast<int64_t>(load.stack->getAllocatedType()->getArrayNumElements());
    Value* const loaded = load_strided_register(load, origin + begin, width,
                                                !is_inside && (load.active || in_one_register) ? &wanted : nullptr);
    group = group ? b_.CreateShuffleVector(group, loaded, from) : b_.CreateShuffleVector(loaded, from);
  }
  return group;
}

// `width` elements from `begin` on; `wanted`: the lanes that are loaded, nullptr: all.
Value* MemoryEmitter::load_strided_register(const StridedLoad& load, int64_t begin, int64_t width,
                                            const std::vector<llvm::Constant*>* wanted) {
  auto* type = llvm::FixedVectorType::get(load.element, static_cast<unsigned>(width));
  const llvm::Align align(load.element->getScalarSizeInBits() / 8);
  Value* from = pointer(load.address, context_.add(load.access.begin, context_.dim(begin)), load.element);
  llvm::Instruction* loaded = nullptr;
  if (!wanted) loaded = b_.CreateAlignedLoad(type, from, align);
  else if (Value* unmasked = load_constant_mask(load.id, from, load.element, *wanted, load.fill)) return unmasked;
  else
    loaded = b_.CreateMaskedLoad(type, from, align, llvm::ConstantVector::get(*wanted),
                                 llvm::ConstantVector::getSplat(type->getElementCount(), load.fill));
  set_alias_metadata(loaded, load.id);
  return loaded;
}

// Where masks are vectors of integers, as in AVX2, and a vector is several registers, LLVM 19 loads a register without
// a mask if its lanes are never active, even outside of the buffer. Such loads are split here into one load, or none,
// for each register.
bool MemoryEmitter::needs_register_loads(const llvm::FixedVectorType* type, const Value* mask) const {
  const Level& level = unit_.level;
  return level.family == Machine::Family::kX86 && level.masks && !level.wide() && !llvm::isa<llvm::Constant>(mask) &&
         static_cast<int64_t>(type->getNumElements() * type->getScalarSizeInBits() / 8) > level.vector_bytes;
}

Value* MemoryEmitter::load_by_registers(llvm::FixedVectorType* type, Value* pointer, llvm::Align align, Value* mask,
                                        Value* otherwise, BufferId id) {
  llvm::Type* const element = type->getElementType();
  const unsigned lanes = type->getNumElements(),
                 width = static_cast<unsigned>(unit_.level.vector_bytes * 8) / element->getScalarSizeInBits();
  const std::vector<bool> never = never_active(mask, lanes);
  Value* result = otherwise;
  for (unsigned begin = 0, end = 0; begin < lanes; begin = end) {
    end = std::min(begin + width, lanes);
    if (std::all_of(never.begin() + begin, never.begin() + end, [](bool inactive) { return inactive; })) continue;
    std::vector<int> part, whole(lanes, -1), blend;
    for (unsigned i = begin; i < end; ++i) part.push_back(static_cast<int>(i)), whole[i] = static_cast<int>(i - begin);
    for (unsigned i = 0; i < lanes; ++i) blend.push_back(static_cast<int>(i >= begin && i < end ? lanes + i : i));
    auto* loaded = b_.CreateMaskedLoad(llvm::FixedVectorType::get(element, end - begin),
                                       b_.CreateGEP(element, pointer, i64(begin)), align,
                                       b_.CreateShuffleVector(mask, part), b_.CreateShuffleVector(otherwise, part));
    set_alias_metadata(loaded, id);
    result = b_.CreateShuffleVector(result, b_.CreateShuffleVector(loaded, whole), blend);
  }
  return result;
}

// Of the element at this offset. GPUs load and store adjacent elements by one instruction of up to 16 bytes, as far as
// their addresses are known to be aligned; their memory is, whether global, shared or a thread's own.
llvm::Align MemoryEmitter::alignment(Dim offset, DType dtype) {
  const auto bytes = static_cast<int64_t>(runtime::bytes(dtype));
  int64_t known = bytes;
  const DimProver prover(context_);
  while (frames_.unit().is_gpu() && known < kGpuAlignment &&
         prover.divides(context_.dim(2 * known / bytes), offset) == Answer::kYes)
    known *= 2;
  return llvm::Align(static_cast<uint64_t>(known));
}

// --- Stores ---

void MemoryEmitter::store(BufferId id, const Dims& indices, Value* value) {
  const DType dtype = function().buffer(id).dtype;
  llvm::Type* element = frames_.memory_type(dtype);
  const llvm::Align align(static_cast<uint64_t>(runtime::bytes(dtype)));
  const Address address = this->address(id, indices);
  if (frame().lanes > 0) value = frames_.splat(value);
  if (dtype == DType::kBool) value = b_.CreateZExt(value, value->getType()->getWithNewType(element));
  llvm::Instruction* stored = nullptr;
  const bool is_remembered = dtype != DType::kBool && !frame().mask;
  if (frame().lanes == 0) {
    stored = b_.CreateAlignedStore(value, pointer(address, address.offset, element), alignment(address.offset, dtype));
    remember_store(address, {LaneAccess::kUniform, address.offset}, is_remembered ? value : nullptr);
  } else {
    const LaneAccess access = lane_access(address);
    remember_store(address, access, is_remembered && access.kind == LaneAccess::kContiguous ? value : nullptr);
    if (access.kind == LaneAccess::kContiguous || access.kind == LaneAccess::kReversed) {
      stored = store_contiguous(id, address, access, value, align);
    } else if (access.kind == LaneAccess::kStrided && store_strided(address, access, value, id)) {
      return;
    } else {  // if several lanes write one element, the last one wins
      Value* mask = frame().mask ? frame().mask : frames_.all_lanes();
      stored = b_.CreateMaskedScatter(value, lane_pointers(address, element), align, mask);
    }
  }
  set_alias_metadata(stored, id);
}

llvm::Instruction* MemoryEmitter::store_contiguous(BufferId id, const Address& address, const LaneAccess& access,
                                                   Value* value, llvm::Align align) {
  llvm::Type* element = value->getType()->getScalarType();
  Value* mask = frame().mask;
  const bool reversed = access.kind == LaneAccess::kReversed;
  Value* to = pointer(address, access.begin, element);
  if (reversed) value = b_.CreateVectorReverse(value);
  // A constant mask with contiguous lanes becomes stores of shorter vectors, but in registers of 64 bytes: others have
  // slow masked stores (AMD: as long as a dozen multiplications), or none. Two stores that overlap have any length.
  if (const auto range = !reversed && mask && !unit_.level.wide() ? active_range(mask) : std::nullopt) {
    const auto part = [&](unsigned first, unsigned count) {
      std::vector<int> from(count);
      std::iota(from.begin(), from.end(), static_cast<int>(first));
      return b_.CreateAlignedStore(b_.CreateShuffleVector(value, from), b_.CreateGEP(element, to, i64(first)), align);
    };
    const auto [first, count] = *range;
    const unsigned length = std::bit_floor(count);
    if (length < count) set_alias_metadata(part(first + count - length, length), id);
    return part(first, length);
  }
  if (!mask) return b_.CreateAlignedStore(value, to, align);
  return b_.CreateMaskedStore(value, to, align, reversed ? b_.CreateVectorReverse(mask) : mask);
}

// Lanes spread to their stride and stored under a constant mask, which is faster than a scatter. Returns false if a
// register contains too few lanes, or the level has no masked stores.
bool MemoryEmitter::store_strided(const Address& address, const LaneAccess& access, Value* value, BufferId id) {
  const auto* active = frame().mask ? llvm::dyn_cast<llvm::Constant>(frame().mask) : nullptr;
  llvm::Type* element = value->getType()->getScalarType();
  const unsigned bits = element->getScalarSizeInBits();
  const int64_t lanes = frame().lanes, lanes_per_register = kRegisterLanes / access.step;
  if ((frame().mask && !active) || !unit_.level.masks || (bits < 32 && !unit_.level.wide()) || lanes_per_register < 2)
    return false;
  for (int64_t first = 0; first < lanes; first += lanes_per_register) {
    const int64_t count = std::min(lanes_per_register, lanes - first);
    std::vector<int> from(std::bit_ceil(static_cast<size_t>((count - 1) * access.step + 1)), -1);
    std::vector<llvm::Constant*> wanted(from.size(), b_.getFalse());
    bool any = false;
    for (int64_t lane = 0; lane < count; ++lane) {
      if (active && active->getAggregateElement(static_cast<unsigned>(first + lane))->isNullValue()) continue;
      const auto to = static_cast<size_t>(lane * access.step);
      from[to] = static_cast<int>(first + lane), wanted[to] = b_.getTrue(), any = true;
    }
    if (!any) continue;
    const Dim begin = context_.add(access.begin, context_.dim(first * access.step));
    set_alias_metadata(b_.CreateMaskedStore(b_.CreateShuffleVector(value, from), pointer(address, begin, element),
                                            llvm::Align(bits / 8), llvm::ConstantVector::get(wanted)),
                       id);
  }
  return true;
}

}  // namespace tenon::compiler::native
