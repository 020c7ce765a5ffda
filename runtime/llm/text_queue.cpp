#include "runtime/llm/text_queue.h"

#include <algorithm>
#include <iterator>

namespace minimind {
namespace {

// A text that this many others have passed is next.
constexpr std::size_t most_passed = 16;

const std::atomic<bool> never = false;

bool is_gone(const TextJob& job) {
  return job.gone && *job.gone;
}

}  // namespace

TextQueue::TextQueue(const LLM& llm, const TextQueueLimits& limits)
    : llm_(llm),
      model_(llm.model),
      in_order_(limits.in_order),
      spare_memory_(limits.in_order ? 0 : limits.kv_memory / 4),
      forward_(llm.forward(limits.step_tokens, llm.positions)),
      scheduler_(forward_, limits.parallel, limits.longest_step),
      pool_(llm.config, llm.kv_type, limits.kv_memory) {}

void TextQueue::submit(std::vector<TextJob> jobs) {
  const auto before = static_cast<std::ptrdiff_t>(waiting_.size());
  std::size_t turn = turn_;
  for (TextJob& job : jobs) {
    waiting_.push_back(std::make_unique<Text>(std::move(job), requests_, turn));
    if (!in_order_) ++turn;
  }
  ++requests_;
  std::ranges::inplace_merge(waiting_, waiting_.begin() + before, {}, [](const auto& text) { return text->turn; });
}

void TextQueue::step() {
  end_gone();
  start();
  compute();
  report();
}

void TextQueue::end_gone() {
  std::vector<std::unique_ptr<Text>> gone;
  const auto take_gone = [&](auto& texts) {
    for (auto& text : texts) {
      if (is_gone(text->job) && (!text->generation || text->paused)) gone.push_back(std::move(text));
    }
    std::erase(texts, nullptr);
  };
  take_gone(waiting_);
  take_gone(running_);
  for (const auto& text : gone) {
    if (text->generation) text->generation->ended();  // interrupts it
    end(*text);
  }
}

void TextQueue::start() {
  resume();
  std::size_t still_waiting = 0;
  while (still_waiting < std::min(waiting_.size(), most_passed + 1)) {
    const auto place = waiting_.begin() + static_cast<std::ptrdiff_t>(still_waiting);
    Text* const paused = scheduler_.full() ? text_to_pause(**place) : nullptr;
    if (scheduler_.full() && !paused) {
      ++still_waiting;
      continue;
    }
    if (!start(**place, paused)) {
      if (in_order_ || (*place)->passed >= most_passed) return;
      ++still_waiting;
      continue;
    }
    std::unique_ptr<Text> text = std::move(*place);
    waiting_.erase(place);
    for (std::size_t i = 0; i < still_waiting; ++i) ++waiting_[i]->passed;
    turn_ = std::max(turn_, text->turn);
    if (text->generation) {
      running_.push_back(std::move(text));
    } else {
      end(*text);
    }
  }
}

void TextQueue::resume() {
  for (const auto& text : running_) {
    if (!text->paused || scheduler_.full()) continue;
    scheduler_.add(*text->generation);
    text->paused = false;
  }
}

std::map<std::size_t, std::size_t> TextQueue::places() const {
  std::map<std::size_t, std::size_t> places;
  for (const auto& text : running_) {
    if (!text->paused) ++places[text->request];
  }
  return places;
}

// Null if the text has to wait for a place.
TextQueue::Text* TextQueue::text_to_pause(const Text& waiting) const {
  if (in_order_) return nullptr;
  std::map<std::size_t, std::size_t> places = this->places();
  std::size_t most = places[waiting.request] + 2;
  Text* latest = nullptr;
  for (const auto& text : running_) {
    if (text->paused || places[text->request] < most) continue;
    most = places[text->request];
    latest = text.get();
  }
  return latest;
}

// Returns false if the text has to wait. One that can never run has an error then. `paused`, if any, pauses for it.
bool TextQueue::start(Text& text, Text* paused) {
  const GenerationTask& task = *text.job.task;
  try {
    const std::size_t spare = places().contains(text.request) ? spare_memory_ : 0;
    text.context = text.job.context ? text.job.context : pool_.acquire(task.reusable(), task.capacity, spare);
    if (!text.context) return false;
    running_.reserve(running_.size() + 1);
    text.generation.emplace(
        *model_, *text.context, llm_.tokenizer_or_null(), task.prompt, task.options,
        [&text](std::string_view piece) {
          if (text.job.on_text) text.job.on_text(piece, *text.generation);
        },
        text.job.gone ? *text.job.gone : never);
    if (paused) {
      scheduler_.remove(*paused->generation);
      paused->paused = true;
    }
    scheduler_.add(*text.generation);
  } catch (...) {
    text.error = std::current_exception();
    text.generation.reset();
  }
  return true;
}

void TextQueue::compute(std::size_t prompt_tokens) {
  const std::vector<Scheduler::Ended> ended = scheduler_.step(prompt_tokens);
  for (const auto& text : running_) {
    if (text->has_begun || text->generation->in_prompt()) continue;
    text->has_begun = true;
    if (text->job.on_first_token) text->job.on_first_token();
  }
  for (const auto& [generation, error] : ended) {
    const auto text = std::ranges::find(running_, generation, [](const auto& other) { return &*other->generation; });
    (*text)->error = error;
    ended_.push_back(std::move(*text));
    running_.erase(text);
  }
}

void TextQueue::report() {
  for (const auto& text : std::exchange(ended_, {})) end(*text);
}

void TextQueue::take_waiting(TextQueue& from) {
  waiting_.insert(waiting_.end(), std::make_move_iterator(from.waiting_.begin()),
                  std::make_move_iterator(from.waiting_.end()));
  from.waiting_.clear();
  turn_ = std::max(turn_, from.turn_);
  requests_ = std::max(requests_, from.requests_);
}

void TextQueue::end_running(const std::exception_ptr& error) {
  report();
  for (const auto& text : std::exchange(running_, {})) {
    scheduler_.remove(*text->generation);
    text->error = error;
    end(*text);
  }
}

void TextQueue::end_waiting(const std::exception_ptr& error) {
  for (const auto& text : std::exchange(waiting_, {})) {
    text->error = error;
    end(*text);
  }
}

void TextQueue::release(Text& text) {
  text.generation.reset();
  if (text.context && !text.job.context) pool_.release(text.context);
}

void TextQueue::end(Text& text) {
  Generated generated;
  generated.finish_reason = FinishReason::interrupted;
  try {
    if (text.generation) generated = text.generation->finish();
  } catch (...) {
    if (!text.error) text.error = std::current_exception();
  }
  release(text);
  text.job.on_text = nullptr;  // what it holds ends before the text does
  if (text.job.on_end) text.job.on_end(std::move(generated), text.error);
}

const Generation* TextQueue::running(const GenerationTask& task) const {
  const auto text = std::ranges::find(running_, &task, [](const auto& other) { return other->job.task.get(); });
  return text == running_.end() ? nullptr : &*(*text)->generation;
}

void TextQueue::remove(const GenerationTask& task) {
  const auto is_it = [&](const auto& text) { return text->job.task.get() == &task; };
  std::erase_if(waiting_, is_it);
  const auto text = std::ranges::find_if(running_, is_it);
  if (text == running_.end()) return;
  scheduler_.remove(*(*text)->generation);
  release(**text);
  running_.erase(text);
}

}  // namespace minimind
