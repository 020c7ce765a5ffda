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

// The arguments of transformers' apply_chat_template.
struct ChatInput {
  jinja::Value messages;               // a list of mappings, such as {"role": "user", "content": "..."}
  jinja::Value tools = jinja::None{};  // a list of function schemas, or none
  bool add_generation_prompt = false;
  std::vector<std::pair<std::string, jinja::Value>> variables;  // open_thinking, enable_thinking, ...
};

// Reads {"messages": [...], "tools": [...], "add_generation_prompt": true, ...}. All keys except `messages` may be
// omitted; unknown keys become variables. MiniMind's data has "conversations" instead, with the tools in a system
// message (training_conversation.h). Throws Error, which starts with `source`, for any other value.
ChatInput parse_chat_input(std::string_view json, const std::string& source);

// Returns the special tokens that templates refer to: bos_token, eos_token, pad_token and unk_token, if they exist.
using SpecialTokens = std::vector<std::pair<std::string, std::string>>;
SpecialTokens special_tokens_of(const TokenizerData& tokenizer);

// A template that converts a conversation into the prompt of a model.
class ChatTemplate {
 public:
  // Parses Jinja source; `name` is its origin in messages. Throws Error as JinjaTemplate does.
  ChatTemplate(std::string_view source, std::string name, SpecialTokens special_tokens);

  // Returns the tokenizer's template, with the one named tool_use for conversations that have tools, as transformers
  // chooses; std::nullopt if the tokenizer has no template.
  static std::optional<ChatTemplate> of_tokenizer(const TokenizerData& tokenizer);

  // Returns our own template for a checkpoint without one: its output is that of MiniMind's training for the family.
  static ChatTemplate of_family(Family family, SpecialTokens special_tokens);

  // Returns a template of another source with the special tokens of this.
  ChatTemplate with_source(std::string_view source, std::string name) const {
    return {source, std::move(name), special_tokens_};
  }

  // Returns the prompt of transformers. The template's variables are messages, tools, documents (none),
  // add_generation_prompt, the special tokens and `variables`, which take precedence over special tokens of the same
  // name. Throws Error as JinjaTemplate::render does. What comes from strings of the input is marked, as
  // template_value() marks them: encoded with these marks, it has no control tokens.
  MarkedText render(const ChatInput& input, std::time_t now) const;

 private:
  JinjaTemplate template_;
  std::optional<JinjaTemplate> tool_use_template_;
  SpecialTokens special_tokens_;
};

struct FoundTemplate {
  ChatTemplate chat_template;
  std::string source;  // its origin, for messages; empty: it is that of the model's family
};

// Returns the chat template in the file `given`, otherwise the tokenizer's; std::nullopt if there is neither. Throws
// Error as ChatTemplate does, and if the file cannot be read.
std::optional<FoundTemplate> find_template(const std::string& given, const TokenizerData* tokenizer);

// The same, else the template of the model's family.
FoundTemplate template_or_family(const std::string& given, const TokenizerData& tokenizer, Family family);

// Returns the Jinja source that of_family() uses.
std::string family_template(Family family);

}  // namespace minimind
