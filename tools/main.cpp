#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "tools/command_line.h"
#include "tools/language.h"
#include "tools/note.h"
#include "weights/error.h"

namespace {

constexpr int work_failed = 1;
constexpr int call_was_wrong = 2;

// One line, whatever the message holds.
int fail(std::string message, int status) {
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  minimind::note("{}", message);
  return status;
}

// Everything printed has reached its destination, or the work failed.
int flushed(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  return fail("standard output cannot be written", work_failed);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    minimind::set_language(minimind::language_of_environment());
    minimind::CommandLine command_line;
    return flushed(command_line.run(std::vector<std::string>(argv + (argc > 0), argv + argc)));
  } catch (const minimind::UsageError& error) {
    return fail(error.what(), call_was_wrong);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", work_failed);
  } catch (const std::exception& error) {
    return fail(error.what(), work_failed);
  }
}
