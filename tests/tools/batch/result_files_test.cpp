#include "tools/batch/result_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

// A line of an answer or of an error, as far as a batch reads it again.
std::string line_of(std::size_t number, const std::string& custom_id) {
  return R"({"id": "batch_req_)" + std::to_string(number) + R"(", "custom_id": ")" + custom_id + "\"}\n";
}

class ResultFilesTest : public testing::Test {
 protected:
  // How many requests are done after the files were opened.
  std::size_t open() {
    RequestLines requests(requests_path_);
    const ResultFiles files(results_, errors_, requests);
    const auto next = requests.next();
    EXPECT_EQ(next ? next->index : requests.size(), files.done());
    return files.done();
  }
  std::string error() {
    return error_of([&] { open(); });
  }
  void write(const std::string& results, const std::string& errors) const {
    folder_.write("results", results);
    folder_.write("errors", errors);
  }

  const TemporaryFolder folder_;
  const std::string requests_path_ =
      folder_.write("requests", "{\"custom_id\": \"a\"}\n{}\n{\"custom_id\": \"c\"}\n{\"custom_id\": \"d\"}\n");
  const std::string results_ = folder_.path() + "/results", errors_ = folder_.path() + "/errors";
  const std::string a_ = line_of(1, "a"), second_ = line_of(2, "line-2"), c_ = line_of(3, "c"), d_ = line_of(4, "d");
};

TEST_F(ResultFilesTest, ContinuesAfterTheLinesOfBothFiles) {
  write(a_ + d_, second_ + c_);
  EXPECT_EQ(open(), 4u);
  EXPECT_EQ(read_whole_file(results_), a_ + d_);
  EXPECT_EQ(read_whole_file(errors_), second_ + c_);
}

// What comes after a line that is lost is written again, in its place.
TEST_F(ResultFilesTest, TakesAwayTheLinesAfterALostOne) {
  for (const auto& [results, errors] : std::vector<std::pair<std::string, std::string>>{
           {a_ + d_, c_}, {a_ + c_, ""}, {a_ + c_ + d_, ""}, {a_, c_ + d_}, {a_, d_}}) {
    write(results, errors);
    EXPECT_EQ(open(), 1u) << results << errors;
    EXPECT_EQ(read_whole_file(results_), a_);
    EXPECT_EQ(read_whole_file(errors_), "");
  }
}

TEST_F(ResultFilesTest, TakesAwayWhatIsNotAWholeLineAtTheEnd) {
  for (const std::string rest :
       {"", "{", "{\"id\": \"batch", "\n", "nonsense\n", "[1]\n", "{}\n", "{\"id\": 1, \"custom_id\": \"line-2\"}\n",
        "{\"id\": \"batch_req_2\"}\n", "{\"id\": \"batch_req_x\", \"custom_id\": \"line-2\"}\n"}) {
    write(a_ + rest, "");
    EXPECT_EQ(open(), 1u) << rest;
    EXPECT_EQ(read_whole_file(results_), a_) << rest;
    write(a_ + second_.substr(0, second_.size() - 1), rest);
    EXPECT_EQ(open(), 1u) << rest;
    EXPECT_EQ(read_whole_file(results_) + read_whole_file(errors_), a_) << rest;
  }
}

TEST_F(ResultFilesTest, LeavesAFileOfSomethingElseAsItIs) {
  for (const std::string& other : {"nonsense\n" + a_, "{}\n" + a_, a_ + "\n" + second_}) {
    for (const bool is_error : {false, true}) {
      write(is_error ? "" : other, is_error ? other : "");
      EXPECT_NE(error().find("is not a line of a batch's results; choose another file"), std::string::npos) << error();
      EXPECT_EQ(read_whole_file(is_error ? errors_ : results_), other);
    }
  }
}

TEST_F(ResultFilesTest, LeavesAFileOfOneForeignLineAsItIs) {
  const std::string answer = R"({"id": "chatcmpl-7", "object": "chat.completion"})";  // as curl saves one
  for (const std::string& other :
       {std::string("nonsense"), std::string("nonsense\n"), std::string("{\"vocab_size\": 6400}\n"), answer,
        answer + "\n", std::string(R"({"id": "batch_7"})")}) {
    for (const bool is_error : {false, true}) {
      write(is_error ? "" : other, is_error ? other : "");
      EXPECT_NE(error().find("is not of a batch's results; choose another file"), std::string::npos) << error();
      EXPECT_EQ(read_whole_file(is_error ? errors_ : results_), other);
    }
  }
  for (const std::string& begun : {std::string("{\"i"), a_.substr(0, 12), std::string(9, '\0')}) {
    write(begun, "");
    EXPECT_EQ(open(), 0u) << begun;
    EXPECT_EQ(read_whole_file(results_), "");
  }
}

TEST_F(ResultFilesTest, LeavesTheLinesOfAnotherBatchAsTheyAre) {
  const std::string of_others = line_of(1, "z");
  for (const std::string& other : {of_others, a_ + of_others, c_ + a_, d_ + a_ + second_}) {
    for (const bool is_error : {false, true}) {
      write(is_error ? "" : other, is_error ? other : "");
      EXPECT_NE(error().find("which is not the next one of the 4 in the input"), std::string::npos) << other << error();
      EXPECT_EQ(read_whole_file(is_error ? errors_ : results_), other);
    }
  }
  write(a_ + second_ + c_ + d_ + line_of(5, "line-5"), "");
  EXPECT_NE(error().find("line 5 is of request 'line-5'"), std::string::npos) << error();
}

TEST_F(ResultFilesTest, RejectsWhatIsNoFile) {
  for (const std::string& path : {results_, errors_}) {
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(error(), path + ": is not a file, expected one, or none yet");
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    EXPECT_NE(error().find(path + ": "), std::string::npos) << error();
    std::filesystem::remove(path);
  }
  EXPECT_EQ(open(), 0u);
}

TEST_F(ResultFilesTest, AnotherBatchCannotWriteTheSameFiles) {
  RequestLines requests(requests_path_);
  const ResultFiles files(results_, errors_, requests);
  EXPECT_NE(error().find("results: "), std::string::npos) << error();
}

TEST_F(ResultFilesTest, HasNoPartOfALineForWhichThereIsNoRoom) {
  RequestLines requests(requests_path_);
  ResultFiles files(results_, errors_, requests);
  files.append(a_, false);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{a_.size() + 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string failed = error_of([&] { files.append(second_, false); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(failed, results_ +
                        ": cannot be written: File too large; its lines are whole, and the same command continues "
                        "after them");
  EXPECT_EQ(read_whole_file(results_), a_);
  EXPECT_EQ(files.done(), 1u);
  files.append(second_, false);
  files.append(c_, true);
  files.sync();
  EXPECT_EQ(read_whole_file(results_), a_ + second_);
  EXPECT_EQ(read_whole_file(errors_), c_);
  EXPECT_EQ(files.errors(), 1u);
}

// Standard output, for one, may be a file that cannot be flushed to a disk.
TEST(LineFile, MayBeOneWithoutADisk) {
  LineFile file("/proc/self/comm");
  ASSERT_TRUE(file.exists());
  EXPECT_NO_THROW(file.sync());
}

TEST(LineFile, IsNoPlaceForLinesIfItsFolderIsMissing) {
  const TemporaryFolder folder;
  EXPECT_NE(
      error_of([&] { LineFile(folder.path() + "/no/file").append("line\n"); }).find("/no/file: cannot be written"),
      std::string::npos);
  const std::string file = folder.write("file", "");
  EXPECT_NE(error_of([&] { LineFile(file + "/results"); }).find("/results: cannot be written: Not a directory"),
            std::string::npos);
}

}  // namespace
}  // namespace minimind
