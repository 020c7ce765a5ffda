#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "tests/support/linear_time.h"
#include "tests/support/temporary_folder.h"
#include "tools/batch/request_lines.h"
#include "tools/batch/result_files.h"

namespace minimind {
namespace {

TEST(BatchResumeTime, ContinuingABatchIsLinear) {
  const TemporaryFolder folder;
  const auto requests = [](const char* name, const char* format) {
    return numbered(name, "", "", [=](std::size_t i) { return fmt::format(fmt::runtime(format), i + 1); });
  };
  expect_linear(
      "batch",
      {requests("requests", "{{\"custom_id\": \"a{}\"}}\n"), requests("names by lines", "{{\"x\": {}}}\n"),
       requests("empty lines", "\n")},
      [&](const std::string& text) {
        const bool named = text.find("custom_id") != std::string::npos;
        std::string results;
        const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
        for (std::size_t i = 1; i <= lines; ++i) {
          results +=
              fmt::format("{{\"id\": \"batch_req_{0}\", \"custom_id\": \"{1}{0}\"}}\n", i, named ? "a" : "line-");
        }
        RequestLines lines_of(folder.write("requests", text));
        const ResultFiles files(folder.write("results", results), folder.path() + "/errors", lines_of);
      },
      megabyte / 4);
}

}  // namespace
}  // namespace minimind
