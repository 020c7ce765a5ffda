#include "tools/serve/answer_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tools/openai/answer_body.h"

namespace minimind {

// Alternatives included: JSON of so many takes some milliseconds.
constexpr std::size_t most_scores_at_once = 5000;

AnswerReader::AnswerReader(const TextModel& model, std::shared_ptr<const TextTask> task, bool streams_calls)
    : model_(model),
      task_(std::move(task)),
      parser_(task_->thinks, streams_calls),
      pieces_(model.tokenizer(), task_->options.text_tokens) {
  std::vector<AnswerEvent> none;
  parser_.push(task_->opening, none);
}

void AnswerReader::read(std::string_view text, std::vector<AnswerEvent>& events) {
  bytes_ += text.size();
  if (!task_->plain) return parser_.push(text, events);
  if (!text.empty()) events.push_back({.kind = AnswerEvent::Kind::text, .text = std::string(text), .call = {}});
}

AnswerReader::Piece AnswerReader::push(std::string_view text, std::span<const TokenScore> scores) {
  Piece piece;
  read(text, piece.events);
  if (piece.events.empty() || scores.empty()) return piece;
  ready_ += pieces_.take(scores, bytes_).size();
  const std::size_t most = std::max<std::size_t>(1, most_scores_at_once / (1 + *task_->options.scores));
  piece.scores = scores.subspan(taken_, std::min(ready_ - taken_, most));
  taken_ += piece.scores.size();
  return piece;
}

AnswerReader::Piece AnswerReader::finish(const Generated& generated) {
  Piece piece;
  read(std::string_view(generated.text).substr(bytes_), piece.events);
  if (!task_->plain) has_cut_call_ = finish_answer(*task_, generated.finish_reason, parser_, piece.events);
  ready_ += pieces_.take_rest(generated.scores, generated.text.size()).size();
  piece.scores = std::span(generated.scores).subspan(taken_, ready_ - taken_);
  return piece;
}

ChatJson AnswerReader::logprobs(std::span<const TokenScore> scores) const {
  return chat_logprobs(model_.tokenizer(), pieces_, scores);
}

bool AnswerReader::has_text(std::span<const TokenScore> scores) const {
  return std::ranges::any_of(scores, [&](const TokenScore& score) { return pieces_.is_text(score.token.token); });
}

}  // namespace minimind
