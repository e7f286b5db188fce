// Functions whose loops are bound to the blocks and threads of a GPU: what a launch requires of them, where their
// phases need barriers, and the function that a processor without threads executes in their stead.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/loop/loop.h"

namespace tenon::compiler::loop {

constexpr int64_t kMaxThreads = 1024;  // of a block, on every GPU
constexpr int64_t kWarpThreads = 32;
inline constexpr LoopKind kBlockKinds[] = {LoopKind::kBlockX, LoopKind::kBlockY, LoopKind::kBlockZ};

// Whether a loop of the function is bound to blocks or threads.
bool is_bound(const Function& function);

// One launch: a nest of block loops, with the numbers of blocks and of threads along x, y and z.
struct Launch {
  const For* nest = nullptr;
  std::array<Dim, 3> grid;  // over the function's dims
  std::array<int64_t, 3> threads{1, 1, 1};
  int64_t shared_elements = 0;
  // The block's registers that a thread also reads from others of its warp, with the axis of each that is the index of
  // the thread along x; without one, thread 0 along x has it.
  std::map<BufferId, std::optional<size_t>> exchanged = {};
};

// The variable of the loop over threads, one of `loops`, that the index equals in all iterations of the loops.
std::optional<Symbol> thread_of(TypeContext& context, Dim index, const std::vector<const For*>& loops);

// The index over loops that are not threads', if it is the same for all threads of the loops; else nullopt.
std::optional<Dim> uniform_index(TypeContext& context, Dim index, const std::vector<const For*>& loops);

// The launches of a bound function, in order. Outside of them there are allocations of buffers only. Errors, with the
// loop or buffer: a stage outside of every block or thread; block loops inside other loops, or two of one axis; a
// thread loop outside of every block, inside another one of its axis, or without a constant extent; more than
// kMaxThreads threads; a block's buffer that is neither shared nor in registers, shared memory without a constant size;
// a register of a block that is not written at all of the thread's own indices, or that is read at those of a thread
// which may not be in the same warp, or may not arrive (loop.h).
Expected<std::vector<Launch>> launches_of(TypeContext& context, const Function& function);

// Adds the barriers that the phases of each block require: between two of which one writes a buffer that the other
// accesses. A block's own registers and the buffers that a thread allocates need none.
Function with_barriers(TypeContext& context, Function function);

// One kernel for each launch of a bound function, as back ends emit it. Each has the function's parameters; its results
// are the function's and then the buffers that the function allocates outside of its launches, which the caller makes.
// Each nest of thread loops binds all axes on which the block has threads, and a register of the block is each thread's
// own: the thread's indices are not among its axes, which have one element along them. Where a register is read from
// another thread, the index along x is that thread's, plus 1: an index of 0 is the thread's own register.
struct Kernel {
  std::string name;  // the function's, with the index of the launch: "softmax_0"
  Function function;
  Launch launch;  // `nest` is in `function`; `exchanged` has an axis for each register
};
Expected<std::vector<Kernel>> kernels_of(TypeContext& context, const Function& function);

// The function without bindings: the outermost block loops are parallel and all other bound loops serial, shared
// memory is an ordinary buffer, and barriers are gone. Its results are those of `function`.
Function unbound(Function function);

}  // namespace tenon::compiler::loop
