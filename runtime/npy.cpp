#include "runtime/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "support/file.h"
#include "support/try.h"

namespace tenon::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "to_npy writes the bytes as they are in memory");

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct Descr {
  std::string_view text;  // without the byte order
  DType dtype;
};
// NumPy has no bfloat16: the dtype of the package ml_dtypes, which JAX and TensorFlow use, is written as raw bytes
// "V2". It has none of the narrow dtypes either: they are records of one byte, whose field has the dtype's name, as
// [('f8e4m3fn', '|u1')].
constexpr DTypes kRecords = kNarrowFloats | kNarrowIntegers;
constexpr std::array<Descr, kDTypeCount - 10> kDescrs = {{{"b1", DType::kBool},
                                                          {"i1", DType::kI8},
                                                          {"u1", DType::kU8},
                                                          {"i2", DType::kI16},
                                                          {"u2", DType::kU16},
                                                          {"i4", DType::kI32},
                                                          {"u4", DType::kU32},
                                                          {"i8", DType::kI64},
                                                          {"u8", DType::kU64},
                                                          {"f2", DType::kF16},
                                                          {"V2", DType::kBF16},
                                                          {"f4", DType::kF32},
                                                          {"f8", DType::kF64}}};

struct Header {
  DType dtype = DType::kF32;
  bool swapped = false;
  bool fortran = false;
  Shape shape;
};

// Reads the header's Python dictionary, as far as NumPy writes it: three keys, strings, booleans, a tuple of integers.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Expected<Header> parse() {
    Header header;
    bool descr = false, order = false, shape = false;
    if (!take('{')) return fail("a dictionary");
    while (!take('}')) {
      auto key = string();
      if (!key || !take(':')) return fail("a key");
      if (*key == "descr" && !descr) {
        if (auto value = string()) {
          TENON_TRY(set_type(*value, header));
        } else if (auto record = this->record()) {
          header.dtype = *record;
        } else {
          return error("the elements are records, must be numeric or bool", std::string(where_));
        }
        descr = true;
      } else if (*key == "fortran_order" && !order) {
        if (keyword("True")) header.fortran = true;
        else if (!keyword("False")) return fail("True or False");
        order = true;
      } else if (*key == "shape" && !shape) {
        if (!tuple(header.shape)) return fail("a tuple of sizes");
        shape = true;
      } else {
        return fail("one each of descr, fortran_order and shape");
      }
      if (!take(',') && peek() != '}') return fail("',' or '}'");
    }
    if (!descr || !order || !shape) return fail("descr, fortran_order and shape");
    return header;
  }

 private:
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) { return peek() == c && ++at_ > 0; }
  bool keyword(std::string_view w) {
    peek();
    if (!text_.substr(at_).starts_with(w)) return false;
    at_ += w.size();
    return true;
  }
  std::optional<std::string_view> string() {
    char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    auto result = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return result;
  }
  // A record that stands for a narrow dtype.
  std::optional<DType> record() {
    if (!take('[') || !take('(')) return std::nullopt;
    const auto name = string();
    if (!name || !take(',') || string() != "|u1" || !take(')') || !take(']')) return std::nullopt;
    const auto dtype = parse_dtype(*name);
    return dtype && kRecords.contains(*dtype) ? std::optional(*dtype) : std::nullopt;
  }
  bool tuple(Shape& shape) {
    if (!take('(')) return false;
    while (!take(')')) {
      peek();
      int64_t dim = 0;
      auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), dim);
      if (code != std::errc{} || dim < 0 || shape.size() == kMaxRank) return false;
      at_ = static_cast<size_t>(end - text_.data());
      shape.push_back(dim);
      if (!take(',') && peek() != ')') return false;
    }
    return true;
  }
  Status set_type(std::string_view descr, Header& header) {
    auto entry = std::ranges::find(kDescrs, descr.empty() ? descr : descr.substr(1), &Descr::text);
    if (entry == kDescrs.end() || !std::string_view("<>|=").contains(descr[0])) {
      return error(fmt::format("elements of type '{}' are not supported", descr), std::string(where_),
                   "convert them with NumPy's astype to bool, int8/16/32/64, uint8/16/32/64 or float16/32/64");
    }
    header.dtype = entry->dtype;
    header.swapped = descr[0] == '>' && bytes(entry->dtype) > 1;
    return {};
  }
  std::unexpected<Diagnostic> fail(std::string_view expected) const {
    return error(fmt::format("damaged header at character {}: expected {}", at_, expected), std::string(where_));
  }

  std::string_view text_, where_;
  size_t at_ = 0;
};

// Copies column-major elements in row-major order: walks the destination, advancing the source by its strides.
void transpose(const std::byte* source, Tensor& tensor) {
  const Shape& shape = tensor.shape();
  size_t width = static_cast<size_t>(bytes(tensor.dtype()));
  std::vector<size_t> stride(shape.size()), index(shape.size(), 0);
  size_t step = width;
  for (size_t d = 0; d < shape.size(); ++d) {
    stride[d] = step;
    step *= static_cast<size_t>(shape[d]);
  }
  std::byte* out = tensor.bytes().data();
  size_t from = 0;
  for (int64_t i = 0; i < tensor.size(); ++i, out += width) {
    std::memcpy(out, source + from, width);
    for (size_t d = shape.size(); d-- > 0;) {
      from += stride[d];
      if (++index[d] < static_cast<size_t>(shape[d])) break;
      from -= stride[d] * index[d];
      index[d] = 0;
    }
  }
}

}  // namespace

namespace {

// The header, and the offset of the data.
Expected<std::pair<Header, size_t>> parse_header(std::span<const std::byte> file, std::string_view where) {
  auto fail = [&](std::string what) { return error(std::move(what), std::string(where)); };
  std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) {
    return error("not a .npy file: it does not begin with \\x93NUMPY", std::string(where), "write it with numpy.save");
  }
  if (file.size() < 10) return fail("the file ends inside its header");
  int major = static_cast<uint8_t>(text[6]);
  if (major < 1 || major > 3) return fail(fmt::format("format version is {}, must be 1 to 3", major));
  size_t width = major == 1 ? 2 : 4, length = 0;
  if (file.size() < 8 + width) return fail("the file ends inside its header");
  std::memcpy(&length, file.data() + 8, width);
  size_t begin = 8 + width;
  if (length > file.size() - begin) return fail("the file ends inside its header");
  TENON_TRY_ASSIGN(header, HeaderParser(text.substr(begin, length), where).parse());
  if (!checked_bytes(header->dtype, header->shape))
    return fail(fmt::format("shape {} is not plausible", to_string(header->shape)));
  return std::pair{std::move(*header), begin + length};
}

}  // namespace

Expected<NpyType> parse_npy_type(std::span<const std::byte> bytes, std::string_view where) {
  TENON_TRY_ASSIGN(header, parse_header(bytes, where));
  return NpyType{header->first.dtype, std::move(header->first.shape)};
}

Expected<Tensor> parse_npy(std::span<const std::byte> file, std::string_view where) {
  auto fail = [&](std::string what) { return error(std::move(what), std::string(where)); };
  TENON_TRY_ASSIGN(parsed, parse_header(file, where));
  const Header* header = &parsed->first;

  auto size = checked_bytes(header->dtype, header->shape);
  auto data = file.subspan(parsed->second);
  if (static_cast<uint64_t>(*size) != data.size()) {
    return fail(fmt::format("{} of {} takes {} bytes, the file has {}", to_string(header->shape), name(header->dtype),
                            *size, data.size()));
  }
  Tensor tensor(header->dtype, header->shape);
  if (header->fortran && header->shape.size() > 1) transpose(data.data(), tensor);
  else std::copy(data.begin(), data.end(), tensor.bytes().begin());
  if (header->swapped) {
    auto element = static_cast<size_t>(bytes(header->dtype));
    for (auto remaining = tensor.bytes(); !remaining.empty(); remaining = remaining.subspan(element)) {
      std::ranges::reverse(remaining.first(element));
    }
  }
  // To read a bool that is neither 0 nor 1 is undefined behaviour.
  if (header->dtype == DType::kBool) {
    for (auto& b : tensor.bytes()) b = static_cast<std::byte>(b != std::byte{0});
  }
  if (kRecords.contains(header->dtype)) {
    const auto unused = static_cast<std::byte>(0xff << runtime::bits(header->dtype));
    if (std::ranges::any_of(tensor.bytes(), [&](std::byte b) { return (b & unused) != std::byte{0}; }))
      return fail(fmt::format("an element has more bits than {}", name(header->dtype)));
  }
  return tensor;
}

namespace {

std::string descr_of(DType dtype) {
  if (kRecords.contains(dtype)) return fmt::format("[('{}', '|u1')]", name(dtype));
  return fmt::format("'{}{}'", bytes(dtype) == 1 ? '|' : '<', std::ranges::find(kDescrs, dtype, &Descr::dtype)->text);
}

}  // namespace

std::vector<std::byte> to_npy(const Tensor& tensor) {
  std::string header = fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}", descr_of(tensor.dtype()),
                                   to_string(tensor.shape()));
  // The data begins at a multiple of 64 bytes, as in NumPy's files, so that it can be mapped.
  header.append(63 - (10 + header.size()) % 64, ' ').push_back('\n');
  std::string lead(kMagic);
  lead += {1, 0, static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  lead += header;
  std::vector<std::byte> file(lead.size() + tensor.bytes().size());
  std::memcpy(file.data(), lead.data(), lead.size());
  std::ranges::copy(tensor.bytes(), file.begin() + static_cast<std::ptrdiff_t>(lead.size()));
  return file;
}

Expected<Tensor> load_npy(const std::filesystem::path& path) {
  TENON_TRY_ASSIGN(file, read_file(path));
  return parse_npy(*file, path.string());
}

Status save_npy(const std::filesystem::path& path, const Tensor& tensor) { return write_file(path, to_npy(tensor)); }

}  // namespace tenon::runtime
