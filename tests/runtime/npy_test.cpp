#include "runtime/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "support/file.h"

namespace tenon::runtime {
namespace {

const std::filesystem::path kData = std::filesystem::path(TENON_SOURCE_DIR) / "tests/runtime/data";

template <class T>
std::vector<T> counting(size_t n) {
  std::vector<T> values(n);
  std::iota(values.begin(), values.end(), T{0});
  return values;
}

template <class T>
void round_trip(Shape shape) {
  Tensor tensor(dtype_of<T>, shape);
  std::ranges::copy(counting<T>(static_cast<size_t>(tensor.size())), tensor.data<T>().begin());
  auto again = parse_npy(to_npy(tensor), "memory");
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(*again, tensor);
  EXPECT_EQ(to_npy(tensor).size() % 64, tensor.bytes().size() % 64);
}

TEST(Npy, EveryTypeRoundTrips) {
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 0, 3}, Shape{2, 3, 4, 1}}) {
    round_trip<int8_t>(shape);
    round_trip<uint8_t>(shape);
    round_trip<int16_t>(shape);
    round_trip<uint16_t>(shape);
    round_trip<int32_t>(shape);
    round_trip<int64_t>(shape);
    round_trip<uint32_t>(shape);
    round_trip<uint64_t>(shape);
    round_trip<float>(shape);
    round_trip<double>(shape);
  }
}

TEST(Npy, ShortFloatsKeepTheirBits) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    Tensor tensor(dtype, {256, 256});
    for (size_t i = 0; i < tensor.bytes().size(); i += 2)
      tensor.bytes()[i] = std::byte(i / 2 % 256), tensor.bytes()[i + 1] = std::byte(i / 512);
    auto again = parse_npy(to_npy(tensor), "memory");
    ASSERT_TRUE(again) << again.error().str();
    EXPECT_EQ(*again, tensor);
  }
}

TEST(Npy, ReadsFilesOfNumpy) {
  for (auto file : {"stored.npz", "deflated.npz"}) {
    auto all = load_npz(kData / file);
    ASSERT_TRUE(all) << all.error().str();
    EXPECT_EQ(all->size(), 6u);
    EXPECT_EQ(all->at("a"), Tensor::of<float>({2, 3}, counting<float>(6)));
    EXPECT_EQ(all->at("fortran"), Tensor::of<int16_t>({2, 3, 4}, counting<int16_t>(24)));
    EXPECT_EQ(all->at("big"), Tensor::of<int32_t>({4}, counting<int32_t>(4)));
    EXPECT_EQ(all->at("scalar"), Tensor::of<int64_t>({}, std::vector<int64_t>{7}));
    EXPECT_EQ(all->at("empty"), Tensor(DType::kU8, {0, 3}));
    EXPECT_EQ(all->at("flags").bytes()[0], std::byte{1});
  }
}

TEST(Npy, SavedFilesLoad) {
  auto path = std::filesystem::temp_directory_path() / ("tenon-npy-" + std::to_string(getpid()) + ".npy");
  Tensor tensor = Tensor::of<int32_t>({3}, std::vector<int32_t>{1, -2, 3});
  ASSERT_TRUE(save_npy(path, tensor));
  EXPECT_EQ(load_npy(path).value(), tensor);
  std::filesystem::remove(path);
}

std::vector<std::byte> with_header(std::string_view dictionary, size_t data) {
  std::string text("\x93NUMPY\x01\0", 8);
  text += {static_cast<char>(dictionary.size()), 0};
  text += dictionary;
  text.append(data, 'x');
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// A record of one byte, which NumPy reads, names a narrow type.
TEST(Npy, NarrowTypesRoundTrip) {
  for (DType dtype : all_dtypes()) {
    if (!(kNarrowFloats | kNarrowIntegers).contains(dtype)) continue;
    Tensor tensor(dtype, {1 << bits(dtype)});
    for (size_t i = 0; i < tensor.bytes().size(); ++i) tensor.bytes()[i] = std::byte(i);
    const auto again = parse_npy(to_npy(tensor), "memory");
    ASSERT_TRUE(again) << again.error().str();
    EXPECT_EQ(*again, tensor);
  }
  auto file = with_header("{'descr': [('i4', '|u1')], 'fortran_order': False, 'shape': (3,), }", 3);
  EXPECT_EQ(parse_npy(file, "x.npy").error().what, "an element has more bits than i4");
  std::fill(file.end() - 3, file.end(), std::byte{15});
  const auto read = parse_npy(file, "x.npy");
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(static_cast<int>(read->data<I4>()[2]), -1);
}

TEST(Npy, FaultsAreNamed) {
  struct Case {
    std::string_view header;
    size_t data;
    std::string_view message;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 20,
            "(2, 3) of f32 takes 24 bytes, the file has 20"},
           {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 0, "not plausible"},
           {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4), }", 0, "not plausible"},
           {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8, "type '<c8' are not supported"},
           {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4,
            "records, must be numeric or bool"},
           {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, "expected a tuple of sizes"},
           {"{'descr': '<f4', 'fortran_order': False, }", 4, "expected descr, fortran_order and shape"},
           {"{'descr': '<f4', 'descr': '<f4' }", 4, "expected one each"},
           {"nonsense", 4, "expected a dictionary"}}) {
    auto result = parse_npy(with_header(c.header, c.data), "x.npy");
    ASSERT_FALSE(result) << c.header;
    EXPECT_NE(result.error().str().find(c.message), std::string::npos) << result.error().str();
    EXPECT_EQ(result.error().where, "x.npy");
  }
  EXPECT_NE(load_npy("/nonexistent.npy").error().str().find("No such file"), std::string::npos);
  EXPECT_EQ(load_npy(kData / "half.npy").value().dtype(), DType::kF16);
  EXPECT_NE(load_npy(kData / "stored.npz").error().what.find("not a .npy file"), std::string::npos);
  EXPECT_NE(load_npz(kData / "half.npy").error().what.find("no ZIP directory"), std::string::npos);
}

// Any damage gives an error or a tensor, never a crash or a wild allocation; run under the sanitizers.
TEST(Npy, DamagedFilesNeverCrash) {
  unsigned seed = 20260101;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (auto name : {"stored.npz", "deflated.npz", "half.npy"}) {
    auto good = read_file(kData / name).value();
    for (size_t cut = 0; cut < good.size(); cut += 7) (void)parse_npz(std::span(good).first(cut), name);
    for (int i = 0; i < 3000; ++i) {
      auto bad = good;
      for (unsigned n = random() % 4 + 1; n-- > 0;) bad[random() % bad.size()] = static_cast<std::byte>(random());
      (void)parse_npz(bad, name);
      (void)parse_npy(bad, name);
    }
  }
}

TEST(Npy, OneMemberIsReadWhateverTheOthersAre) {
  EXPECT_EQ(load_npz(kData / "mixed.npz", "labels").value(), Tensor::of<uint8_t>({2}, std::vector<uint8_t>{3, 1}));
  EXPECT_NE(load_npz(kData / "mixed.npz").error().str().find(": error: elements of type '"), std::string::npos);
  EXPECT_NE(load_npz(kData / "mixed.npz", "words").error().str().find("'<U1'"), std::string::npos);
  const auto missing = load_npz(kData / "mixed.npz", "z");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().what, "no tensor is called \"z\"");
  EXPECT_NE(missing.error().help.find("its tensors are flags, half, labels, none"), std::string::npos);
}

// Nothing is inflated for a member whose header asks for less, nor for members that the memory cannot hold together.
TEST(Npy, SizesAreComparedBeforeMembersAreUnpacked) {
  const auto bytes = to_npz({{"a", Tensor(DType::kU8, {200'000})}});
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string shape = "(200000,)";
  text.replace(text.find(shape), shape.size(), "(2,)     ");
  const auto changed = std::as_bytes(std::span(text));
  for (const auto& message :
       {parse_npz(changed, "x.npz", "a").error().str(), parse_npz(changed, "x.npz").error().str()}) {
    EXPECT_NE(message.find("x.npz:a.npy: error: (2,) of u8 takes 2 bytes, the member has 200"), std::string::npos)
        << message;
  }
}

TEST(Npy, ADamagedMemberIsFoundByItsChecksum) {
  auto bad = read_file(kData / "stored.npz").value();
  // The last byte of the first member's data: 6 floats follow NumPy's header (128 bytes).
  auto name = std::string_view(reinterpret_cast<char*>(bad.data()), bad.size());
  size_t data = name.find("\x93NUMPY") + 128;
  bad[data + 3] ^= std::byte{1};
  auto result = parse_npz(bad, "x.npz");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("member 'a.npy' is damaged: CRC"), std::string::npos) << result.error().str();
}

TEST(Tensor, TypesHaveNames) {
  for (auto t : {DType::kBool, DType::kI8, DType::kU16, DType::kI64, DType::kF64}) EXPECT_EQ(parse_dtype(name(t)), t);
  EXPECT_NE(parse_dtype("f8").error().str().find("the types are bool, i2"), std::string::npos);
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  Tensor a = Tensor::of<int8_t>({2, 2}, std::vector<int8_t>{1, 2, 3, 4});
  Tensor b = a, c = a.clone(), d = a.reshaped({4});
  a.data<int8_t>()[0] = 9;
  EXPECT_EQ(b, a);
  EXPECT_EQ(c.data<int8_t>()[0], 1);
  EXPECT_EQ(d.data<int8_t>()[0], 9);
  EXPECT_NE(d, a);
  EXPECT_FALSE(Tensor{});
  EXPECT_TRUE(Tensor(DType::kF32, {0}));
  EXPECT_EQ(to_string(Shape{1, 16}), "(1, 16)");
  EXPECT_EQ(to_string(Shape{3}), "(3,)");
}

}  // namespace
}  // namespace tenon::runtime
