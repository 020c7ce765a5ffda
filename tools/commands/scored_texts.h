#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/chat/chat_template.h"
#include "runtime/tokenizer/tokenizer.h"
#include "weights/model/config.h"

namespace minimind {

// Whether a token is scored, and in which group.
enum class TokenUse : std::uint8_t { read, scored, chosen, rejected };

// The tokens of texts, one after the other. Each text is run in separate contexts.
struct ScoredTexts {
  std::vector<std::int32_t> tokens;
  std::vector<TokenUse> uses;     // of each token; the first of a text is `read`
  std::vector<std::size_t> ends;  // of each text
  bool training_data = false;     // some are lines of MiniMind's data
  bool conversations = false;     // of these, some are conversations
};

// Options for reading MiniMind's data.
struct TrainingTextOptions {
  Family family;
  bool all_turns = false;                              // score all turns of a conversation, not only the assistant's
  std::function<const ChatTemplate&()> chat_template;  // called if there is a conversation
};

// Adds a text of which every token except the first is scored. Messages call it `name`. Throws Error if there is none
// to score.
void add_text(ScoredTexts& texts, std::span<const std::int32_t> tokens, const std::string& name);

// Adds the text of a line of JSON:
//   "..."                              a text as it is
//   {"prompt": "...", "text": "..."}   of which the second is scored
//   {"text": "..."}                    MiniMind's pretrain data: the text between bos and eos, padding not scored
//   {"conversations": [...]}           SFT data: rendered by the chat template, the assistant's turns are scored
//   {"chosen": [...], "rejected": [...]}  DPO data: two conversations
// The last three become the tokens of MiniMind's datasets, but without their random changes and never truncated. Other
// fields are ignored. Throws Error starting with `name` for anything else.
void add_line(ScoredTexts& texts, const std::string& line, const std::string& name, const Tokenizer& tokenizer,
              const TrainingTextOptions& options);

}  // namespace minimind
