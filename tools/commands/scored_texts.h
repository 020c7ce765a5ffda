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

// Whether a token is scored, and with which others.
enum class TokenUse : std::uint8_t { read, scored, chosen, rejected };

// Texts as tokens, one after the other, each to be read in contexts of its own.
struct ScoredTexts {
  std::vector<std::int32_t> tokens;
  std::vector<TokenUse> uses;     // of each token; that of a text's first is read
  std::vector<std::size_t> ends;  // of each text
  bool training_data = false;     // some are lines of MiniMind's data
  bool conversations = false;     // of these, some are conversations
};

// What lines of MiniMind's data are read with.
struct TrainingTextOptions {
  Family family;
  bool all_turns = false;                              // score all of a conversation, not the assistant's turns alone
  std::function<const ChatTemplate&()> chat_template;  // called when there is a conversation
};

// Adds a text of which every token but the first is scored. `name` is what messages call it. Throws Error when there is
// none to score.
void add_text(ScoredTexts& texts, std::span<const std::int32_t> tokens, const std::string& name);

// Adds what a line of JSON holds:
//   "..."                              a text as it is
//   {"prompt": "...", "text": "..."}   of which the second is scored
//   {"text": "..."}                    MiniMind's pretrain data: the text between bos and eos, padding not scored
//   {"conversations": [...]}           SFT data: rendered by the chat template, the assistant's turns are scored
//   {"chosen": [...], "rejected": [...]}  DPO data: two conversations
// The last three are as MiniMind's dataset makes them, without what that draws at random and never cut; other fields
// are not read. Throws Error for anything else, which begins with `name`.
void add_line(ScoredTexts& texts, const std::string& line, const std::string& name, const Tokenizer& tokenizer,
              const TrainingTextOptions& options);

}  // namespace minimind
