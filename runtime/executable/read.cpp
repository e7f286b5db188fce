// Reads an executable from bytes that are not trusted.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "executable_generated.h"
#include "runtime/executable/code.h"
#include "runtime/executable/executable.h"
#include "runtime/executable/layout.h"
#include "support/file.h"
#include "support/printable.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

namespace fb = flatbuffers;

// FlatBuffers' verifier checks the alignment of a vector's length, not that of its elements.
template <class V>
bool is_aligned(const V* vector, size_t alignment) {
  return vector->size() == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % alignment == 0;
}

// FlatBuffers allows many references to one object, so a small file could unpack into a huge structure. Files of this
// format share no objects, so the unpacked structure is never larger than the header; the reader refuses anything
// larger.
class Reader {
 public:
  // `memory` owns the bytes of the file, or is empty: then constants are copies.
  Reader(std::span<const std::byte> file, Storage memory, const file::Header& header, uint64_t header_bytes)
      : file_(file),
        memory_(std::move(memory)),
        sections_(*header.sections()),
        budget_(header_bytes),
        used_(sections_.size(), false) {}

  Executable read(const file::Header& h) {
    Executable e;
    e.name = text(h.name());
    e.facts = list<std::pair<std::string, std::string>>(
        h.facts(), [&](const file::Fact& f) { return std::pair(text(f.key()), text(f.value())); });
    e.functions = list<Function>(h.functions(), [&](const file::Function& f) { return function(f); });
    e.entry = h.entry();
    e.types = list<DataType>(h.types(), [&](const file::DataType& t) { return data_type(t); });
    e.constants = list<Tensor>(h.constants(), [&](const file::Constant& c) { return constant(c); });
    e.programs = list<AcceleratorProgram>(h.programs(), [&](const file::Program& p) { return program(p); });
    if (h.natives()) e.natives = list<NativeCode>(h.natives(), [&](const file::NativeCode& n) { return native(n); });
    if (h.compiled()) {
      const auto object = section(h.compiled()->object());
      e.compiled = CompiledCode{text(h.compiled()->triple()), {object.begin(), object.end()}};
    }
    if (h.units()) e.units = list<Unit>(h.units(), [&](const file::Unit& u) { return unit(u); });
    if (h.states()) {
      e.states = list<StateTensor>(h.states(), [](const file::StateTensor& s) {
        return StateTensor{s.param(), s.result(), s.first() == UINT32_MAX ? std::nullopt : std::optional(s.first())};
      });
    }
    e.graph.nodes = list<GraphNode>(h.nodes(), [&](const file::GraphNode& n) {
      return GraphNode{text(n.name()), text(n.op()), text(n.device()), text(n.detail())};
    });
    if (charge(h.edges()->size() * 8)) {
      for (const file::GraphEdge* edge : *h.edges()) e.graph.edges.push_back({edge->from(), edge->to()});
    }
    return e;
  }

  // The first fault that read() found; the executable that it returned is then incomplete.
  const std::string& fault() const { return fault_; }

 private:
  void fail(std::string fault) {
    if (fault_.empty()) fault_ = std::move(fault);
  }

  bool charge(uint64_t bytes) {
    if (bytes > budget_) fail("the header refers to the same data several times");
    budget_ -= std::min(bytes, budget_);
    return fault_.empty();
  }

  // Whether a list of structures, of `bytes` each, may be read.
  template <class T>
  bool is_list(const fb::Vector<const T*>* v, size_t bytes) {
    if (!is_aligned(v, alignof(T))) fail("a list of structures is not aligned");
    return charge(v->size() * bytes);
  }

  std::string exact_text(const fb::String* s) { return charge(s->size()) ? s->str() : std::string(); }
  // Of names and messages, which are printed: without characters that control a terminal.
  std::string text(const fb::String* s) { return printable(exact_text(s), SIZE_MAX); }

  template <class T>
  std::vector<T> values(const fb::Vector<T>* v) {
    if (!is_aligned(v, sizeof(T))) fail("a list of numbers is not aligned");
    return charge(v->size() * sizeof(T)) ? std::vector<T>(v->begin(), v->end()) : std::vector<T>();
  }

  template <class T, class U, class F>
  std::vector<T> list(const fb::Vector<fb::Offset<U>>* v, F make) {
    std::vector<T> result;
    if (!charge(v->size() * uint64_t{8})) return result;
    result.reserve(v->size());
    for (const U* item : *v) {
      if (!fault_.empty()) break;
      result.push_back(make(*item));
    }
    return result;
  }

  Unit unit(const file::Unit& u) {
    Unit made{.function = u.function(), .batched = {}, .own = {}, .own_results = {}, .joined_axes = u.joined_axes()};
    if (u.batched() != UINT32_MAX) made.batched = u.batched();
    for (const auto& [from, to] : {std::pair(u.own(), &made.own),
                                   {u.own_results(), &made.own_results},
                                   {u.sequences(), &made.sequences},
                                   {u.sequence_results(), &made.sequence_results}}) {
      if (from && charge(from->size())) to->assign(from->begin(), from->end());
    }
    return made;
  }

  DType dtype(uint8_t id) {
    if (id >= kDTypeCount) {
      fail(fmt::format("element type {} is unknown", id));
      return DType::kF32;
    }
    return static_cast<DType>(id);
  }

  std::span<const std::byte> section(uint32_t index) {
    if (index >= sections_.size()) {
      fail(fmt::format("section {} of {} is referred to", index, sections_.size()));
      return {};
    }
    if (used_[index]) {
      fail(fmt::format("section {} is used twice", index));
      return {};
    }
    used_[index] = true;
    const file::Section& s = *sections_.Get(index);
    return file_.subspan(s.offset(), s.length());
  }

  Tensor constant(const file::Constant& c) {
    DType type = dtype(c.dtype());
    Shape shape = values(c.shape());
    auto data = section(c.section());
    auto bytes = checked_bytes(type, shape);
    if (!fault_.empty()) return {};
    if (!bytes || static_cast<uint64_t>(*bytes) != data.size()) {
      fail(fmt::format("constant {} of {} is stored in a section of {} bytes", to_string(shape), name(type),
                       data.size()));
      return {};
    }
    Tensor tensor;
    if (memory_.memory) {
      const auto offset = static_cast<size_t>(data.data() - file_.data());
      tensor = Tensor::in(memory_.part(offset, data.size()), type, std::move(shape));
    } else {
      tensor = Tensor(type, std::move(shape));
      std::copy(data.begin(), data.end(), tensor.bytes().begin());
    }
    if (type == DType::kBool) {
      for (auto& b : tensor.bytes()) b = static_cast<std::byte>(b != std::byte{0});
    }
    return tensor;
  }

  Port port(const file::Port& p) {
    return {text(p.name()), dtype(p.dtype()), values(p.shape()),
            list<std::string>(p.symbols(), [&](const fb::String& symbol) { return text(&symbol); }), text(p.type())};
  }

  std::vector<Instruction> code(const file::Function& f) {
    const fb::Vector<uint8_t>& bytes = *f.code();
    if (!charge(bytes.size())) return {};
    auto code = read_code(std::as_bytes(std::span(bytes.data(), bytes.size())));
    if (code) return std::move(*code);
    fail(fmt::format("function '{}': {}", f.name()->c_str(), code.error().what));
    return {};
  }
  Function function(const file::Function& f) {
    auto ports = [&](const file::Port& p) { return port(p); };
    return {text(f.name()),
            list<Port>(f.params(), ports),
            list<Port>(f.results(), ports),
            f.registers(),
            code(f),
            f.arena(),
            f.captures(),
            f.self()};
  }

  DataType data_type(const file::DataType& t) {
    return {text(t.name()), list<DataConstructor>(t.constructors(), [&](const file::DataConstructor& c) {
              return DataConstructor{text(c.name()), c.fields()};
            })};
  }

  AcceleratorProgram program(const file::Program& p) {
    AcceleratorProgram program;
    program.name = text(p.name());
    if (p.device() != nullptr) program.device = text(p.device());
    auto config =
        spec::parse_config(exact_text(p.config()), fmt::format("the configuration of program '{}'", program.name));
    if (!config) {
      fail(config.error().str());
      return program;
    }
    program.config = std::move(*config);
    if (p.memory() != nullptr) {
      auto memory =
          spec::parse_memory_timing(fmt::format("the memory of program '{}'", program.name), exact_text(p.memory()));
      if (memory) program.memory = *memory;
      else fail(memory.error().str());
    }
    if (p.profile() > static_cast<uint8_t>(spec::Profile::kNative))
      fail(fmt::format("profile {} is unknown", p.profile()));
    else program.profile = static_cast<spec::Profile>(p.profile());
    auto instructions = section(p.instructions());
    if (instructions.size() % spec::kSlotBytes != 0) {
      fail(fmt::format("the instructions of program '{}' take {} bytes, must be a multiple of {}", program.name,
                       instructions.size(), spec::kSlotBytes));
    }
    program.instructions.resize(instructions.size() / spec::kSlotBytes);
    if (!program.instructions.empty()) {
      std::memcpy(program.instructions.data(), instructions.data(), program.instructions.size() * spec::kSlotBytes);
    }
    auto constants = section(p.constants());
    program.constants.assign(constants.begin(), constants.end());
    program.workspace_bytes = p.workspace_bytes();
    auto slots = [&](const file::TensorSlot& s) {
      return TensorSlot{text(s.name()), dtype(s.dtype()), values(s.shape()), s.base()};
    };
    program.inputs = list<TensorSlot>(p.inputs(), slots);
    program.outputs = list<TensorSlot>(p.outputs(), slots);
    program.layers = list<LayerNote>(p.layers(), [&](const file::LayerNote& l) {
      return LayerNote{text(l.name()), text(l.op()), l.macs(), l.padded_macs(), l.read_bytes(), l.write_bytes()};
    });
    program.notes = list<InstructionNote>(p.notes(), [&](const file::InstructionNote& n) {
      return InstructionNote{n.slot(), n.layer(), text(n.tile())};
    });
    program.probes = list<Probe>(p.probes(), [&](const file::Probe& probe) {
      return Probe{text(probe.name()), dtype(probe.dtype()), values(probe.shape()), probe.offset()};
    });
    return program;
  }

  Size size(const fb::Vector<int64_t>* pairs) {
    const std::vector<int64_t> codes = values(pairs);
    Size size;
    for (size_t i = 0; i + 1 < codes.size(); i += 2) {
      if (codes[i] < 0 || codes[i] > static_cast<int64_t>(SizeStep::Op::kMax))
        fail(fmt::format("a size has the unknown operation {}", codes[i]));
      else size.push_back({static_cast<SizeStep::Op>(codes[i]), codes[i + 1]});
    }
    if (codes.size() % 2 != 0) fail("a size is cut off");
    return size;
  }
  NativeCode native(const file::NativeCode& n) {
    NativeCode native;
    native.triple = text(n.triple());
    native.levels = list<std::string>(n.levels(), [&](const fb::String& level) { return text(&level); });
    auto object = section(n.object());
    native.object.assign(object.begin(), object.end());
    auto buffer = [&](const file::NativeBuffer& b) {
      return SignatureBuffer{text(b.name()), dtype(b.dtype()),
                             list<Size>(b.axes(), [&](const file::Integers& axis) { return size(axis.value()); })};
    };
    native.kernels = list<NativeKernel>(n.kernels(), [&](const file::NativeKernel& k) {
      NativeKernel kernel{text(k.name()), {}};
      kernel.signature.dims = list<SignatureDim>(k.dims(), [&](const file::NativeDim& d) {
        return SignatureDim{text(d.name()), d.param(), d.axis(), d.factor(), size(d.offset())};
      });
      kernel.signature.params = list<SignatureBuffer>(k.params(), buffer);
      kernel.signature.results = list<SignatureBuffer>(k.results(), buffer);
      if (k.temporaries()) kernel.temporaries = list<SignatureBuffer>(k.temporaries(), buffer);
      if (k.launches())
        kernel.launches = list<GpuLaunch>(k.launches(), [&](const file::GpuLaunch& l) { return launch(l); });
      if (k.in_place() && is_list(k.in_place(), sizeof(InPlace))) {
        for (const file::InPlace* pair : *k.in_place())
          kernel.signature.in_place.push_back({pair->result(), pair->param()});
      }
      if (k.checks()) {
        kernel.signature.checks = list<SizeCheck>(k.checks(), [&](const file::NativeCheck& check) {
          return SizeCheck{size(check.size()), text(check.message())};
        });
      }
      if (k.tables()) {
        kernel.signature.tables = list<SignatureTable>(k.tables(), [&](const file::NativeTable& table) {
          if (table.kind() > static_cast<uint8_t>(SignatureTable::Kind::kCounts))
            fail(fmt::format("a table has the unknown kind {}", table.kind()));
          return SignatureTable{static_cast<SignatureTable::Kind>(table.kind()), size(table.count()),
                                size(table.width()), table.limit() ? size(table.limit()) : Size()};
        });
      }
      return kernel;
    });
    if (n.sites())
      native.sites = list<GpuFaultSite>(n.sites(), [&](const file::GpuFaultSite& s) {
        return GpuFaultSite{s.fault(), text(s.where())};
      });
    return native;
  }
  GpuLaunch launch(const file::GpuLaunch& l) {
    const auto of = [&](const file::Integers& program) { return size(program.value()); };
    GpuLaunch launch{text(l.entry()), values(l.buffers()), list<Size>(l.sizes(), of), {}};
    const auto grid = list<Size>(l.grid(), of);
    if (grid.size() != launch.grid.size() || l.threads()->size() != launch.threads.size()) {
      fail(fmt::format("the launch of '{}' has {} numbers of blocks and {} of threads", launch.entry, grid.size(),
                       l.threads()->size()));
      return launch;
    }
    for (unsigned axis = 0; axis < 3; ++axis) {
      launch.grid[axis] = grid[axis];
      launch.threads[axis] = l.threads()->Get(axis);
    }
    return launch;
  }

  std::span<const std::byte> file_;
  Storage memory_;
  const fb::Vector<const file::Section*>& sections_;
  uint64_t budget_;
  std::vector<bool> used_;
  std::string fault_;
};

// Checks that sections are inside the file, in ascending order, and match their hashes; `end` is the end of the header.
std::string check_sections(std::span<const std::byte> file, const fb::Vector<const file::Section*>& sections,
                           uint64_t end) {
  for (uint32_t i = 0; i < sections.size(); ++i) {
    const file::Section& s = *sections.Get(i);
    if (s.offset() % kSectionAlignment != 0 || s.offset() < end || s.offset() > file.size() ||
        s.length() > file.size() - s.offset()) {
      return fmt::format("section {} at [{}, +{}) is not between {} and the end of the file of {} bytes", i, s.offset(),
                         s.length(), end, file.size());
    }
    end = s.offset() + s.length();
    Sha256 hash = sha256(file.subspan(s.offset(), s.length()));
    if (!std::ranges::equal(hash, *s.sha256())) return fmt::format("section {} does not match its SHA-256", i);
  }
  return {};
}

Expected<Executable> read(std::span<const std::byte> file, Storage memory, std::string_view where) {
  auto damaged = [&](std::string what) {
    return error("damaged executable: " + std::move(what), std::string(where), "compile the model again");
  };
  Preface preface;
  if (file.size() < sizeof(preface)) {
    return error(fmt::format("not an executable: {} bytes", file.size()), std::string(where));
  }
  std::memcpy(&preface, file.data(), sizeof(preface));
  if (preface.magic != kMagic) {
    return error("not an executable: it does not begin with Tenon's signature", std::string(where),
                 "tenon compile makes one from a model");
  }
  if (preface.version != kExecutableVersion) {
    return error(
        fmt::format("executable of format version {}, this runtime reads {}", preface.version, kExecutableVersion),
        std::string(where), "compile the model again with this version's tenon compile");
  }
  if (preface.file_bytes != file.size()) {
    return damaged(fmt::format("it has {} bytes, its preface says {}", file.size(), preface.file_bytes));
  }
  if (preface.header_bytes > file.size() - sizeof(preface)) return damaged("the header ends past the end of the file");
  auto head = file.subspan(sizeof(preface), preface.header_bytes);
  if (sha256(head) != preface.header_hash) return damaged("the header does not match its SHA-256");

  // A copy, because FlatBuffers requires its alignment. No valid table is smaller than 4 bytes.
  std::vector<uint64_t> aligned(head.size() / 8 + 1);
  std::memcpy(aligned.data(), head.data(), head.size());
  fb::Verifier verifier(reinterpret_cast<const uint8_t*>(aligned.data()), head.size(), 64,
                        static_cast<fb::uoffset_t>(head.size() / 4 + 1));
  if (head.size() >= FLATBUFFERS_MAX_BUFFER_SIZE || !file::VerifyHeaderBuffer(verifier)) {
    return damaged("the header is not a valid FlatBuffer");
  }
  const file::Header& header = *file::GetHeader(aligned.data());
  if (!is_aligned(header.sections(), alignof(file::Section))) return damaged("the list of sections is not aligned");
  if (auto fault = check_sections(file, *header.sections(), sizeof(preface) + head.size()); !fault.empty()) {
    return damaged(std::move(fault));
  }
  Reader reader(file, std::move(memory), header, head.size());
  Executable executable = reader.read(header);
  if (!reader.fault().empty()) return damaged(reader.fault());
  if (auto status = verify(executable, where); !status) {
    status.error().what = "damaged executable: " + status.error().what;
    return std::unexpected(std::move(status.error()));
  }
  return executable;
}

}  // namespace

Expected<Executable> deserialize(std::span<const std::byte> file, std::string_view where) {
  return read(file, {}, where);
}

Expected<Executable> load(const std::filesystem::path& path) {
  TENON_TRY_ASSIGN(bytes, read_aligned_file(path));
  const auto file = std::make_shared<AlignedBytes>(*std::move(bytes));
  return read(*file, Storage{{file, file->data()}, file->size()}, path.string());
}

}  // namespace tenon::runtime
