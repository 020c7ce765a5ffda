#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/loaded_model.h"
#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "runtime/generate/context_pool.h"
#include "runtime/generate/generate.h"
#include "runtime/generate/scheduler.h"

namespace minimind {

// The keys and values of a session, of which one text at a time may make use.
struct SessionContext {
  Context context;
  bool in_use = false;
  std::size_t weights = 0;  // TextQueue::weights() when its tokens were computed
};

// A text from submission to release.
struct QueuedText {
  std::vector<std::int32_t> prompt;
  GenerateOptions options;
  std::size_t capacity = 0;                 // of its context
  std::shared_ptr<SessionContext> session;  // whose context it uses; null: one of the pool
  std::atomic<bool> cancelled = false;

  // Of the queue.
  std::size_t passed = 0;  // how many later ones started before it
  Context* context = nullptr;
  std::optional<Generation> generation;
  bool ended = false;
  std::exception_ptr error;
  Generated result;
  std::string text;              // not taken yet
  std::size_t taken_tokens = 0;  // of the generated ones
};

// The texts that a model writes. One thread at a time.
class TextQueue {
 public:
  // For up to `parallel` texts at once, whose keys and values take up to `kv_memory` bytes. `model` must outlive this.
  TextQueue(LoadedModel& model, std::size_t parallel, std::size_t kv_memory);

  Forward& forward() { return forward_; }

  // Grows when the weights are replaced.
  std::size_t weights() const { return weights_; }

  // Adds a text. Throws Error if it can never run.
  void submit(std::shared_ptr<QueuedText> text);

  // Runs one step. Returns how many texts have not ended.
  std::size_t step();

  // Drops a text, if it is here.
  void remove(QueuedText& text);

  // Calls replace(), which replaces the model's weights. Throws Failure while there are texts.
  template <class Replace>
  void replace_weights(Replace&& replace) {
    check_idle();
    replace();
    ++weights_;
    pool_.clear();
  }

 private:
  void check_idle() const;
  void check_fits(const QueuedText& text) const;
  void end_cancelled();
  void start_waiting();
  bool start(QueuedText& text);
  void end(QueuedText& text, std::exception_ptr error);

  LoadedModel& model_;
  Forward forward_;
  Scheduler scheduler_;
  ContextPool pool_;
  std::size_t kv_memory_;
  std::size_t weights_ = 0;
  std::deque<std::shared_ptr<QueuedText>> waiting_;
  std::vector<std::shared_ptr<QueuedText>> running_;
};

}  // namespace minimind
