// The functions of NVIDIA's driver that this folder calls, found in its library when a GPU is opened: no toolkit is
// needed to build or to run. The declarations are those of cuda.h, whose binary interface is stable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "support/diagnostic.h"

namespace tenon::runtime::cuda {

using Address = unsigned long long;  // of a GPU's memory
struct Context;
struct CodeModule;
struct Function;
struct Stream;
struct Event;
struct Graph;
struct GraphExec;

struct Driver {
  int (*init)(unsigned flags);
  int (*error_name)(int status, const char** name);
  int (*error_string)(int status, const char** text);
  int (*device_count)(int* count);
  int (*device)(int* device, int ordinal);
  int (*device_name)(char* name, int bytes, int device);
  int (*device_attribute)(int* value, int attribute, int device);
  int (*device_memory)(size_t* bytes, int device);
  int (*retain_context)(Context** context, int device);
  int (*release_context)(int device);
  int (*set_context)(Context* context);
  int (*load_module)(CodeModule** code, const void* image, unsigned count, int* options, void** values);
  int (*unload_module)(CodeModule* code);
  int (*function)(Function** function, CodeModule* code, const char* name);
  int (*variable)(Address* address, size_t* bytes, CodeModule* code, const char* name);
  int (*allocate)(Address* address, size_t bytes);
  int (*release)(Address address);
  int (*allocate_host)(void** memory, size_t bytes);  // pinned
  int (*release_host)(void* memory);
  int (*upload)(Address to, const void* from, size_t bytes, Stream* stream);
  int (*download)(void* to, Address from, size_t bytes, Stream* stream);
  int (*create_stream)(Stream** stream, unsigned flags);
  int (*destroy_stream)(Stream* stream);
  int (*synchronize)(Stream* stream);
  int (*create_event)(Event** event, unsigned flags);
  int (*destroy_event)(Event* event);
  int (*record)(Event* event, Stream* stream);
  int (*wait_for)(Event* event);
  int (*elapsed)(float* milliseconds, Event* begin, Event* end);
  int (*launch)(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream* stream, void** arguments,
                void** extra);
  // Launches as a graph; nullptr in drivers before CUDA 11.4.
  int (*begin_capture)(Stream* stream, int mode) = nullptr;
  int (*end_capture)(Stream* stream, Graph** graph) = nullptr;
  int (*instantiate)(GraphExec** list, Graph* graph, unsigned long long flags) = nullptr;
  int (*destroy_graph)(Graph* graph) = nullptr;
  int (*launch_graph)(GraphExec* list, Stream* stream) = nullptr;
  int (*destroy_exec)(GraphExec* list) = nullptr;
  bool has_graphs() const {
    return begin_capture && end_capture && instantiate && destroy_graph && launch_graph && destroy_exec;
  }

  // The name and text of a status that is not 0.
  std::string describe(int status) const;
};

constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

// The library that is opened where no other is named: $TENON_CUDA_DRIVER, or NVIDIA's.
std::string default_driver();

// Opens the driver's library; it stays open until the end of the process. Errors: there is no such library, or it lacks
// a function.
Expected<const Driver*> open_driver(const std::string& library);

}  // namespace tenon::runtime::cuda
