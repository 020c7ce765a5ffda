#include "tools/chat/notices.h"

#include <fmt/core.h>

#include "tools/terminal/note.h"
#include "tools/terminal/terminal.h"
#include "tools/terminal/terminal_text.h"

namespace minimind {

ChatNotices::ChatNotices(std::FILE* file, bool for_scripts, bool quiet)
    : file_(file), for_scripts_(for_scripts), quiet_(quiet), styles_(takes_styles(file)) {}

ChatNotices ChatNotices::on_screen(std::FILE* screen) {
  return {screen, false, false};
}

ChatNotices ChatNotices::for_scripts(bool quiet) {
  return {stderr, true, quiet};
}

void ChatNotices::say_text(std::string_view text) const {
  if (quiet_) return;
  if (for_scripts_) return note("{}", text);
  std::fputs((styled(localized("({})", terminal_text(text)), Style::dim, styles_) + "\n").c_str(), file_);
  std::fflush(file_);
}

void ChatNotices::show(std::string_view lines) const {
  if (quiet_) return;
  const std::string text = terminal_text(lines);
  std::fputs((text + (text.ends_with('\n') ? "" : "\n")).c_str(), file_);
  std::fflush(file_);
}

void ChatNotices::complain(std::string_view text) const {
  note("{}", text);
}

}  // namespace minimind
