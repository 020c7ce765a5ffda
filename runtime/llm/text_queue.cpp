#include "runtime/llm/text_queue.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <set>

namespace minimind {
namespace {

// A text that this many others have passed is the next that gets memory.
constexpr std::size_t most_passed = 16;

// Texts that wait and are looked at in a step.
constexpr std::size_t most_looked_at = 64;

// Texts that nobody waits for and that end in a step: their ends take time from others.
constexpr std::size_t most_gone = 1024;

// Texts that have ended and whose memory is not yet freed; and those that pause, nobody waits for, and end in a step.
constexpr std::size_t most_old = 32;

// Texts that are not read and go on all the same: so many rows take hardly longer than one, and delay the others
// little.
constexpr std::size_t most_unread = 8;

// Texts whose constraints give up memory in a step.
constexpr std::size_t most_forgotten = 2;

// After so many steps a text may lose its place to one that has none, and one that has paused comes before new ones.
constexpr std::size_t steps_of_a_turn = 32, steps_of_a_pause = 2 * steps_of_a_turn;

const std::atomic<bool> never = false;

bool is_gone(const TextJob& job) {
  return job.gone && *job.gone;
}

bool is_behind(const TextJob& job) {
  return job.behind && *job.behind;
}

}  // namespace

TextQueue::TextQueue(const LLM& llm, const TextQueueLimits& limits)
    : llm_(llm),
      model_(llm.model),
      in_order_(limits.in_order),
      kv_memory_(limits.kv_memory),
      spare_memory_(limits.in_order ? 0 : limits.kv_memory / 4),
      memory_of_small_(limits.in_order ? 0 : limits.kv_memory / 16),
      most_compared_(limits.most_compared),
      forward_(llm.forward(limits.step_tokens, llm.positions)),
      scheduler_(forward_, limits.parallel, limits.longest_step),
      pool_(llm.config, llm.kv_type, limits.kv_memory, limits.most_idle) {}

void TextQueue::submit(std::vector<TextJob> jobs) {
  const auto before = static_cast<std::ptrdiff_t>(waiting_.size());
  std::size_t turn = turn_;
  for (TextJob& job : jobs) {
    waiting_.push_back(std::make_unique<Text>(std::move(job), requests_, turn));
    has_small_ = has_small_ || is_small(*waiting_.back());
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
  const auto take_gone = [&](auto& texts, std::size_t most) {
    for (auto& text : texts) {
      if (gone.size() == most) break;
      if (is_gone(text->job) && (!text->generation || text->paused)) gone.push_back(std::move(text));
    }
    std::erase(texts, nullptr);
  };
  take_gone(running_, most_old);  // they have memory, which takes long to free
  take_gone(waiting_, most_gone);
  for (const auto& text : gone) {
    if (text->generation) text->generation->ended();  // interrupts it
    end(*text);
  }
}

void TextQueue::start() {
  pause_unread();
  resume_if([this](const Text& text) { return !scheduler_.full() && !is_behind(text.job); });
  resume_longest();
  start_waiting();
  pause_unread();  // memory may be lacking by now
  resume_if([this](const Text& text) { return has_place(text); });
  forget();
}

// Those with the fewest tokens left go on.
void TextQueue::pause_unread() {
  std::vector<Text*> unread;
  for (const auto& text : running_) {
    text->waits_to_be_read = text->has_begun && is_behind(text->job);
    if (!text->waits_to_be_read) continue;
    text->was_unread = true;
    unread.push_back(text.get());
  }
  if (unread.empty()) return;
  if (hurries_ || lacks_memory()) {
    const auto tokens_left = [](const Text* text) { return text->job.task->capacity - text->generation->position(); };
    std::ranges::stable_sort(unread, {}, tokens_left);
    const auto go_on = unread | std::views::take(most_unread);
    for (Text* const text : go_on) text->waits_to_be_read = false;
  }
  for (Text* const text : unread) {
    if (text->waits_to_be_read && !text->paused) pause(*text);
  }
}

// Whether a text that is read could start with more of it.
bool TextQueue::lacks_memory() const {
  return std::ranges::any_of(waiting_, [](const auto& text) {
    return text->found == Start::waits_for_memory && !is_behind(text->job) && !is_gone(text->job);
  });
}

// How many texts of clients that are behind.
std::size_t TextQueue::unread_that_may_start() const {
  if (!hurries_) return 0;
  const auto running = std::ranges::count_if(running_, [](const auto& text) { return is_behind(text->job); });
  return most_unread - std::min(most_unread, static_cast<std::size_t>(running));
}

void TextQueue::start_waiting() {
  bool only_small = false;
  std::size_t unread_to_start = unread_that_may_start();
  std::size_t looked_at = 0, without_memory = 0;
  const std::size_t compared = pool_.compared();
  const auto may_look = [&] { return looked_at < most_looked_at && pool_.compared() - compared < most_compared_; };
  for (std::size_t at = 0; at < waiting_.size() && may_look();) {
    Text& waiting = *waiting_[at];
    const bool is_unread = is_behind(waiting.job);
    if (is_gone(waiting.job) || (is_unread && unread_to_start == 0)) {
      ++at;
      continue;
    }
    ++looked_at;
    if (!has_place(waiting) || (only_small && !may_pass_all(waiting))) {
      ++at;
      continue;
    }
    const Start result = look_at(waiting);
    if (result != Start::done) {
      if (in_order_) return;
      if (result == Start::waits_for_memory) {
        const bool is_next = waiting.passed >= most_passed;
        if (is_next && bytes_of(waiting) + memory_of_small_ > kv_memory_)
          return;  // it needs what small ones would take
        only_small = only_small || is_next || ++without_memory > most_passed;
      }
      ++at;
      continue;
    }
    if (is_unread) --unread_to_start;
    std::unique_ptr<Text> text = std::move(waiting_[at]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    for (std::size_t i = 0; i < at; ++i) ++waiting_[i]->passed;
    turn_ = std::max(turn_, text->turn);
    if (text->generation) {
      running_.push_back(std::move(text));
      new_took_last_ = true;
      resume_longest();
    } else {
      end(*text);
    }
  }
}

// Those that have had no place for the longest time come first.
void TextQueue::resume_if(const std::function<bool(const Text&)>& may_resume) {
  std::vector<Text*> paused;
  for (const auto& text : running_) {
    if (text->paused && !text->waits_to_be_read) paused.push_back(text.get());
  }
  std::ranges::stable_sort(paused, {}, &Text::since);
  std::set<std::size_t> denied;  // requests of a text that may not: none of its later ones may
  for (Text* const text : paused) {
    if (denied.contains(text->request)) continue;
    if (may_resume(*text)) {
      give_place(*text);
    } else {
      denied.insert(text->request);
    }
  }
}

// Otherwise new texts, of which more may come at any time, would take all places that others lose.
void TextQueue::resume_longest() {
  if (!new_took_last_) return;
  resume_if([this](const Text& text) {
    if (!new_took_last_ || steps_ - text.since < steps_of_a_pause || !has_place(text)) return false;
    new_took_last_ = false;
    return true;
  });
}

std::map<std::size_t, std::size_t> TextQueue::places() const {
  std::map<std::size_t, std::size_t> places;
  for (const Text* const text : placed_) ++places[text->request];
  return places;
}

// Null if the text has to wait for a place.
TextQueue::Text* TextQueue::text_to_pause(const Text& waiting) const {
  if (in_order_) return nullptr;
  std::map<std::size_t, std::size_t> places = this->places();
  const std::size_t own = places[waiting.request];
  std::size_t most = own + 2;
  Text* latest = nullptr;
  Text* longest = nullptr;
  for (Text* const text : placed_) {
    const std::size_t others = places[text->request];
    if (others >= most) {
      most = others;
      latest = text;
    }
    if (others > own && steps_ - text->since >= steps_of_a_turn && (!longest || text->since < longest->since)) {
      longest = text;
    }
  }
  return latest ? latest : longest;
}

// Another text pauses if no place is free.
void TextQueue::give_place(Text& text) {
  if (scheduler_.full()) pause(*text_to_pause(text));
  placed_.reserve(placed_.size() + 1);
  scheduler_.add(*text.generation, text.request);
  placed_.insert(std::ranges::upper_bound(placed_, text.number, {}, &Text::number), &text);
  text.paused = false;
  text.since = steps_;
  if (std::exchange(text.was_unread, false) && text.job.on_read) text.job.on_read();
}

void TextQueue::pause(Text& text) {
  scheduler_.remove(*text.generation);
  std::erase(placed_, &text);
  text.paused = true;
  text.since = steps_;
  text.can_forget = text.generation->constraint() != nullptr;
}

// Lets the constraints of texts that pause give up memory, few at a time: each may take some milliseconds.
void TextQueue::forget() {
  std::size_t count = 0;
  for (const auto& text : running_) {
    if (!text->paused || !std::exchange(text->can_forget, false)) continue;
    text->generation->constraint()->forget();
    if (++count == most_forgotten) return;
  }
}

std::size_t TextQueue::bytes_of(const Text& text) const {
  return text.job.context ? 0 : KvCache::bytes(llm_.config, llm_.kv_type, text.job.task->capacity);
}

// Whether the text leaves enough memory to all that wait for it.
bool TextQueue::may_pass_all(const Text& text) const {
  if (!is_small(text)) return false;
  std::size_t bytes = bytes_of(text);
  for (const auto& other : running_) {
    if (is_small(*other)) bytes += bytes_of(*other);
  }
  return bytes <= memory_of_small_;
}

std::size_t TextQueue::memory_to_leave(const Text& text) const {
  const auto is_of_its_request = [&](const auto& other) { return other->request == text.request; };
  const auto takes_memory = [](const auto& other) { return !other->job.context; };
  if (std::ranges::any_of(running_, is_of_its_request)) return spare_memory_;
  return has_small_ && !is_small(text) && std::ranges::any_of(running_, takes_memory) ? memory_of_small_ : 0;
}

// Each text is compared with all contexts. One that cannot start after long comparisons is skipped until others have
// had their share of them, too.
TextQueue::Start TextQueue::look_at(Text& text) {
  if (text.skips > 0) {
    --text.skips;
    return text.found;
  }
  const std::size_t compared = pool_.compared();
  text.found = start(text);
  const std::size_t share = most_compared_ / std::min(waiting_.size(), most_looked_at);
  text.skips = (pool_.compared() - compared) / std::max<std::size_t>(share, 1);
  return text.found;
}

// A text that can never run has an error then. There must be a place for it.
TextQueue::Start TextQueue::start(Text& text) {
  const GenerationTask& task = *text.job.task;
  try {
    text.context =
        text.job.context ? text.job.context : pool_.acquire(task.reusable(), task.capacity, memory_to_leave(text));
    if (!text.context) {
      return pool_.is_being_computed(task.reusable()) ? Start::waits_for_prefix : Start::waits_for_memory;
    }
    running_.reserve(running_.size() + 1);
    text.generation = std::make_unique<Generation>(
        *model_, *text.context, llm_.tokenizer_or_null(), task.prompt, task.options,
        [&text](std::string_view piece) {
          if (text.job.on_text) text.job.on_text(piece, *text.generation);
        },
        text.job.gone ? *text.job.gone : never);
    text.number = ++starts_;
    give_place(text);
  } catch (...) {
    text.error = std::current_exception();
    text.generation.reset();
  }
  return Start::done;
}

void TextQueue::compute(std::size_t prompt_tokens) {
  ++steps_;
  const std::vector<Scheduler::Ended> ended = scheduler_.step(prompt_tokens);
  for (const auto& text : running_) {
    if (text->has_begun || text->generation->in_prompt()) continue;
    text->has_begun = true;
    if (text->job.on_first_token) text->job.on_first_token();
  }
  for (const auto& [generation, error] : ended) {
    const auto text =
        std::ranges::find(running_, generation, [](const auto& other) { return other->generation.get(); });
    (*text)->error = error;
    std::erase(placed_, text->get());
    ended_.push_back(std::move(*text));
    running_.erase(text);
  }
}

void TextQueue::report() {
  for (const auto& text : std::exchange(ended_, {})) end(*text);
  // One in a step, so that the texts that run wait for no more, unless more end in each step.
  if (!old_.empty()) old_.pop_back();
  if (running_.empty()) old_.clear();
  if (old_.size() > most_old) old_.resize(most_old);
}

void TextQueue::take_waiting(TextQueue& from) {
  for (const auto& text : from.waiting_) {  // what they were compared with, and waited for, is not here
    text->skips = 0;
    text->found = Start::done;
  }
  waiting_.insert(waiting_.end(), std::make_move_iterator(from.waiting_.begin()),
                  std::make_move_iterator(from.waiting_.end()));
  from.waiting_.clear();
  from.hurries_ = true;
  turn_ = std::max(turn_, from.turn_);
  requests_ = std::max(requests_, from.requests_);
  has_small_ = has_small_ || from.has_small_;
}

void TextQueue::end_running(const std::exception_ptr& error) {
  report();
  for (const auto& text : std::exchange(running_, {})) {
    pause(*text);
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
  if (text.generation) old_.push_back(std::move(text.generation));
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
  return text == running_.end() ? nullptr : (*text)->generation.get();
}

void TextQueue::remove(const GenerationTask& task) {
  const auto is_it = [&](const auto& text) { return text->job.task.get() == &task; };
  std::erase_if(waiting_, is_it);
  const auto text = std::ranges::find_if(running_, is_it);
  if (text == running_.end()) return;
  pause(**text);
  release(**text);
  running_.erase(text);
}

}  // namespace minimind
