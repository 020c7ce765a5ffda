#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "tools/terminal/language.h"

namespace minimind {

// Where a conversation says what is not part of an answer.
class ChatNotices {
 public:
  // For a person, on the screen of the conversation.
  static ChatNotices on_screen(std::FILE* screen);
  // For scripts: on standard error as note() does, and nothing but errors when `quiet`.
  static ChatNotices for_scripts(bool quiet);

  // A remark, of one line, in the language in force.
  template <class... Args>
  void say(fmt::format_string<Args...> english, Args&&... args) const {
    say_text(localized(english, std::forward<Args>(args)...));
  }
  // What was asked for, of one or more lines.
  void show(std::string_view lines) const;
  // What went wrong.
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
