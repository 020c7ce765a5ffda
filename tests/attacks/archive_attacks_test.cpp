#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/support/attack.h"
#include "tests/support/pickle_writer.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "tests/support/torch_archive.h"
#include "tests/support/zip_writer.h"
#include "tools/commands/npy.h"
#include "weights/checkpoint/open_checkpoint.h"

// Archives that unpack to more than they are, or to something else for each reader. README.md in this folder lists
// them.
namespace minimind {
namespace {

using namespace std::string_literals;

// The members of a checkpoint, of which `data.pkl` is written with `options`.
ZipWriter with_pickle(const ZipWriter::Options& options) {
  ZipWriter zip;
  zip.add("model/data.pkl", pickle_writer::document("}"), options);
  return zip;
}

// nullifAI, Hugging Face's hub, 2025: the archive is 7z, which scanners did not open.
TEST(ArchiveAttack, SevenZipIsNotRead) {
  expect_file_refused("7z\xBC\xAF\x27\x1C\x00\x04"s + std::string(200, 'x'), "is an archive (7z)");
}

// 42.zip and its kind: little data that is deflated from much.
TEST(ArchiveAttack, ZipBombsOfCompressedMembersAreRefused) {
  expect_file_refused(with_pickle({.method = 8, .size = 0xFFFFFFFE}).finish(), "is compressed (method 8)");
  for (const int method : {9, 12, 14, 93, 95, 99}) {
    expect_file_refused(with_pickle({.method = static_cast<std::uint16_t>(method)}).finish(), "is compressed");
  }
}

// zbsm.zip by David Fifield, 2019: thousands of directory records for one local file.
TEST(ArchiveAttack, OverlappingMembersDoNotMultiplyAFile) {
  ZipWriter zip;
  zip.add("model/data/0", std::string(1 << 20, 'x'));
  for (int i = 1; i < 30'000; ++i) {
    zip.add("model/data/" + std::to_string(i), "",
            {.compressed_size = 1 << 20, .size = 1 << 20, .local_header_offset = 0});
  }
  expect_file_refused(zip.finish(), "in its own header");
  ZipWriter same_name;
  for (int i = 0; i < 30'000; ++i) same_name.add("model/data.pkl", "", {.local_header_offset = 0});
  expect_file_refused(same_name.finish(), "is repeated, expected once");
}

// CVE-2025-1944, picklescan: the name in the local header is another one than that of the directory.
TEST(ArchiveAttack, NamesThatDifferBetweenTheHeadersAreRefused) {
  expect_file_refused(with_pickle({.local_name = "model/data.pk1"}).finish(), "in its own header");
}

// CVE-2025-1945, picklescan: flags that make other readers skip a member.
TEST(ArchiveAttack, EncryptionFlagsAreRefused) {
  for (const int flags : {0x1, 0x40, 0x2000, 0x2041}) {
    expect_file_refused(with_pickle({.flags = static_cast<std::uint16_t>(flags)}).finish(), "is encrypted");
  }
}

// CVE-2025-10156, picklescan: a wrong checksum made the scanner give up, and torch load the file all the same. Here the
// pickle is judged by its content.
TEST(ArchiveAttack, AWrongChecksumHidesNothing) {
  const std::string evil = pickle_writer::document(pickle_writer::global("os", "system"));
  ZipWriter zip;
  zip.add("model/data.pkl", evil);  // the checksums of ZipWriter are zero
  expect_file_refused(zip.finish(), "which is not a part of plain weights");
}

// CVE-2025-10155, picklescan: a pickle under another extension. Formats are told by content.
TEST(ArchiveAttack, TheExtensionDoesNotChooseTheReader) {
  const std::string evil = torch_zip("}" + pickle_writer::text("x") + pickle_writer::global("os", "system") + "s", {});
  const std::string path = ::testing::TempDir() + "minimind-attack.safetensors";
  std::ofstream(path, std::ios::binary) << evil;
  expect_refused([&] { open_checkpoint(path, {}); }, "os.system");
  std::remove(path.c_str());
}

TEST(ArchiveAttack, Zip64LiesAreRefused) {
  const auto extra = [](std::uint64_t size, std::uint64_t offset) {
    return "\x01\x00\x18\x00"s + little_endian(size) + little_endian(size) + little_endian(offset);
  };
  const std::uint64_t most = UINT64_MAX;
  for (const auto& [size, offset] :
       {std::pair{most, std::uint64_t{0}}, {most - 100, 100}, {1ull << 63, 1ull << 63}, {1, most}}) {
    expect_file_refused(with_pickle({.compressed_size = UINT32_MAX,
                                     .size = UINT32_MAX,
                                     .local_header_offset = UINT32_MAX,
                                     .extra = extra(size, offset)})
                            .finish(),
                        "");
  }
  std::string counts = with_pickle({}).finish_zip64();
  const std::size_t record = counts.find("PK\x06\x06");
  for (const std::size_t field : {24, 32, 40, 48}) {  // the counts, the size and the offset of the directory
    std::string lie = counts;
    lie.replace(record + field, 8, little_endian(most));
    expect_file_refused(lie, "");
  }
}

// A second archive in the comment of the first: readers that search from another end find another one.
TEST(ArchiveAttack, AnArchiveInTheCommentIsTheOneThatEveryReaderFinds) {
  ZipWriter inner;
  inner.add("model/data.pkl", pickle_writer::document(pickle_writer::global("os", "system")));
  expect_file_refused(with_pickle({}).finish(inner.finish()), "");
}

// Paths that leave the folder into which a program unpacks. Nothing is ever unpacked.
TEST(ArchiveAttack, ZipSlipWritesNothing) {
  ZipWriter zip;
  zip.add("../../evil/data.pkl", pickle_writer::document("}"));
  zip.add("/etc/cron.d/evil", "x");
  expect_file_refused(zip.finish(), "");
}

// CVE-2019-6446: numpy.load unpickled arrays of objects.
TEST(ArchiveAttack, NpyFilesOfObjectsAreRefused) {
  const auto npy = [](const std::string& header, const std::string& data) {
    return "\x93NUMPY\x01\x00"s + little_endian(static_cast<std::uint16_t>(header.size())) + header + data;
  };
  const std::string evil = pickle_writer::document(pickle_writer::global("os", "system") +
                                                   pickle_writer::tuple({pickle_writer::text("id")}) + "R");
  for (const std::string& file : {
           npy("{'descr': '|O', 'fortran_order': False, 'shape': (1, 1), }\n", evil),
           npy("{'descr': [('a', '<f4'), ('b', '|O')], 'fortran_order': False, 'shape': (1, 1), }\n", evil),
           npy("{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999999, 999999999999999), }\n", evil),
           npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }\n", ""),
           npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 4), }\n", ""),
           npy("{'descr': '<f4', 'fortran_order': __import__('os').system('id'), 'shape': (1, 1), }\n", "1234"),
           "\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF"s,
       }) {
    const TemporaryFile path(file);
    expect_refused([&] { NpyReader reader(path.path()); }, path.path());
  }
}

std::string safetensors(const std::string& header, const std::string& data = "") {
  return little_endian(std::uint64_t{header.size()}) + header + data;
}

// What the audit of safetensors by Trail of Bits, 2023, and its own tests look for.
TEST(ArchiveAttack, SafetensorsHeadersThatLieAreRefused) {
  const std::string name = R"({"a":{"dtype":"F32","shape":)";
  for (const std::string& file : {
           little_endian(std::uint64_t{UINT64_MAX}) + "{}",                           // a header of 2^64 bytes
           little_endian(std::uint64_t{1} << 40) + "{}",                              // of more than the file
           safetensors(name + R"([1],"data_offsets":[0,8]}})", "12345678"),           // more bytes than the shape
           safetensors(name + R"([2],"data_offsets":[4,0]}})", "12345678"),           // ends before it begins
           safetensors(name + R"([4294967296,4294967296],"data_offsets":[0,0]}})"),   // a product that overflows
           safetensors(name + R"([2],"data_offsets":[8,16]}})", "1234567812345678"),  // a hole that hides data
           safetensors(name + R"([2],"data_offsets":[0,8]}})", "12345678hidden"),     // data after the last tensor
           safetensors(name + R"([2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                       "123456781234"),  // tensors that overlap
           safetensors(name + R"([2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                       "12345678"),  // a name twice
           safetensors(name + R"([-2],"data_offsets":[0,8]}})", "12345678"),
           safetensors(name + R"([2e0],"data_offsets":[0,8]}})", "12345678"),
           safetensors(name + R"([2],"data_offsets":[0,18446744073709551616]}})", "12345678"),
           safetensors("\x00{}"s),  // does not begin with {
           safetensors(R"([{"dtype":"F32"}])"),
           safetensors(std::string(1 << 20, '[')),  // nested without end
           safetensors(R"({"a":)" + std::string(1 << 20, '{')),
       }) {
    expect_file_refused(file, "");
  }
}

// A polyglot: a header that is a whole zip archive to a reader that searches from the end.
TEST(ArchiveAttack, AFileOfTwoFormatsIsReadAsOne) {
  ZipWriter zip;
  zip.add("model/data.pkl", pickle_writer::document(pickle_writer::global("os", "system")));
  expect_file_refused(safetensors(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", zip.finish()), "");
}

}  // namespace
}  // namespace minimind
