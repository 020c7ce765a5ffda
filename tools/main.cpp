#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "tools/options/checkpoint_choice.h"
#include "tools/options/command_line.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "tools/terminal/terminal_text.h"
#include "tools/version.h"
#include "weights/base/error.h"

namespace {

constexpr int failure = 1;
constexpr int usage_error = 2;

// Memory for destructors that run after the first failure to get some: that of nlohmann's JSON needs a list of what it
// frees, 16 bytes for each value of an array, and without memory for it the program would end there. A larger reserve
// would be missed where a limit of memory is small.
constexpr std::size_t reserved_bytes = std::size_t{1} << 20;
std::atomic<void*> reserve = nullptr;

void give_reserve() {
  std::free(reserve.exchange(nullptr));
  throw std::bad_alloc();
}

// Prints the message on one line and returns `status`.
int fail(const std::string& message, int status) {
  minimind::note("{}", message);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  reserve = std::malloc(reserved_bytes);
  std::set_new_handler(give_reserve);
  minimind::end_at_signals();
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding a file size limit is then an error, as a full disk is
  try {
    minimind::set_language(minimind::language_of_environment());
    const std::vector<std::string> arguments(argv + (argc > 0), argv + argc);
    const int status = minimind::CommandLine(minimind::version_text, arguments).run(arguments);
    minimind::finish_output();
    return status;
  } catch (const minimind::ManyCheckpoints& error) {
    fail(error.what(), usage_error);
    for (const std::string& line : error.lines())
      std::fputs(("  " + minimind::terminal_line(line) + "\n").c_str(), stderr);
    return usage_error;
  } catch (const minimind::UsageError& error) {
    return fail(minimind::message_of(error), usage_error);
  } catch (const minimind::Error& error) {
    return fail(minimind::message_of(error), failure);
  } catch (const minimind::OutputFailure& error) {
    return fail(error.what(), minimind::must_end() ? minimind::interrupted_status() : failure);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", failure);
  } catch (const std::exception& error) {
    return fail(error.what(), failure);
  }
}
