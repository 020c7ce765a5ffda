#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/jinja/jinja.h"
#include "runtime/tokenizer/tokenizer_data.h"
#include "weights/model/config.h"

namespace minimind {

// What transformers' apply_chat_template is given.
struct ChatInput {
  jinja::Value messages;               // a list of mappings, such as {"role": "user", "content": "..."}
  jinja::Value tools = jinja::None{};  // a list of function schemas, or none
  bool add_generation_prompt = false;
  std::vector<std::pair<std::string, jinja::Value>> variables;  // open_thinking, enable_thinking, ...
};

// Reads {"messages": [...], "tools": [...], "add_generation_prompt": true, ...}; all but `messages` may be omitted,
// and what has another name becomes a variable. MiniMind's data has "conversations" instead, with the tools in a system
// message (training_conversation.h). Throws Error, which starts with `source`, for anything else.
ChatInput parse_chat_input(std::string_view json, const std::string& source);

// The special tokens that templates know by name: bos_token, eos_token, pad_token and unk_token, as far as there are.
using SpecialTokens = std::vector<std::pair<std::string, std::string>>;
SpecialTokens special_tokens_of(const TokenizerData& tokenizer);

// Turns a conversation into the prompt of a model.
class ChatTemplate {
 public:
  // The Jinja source of a tokenizer; `name` says in messages where it is from. Throws Error as JinjaTemplate does.
  ChatTemplate(std::string_view source, std::string name, SpecialTokens special_tokens);

  // That of the tokenizer, with the one named tool_use for conversations that have tools, as transformers chooses;
  // std::nullopt if it has no template.
  static std::optional<ChatTemplate> of_tokenizer(const TokenizerData& tokenizer);

  // A template of ours for a checkpoint that comes without: it writes what MiniMind trained that family on.
  static ChatTemplate of_family(Family family, SpecialTokens special_tokens);

  // The prompt that transformers makes: the template sees messages, tools, documents (none), add_generation_prompt,
  // the special tokens and the variables, which go before special tokens of the same name. Throws Error as
  // JinjaTemplate::render does.
  std::string render(const ChatInput& input, std::time_t now) const;

 private:
  JinjaTemplate template_;
  std::optional<JinjaTemplate> tool_use_template_;
  SpecialTokens special_tokens_;
};

// The Jinja source that of_family() takes.
std::string family_template(Family family);

}  // namespace minimind
