#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "runtime/chat/chat_template.h"
#include "runtime/chat/message.h"
#include "runtime/tokenizer/tokenizer.h"

namespace minimind {

// The chat template's input from a conversation, except the messages.
struct PromptSettings {
  std::string tools{};          // as parse_tools() returns them; empty for none
  std::optional<bool> think{};  // see Conversation::set_think
  std::time_t now = 0;
};

// Returns the prompt for an answer after the messages; without `for_answer`, only their text. Marked as by
// ChatTemplate::render().
MarkedText render_prompt(const ChatTemplate& chat_template, const PromptSettings& settings,
                         const std::vector<Message>& messages, bool for_answer);

// Returns true if the setting changes the template's output: thinking, or tools. A template that rejects a lone message
// of the user counts as changed.
bool minds_thinking(const ChatTemplate& chat_template, const PromptSettings& settings);
bool minds_tools(const ChatTemplate& chat_template, const PromptSettings& settings);

// Returns the tokens of answer_tags that the tokenizer has. They are special tokens, but part of an answer's text.
std::vector<std::int32_t> answer_tag_tokens(const Tokenizer& tokenizer);

// Returns the start of each turn: the indices of the user's messages.
std::vector<std::size_t> turn_starts(const std::vector<Message>& messages);

// Returns the messages without the first `turns` turns; the messages before the first turn stay.
std::vector<Message> without_turns(const std::vector<Message>& messages, std::size_t turns);

// Decides how the template gets the last message, an answer. The result is the verbatim text `written` of the model, as
// in MiniMind's scripts. std::nullopt passes the message's fields, if the template makes the same text of them in the
// middle of a conversation or rejects the verbatim text. The ids decide instead of the text if `plain_content` is
// given: the tokenizer of a conversation whose contents have no control tokens.
std::optional<MarkedText> verbatim_form(const ChatTemplate& chat_template, const PromptSettings& settings,
                                        const std::vector<Message>& messages, const MarkedText& written,
                                        const Tokenizer* plain_content);

}  // namespace minimind
