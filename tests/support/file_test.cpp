// Files are written whole, through links, with the mode and the owner that they had; devices and pipes stay what they
// are.
#include "support/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <thread>

namespace tenon {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  Files()
      : folder_(fs::temp_directory_path() / ("tenon-file-" + std::to_string(getpid()) + "-" +
                                             testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }

  fs::path at(const std::string& name) const { return folder_ / name; }
  static std::string text(const fs::path& path) { return read_text(path).value_or("(unreadable)"); }
  static struct stat info(const fs::path& path) {
    struct stat result {};
    EXPECT_EQ(::lstat(path.c_str(), &result), 0) << path;
    return result;
  }
  void expect_nothing_but(size_t files) const {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), static_cast<std::ptrdiff_t>(files));
  }

  fs::path folder_;
};

TEST_F(Files, AreReplacedAtOnce) {
  ASSERT_TRUE(write_file(at("a"), "one"));
  std::ifstream reader(at("a"));  // keeps the old content, as each reader does
  ASSERT_TRUE(write_file(at("a"), "two"));
  std::string old;
  reader >> old;
  EXPECT_EQ(old, "one");
  EXPECT_EQ(text(at("a")), "two");
  expect_nothing_but(1);
}

TEST_F(Files, KeepTheirMode) {
  for (const mode_t mode : {0640, 0600, 0755, 0666}) {
    ASSERT_TRUE(write_file(at("a"), "one"));
    ASSERT_EQ(::chmod(at("a").c_str(), mode), 0);
    ASSERT_TRUE(write_file(at("a"), "two"));
    EXPECT_EQ(info(at("a")).st_mode & 07777, mode);
  }
  const mode_t before = ::umask(027);
  ASSERT_TRUE(write_file(at("new"), "one"));
  ::umask(before);
  EXPECT_EQ(info(at("new")).st_mode & 07777, 0640u) << "a new file has what the user asks new files to have";
}

TEST_F(Files, KeepTheirOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes files of others";
  constexpr uid_t kOther = 12345;
  ASSERT_TRUE(write_file(at("a"), "one"));
  ASSERT_EQ(::chown(at("a").c_str(), kOther, kOther), 0);
  ASSERT_EQ(::chmod(at("a").c_str(), 04750), 0);
  ASSERT_TRUE(write_file(at("a"), "two"));
  EXPECT_EQ(info(at("a")).st_uid, kOther);
  EXPECT_EQ(info(at("a")).st_gid, kOther);
  EXPECT_EQ(info(at("a")).st_mode & 07777, 04750u);
}

TEST_F(Files, OfOthersAreWrittenInPlace) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes files of others";
  ASSERT_TRUE(write_file(at("a"), "a longer text"));
  ASSERT_EQ(::chmod(at("a").c_str(), 0666), 0);
  const auto inode = info(at("a")).st_ino;
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  const auto as_other = [&](const auto& act) {
    EXPECT_EQ(::seteuid(12345), 0);
    act();
    EXPECT_EQ(::seteuid(0), 0);
  };
  as_other([&] { EXPECT_TRUE(write_file(at("a"), "two")) << "the folder admits no new file"; });
  EXPECT_EQ(text(at("a")), "two");
  EXPECT_EQ(info(at("a")).st_ino, inode);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  as_other([&] { EXPECT_TRUE(write_file(at("a"), "3")) << "a new file would have another owner"; });
  EXPECT_EQ(text(at("a")), "3");
  EXPECT_EQ(info(at("a")).st_uid, 0u);
  ASSERT_EQ(::chmod(at("a").c_str(), 0444), 0);
  as_other([&] {
    const Status refused = write_file(at("a"), "4");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().what, HasSubstr("Permission denied"));
  });
  EXPECT_EQ(text(at("a")), "3");
  expect_nothing_but(1);
}

TEST_F(Files, AreFoundThroughLinks) {
  fs::create_directory(at("inner"));
  ASSERT_TRUE(write_file(at("inner/target"), "one"));
  fs::create_symlink("inner/target", at("link"));
  fs::create_symlink(at("link"), at("chain"));
  ASSERT_TRUE(write_file(at("chain"), "two"));
  EXPECT_TRUE(fs::is_symlink(at("chain")));
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(text(at("inner/target")), "two");
  fs::create_symlink("inner/later", at("dangling"));
  ASSERT_TRUE(write_file(at("dangling"), "three"));
  EXPECT_TRUE(fs::is_symlink(at("dangling")));
  EXPECT_EQ(text(at("inner/later")), "three");
  fs::create_symlink("circle", at("circle"));
  const Status circle = write_file(at("circle"), "four");
  ASSERT_FALSE(circle);
  EXPECT_THAT(circle.error().what, HasSubstr("symbolic links"));
}

TEST_F(Files, ADeviceStaysADevice) {
  const auto null = makedev(1, 3);
  if (::mknod(at("null").c_str(), S_IFCHR | 0666, null) != 0) GTEST_SKIP() << "only root makes devices";
  fs::create_symlink("null", at("link"));
  for (const char* name : {"null", "link"}) {
    const Status written = write_file(at(name), "text");
    if (!written && written.error().what.contains("Permission denied")) GTEST_SKIP() << "the folder admits no devices";
    EXPECT_TRUE(written) << written.error().str();
    EXPECT_TRUE(S_ISCHR(info(at("null")).st_mode));
    EXPECT_EQ(info(at("null")).st_rdev, null);
  }
  EXPECT_TRUE(fs::is_symlink(at("link")));
  expect_nothing_but(2);
}

TEST_F(Files, APipeTakesTheText) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = text(at("pipe")); });
  const Status written = write_file(at("pipe"), "text");
  reader.join();
  ASSERT_TRUE(written) << written.error().str();
  EXPECT_EQ(read, "text");
  EXPECT_TRUE(S_ISFIFO(info(at("pipe")).st_mode));
}

TEST_F(Files, OpenFilesHaveNamesToo) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_TRUE(write_file("/dev/fd/" + std::to_string(ends[1]), "text"));
  std::array<char, 16> buffer{};
  EXPECT_EQ(::read(ends[0], buffer.data(), buffer.size()), 4);
  EXPECT_EQ(std::string(buffer.data()), "text");
  for (const int end : ends) ::close(end);
  const int file = ::open(at("a").c_str(), O_RDWR | O_CREAT, 0600);
  const auto inode = info(at("a")).st_ino;
  ASSERT_TRUE(write_file("/dev/fd/" + std::to_string(file), "text"));
  EXPECT_EQ(text(at("a")), "text");
  EXPECT_EQ(info(at("a")).st_ino, inode) << "whoever has it open must find the text";
  ::close(file);
}

TEST_F(Files, WhatCannotBeWrittenStaysAsItWas) {
  const Status directory = write_file(folder_, "text");
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().what, HasSubstr("cannot write the file: Is a directory"));
  EXPECT_FALSE(write_file(at("none/a"), "text"));
  const std::string long_name(255, 'n');  // the longest that a folder may have
  EXPECT_TRUE(write_file(at(long_name), "text"));
  expect_nothing_but(1);
}

TEST_F(Files, NamedByFilesAreRegularOnes) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  const auto pipe = read_regular_file(at("pipe"));  // no writer ever comes
  ASSERT_FALSE(pipe);
  EXPECT_EQ(pipe.error().what, "it is not a regular file");
  EXPECT_FALSE(read_regular_file(folder_));
  EXPECT_FALSE(read_regular_file(at("none")));
  ASSERT_TRUE(write_file(at("a"), "text"));
  fs::create_symlink("a", at("link"));
  EXPECT_EQ(read_regular_file(at("link"))->size(), 4u);
}

TEST_F(Files, ThatAreLargerThanTheMemoryAreNotRead) {
  std::ofstream(at("sparse")).close();
  std::error_code failure;
  fs::resize_file(at("sparse"), uintmax_t{1} << 42, failure);  // 4 TiB, of which the disk has nothing
  if (failure) GTEST_SKIP() << "the folder admits no sparse files: " << failure.message();
  const auto sparse = read_file(at("sparse"));
  ASSERT_FALSE(sparse);
  EXPECT_THAT(sparse.error().what, HasSubstr("the file takes 4096.0 GiB of memory, "));
}

}  // namespace
}  // namespace tenon
