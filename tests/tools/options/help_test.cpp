#include "tools/options/help.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "tests/support/cli.h"
#include "tests/support/pseudo_terminal.h"
#include "tools/terminal/text_columns.h"

namespace minimind {
namespace {

// Examples are to be copied, so that they stay in one line.
TEST(Help, ANarrowTerminalBreaksNoWord) {
  const std::string path = program();
  for (const unsigned columns : {40u, 50u, 60u, 70u, 80u, 120u}) {
    for (const char* const command : {"generate", "serve", "convert"}) {
      PseudoTerminal terminal([&] {
        const winsize size{24, static_cast<unsigned short>(columns), 0, 0};
        ioctl(STDOUT_FILENO, TIOCSWINSZ, &size);
        execl(path.c_str(), path.c_str(), command, "--help", "--lang", "en", nullptr);
        return 127;
      });
      EXPECT_EQ(terminal.status(), 0) << terminal.shown();
      std::istringstream lines(terminal.shown());
      for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("  minimind ")) continue;
        if (line.ends_with('\r')) line.pop_back();
        EXPECT_LE(columns_in(line), columns) << command << ": " << line;
      }
    }
  }
}

}  // namespace
}  // namespace minimind
