#include "weights/io/byte_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/support/cases.h"
#include "tests/support/temporary_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// One step of a reader, which tells all that it did.
std::string step(ByteReader& reader, unsigned kind, std::size_t count) {
  try {
    switch (kind) {
      case 0:
        return std::string(reader.take_text(count));
      case 1:
        return std::string(reader.take_line());
      case 2:
        return std::to_string(reader.read<std::uint32_t>());
      case 3:
        reader.skip(count);
        return "skipped";
      default: {
        std::string out(count, '\0');
        reader.read_into(std::as_writable_bytes(std::span(out)));
        return out;
      }
    }
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ByteReader, ReadsAFileAsItReadsMemory) {
  std::mt19937 random(1);
  std::string bytes(300'000, '\0');
  for (char& byte : bytes) byte = random() % 1000 == 0 ? '\n' : static_cast<char>(random());
  const TemporaryFile written(bytes);
  const auto file = written.open();
  for (unsigned round = 0; round < cases(50); ++round) {
    const FilePart part{random() % 1000, bytes.size() - 1000 - random() % 1000};
    ByteReader in_memory(as_bytes(bytes).subspan(part.offset, part.size), "x"), in_file(*file, part, "x");
    for (int i = 0; i < 200; ++i) {
      const auto kind = static_cast<unsigned>(random() % 5);
      const std::size_t count = random() % (i % 20 == 0 ? 100'000 : 300);
      ASSERT_EQ(step(in_file, kind, count), step(in_memory, kind, count)) << kind << " " << count;
      ASSERT_EQ(in_file.position(), in_memory.position());
      ASSERT_EQ(in_file.remaining(), in_memory.remaining());
    }
  }
}

TEST(ByteReader, ALineIsOfAtMost64Kilobytes) {
  const TemporaryFile fits(std::string(65535, 'x') + "\n"), too_long(std::string(70'000, 'x') + "\n"), endless("xyz");
  const auto error_in = [](const TemporaryFile& written) {
    const auto file = written.open();
    ByteReader reader(*file, {0, file->size()}, "x");
    return error_of([&] { reader.take_line(); });
  };
  EXPECT_EQ(error_in(fits), "");
  EXPECT_EQ(error_in(too_long), "x: the line at offset 0 has more than 65536 bytes");
  EXPECT_EQ(error_in(endless), "x: the line at offset 0 never ends");
}

}  // namespace
}  // namespace minimind
