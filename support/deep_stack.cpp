#include "support/deep_stack.h"

#include <pthread.h>

#include <csignal>
#include <exception>

namespace tenon {
namespace {

constexpr size_t kStackBytes = size_t{1} << 30;

struct Task {
  FunctionRef<void()> work;
  std::exception_ptr failure;
};

void* run(void* argument) {
  auto& task = *static_cast<Task*>(argument);
  // LLVM replaces the thread's stack for signal handlers; a sanitizer frees the one that it finds at the thread's end.
  stack_t signal_stack{};
  sigaltstack(nullptr, &signal_stack);
  try {
    task.work();
  } catch (...) {
    task.failure = std::current_exception();
  }
  sigaltstack(&signal_stack, nullptr);
  return nullptr;
}

}  // namespace

void with_deep_stack(FunctionRef<void()> work) {
  Task task{work, nullptr};
  pthread_attr_t attributes;
  pthread_t thread{};
  pthread_attr_init(&attributes);
  const bool started =
      pthread_attr_setstacksize(&attributes, kStackBytes) == 0 && pthread_create(&thread, &attributes, run, &task) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) return work();
  pthread_join(thread, nullptr);
  if (task.failure) std::rethrow_exception(task.failure);
}

}  // namespace tenon
