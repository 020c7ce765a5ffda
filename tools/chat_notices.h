#pragma once

#include <cstdio>
#include <string_view>

namespace minimind {

// Where a conversation says what is not part of an answer.
class ChatNotices {
 public:
  // For a person, on the screen of the conversation.
  static ChatNotices on_screen(std::FILE* screen);
  // For scripts: on standard error as note() does, and nothing but errors when `quiet`.
  static ChatNotices for_scripts(bool quiet);

  // A remark, of one line.
  void say(std::string_view text) const;
  // What was asked for, of one or more lines.
  void show(std::string_view lines) const;
  // What went wrong.
  void complain(std::string_view text) const;

 private:
  ChatNotices(std::FILE* file, bool for_scripts, bool quiet);

  std::FILE* file_;
  bool for_scripts_;
  bool quiet_;
  bool styles_;
};

}  // namespace minimind
