#include "runtime/api/text_queue.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "runtime/api/failures.h"
#include "runtime/engine/kv_cache.h"
#include "weights/io/error.h"

namespace minimind {
namespace {

// A text that this many others have passed is next.
constexpr std::size_t most_passed_texts = 16;

}  // namespace

TextQueue::TextQueue(LoadedModel& model, std::size_t parallel, std::size_t kv_memory)
    : model_(model),
      forward_(model.model(), model.kernels(), model.threads(), batch_tokens, model.positions()),
      scheduler_(forward_, parallel, std::numeric_limits<double>::infinity()),
      pool_(model.config(), model.kv_type(), kv_memory),
      kv_memory_(kv_memory) {}

void TextQueue::check_idle() const {
  const std::size_t texts = running_.size() + waiting_.size();
  if (texts == 0) return;
  throw Failure(MINIMIND_BUSY, fmt::format("{} texts are being written, expected none while the weights are replaced; "
                                           "finish or release them first",
                                           texts));
}

void TextQueue::check_fits(const QueuedText& text) const {
  const std::size_t positions = text.session ? text.session->context.capacity() : model_.positions();
  if (text.prompt.empty() || text.prompt.size() >= positions) {
    throw Error(fmt::format("the prompt has {} tokens, expected 1 to {}, one fewer than the context holds",
                            text.prompt.size(), positions - 1));
  }
  const std::size_t bytes = text.capacity * KvCache::bytes_per_position(model_.config(), model_.kv_type());
  if (!text.session && bytes > kv_memory_) {
    throw Error(
        fmt::format("prompt and answer of up to {} tokens need {:.1f} MB for keys and values, but all texts "
                    "together may take {:.1f} MB; give a smaller max_tokens or a larger kv_memory",
                    text.capacity, 1e-6 * static_cast<double>(bytes), 1e-6 * static_cast<double>(kv_memory_)));
  }
}

void TextQueue::submit(std::shared_ptr<QueuedText> text) {
  check_tokens(text->prompt, model_.config().vocab_size);
  check_fits(*text);
  waiting_.push_back(text);
  if (text->session) text->session->in_use = true;
}

std::size_t TextQueue::step() {
  end_cancelled();
  start_waiting();
  for (const Scheduler::Ended& ended : scheduler_.step()) {
    const auto text =
        std::ranges::find_if(running_, [&](const auto& running) { return &*running->generation == ended.generation; });
    const std::shared_ptr<QueuedText> kept = *text;
    running_.erase(text);
    end(*kept, ended.error);
  }
  return running_.size() + waiting_.size();
}

// Of those that wait. The scheduler ends the others.
void TextQueue::end_cancelled() {
  std::erase_if(waiting_, [this](const std::shared_ptr<QueuedText>& text) {
    if (!text->cancelled) return false;
    text->result.finish_reason = FinishReason::interrupted;
    end(*text, nullptr);
    return true;
  });
}

void TextQueue::start_waiting() {
  std::size_t still_waiting = 0;
  while (still_waiting < waiting_.size() && !scheduler_.full()) {
    const std::shared_ptr<QueuedText> text = waiting_[still_waiting];
    bool started = false;
    try {
      started = start(*text);
      if (started) running_.push_back(text);
    } catch (...) {
      end(*text, std::current_exception());
    }
    if (!started && !text->ended) {
      if (text->passed >= most_passed_texts) return;
      ++still_waiting;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(still_waiting));
    for (std::size_t i = 0; i < still_waiting; ++i) ++waiting_[i]->passed;
  }
}

// Returns false if the text has to wait.
bool TextQueue::start(QueuedText& text) {
  text.context = text.session ? &text.session->context : pool_.acquire(text.prompt, text.capacity);
  if (!text.context) return false;
  text.generation.emplace(
      model_.model(), *text.context, model_.optional_tokenizer(), text.prompt, text.options,
      [&text](std::string_view piece) { text.text += piece; }, text.cancelled);
  running_.reserve(running_.size() + 1);
  scheduler_.add(*text.generation);
  return true;
}

void TextQueue::end(QueuedText& text, std::exception_ptr error) {
  text.error = std::move(error);
  text.ended = true;
  if (text.generation) {
    try {
      text.result = text.generation->finish();
    } catch (...) {
      if (!text.error) text.error = std::current_exception();
    }
    text.generation.reset();
  }
  if (text.context && !text.session) pool_.release(text.context);
  if (text.session) text.session->in_use = false;
  text.context = nullptr;
}

void TextQueue::remove(QueuedText& text) {
  if (text.ended) return;
  const auto is_it = [&](const std::shared_ptr<QueuedText>& other) { return other.get() == &text; };
  std::erase_if(waiting_, is_it);
  if (text.generation) scheduler_.remove(*text.generation);
  end(text, nullptr);
  std::erase_if(running_, is_it);
}

}  // namespace minimind
