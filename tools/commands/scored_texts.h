#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/chat/chat_template.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tools/commands/score_tokens.h"
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
  std::string advice{};                                // ends the message about a conversation without a turn to score
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

// Adds each line of the contents of `file`, or of standard input if that is empty. Also throws Error if there is none.
ScoredTexts read_lines(const std::string& contents, const std::string& file, const Tokenizer& tokenizer,
                       const TrainingTextOptions& options);

// Returns which tokens are scored, as score_tokens() takes it.
std::vector<bool> are_scored(const ScoredTexts& texts);

struct WindowSize {
  std::size_t size, stride;
};

// Returns the windows for a model with so many positions, if the user says nothing: lines of MiniMind's data whole if
// the model allows, others of 512 tokens, one every half.
WindowSize usual_windows(const ScoredTexts& texts, std::size_t positions);

// Returns windows over each text, as sliding_windows() does, without those that have nothing to score.
std::vector<Window> windows_over(const ScoredTexts& texts, WindowSize size);

}  // namespace minimind
