#pragma once

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "runtime/chat/chat_template.h"
#include "runtime/chat/message.h"

namespace minimind {

// What of a conversation its chat template is given, except the messages.
struct PromptSettings {
  std::string tools;          // as parse_tools() returns them; empty for none
  std::optional<bool> think;  // see Conversation::set_think
  std::time_t now = 0;
};

// The prompt for an answer after the messages; without `for_answer`, just their text.
std::string render_prompt(const ChatTemplate& chat_template, const PromptSettings& settings,
                          const std::vector<Message>& messages, bool for_answer);

// Whether it makes a difference to the template that it is told to think, or what tools there are. A template that
// rejects a lone message of the user is taken to mind.
bool minds_thinking(const ChatTemplate& chat_template, const PromptSettings& settings);
bool minds_tools(const ChatTemplate& chat_template, const PromptSettings& settings);

// Where each turn begins: the indices of the user's messages.
std::vector<std::size_t> turn_starts(const std::vector<Message>& messages);

// The messages without the first `turns` turns; what stands before the first turn stays.
std::vector<Message> without_turns(const std::vector<Message>& messages, std::size_t turns);

// How the last of the messages, an answer, is given to the template: as this verbatim text, which is `written`, the
// text of the model, as MiniMind's scripts do; or as it is (std::nullopt) where the template makes the same text of
// that in the middle of a conversation, or rejects the other.
std::optional<std::string> verbatim_form(const ChatTemplate& chat_template, const PromptSettings& settings,
                                         const std::vector<Message>& messages, const std::string& written);

}  // namespace minimind
