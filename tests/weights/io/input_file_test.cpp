#include "weights/io/input_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/temporary_file.h"
#include "tests/support/temporary_folder.h"
#include "weights/io/mistaken_path.h"
#include "weights/io/path.h"

namespace minimind {
namespace {

std::string bytes_at(const InputFile& file, std::size_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  file.read(offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

TEST(InputFile, HasTheBytesOfTheFileAndItsPath) {
  const TemporaryFile written("some bytes");
  const auto file = written.open();
  EXPECT_EQ(file->path(), written.path());
  EXPECT_EQ(file->size(), 10u);
  EXPECT_EQ(as_string(file->start()), "some bytes");
  EXPECT_EQ(bytes_at(*file, 5, 5), "bytes");
  EXPECT_EQ(file->read_text(10), "some bytes");
  EXPECT_EQ(error_of([&] { file->read_text(9); }), written.path() + ": is 10 bytes long, expected at most 9");
}

TEST(InputFile, HasNoBytesAfterItsEnd) {
  const TemporaryFile written("some bytes");
  const auto file = written.open();
  EXPECT_EQ(bytes_at(*file, 10, 0), "");
  for (const auto& [offset, size] : {std::pair<std::size_t, std::size_t>{10, 1}, {11, 0}, {5, 6}, {SIZE_MAX, 2}}) {
    EXPECT_NE(error_of([&, at = offset, count = size] { bytes_at(*file, at, count); }).find(written.path()),
              std::string::npos)
        << offset;
  }
}

TEST(InputFile, OneInMemoryHasANameAndNoFile) {
  static constexpr std::string_view bytes = "some bytes";
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/provided";
  provide_file(path, std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(is_regular_file(path));
  check_path(path);
  const auto file = InputFile::open(path);
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(as_string(file->start()), "some bytes");
  EXPECT_EQ(bytes_at(*file, 5, 5), "bytes");
  EXPECT_EQ(file->read_text(10), "some bytes");
  EXPECT_EQ(error_of([&] { bytes_at(*file, 5, 6); }),
            path + ": was changed while it was read; read it again when it is complete");
  provide_file("", {});
  EXPECT_NE(error_of([&] { InputFile::open(path); }).find("No such file"), std::string::npos);
}

TEST(InputFile, StaysReadableWhenAnotherFileTakesItsName) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a", other = folder.path() + "/b";
  std::ofstream(path) << "kept";
  std::ofstream(other) << "new";
  const auto file = InputFile::open(path);
  std::filesystem::rename(other, path);
  EXPECT_EQ(file->read_text(100), "kept");
}

TEST(InputFile, AFileThatIsTruncatedIsAnErrorThatNamesIt) {
  const TemporaryFile written(std::string(1 << 20, 'x'));
  for (const std::size_t left : {std::size_t{1} << 19, std::size_t{100}, std::size_t{0}}) {
    written.write(std::string(1 << 20, 'x'));
    const auto file = written.open();
    EXPECT_EQ(bytes_at(*file, 1 << 19, 4), "xxxx");
    ASSERT_EQ(::truncate(written.path().c_str(), static_cast<off_t>(left)), 0);
    for (const std::size_t offset : {std::size_t{0}, std::size_t{(1 << 20) - 4}}) {
      EXPECT_EQ(error_of([&] { bytes_at(*file, offset, 4); }),
                written.path() + ": was changed while it was read; read it again when it is complete");
    }
  }
}

TEST(InputFile, AFileThatIsWrittenInPlaceIsAnErrorThatNamesIt) {
  const TemporaryFile written("first");
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, written.path().c_str(), long_ago, 0), 0);
  const auto file = written.open();
  EXPECT_EQ(bytes_at(*file, 0, 5), "first");
  written.write("other");
  EXPECT_NE(error_of([&] { bytes_at(*file, 0, 5); }).find(written.path() + ": was changed"), std::string::npos);
  const timespec soon_after[2] = {{1, 0}, {1, 5}};
  ASSERT_EQ(::utimensat(AT_FDCWD, written.path().c_str(), soon_after, 0), 0);
  EXPECT_NE(error_of([&] { bytes_at(*file, 0, 5); }).find(written.path() + ": was changed"), std::string::npos);
}

TEST(InputFile, RejectsMissingEmptyAndIrregularFilesByName) {
  EXPECT_NE(error_of([] { InputFile::open("/nonexistent/x.pth"); }).find("/nonexistent/x.pth: cannot be opened"),
            std::string::npos);
  const TemporaryFile empty;
  EXPECT_NE(error_of([&] { empty.open(); }).find(empty.path() + ": is empty"), std::string::npos);
  EXPECT_NE(error_of([] { InputFile::open(testing::TempDir()); }).find("is a folder, expected a file"),
            std::string::npos);
  for (const char* device : {"/dev/null", "/dev/zero"}) {
    EXPECT_EQ(error_of([&] { InputFile::open(device); }), device + std::string(": is not a regular file"));
  }
}

// Opening a FIFO in the usual way waits for a writer, for ever if none comes.
TEST(InputFile, RejectsFifosAndSocketsWithoutWaiting) {
  const TemporaryFolder folder;
  const std::string fifo = folder.path() + "/fifo.pth", socket = folder.path() + "/socket.pth";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { InputFile::open(fifo); }), fifo + ": is not a regular file");

  const int listening = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(socket.size(), sizeof address.sun_path);
  socket.copy(address.sun_path, socket.size());
  ASSERT_EQ(::bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_NE(error_of([&] { InputFile::open(socket); }).find(socket + ": "), std::string::npos);
  ::close(listening);
}

}  // namespace
}  // namespace minimind
