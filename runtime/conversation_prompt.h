#pragma once

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "runtime/chat_template.h"
#include "runtime/message.h"

namespace minimind {

// What of a conversation its chat template is given, but for the messages.
struct PromptSettings {
  std::string tools;          // as parse_tools() returns them; empty for none
  std::optional<bool> think;  // see Conversation::set_think
  std::time_t now = 0;
};

// The prompt for an answer behind the messages; without `for_answer`, just their text.
std::string render_prompt(const ChatTemplate& chat_template, const PromptSettings& settings,
                          const std::vector<Message>& messages, bool for_answer);

// Whether it makes a difference to the template that it is told to think, or what tools there are. A template that
// refuses a lone message of the user is taken to mind.
bool minds_thinking(const ChatTemplate& chat_template, const PromptSettings& settings);
bool minds_tools(const ChatTemplate& chat_template, const PromptSettings& settings);

// Where each turn begins: the indices of the user's messages.
std::vector<std::size_t> turn_starts(const std::vector<Message>& messages);

// The messages without the first `turns` turns; what stands before the first turn stays.
std::vector<Message> without_turns(const std::vector<Message>& messages, std::size_t turns);

// How the last of the messages, an answer, is best given to the template, so that it writes `known` again, the prompt
// and the answer as the model wrote it: as it is (nothing), or as this verbatim text. Whichever of the two is like
// `known` for longer, told by what the template makes of it in the middle of a conversation; of two that are equally
// like it, the one that does not close a call or thought which the model left open; as it is, if there is no
// difference. Where the template did not know of the thought that the prompt opened or closed for the model, the
// verbatim text may begin with that.
std::optional<std::string> verbatim_form(const ChatTemplate& chat_template, const PromptSettings& settings,
                                         const std::vector<Message>& messages, const std::string& prompt,
                                         const std::string& written);

}  // namespace minimind
