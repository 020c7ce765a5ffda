#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/fuzz/scratch_folder.h"
#include "tools/batch/request_lines.h"
#include "tools/batch/result_files.h"
#include "weights/base/error.h"

// Continues a batch of three requests after the results and the errors that the input has, separated by a zero byte.
// What is kept must be continued the same way again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace minimind;
  static const ScratchFolder folder;
  static const std::string requests = folder.write(
      "requests", "{\"custom_id\": \"a\", \"prompt\": \"x\"}\n\n{\"prompt\": \"y\"}\n{\"custom_id\": 1}\n");
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t split = std::min(input.find('\0'), size);
  const std::string results = folder.write("results", input.substr(0, split));
  const std::string errors = folder.write("errors", input.substr(std::min(split + 1, size)));
  try {
    std::size_t done = 0;
    {
      RequestLines lines(requests);
      done = ResultFiles(results, errors, lines).done();
    }
    RequestLines lines(requests);
    if (ResultFiles(results, errors, lines).done() != done) std::abort();
  } catch (const Error&) {
  }
  try {
    RequestLines lines(folder.write("lines", input));
    while (const auto line = lines.next()) line->id();
  } catch (const Error&) {
  }
  return 0;
}
