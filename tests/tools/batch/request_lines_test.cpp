#include "tools/batch/request_lines.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// The names of all requests that are left.
std::string rest_of(RequestLines& requests) {
  std::string names;
  while (const auto line = requests.next()) names += line->id().custom_id + " ";
  return names;
}

TEST(RequestLines, SkipsEmptyLinesAndNumbersTheOthersByTheFile) {
  const TemporaryFile file("\n{\"custom_id\": \"a\"}\r\n\r\n\n{}\n{\"custom_id\": 1}\nnonsense");
  RequestLines requests(file.path());
  EXPECT_EQ(requests.size(), 4u);
  EXPECT_EQ(rest_of(requests), "a line-5 line-6 line-7 ");
  EXPECT_EQ(requests.next(), std::nullopt);
}

TEST(RequestLines, GoToMakesAnyRequestTheNextOne) {
  const TemporaryFile file("{}\n\n{}\n{}\n");
  RequestLines requests(file.path());
  for (const std::size_t index : {2u, 0u, 1u, 1u, 3u, 0u}) {
    requests.go_to(index);
    const auto next = requests.next();
    ASSERT_EQ(next.has_value(), index < 3) << index;
    if (!next) continue;
    EXPECT_EQ(next->index, index);
    EXPECT_EQ(next->number, index == 0 ? 1 : index + 2);
  }
  requests.go_to(7);
  EXPECT_EQ(requests.next(), std::nullopt) << "there are no more";
}

TEST(RequestLines, ThoseOfAPartAreNumberedByTheWhole) {
  const TemporaryFile file("{}\n\n{}\n");
  RequestLines requests(file.path(), 8);
  EXPECT_EQ(rest_of(requests), "line-8 line-10 ");
}

TEST(RequestLines, NamesAFileWithoutRequests) {
  for (const char* const content : {"", "\n", "\r\n\n"}) {
    const TemporaryFile file(content);
    EXPECT_EQ(error_of([&] { RequestLines requests(file.path()); }),
              file.path() + ": is empty, expected a request per line");
  }
  EXPECT_NE(error_of([] { RequestLines requests("/nonexistent/in.jsonl"); }).find("/nonexistent/in.jsonl: cannot be"),
            std::string::npos);
  EXPECT_NE(error_of([] { RequestLines requests(testing::TempDir()); }).find("Is a directory"), std::string::npos);
}

TEST(RequestLines, AnInputThatNeverEndsIsAnError) {
  EXPECT_EQ(error_of([] { RequestLines requests("/dev/zero"); }),
            "/dev/zero: has a line of over 268435456 bytes, expected a record in each line");
  EXPECT_EQ(error_of([] { RequestLines requests("/dev/zero", 1, 1 << 20); }),
            "/dev/zero: is a pipe of over 1048576 bytes, expected at most that; name a file");
}

TEST(RequestLines, SaysThatAFileHasLostRequests) {
  const TemporaryFile file("{}\n{}\n{}\n");
  RequestLines requests(file.path());
  ASSERT_TRUE(requests.next());
  file.write("");
  requests.go_to(0);
  EXPECT_EQ(error_of([&] { requests.next(); }), file.path() + ": had 3 requests and lost some meanwhile");
}

// The folder for temporary files is that of TMPDIR.
class InTemporaryFolder {
 public:
  explicit InTemporaryFolder(const std::string& folder) { ::setenv("TMPDIR", folder.c_str(), 1); }
  InTemporaryFolder(const InTemporaryFolder&) = delete;
  InTemporaryFolder& operator=(const InTemporaryFolder&) = delete;
  ~InTemporaryFolder() {
    if (had_) {
      ::setenv("TMPDIR", before_.c_str(), 1);
    } else {
      ::unsetenv("TMPDIR");
    }
  }

 private:
  const bool had_ = std::getenv("TMPDIR") != nullptr;
  const std::string before_ = had_ ? std::getenv("TMPDIR") : "";
};

TEST(RequestLines, AreReadAgainFromAPipeWhichLeavesNoFile) {
  const TemporaryFolder folder;
  const InTemporaryFolder in(folder.path());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text = "{\"custom_id\": \"a\"}\n\n{\"custom_id\": \"b\"}\n";
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), std::ssize(text));
  ::close(ends[1]);
  RequestLines requests("/proc/self/fd/" + std::to_string(ends[0]));
  ::close(ends[0]);
  EXPECT_EQ(rest_of(requests), "a b ");
  requests.go_to(0);
  EXPECT_EQ(rest_of(requests), "a b ");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(error_of([] { RequestLines none("/dev/null"); }), "/dev/null: is empty, expected a request per line");
}

// Returns the error of requests that are read with a lower limit of the system.
std::string error_with_limit(__rlimit_resource_t resource, rlim_t most, const std::string& path) {
  rlimit before{};
  EXPECT_EQ(::getrlimit(resource, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{most, before.rlim_max};
  EXPECT_EQ(::setrlimit(resource, &small), 0);
  std::string error = error_of([&] { RequestLines requests(path); });
  EXPECT_EQ(::setrlimit(resource, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  return error;
}

TEST(RequestLines, SaysWhyAFileCannotBeRead) {
  const TemporaryFile file("{}\n");
  EXPECT_EQ(error_with_limit(RLIMIT_NOFILE, 0, file.path()), file.path() + ": cannot be read: Too many open files");
}

TEST(RequestLines, SaysThatThereIsNoRoomForAPipe) {
  const InTemporaryFolder in("");  // the same as none: /tmp
  for (const std::size_t requests : {10u, 10'000u}) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::string text;
    for (std::size_t i = 0; i < requests; ++i) text += "{}\n";
    ASSERT_EQ(::write(ends[1], text.data(), text.size()), std::ssize(text));
    ::close(ends[1]);
    const std::string path = "/proc/self/fd/" + std::to_string(ends[0]);
    const std::string error = error_with_limit(RLIMIT_FSIZE, 20, path);
    ::close(ends[0]);
    EXPECT_TRUE(error.starts_with("/tmp/minimind-batch-")) << error;
    EXPECT_TRUE(error.ends_with(": cannot hold all of " + path + ": File too large")) << error;
  }
}

TEST(RequestLines, SaysWhyAPipeCannotBeKept) {
  for (const std::string folder : {"/proc/self", "/dev/null", "/nonexistent"}) {
    const InTemporaryFolder in(folder);
    const std::string error = error_of([] { RequestLines requests("/dev/null"); });
    EXPECT_NE(error.find(folder + "/minimind-batch-"), std::string::npos) << error;
    EXPECT_NE(error.find(": cannot be created: "), std::string::npos) << error;
    EXPECT_NE(error.find("; set TMPDIR to a folder"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace minimind
