#include "weights/torch/zip_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "tests/support/written_file.h"
#include "weights/torch/zip_directory.h"

namespace minimind {
namespace {

// Names of 1 to 70 bytes, so that every amount of padding occurs.
std::map<std::string, std::string> many_members() {
  std::map<std::string, std::string> members;
  for (std::size_t length = 1; length <= 70; ++length) {
    members[std::string(length, 'n')] = std::string(length * 5 % 67, static_cast<char>(length));
  }
  return members;
}

std::shared_ptr<const MappedFile> archive_of(const std::map<std::string, std::string>& members,
                                             std::uint64_t zip64_from = 0xFFFFFFFF) {
  return written_file([&](OutputFile& file) {
    ZipFileWriter writer(file, zip64_from);
    for (const auto& [name, content] : members) writer.add(name, content);
    writer.finish();
  });
}

// By the definition of the polynomial, bit by bit.
std::uint32_t crc32_of(std::string_view text) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : text) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

std::uint32_t number_at(std::string_view text, std::size_t position) {
  std::uint32_t value = 0;
  std::memcpy(&value, text.data() + position, sizeof value);
  return value;
}

void expect_members(const MappedFile& file, const std::map<std::string, std::string>& wanted) {
  const ZipMembers members = read_zip_directory(file.bytes(), "written");
  ASSERT_EQ(members.size(), wanted.size());
  for (const auto& [name, content] : wanted) {
    ASSERT_TRUE(members.contains(name)) << name;
    EXPECT_EQ(as_string(members.at(name)), content);
    EXPECT_EQ((members.at(name).data() - file.bytes().data()) % 64, 0) << name;
  }
}

TEST(ZipFileWriter, StoresMembersAlignedTo64Bytes) {
  const auto members = many_members();
  expect_members(*archive_of(members), members);
}

// 1: every size and offset but 0 is in zip64 fields; 300: the sizes of small members are not.
TEST(ZipFileWriter, WritesLargeSizesAndOffsetsAsZip64) {
  const auto members = many_members();
  for (const std::uint64_t zip64_from : {1, 60, 300}) {
    const auto file = archive_of(members, zip64_from);
    expect_members(*file, members);
    const std::string text = as_string(file->bytes());
    EXPECT_NE(text.find("PK\x06\x06"), std::string::npos);
    EXPECT_NE(text.find("PK\x06\x07"), std::string::npos);
    EXPECT_EQ(text.substr(text.size() - 6, 4), "\xFF\xFF\xFF\xFF");  // the directory's offset
  }
  EXPECT_EQ(as_string(archive_of(members)->bytes()).find("PK\x06\x06"), std::string::npos);
}

TEST(ZipFileWriter, SaysTheCheckSumInBothHeaders) {
  const std::string content = "The quick brown fox jumps over the lazy dog";
  const std::string text = as_string(archive_of({{"a", content}})->bytes());
  EXPECT_EQ(number_at(text, 14), crc32_of(content));
  EXPECT_EQ(number_at(text, text.find("PK\x01\x02") + 16), crc32_of(content));
}

TEST(ZipFileWriter, RefusesAMemberOfAnotherSizeThanAnnounced) {
  const auto write_short = [](OutputFile& file) {
    ZipFileWriter(file).add("a", 5, [](const ZipFileWriter::Write& write) { write(as_bytes("four")); });
  };
  EXPECT_NE(error_of([&] { written_file(write_short); }).find("zip member a has 4 bytes, where 5"), std::string::npos);
}

}  // namespace
}  // namespace minimind
