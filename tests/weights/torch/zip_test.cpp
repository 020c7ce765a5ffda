#include "weights/torch/zip.h"
#include "weights/torch/zip_writer.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "tests/support/little_endian.h"
#include "tests/support/temporary_file.h"
#include "tests/support/written_file.h"
#include "tests/support/zip_writer.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using namespace std::string_literals;

// An archive of two members, the second with the given faults.
std::string archive(const ZipWriter::Options& options) {
  ZipWriter writer;
  writer.add("a/one", "1");
  writer.add("a/two", "22", options);
  return writer.finish();
}

// The members of the archive with these bytes, by their names.
std::map<std::string, std::string> members_of(const std::string& bytes) {
  std::map<std::string, std::string> members;
  for (const auto& [name, place] : read_zip_directory(*TemporaryFile(bytes).open())) {
    members[name] = bytes.substr(place.offset, place.size);
  }
  return members;
}

std::string error_for_zip(const std::string& bytes) {
  return error_of([&] { members_of(bytes); });
}

void expect_zip_error(const std::string& bytes, std::string_view part) {
  const std::string message = error_for_zip(bytes);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(ZipDirectory, FindsMembersInsideTheArchive) {
  const std::map<std::string, std::string> members{{"a/one", "1"}, {"a/two", "22"}};
  EXPECT_EQ(members_of(archive({})), members);
}

TEST(ZipDirectory, AnEmptyArchiveHasNoMembers) {
  const std::string bytes = ZipWriter().finish();
  EXPECT_TRUE(members_of(bytes).empty());
}

TEST(ZipDirectory, FindsTheEndRecordBeforeAComment) {
  ZipWriter writer;
  writer.add("a", "1");
  const std::string another_record = "PK\x05\x06" + std::string(40, 'c');
  for (const std::string& comment : {"note"s, std::string(0xFFFF, 'c'), another_record}) {
    const std::string bytes = writer.finish(comment);
    EXPECT_EQ(members_of(bytes).size(), 1u);
  }
}

TEST(ZipDirectory, ReadsAZip64EndRecord) {
  ZipWriter writer;
  writer.add("a", "1");
  const std::string bytes = writer.finish_zip64();
  EXPECT_EQ(members_of(bytes).at("a"), "1");
}

TEST(ZipDirectory, ReadsSizesAndOffsetFromTheZip64ExtraField) {
  ZipWriter writer;
  const std::string unrelated = "\x55\x54\x02\x00xx"s;
  const std::string zip64 = "\x01\x00\x18\x00"s + little_endian(std::uint64_t{2}) + little_endian(std::uint64_t{2}) +
                            little_endian(std::uint64_t{0});
  writer.add("a", "22",
             {.compressed_size = 0xFFFFFFFF,
              .size = 0xFFFFFFFF,
              .local_header_offset = 0xFFFFFFFF,
              .extra = unrelated + zip64});
  const std::string bytes = writer.finish();
  EXPECT_EQ(members_of(bytes).at("a"), "22");
}

TEST(ZipDirectory, TheZip64ExtraFieldHasOnlyTheFieldsThatPointToIt) {
  ZipWriter writer;
  writer.add("a", "22",
             {.local_header_offset = 0xFFFFFFFF, .extra = "\x01\x00\x08\x00"s + little_endian(std::uint64_t{0})});
  const std::string bytes = writer.finish();
  EXPECT_EQ(members_of(bytes).at("a"), "22");
}

TEST(ZipDirectory, EveryCutEndIsCalledTruncated) {
  const std::string whole = archive({});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    expect_zip_error(whole.substr(0, size), "is truncated: the zip archive has no end-of-directory record");
  }
}

TEST(ZipDirectory, RejectsEncryptedAndCompressedMembersByName) {
  expect_zip_error(archive({.flags = 1}), "'a/two' is encrypted");
  expect_zip_error(archive({.flags = 1 << 6}), "'a/two' is encrypted");
  expect_zip_error(archive({.flags = 1 << 13}), "'a/two' is encrypted");
  expect_zip_error(archive({.method = 8}), "'a/two' is compressed (method 8)");
}

TEST(ZipDirectory, RejectsRepeatedMembers) {
  ZipWriter writer;
  writer.add("a", "1");
  writer.add("a", "2");
  expect_zip_error(writer.finish(), "zip member 'a' is repeated");
}

TEST(ZipDirectory, RejectsRecordsThatDisagree) {
  expect_zip_error(archive({.local_name = "a/six"}), "is 'a/six' in its own header");
  expect_zip_error(archive({.compressed_size = 1}), "two sizes, 1 and 2");
  expect_zip_error(archive({.local_header_offset = 1}), "has no header at offset 1");
}

TEST(ZipDirectory, RejectsMembersThatReachIntoTheDirectoryOrBeyondTheFile) {
  expect_zip_error(archive({.compressed_size = 3, .size = 3}), "expected 3;");
  expect_zip_error(archive({.compressed_size = 0xFFFFFFFE, .size = 0xFFFFFFFE}), "expected 4294967294;");
  expect_zip_error(archive({.local_header_offset = 0xFFFFFFFE}), "expected before the zip directory");
}

TEST(ZipDirectory, RejectsZip64ValuesThatOverflow) {
  const std::string most = little_endian(UINT64_MAX);
  expect_zip_error(
      archive({.compressed_size = 0xFFFFFFFF, .size = 0xFFFFFFFF, .extra = "\x01\x00\x10\x00"s + most + most}),
      "expected 18446744073709551615;");
  expect_zip_error(archive({.local_header_offset = 0xFFFFFFFF, .extra = "\x01\x00\x08\x00"s + most}),
                   "expected before the zip directory");
}

TEST(ZipDirectory, RejectsExtraFieldsThatAreTooShort) {
  expect_zip_error(archive({.size = 0xFFFFFFFF, .extra = "\x01\x00\x04\x00xxxx"s}), "expected 8;");
  expect_zip_error(archive({.extra = "\x01\x00\xFF\x00xxxx"s}), "expected 255;");
}

TEST(ZipDirectory, RejectsADirectoryOutsideTheFile) {
  expect_zip_error(ZipWriter::end_record(1, 46, 0, {}), "zip directory should be 46 bytes at offset 0");
  expect_zip_error(ZipWriter::end_record(1, 46, 0xFFFFFFFE, {}), "offset 4294967294");
  expect_zip_error(ZipWriter::end_record(1, 0xFFFFFFFF, 0, {}), "zip64");
  expect_zip_error(ZipWriter::end_record(1, 0, 0xFFFFFFFF, {}), "zip64");
}

TEST(ZipDirectory, RejectsACountThatDoesNotFitTheDirectory) {
  ZipWriter writer;
  writer.add("a", "1");
  const std::string whole = writer.finish();
  const std::string body = whole.substr(0, whole.size() - 22);
  const std::uint32_t offset = 32;  // a local header of 30 bytes, a name and a byte of data
  const auto size = static_cast<std::uint32_t>(body.size()) - offset;
  EXPECT_EQ(error_for_zip(body + ZipWriter::end_record(1, size, offset, {})), "");
  expect_zip_error(body + ZipWriter::end_record(2, size, offset, {}), "cannot list 2 members");
  expect_zip_error(body + ZipWriter::end_record(0, size, offset, {}), "after its 0 members");
}

TEST(ZipDirectory, RejectsAnArchiveOfSeveralDisks) {
  ZipWriter writer;
  writer.add("a", "1");
  const auto expect_split = [](std::string bytes, std::size_t from_end) {
    bytes[bytes.size() - from_end] = 2;
    expect_zip_error(bytes, "split over several files");
  };
  // Of the end record: this disk, that of the directory, and its members on this disk.
  for (const std::size_t at : {4, 6, 8}) expect_split(writer.finish(), 22 - at);
  // Of the locator: the disk of the record, and the number of disks.
  for (const std::size_t at : {4, 16}) expect_split(writer.finish_zip64(), 22 + 20 - at);
  // Of the zip64 record, as above.
  for (const std::size_t at : {16, 20, 24}) expect_split(writer.finish_zip64(), 22 + 20 + 56 - at);
}

TEST(ZipDirectory, RejectsMoreMembersThanAModelHas) {
  std::string bytes = ZipWriter().finish_zip64();
  const std::string count = little_endian(std::uint64_t{1} << 19);
  bytes.replace(bytes.size() - 22 - 20 - 56 + 24, 16, count + count);
  expect_zip_error(bytes, "has 524288 members and 0 bytes, expected at most 262144");
}

TEST(ZipDirectory, EscapesNamesInMessages) {
  ZipWriter writer;
  writer.add("a\n\x1b[2J", "1", {.method = 8});
  expect_zip_error(writer.finish(), "'a\\x0a\\x1b[2J'");
}

// Names of 1 to 70 bytes, so that every amount of padding occurs.
std::map<std::string, std::string> many_members() {
  std::map<std::string, std::string> members;
  for (std::size_t length = 1; length <= 70; ++length) {
    members[std::string(length, 'n')] = std::string(length * 5 % 67, static_cast<char>(length));
  }
  return members;
}

std::shared_ptr<const InputFile> archive_of(const std::map<std::string, std::string>& members,
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

void expect_members(const InputFile& file, const std::map<std::string, std::string>& wanted) {
  const ZipMembers members = read_zip_directory(file);
  ASSERT_EQ(members.size(), wanted.size());
  for (const auto& [name, content] : wanted) {
    ASSERT_TRUE(members.contains(name)) << name;
    EXPECT_EQ(as_string(file).substr(members.at(name).offset, members.at(name).size), content);
    EXPECT_EQ(members.at(name).offset % 64, 0u) << name;
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
    const std::string text = as_string(*file);
    EXPECT_NE(text.find("PK\x06\x06"), std::string::npos);
    EXPECT_NE(text.find("PK\x06\x07"), std::string::npos);
    EXPECT_EQ(text.substr(text.size() - 6, 4), "\xFF\xFF\xFF\xFF");  // the directory's offset
  }
  EXPECT_EQ(as_string(*archive_of(members)).find("PK\x06\x06"), std::string::npos);
}

// The directory is larger than its members, and the counts of the end record have 16 bits.
TEST(ZipFileWriter, WritesALargeDirectoryAsZip64) {
  std::map<std::string, std::string> members;
  while (members.size() < 0xFFFF) members[fmt::format("{:030}", members.size())] = "";
  const auto file = archive_of(members);
  EXPECT_EQ(read_zip_directory(*file).size(), members.size());
  EXPECT_NE(as_string(*file).find("PK\x06\x06"), std::string::npos);
  const std::map<std::string, std::string> two(members.begin(), std::next(members.begin(), 2));
  expect_members(*archive_of(two, 2 * 64 + 1), two);
  EXPECT_NE(as_string(*archive_of(two, 2 * 64 + 1)).find("PK\x06\x06"), std::string::npos);
}

TEST(ZipFileWriter, SaysTheCheckSumInBothHeaders) {
  const std::string content = "The quick brown fox jumps over the lazy dog";
  const std::string text = as_string(*archive_of({{"a", content}}));
  EXPECT_EQ(number_at(text, 14), crc32_of(content));
  EXPECT_EQ(number_at(text, text.find("PK\x01\x02") + 16), crc32_of(content));
}

TEST(ZipFileWriter, RejectsAMemberOfAnotherSizeThanAnnounced) {
  const auto write_short = [](OutputFile& file) {
    ZipFileWriter(file).add("a", 5, [](const ZipFileWriter::Write& write) { write(as_bytes("four")); });
  };
  EXPECT_NE(error_of([&] { written_file(write_short); }).find("zip member a has 4 bytes, expected 5"),
            std::string::npos);
}

}  // namespace
}  // namespace minimind
