#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/chat/answer_parser.h"
#include "runtime/chat/chat_json.h"
#include "runtime/generate/generate.h"
#include "tools/openai/logprobs.h"
#include "tools/openai/text_model.h"

namespace minimind {

// Reads the text of an answer as it grows, for any API: its events, with the scores of their tokens.
class AnswerReader {
 public:
  // `model` must outlive this. `streams_calls`: the arguments of calls are events as they come, see AnswerParser;
  // otherwise each call is one event.
  AnswerReader(const TextModel& model, std::shared_ptr<const TextTask> task, bool streams_calls = false);

  struct Piece {
    std::vector<AnswerEvent> events{};
    std::span<const TokenScore> scores{};  // of the tokens of the events that are not yet taken, if requested, or the
                                           // first of them: others wait while JSON is made of them
  };

  // Takes the next piece of the text; `scores` are those of all tokens so far.
  Piece push(std::string_view text, std::span<const TokenScore> scores);

  // Takes the end, with what was not pushed, which may be all of it. `generated` must outlive the scores.
  Piece finish(const Generated& generated);

  // After finish(): whether the last call is incomplete, because a limit or a stop string ended the text in it.
  bool has_cut_call() const { return has_cut_call_; }

  // The scores of a chat, as chat_logprobs() has them, and whether any of them is of text.
  ChatJson logprobs(std::span<const TokenScore> scores) const;
  bool has_text(std::span<const TokenScore> scores) const;

 private:
  void read(std::string_view text, std::vector<AnswerEvent>& events);

  const TextModel& model_;
  const std::shared_ptr<const TextTask> task_;
  AnswerParser parser_;
  TokenPieces pieces_;
  std::size_t bytes_ = 0;              // of the text so far
  std::size_t ready_ = 0, taken_ = 0;  // scores, of the events so far
  bool has_cut_call_ = false;
};

}  // namespace minimind
