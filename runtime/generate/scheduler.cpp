#include "runtime/generate/scheduler.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

#include "runtime/engine/thread_team.h"

namespace minimind {
namespace {

// As many rows as kernels multiply in one register tile cost hardly more than one row.
constexpr std::size_t cheap_rows = 8;

// After so much time no part of the work on what may follow texts is begun before a step.
constexpr std::chrono::milliseconds longest_preparation{1};

}  // namespace

Scheduler::Scheduler(Forward& forward, std::size_t max_texts, double longest_step, Clock clock)
    : forward_(forward),
      max_texts_(max_texts),
      longest_step_(longest_step),
      clock_(std::move(clock)),
      pace_(longest_step, forward.model().config.hidden_size) {
  assert(max_texts > 0 && max_texts < forward.max_tokens());
}

double Scheduler::steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Scheduler::add(Generation& text, std::size_t request) {
  assert(!full());
  texts_.push_back({.generation = &text, .request = request, .last_step = steps_});
}

void Scheduler::remove(Generation& text) {
  std::erase_if(texts_, [&](const Text& other) { return other.generation == &text; });
}

std::vector<Scheduler::Ended> Scheduler::step(std::size_t prompt_tokens) {
  work_ = {};
  prepare();
  std::vector<Ended> ended;
  for (const Text& text : texts_) {
    if (text.error || text.generation->ended()) ended.push_back({text.generation, text.error});
  }
  if (ended.empty() && std::ranges::any_of(texts_, &Text::prepared)) {
    const double start = clock_();
    std::vector<Share> shares = choose(prompt_tokens);
    std::vector<Piece> pieces;
    std::size_t rows = 0;
    for (Share& share : shares) {
      share.first_row = rows;
      rows += share.piece.logit_rows;
      pieces.push_back(share.piece);
    }
    const std::size_t vocab_size = forward_.model().config.vocab_size;
    logits_.resize(std::max(logits_.size(), rows * vocab_size));
    forward_.run(pieces, {logits_.data(), rows, vocab_size});
    take(shares);
    const double seconds = clock_() - start;
    if (paced() && !runs_short_prompts_) pace_.learn(work_, seconds);
    for (const Share& share : shares) {
      if (share.error || share.text->ended()) ended.push_back({share.text, share.error});
    }
  }
  for (const Ended& text : ended) remove(*text.generation);
  return ended;
}

// Those on which nothing was done for the longest time come first.
void Scheduler::prepare() {
  std::vector<Text*> unprepared;
  for (Text& text : texts_) {
    text.prepared = text.generation->is_prepared();
    if (!text.prepared) unprepared.push_back(&text);
  }
  if (unprepared.empty()) return;
  ++preparations_;
  std::ranges::stable_sort(unprepared, {}, &Text::last_preparation);
  using SteadyClock = std::chrono::steady_clock;
  const auto end = paced() ? SteadyClock::now() + longest_preparation : SteadyClock::time_point::max();
  std::atomic<std::size_t> next = 0;
  run_team(unprepared.size() > 1 ? forward_.team_size() : 1, [&](Worker&) {
    for (std::size_t i = next++; i < unprepared.size(); i = next++) {
      Text& text = *unprepared[i];
      try {
        while (!text.prepared && SteadyClock::now() < end) {
          text.last_preparation = preparations_;
          text.prepared = text.generation->prepare();
        }
      } catch (...) {
        text.error = std::current_exception();
      }
    }
  });
}

// The texts that are decoded, each with as many drafts as leave the batch cheap, then prompts.
std::vector<Scheduler::Share> Scheduler::choose(std::size_t prompt_tokens) {
  std::vector<Share> shares;
  const std::vector<Text*> decoded = texts_to_decode();
  std::size_t room = forward_.max_tokens();
  ++steps_;
  for (Text* const text : decoded) {
    const Piece piece = text->generation->next(std::max<std::size_t>(1, cheap_rows / decoded.size()));
    room -= piece.tokens.size();
    work_.add_decoded(text->generation->position(), piece.tokens.size());
    text->last_step = steps_;
    shares.push_back({.text = text->generation, .piece = piece, .error = nullptr});
  }
  add_prompts(shares, std::min(room, prompt_tokens));
  return shares;
}

std::vector<Scheduler::Text*> Scheduler::texts_to_decode() {
  std::vector<Text*> texts;
  std::map<std::size_t, std::size_t> texts_of_request;
  for (Text& text : texts_) {
    if (!text.prepared || text.generation->in_prompt()) continue;
    texts.push_back(&text);
    ++texts_of_request[text.request];
  }
  if (!paced() || texts_of_request.size() < 2) return texts;
  const auto by_texts = [](const auto& a, const auto& b) { return a.second < b.second; };
  const std::size_t fewest = std::ranges::min_element(texts_of_request, by_texts)->second;
  std::ranges::stable_sort(texts, {}, &Text::last_step);
  std::vector<Text*> chosen, others;
  StepWork least;
  texts_of_request.clear();
  for (Text* const text : texts) {
    const bool has_its_share = texts_of_request[text->request]++ >= fewest;
    (has_its_share ? others : chosen).push_back(text);
    if (!has_its_share) least.add_decoded(text->generation->position(), 1);
  }
  StepWork work = least;
  for (Text* const text : others) {
    work.add_decoded(text->generation->position(), 1);
    if (!pace_.fits(work, least)) break;
    chosen.push_back(text);
  }
  return chosen;
}

void Scheduler::add_prompts(std::vector<Share>& shares, std::size_t room) {
  std::vector<Generation*> prompts;
  for (const Text& text : texts_) {
    if (text.prepared && text.generation->in_prompt()) prompts.push_back(text.generation);
  }
  const auto is_short = [this](const Generation* text) { return text->prompt_tokens() <= forward_.max_tokens(); };
  const bool all_short = std::ranges::all_of(prompts, is_short), any_short = std::ranges::any_of(prompts, is_short);
  const bool delays_others = paced() && !shares.empty();
  const bool take_turns = delays_others || (paced() && any_short && !all_short);
  runs_short_prompts_ = take_turns && any_short && (all_short || !runs_short_prompts_);
  if (take_turns) {
    std::erase_if(prompts, [&](const Generation* text) { return is_short(text) != runs_short_prompts_; });
  }
  if (paced() && !runs_short_prompts_ && prompts.size() > 1) {
    runs_oldest_prompt_ = !runs_oldest_prompt_;
    if (!runs_oldest_prompt_) std::ranges::stable_sort(prompts, {}, &Generation::prompt_tokens_left);
  }
  for (Generation* const text : prompts) {
    const std::size_t left = room - work_.tokens;
    const std::size_t most = delays_others && !runs_short_prompts_ ? pace_.tokens(work_, text->position(), left) : left;
    if (most == 0) break;
    const Piece piece = text->next(most);
    work_.add_prompt(text->position(), piece.tokens.size());
    shares.push_back({.text = text, .piece = piece, .error = nullptr});
  }
}

bool Scheduler::paced() const {
  return longest_step_ < std::numeric_limits<double>::infinity();
}

// Sampling, grammars and text of each text on one of the threads.
void Scheduler::take(std::vector<Share>& shares) {
  const std::size_t vocab_size = forward_.model().config.vocab_size;
  std::atomic<std::size_t> next = 0;
  // A team of another size would end threads and start new ones in every step.
  run_team(shares.size() > 1 ? forward_.team_size() : 1, [&](Worker&) {
    for (std::size_t i = next++; i < shares.size(); i = next++) {
      Share& share = shares[i];
      const Matrix<const float> logits{logits_.data() + share.first_row * vocab_size, share.piece.logit_rows,
                                       vocab_size};
      try {
        share.text->take(logits);
      } catch (...) {
        share.error = std::current_exception();
      }
    }
  });
}

}  // namespace minimind
