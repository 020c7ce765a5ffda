#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "tools/terminal/language.h"

namespace minimind {

// The output of notices: everything in a conversation that is not part of an answer.
class ChatNotices {
 public:
  // For a user, on the screen of the conversation.
  static ChatNotices on_screen(std::FILE* screen);
  // For scripts: on stderr as note() does; only errors if `quiet`.
  static ChatNotices for_scripts(bool quiet);

  // Prints a notice of one line in the current language.
  template <class... Args>
  void say(fmt::format_string<Args...> english, Args&&... args) const {
    say_text(localized(english, std::forward<Args>(args)...));
  }
  // Prints requested text of one or more lines.
  void show(std::string_view lines) const;
  // Prints an error.
  void complain(std::string_view text) const;

 private:
  ChatNotices(std::FILE* file, bool for_scripts, bool quiet);

  void say_text(std::string_view text) const;

  std::FILE* file_;
  bool for_scripts_;
  bool quiet_;
  bool styles_;
};

}  // namespace minimind
