#include "tools/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace minimind {
namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

const char* beginning_of(Style style) {
  switch (style) {
    case Style::plain:
      return "";
    case Style::bold:
      return "\x1b[1m";
    case Style::dim:
      return "\x1b[2m";
    case Style::call:
      return "\x1b[36m";
  }
  return "";
}

}  // namespace

bool takes_escape_sequences(std::FILE* file) {
  const std::string_view terminal = environment("TERM");
  return isatty(fileno(file)) && !terminal.empty() && terminal != "dumb";
}

bool takes_styles(std::FILE* file) {
  return takes_escape_sequences(file) && environment("NO_COLOR").empty();
}

ScreenSize screen_size(std::FILE* file) {
  winsize size{};
  const bool known = ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  return known ? ScreenSize{size.ws_col, size.ws_row} : ScreenSize{80, 24};
}

std::string styled(std::string_view text, Style style, bool styles) {
  std::string result(text);
  if (!styles || style == Style::plain || text.empty()) return result;
  return beginning_of(style) + result + "\x1b[0m";
}

ChangedInput::ChangedInput(void (*change)(termios&)) {
  if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
  termios changed = before_;
  change(changed);
  changed_ = tcsetattr(STDIN_FILENO, TCSADRAIN, &changed) == 0;
}

ChangedInput::~ChangedInput() {
  if (changed_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

NoEcho::NoEcho()
    : ChangedInput([](termios& quiet) {
        // The terminal's own line editing would consume Ctrl-D and other keys that are typed ahead.
        quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN);
      }) {}

RawInput::RawInput()
    : ChangedInput([](termios& raw) {
        raw.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR | IGNCR | IXON | ISTRIP);
        raw.c_oflag |= OPOST | ONLCR;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
        raw.c_lflag |= ISIG;
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
      }) {}

}  // namespace minimind
