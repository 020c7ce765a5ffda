#include "weights/io/mapped_file.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/temporary_file.h"
#include "weights/io/error.h"

namespace minimind {
namespace {

TEST(MappedFile, HasTheBytesOfTheFileAndItsPath) {
  const TemporaryFile file("some bytes");
  const auto mapped = file.map();
  EXPECT_EQ(as_string(mapped->bytes()), "some bytes");
  EXPECT_EQ(mapped->path(), file.path());
}

TEST(MappedFile, BytesOutliveTheFilesName) {
  std::shared_ptr<const MappedFile> mapped;
  {
    const TemporaryFile file("kept");
    mapped = file.map();
  }
  EXPECT_EQ(as_string(mapped->bytes()), "kept");
}

TEST(MappedFile, ReleasedPartsReadTheSameAgain) {
  std::string content(1 << 20, 'x');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31);
  const TemporaryFile file(content);
  const auto mapped = file.map();
  mapped->release(mapped->bytes());
  mapped->release(mapped->bytes().subspan(100, 5));
  mapped->release({});
  EXPECT_EQ(as_string(mapped->bytes()), content);
}

TEST(MappedFile, RejectsMissingEmptyAndIrregularFilesByName) {
  EXPECT_NE(error_of([] { MappedFile::open("/nonexistent/x.pth"); }).find("/nonexistent/x.pth: cannot be opened"),
            std::string::npos);
  const TemporaryFile empty;
  EXPECT_NE(error_of([&] { empty.map(); }).find(empty.path() + ": is empty"), std::string::npos);
  EXPECT_NE(error_of([] { MappedFile::open(testing::TempDir()); }).find("is a folder, expected a file"),
            std::string::npos);
  EXPECT_NE(error_of([] { MappedFile::open("/dev/null"); }).find("not a regular file"), std::string::npos);
}

}  // namespace
}  // namespace minimind
