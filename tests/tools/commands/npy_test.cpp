#include "tools/commands/npy.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmath>
#include <cstring>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "tests/support/little_endian.h"
#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string bytes = "\x93NUMPY" + std::string{version, '\0'};
  if (version == 1) bytes += little_endian(static_cast<std::uint16_t>(header.size()));
  if (version != 1) bytes += little_endian(static_cast<std::uint32_t>(header.size()));
  return bytes + header + data;
}

std::string header_of(const std::string& shape, const std::string& descr = "<f4", const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

std::string floats(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += little_endian(static_cast<float>(i) + 0.5f);
  return bytes;
}

std::string read_error(const std::string& content) {
  const TemporaryFile file(content);
  const std::string error = error_of([&] { const NpyReader reader(file.path()); });
  EXPECT_TRUE(error.starts_with(file.path() + ": ")) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << "a message is one line: " << error;
  return error;
}

float at(const NpyReader& reader, std::size_t row, std::size_t col) {
  std::vector<float> values(reader.cols());
  reader.read_row(row, values);
  return values[col];
}

TEST(NpyWriter, WritesWhatNumpyWrites) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/logits.npy";
  const std::vector<float> values{1.5f, -2, 3, 4, 5, std::numeric_limits<float>::denorm_min()};
  NpyWriter writer(path, 3, 2);
  writer.write({values.data(), 1, 2});
  writer.write({values.data() + 2, 2, 2});
  writer.finish();
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
  header.resize(128 - 10 - 1, ' ');
  const std::string data(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  EXPECT_EQ(read_whole_file(path), npy(header + "\n", data));
}

TEST(NpyWriter, PadsEveryHeaderToAMultipleOf64) {
  for (const std::size_t rows : {1u, 99u, 123456u, 4000000000u}) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/x.npy";
    NpyWriter writer(path, rows, 6400);
    writer.finish();
    const std::string bytes = read_whole_file(path);
    EXPECT_EQ(bytes.size() % 64, 0u) << rows;
    EXPECT_EQ(bytes.back(), '\n') << rows;
    EXPECT_EQ(static_cast<std::size_t>(static_cast<unsigned char>(bytes[8])) + 10, bytes.size()) << rows;
  }
}

TEST(NpyWriter, LeavesNothingIfItIsNotFinished) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/x.npy";
  {
    const float value = 1;
    NpyWriter writer(path, 2, 1);
    writer.write({&value, 1, 1});
    EXPECT_FALSE(fs::exists(path)) << "the file appears only when it is complete";
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(NpyWriter, KeepsTheOldFileUntilItIsFinished) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.npy", "old");
  { NpyWriter writer(path, 1, 1); }
  EXPECT_EQ(read_whole_file(path), "old");
  NpyWriter writer(path, 0, 1);
  writer.finish();
  EXPECT_NE(read_whole_file(path), "old");
}

TEST(NpyWriter, NamesThePathThatCannotBeWritten) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/missing/x.npy";
  const std::string error = error_of([&] { NpyWriter writer(path, 1, 1); });
  EXPECT_TRUE(error.starts_with(path + ": cannot be written")) << error;
}

TEST(NpyWriter, FailsIfItsPathIsAFolder) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/out";
  fs::create_directory(path);
  const std::string error = error_of([&] { NpyWriter(path, 1, 1); });
  EXPECT_EQ(error, path + ": is a folder, expected a file to write");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(NpyWriter, FollowsALink) {
  const TemporaryFolder folder;
  const std::string target = folder.write("target", "old"), link = folder.path() + "/link";
  fs::create_symlink(target, link);
  const float value = 2;
  NpyWriter writer(link, 1, 1);
  writer.write({&value, 1, 1});
  writer.finish();
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(at(NpyReader(target), 0, 0), 2);
}

// The names that come next are known to everybody who may write to the folder.
TEST(NpyWriter, WritesThroughNoLinkAtItsTemporaryName) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/x.npy", other = folder.write("other", "kept");
  for (int i = 0; i < 1000; ++i) {
    fs::create_symlink(other,
                       folder.path() + "/.x.npy." + std::to_string(getpid()) + "-" + std::to_string(i) + ".part");
  }
  NpyWriter writer(path, 1, 1);
  const float value = 2;
  writer.write({&value, 1, 1});
  writer.finish();
  EXPECT_EQ(read_whole_file(other), "kept");
  EXPECT_FALSE(fs::is_symlink(path));
  EXPECT_EQ(at(NpyReader(path), 0, 0), 2);
}

// As root, replacing a device such as /dev/null would break the machine.
TEST(NpyWriter, WritesIntoAPipeWithoutReplacingIt) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  const float value = 2;
  NpyWriter writer(pipe, 1, 1);
  writer.write({&value, 1, 1});
  writer.finish();
  char start[6];
  EXPECT_EQ(read(reader, start, sizeof start), std::ssize(start));
  EXPECT_EQ(std::string(start, sizeof start), "\x93NUMPY");
  close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(NpyWriter, ReportsADeviceThatTakesNothing) {
  NpyWriter writer("/dev/full", 1, 1);
  EXPECT_EQ(error_of([&] { writer.finish(); }), "/dev/full: cannot be written: No space left on device");
  const std::vector<float> row(100'000);
  NpyWriter other("/dev/full", 1, row.size());
  EXPECT_EQ(error_of([&] {
              other.write({row.data(), 1, row.size()});
            }),
            "/dev/full: cannot be written: No space left on device");
}

TEST(NpyWriter, RejectsAPipeThatNobodyReadsWithoutWaiting) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { NpyWriter(pipe, 1, 1); }),
            pipe + ": cannot be written: no process reads this pipe; start the reader first");
}

TEST(NpyReader, ReadsWhatNpyWriterWrote) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/x.npy";
  const std::vector<float> values{1, -2, std::numeric_limits<float>::infinity(), 4, 5, NAN};
  NpyWriter writer(path, 2, 3);
  writer.write({values.data(), 2, 3});
  writer.finish();
  const NpyReader reader(path);
  ASSERT_EQ(reader.rows(), 2u);
  ASSERT_EQ(reader.cols(), 3u);
  EXPECT_EQ(at(reader, 0, 1), -2.0f);
  EXPECT_EQ(at(reader, 0, 2), std::numeric_limits<float>::infinity());
  EXPECT_EQ(at(reader, 1, 0), 4.0f);
  EXPECT_TRUE(std::isnan(at(reader, 1, 2)));
}

TEST(NpyReader, ReadsWhatNumpyWrote) {
  const GoldenCase golden = load_golden("v3-dense");
  const NpyReader reader(golden.folder + "/logits.npy");
  ASSERT_EQ(reader.rows(), golden.tokens.size());
  ASSERT_EQ(reader.cols(), golden.vocab);
  for (std::size_t i = 0; i < golden.logits.size(); ++i) {
    ASSERT_EQ(at(reader, i / golden.vocab, i % golden.vocab), golden.logits[i]) << i;
  }
}

TEST(NpyReader, ReadsAShapeThatEndsWithAComma) {
  const TemporaryFile file(npy(header_of("(2, 3,)"), floats(6)));
  EXPECT_EQ(at(NpyReader(file.path()), 1, 2), 5.5f);
}

TEST(NpyReader, ReadsVersionsTwoAndThreeAndUnalignedData) {
  for (const char version : {'\1', '\2', '\3'}) {
    const TemporaryFile file(npy(header_of("(2, 2)"), floats(4), version));
    const NpyReader reader(file.path());
    EXPECT_EQ(reader.rows(), 2u);
    EXPECT_EQ(at(reader, 1, 1), 3.5f);
  }
}

TEST(NpyReader, RejectsOtherFormats) {
  EXPECT_NE(read_error("\x89PNG").find("is not a .npy file"), std::string::npos);
  EXPECT_NE(read_error("\x93NUMPY").find("is not a .npy file"), std::string::npos);
  EXPECT_NE(read_error("PK\x03\x04 an .npz is a zip archive").find("is not a .npy file"), std::string::npos);
}

TEST(NpyReader, RejectsVersionsThatNumpyDoesNotWrite) {
  for (const char version : {'\0', '\4', '\x80'}) {
    const std::string error = read_error(npy(header_of("(2, 2)"), floats(4), version));
    EXPECT_NE(error.find(std::to_string(static_cast<unsigned char>(version)) + " of .npy, expected 1 to 3"),
              std::string::npos)
        << error;
  }
}

TEST(NpyReader, RejectsTruncationAndExtraBytes) {
  const std::string whole = npy(header_of("(2, 2)"), floats(4));
  for (std::size_t size = 1; size < whole.size(); ++size) EXPECT_NE(read_error(whole.substr(0, size)), "") << size;
  EXPECT_NE(read_error(whole + '\0').find("17 bytes of data, expected 2 x 2"), std::string::npos);
}

TEST(NpyReader, RejectsAHeaderLongerThanTheFile) {
  std::string bytes = npy(header_of("(1, 1)"), floats(1), 2);
  bytes.replace(8, 4, "\xff\xff\xff\xff");
  EXPECT_NE(read_error(bytes).find("truncated inside its header"), std::string::npos);
}

TEST(NpyReader, RejectsOtherTypesOrdersAndDimensions) {
  for (const std::string& header : {header_of("(2, 2)", "<f8"), header_of("(2, 2)", ">f4"), header_of("(2, 2)", "<f2"),
                                    header_of("(2, 2)", "<f4", "True"), header_of("(4,)"), header_of("(4)"),
                                    header_of("(1, 2, 2)"), header_of("()")}) {
    const std::string error = read_error(npy(header, floats(4)));
    EXPECT_NE(error.find(header.substr(0, header.size() - 1)), std::string::npos) << error;
    EXPECT_NE(error.find("expected float32"), std::string::npos) << error;
  }
}

// Which of two shapes counts is not guessed, and a record of one float is not a float.
TEST(NpyReader, RejectsRepeatedKeysAndRecords) {
  const std::string fields = ", 'fortran_order': False, 'shape': (2, 2), ";
  for (const std::string& header :
       {"{'descr': [('a', '<f4')]" + fields + "}\n", "{'descr': '>f4', 'x': '<f4'" + fields + "}\n",
        "{'descr': '<f4'" + fields + "'shape': (1, 4), }\n", "{'descr': '<f4'" + fields + "'descr': '<f8', }\n",
        "{'descr': '<f4'" + fields + "'fortran_order': True, }\n"}) {
    EXPECT_NE(read_error(npy(header, floats(4))).find("expected float32"), std::string::npos) << header;
  }
}

TEST(NpyReader, RejectsShapesThatOverflow) {
  for (const char* shape : {"(4611686018427387904, 4)", "(999999999999999, 999999999999999)",
                            "(0, 18446744073709551616)", "(-2, -2)", "(2, 2e0)"}) {
    EXPECT_NE(read_error(npy(header_of(shape), floats(4))), "") << shape;
  }
}

TEST(NpyReader, EscapesControlCharactersOfAHeader) {
  const std::string error = read_error(npy("first\nsecond\x1b[2J\n", floats(4)));
  EXPECT_NE(error, "");
  EXPECT_EQ(error.find('\x1b'), std::string::npos) << "a file must not control the terminal";
}

}  // namespace
}  // namespace minimind
