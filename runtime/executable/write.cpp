// Writes an executable.
#include <array>

#include "executable_generated.h"
#include "runtime/executable/code.h"
#include "runtime/executable/executable.h"
#include "runtime/executable/layout.h"
#include "support/file.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

namespace fb = flatbuffers;

using Parts = std::vector<std::span<const std::byte>>;

class Writer {
 public:
  // The file as consecutive parts, which are in the writer's and the executable's memory.
  Parts write(const Executable& executable) {
    // Offsets depend on the header's size, and the header's size does not depend on offsets: build it twice.
    for (const Tensor& constant : executable.constants) section(constant.bytes());
    for (const auto& program : executable.programs) {
      section(std::as_bytes(std::span(program.instructions)));
      section(program.constants);
    }
    for (const NativeCode& native : executable.natives) section(native.object);
    if (executable.compiled) section(executable.compiled->object);
    lay_out(0);
    uint64_t header_bytes = header(executable).size();
    uint64_t end = lay_out(sizeof(Preface) + header_bytes);
    auto head = header(executable);

    preface_.version = kExecutableVersion;
    preface_.header_bytes = head.size();
    preface_.file_bytes = end;
    preface_.header_hash = sha256(std::as_bytes(head));
    Parts parts{std::as_bytes(std::span(&preface_, 1)), std::as_bytes(head)};
    uint64_t at = sizeof(Preface) + head.size();
    static constexpr std::array<std::byte, kSectionAlignment> kZeros{};
    for (size_t i = 0; i < data_.size(); ++i) {
      parts.push_back(std::span(kZeros).first(sections_[i].offset() - at));
      parts.push_back(data_[i]);
      at = sections_[i].offset() + data_[i].size();
    }
    return parts;
  }

 private:
  void section(std::span<const std::byte> data) {
    data_.push_back(data);
    hashes_.push_back(sha256(data));
  }

  // Lays out the sections from file offset `at`; returns the end of the file.
  uint64_t lay_out(uint64_t at) {
    sections_.clear();
    for (size_t i = 0; i < data_.size(); ++i) {
      at = align(at);
      sections_.emplace_back(at, data_[i].size(), fb::span<const uint8_t, 32>(hashes_[i]));
      at += data_[i].size();
    }
    return at;
  }

  fb::Offset<fb::String> text(const std::string& s) { return builder_.CreateString(s); }

  template <class Range, class F>
  auto list(const Range& values, F make) {
    std::vector<decltype(make(values[0]))> offsets;
    offsets.reserve(values.size());
    for (const auto& value : values) offsets.push_back(make(value));
    return builder_.CreateVector(offsets);
  }

  auto port(const Port& p) {
    const auto symbols = list(p.symbols, [&](const std::string& symbol) { return text(symbol); });
    const auto port_name = text(p.name), type = text(p.type);
    return file::CreatePort(builder_, port_name, static_cast<uint8_t>(p.dtype), builder_.CreateVector(p.shape), symbols,
                            type);
  }
  auto slot(const TensorSlot& s) {
    return file::CreateTensorSlot(builder_, text(s.name), static_cast<uint8_t>(s.dtype), builder_.CreateVector(s.shape),
                                  s.base);
  }
  auto function(const Function& f) {
    auto ports = [&](const Port& p) { return port(p); };
    auto params = list(f.params, ports), results = list(f.results, ports);
    const std::vector<std::byte> bytes = code_bytes(f.code);
    auto code = builder_.CreateVector(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    return file::CreateFunction(builder_, text(f.name), params, results, f.registers, code, f.arena_bytes, f.captures,
                                f.self);
  }
  auto program(const AcceleratorProgram& p, uint32_t section) {
    auto slots = [&](const TensorSlot& s) { return slot(s); };
    auto inputs = list(p.inputs, slots), outputs = list(p.outputs, slots);
    auto layers = list(p.layers, [&](const LayerNote& l) {
      return file::CreateLayerNote(builder_, text(l.name), text(l.op), l.macs, l.padded_macs, l.read_bytes,
                                   l.write_bytes);
    });
    auto notes = list(p.notes, [&](const InstructionNote& n) {
      return file::CreateInstructionNote(builder_, n.slot, n.layer, text(n.tile));
    });
    auto probes = list(p.probes, [&](const Probe& probe) {
      return file::CreateProbe(builder_, text(probe.name), static_cast<uint8_t>(probe.dtype),
                               builder_.CreateVector(probe.shape), probe.offset);
    });
    return file::CreateProgram(builder_, text(p.name), text(spec::to_json(p.config)), static_cast<uint8_t>(p.profile),
                               section, section + 1, p.workspace_bytes, inputs, outputs, layers, notes, probes,
                               text(spec::to_string(p.memory)), text(p.device));
  }

  // As pairs of operation and operand.
  fb::Offset<fb::Vector<int64_t>> size(const Size& size) {
    std::vector<int64_t> pairs;
    for (const auto& [op, operand] : size) pairs.insert(pairs.end(), {static_cast<int64_t>(op), operand});
    return builder_.CreateVector(pairs);
  }
  auto native(const NativeCode& n, uint32_t section) {
    auto buffers = [&](const SignatureBuffer& b) {
      auto axes = list(b.axes, [&](const Size& axis) { return file::CreateIntegers(builder_, size(axis)); });
      return file::CreateNativeBuffer(builder_, text(b.name), static_cast<uint8_t>(b.dtype), axes);
    };
    auto kernels = list(n.kernels, [&](const NativeKernel& k) {
      auto dims = list(k.signature.dims, [&](const SignatureDim& d) {
        return file::CreateNativeDim(builder_, text(d.name), d.param, d.axis, d.factor, size(d.offset));
      });
      auto params = list(k.signature.params, buffers), results = list(k.signature.results, buffers);
      auto temporaries = k.temporaries.empty() ? 0 : list(k.temporaries, buffers);
      auto launches = k.launches.empty() ? 0 : list(k.launches, [&](const GpuLaunch& l) {
        const auto integers = [&](const Size& program) { return file::CreateIntegers(builder_, size(program)); };
        auto sizes = list(l.sizes, integers), grid = list(l.grid, integers);
        return file::CreateGpuLaunch(builder_, text(l.entry), builder_.CreateVector(l.buffers), sizes, grid,
                                     builder_.CreateVector(l.threads.data(), l.threads.size()));
      });
      std::vector<file::InPlace> pairs;
      for (const InPlace& pair : k.signature.in_place) pairs.emplace_back(pair.result, pair.param);
      auto in_place = pairs.empty() ? 0 : builder_.CreateVectorOfStructs(pairs);
      auto checks = k.signature.checks.empty() ? 0 : list(k.signature.checks, [&](const SizeCheck& check) {
        return file::CreateNativeCheck(builder_, size(check.size), text(check.message));
      });
      auto tables = k.signature.tables.empty() ? 0 : list(k.signature.tables, [&](const SignatureTable& table) {
        const auto limit = table.limit.empty() ? 0 : size(table.limit);
        return file::CreateNativeTable(builder_, static_cast<uint8_t>(table.kind), size(table.count), size(table.width),
                                       limit);
      });
      return file::CreateNativeKernel(builder_, text(k.name), dims, params, results, temporaries, launches, in_place,
                                      checks, tables);
    });
    auto levels = list(n.levels, [&](const std::string& level) { return text(level); });
    auto sites = n.sites.empty() ? 0 : list(n.sites, [&](const GpuFaultSite& s) {
      return file::CreateGpuFaultSite(builder_, s.fault, text(s.where));
    });
    return file::CreateNativeCode(builder_, text(n.triple), levels, section, kernels, sites);
  }

  std::span<const uint8_t> header(const Executable& e) {
    builder_.Clear();
    auto facts =
        list(e.facts, [&](const auto& f) { return file::CreateFact(builder_, text(f.first), text(f.second)); });
    auto functions = list(e.functions, [&](const Function& f) { return function(f); });
    uint32_t section = 0;
    auto constants = list(e.constants, [&](const Tensor& t) {
      return file::CreateConstant(builder_, static_cast<uint8_t>(t.dtype()), builder_.CreateVector(t.shape()),
                                  section++);
    });
    auto programs = list(e.programs, [&](const AcceleratorProgram& p) {
      section += 2;
      return program(p, section - 2);
    });
    auto natives = list(e.natives, [&](const NativeCode& n) { return native(n, section++); });
    auto compiled = e.compiled ? file::CreateCompiledCode(builder_, text(e.compiled->triple), section) : 0;
    fb::Offset<fb::Vector<fb::Offset<file::Unit>>> units;
    if (!e.units.empty()) {
      units = list(e.units, [&](const Unit& u) {
        const auto flags = [&](const std::vector<bool>& of) {
          return of.empty() ? fb::Offset<fb::Vector<uint8_t>>() : builder_.CreateVector(of);
        };
        const auto sequences = flags(u.sequences), sequence_results = flags(u.sequence_results);
        return file::CreateUnit(builder_, u.function, u.batched.value_or(UINT32_MAX), builder_.CreateVector(u.own),
                                builder_.CreateVector(u.own_results), u.joined_axes, sequences, sequence_results);
      });
    }
    fb::Offset<fb::Vector<fb::Offset<file::StateTensor>>> states;
    if (!e.states.empty()) {
      states = list(e.states, [&](const StateTensor& s) {
        return file::CreateStateTensor(builder_, s.param, s.result, s.first.value_or(UINT32_MAX));
      });
    }
    auto nodes = list(e.graph.nodes, [&](const GraphNode& n) {
      return file::CreateGraphNode(builder_, text(n.name), text(n.op), text(n.device), text(n.detail));
    });
    auto types = list(e.types, [&](const DataType& t) {
      auto constructors = list(t.constructors, [&](const DataConstructor& c) {
        return file::CreateDataConstructor(builder_, text(c.name), c.fields);
      });
      return file::CreateDataType(builder_, text(t.name), constructors);
    });
    std::vector<file::GraphEdge> edge_list;
    for (const GraphEdge& edge : e.graph.edges) edge_list.emplace_back(edge.from, edge.to);
    auto edges = builder_.CreateVectorOfStructs(edge_list);
    auto sections = builder_.CreateVectorOfStructs(sections_);
    builder_.Finish(file::CreateHeader(builder_, text(e.name), facts, functions, e.entry, constants, programs, nodes,
                                       edges, sections, natives, types, compiled, units, states));
    return {builder_.GetBufferPointer(), builder_.GetSize()};
  }

  Preface preface_;
  fb::FlatBufferBuilder builder_;
  std::vector<std::span<const std::byte>> data_;
  std::vector<Sha256> hashes_;
  std::vector<file::Section> sections_;
};

}  // namespace

Expected<std::vector<std::byte>> serialize(const Executable& executable) {
  TENON_TRY(verify(executable, executable.name));
  Writer writer;
  std::vector<std::byte> file;
  for (const std::span<const std::byte> part : writer.write(executable))
    file.insert(file.end(), part.begin(), part.end());
  return file;
}

Status save(const Executable& executable, const std::filesystem::path& path) {
  TENON_TRY(verify(executable, executable.name));
  Writer writer;
  return write_file(path, writer.write(executable));
}

}  // namespace tenon::runtime
