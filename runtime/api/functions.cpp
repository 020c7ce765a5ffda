#include "runtime/api/minimind.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/api/failures.h"
#include "runtime/api/loaded_model.h"
#include "runtime/api/request_grammar.h"
#include "runtime/api/structures.h"
#include "runtime/chat/answer_parser.h"
#include "runtime/chat/chat_json.h"
#include "runtime/chat/chat_template.h"
#include "runtime/chat/conversation.h"
#include "runtime/chat/conversation_prompt.h"
#include "runtime/chat/message_json.h"
#include "runtime/chat/session_file.h"
#include "runtime/constraint/least_tokens.h"
#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "runtime/engine/kv_cache.h"
#include "runtime/generate/check_sampling.h"
#include "runtime/generate/generate.h"
#include "runtime/inside/recording.h"
#include "runtime/llm/text_queue.h"
#include "runtime/text/utf8.h"
#include "weights/base/error.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {

struct ModelState;

// During its lifetime, the calling thread runs a function of the caller in a step of the model, for which it cannot
// wait.
class CallInStep {
 public:
  explicit CallInStep(const ModelState& model) : model_(&model), outer_(std::exchange(innermost, this)) {}
  CallInStep(const CallInStep&) = delete;
  CallInStep& operator=(const CallInStep&) = delete;
  ~CallInStep() { innermost = outer_; }

  static bool is_of(const ModelState& model) {
    const CallInStep* call = innermost;
    while (call && call->model_ != &model) call = call->outer_;
    return call != nullptr;
  }

 private:
  static thread_local constinit const CallInStep* innermost;

  const ModelState* model_;
  const CallInStep* outer_;
};
thread_local constinit const CallInStep* CallInStep::innermost = nullptr;

// A model's mutex.
class StepMutex {
 public:
  explicit StepMutex(const ModelState& model) : model_(model) {}

  // Throws Failure where it would wait for itself.
  void lock() {
    if (CallInStep::is_of(model_)) {
      throw Failure(MINIMIND_BUSY,
                    "process_logits calls a function that waits for the end of the step that it is part of; call that "
                    "function after minimind_step");
    }
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  const ModelState& model_;
  std::mutex mutex_;
};

// A model with the texts that it writes. What computes holds the mutex.
struct ModelState {
  ModelState(const std::string& path, const minimind_model_options& options)
      : loaded(path, options),
        kv_memory(options.kv_memory > 0 ? options.kv_memory : ContextPool::default_budget()),
        queue(loaded.llm(), {.parallel = options.parallel,
                             .kv_memory = kv_memory,
                             .step_tokens = batch_tokens,
                             .longest_step = std::numeric_limits<double>::infinity()}) {}

  // Calls replace(), which replaces the model's weights. Throws Failure while there are texts that have started, unless
  // they are to be kept.
  template <class Replace>
  void replace_weights(Replace&& replace) {
    if (const std::size_t texts = keep_texts ? 0 : started_texts(); texts > 0) {
      throw Failure(MINIMIND_BUSY, fmt::format("{} texts are being written, expected none while the weights are "
                                               "replaced; finish or release them first",
                                               texts));
    }
    replace();
    note_weights();
    ++weights;
    queue.pool().clear();
  }

  // Returns the number of texts that have keys and values, their own or those of a session.
  std::size_t started_texts() const;

  // Notes the weights of the tokens that the texts have by now.
  void note_weights();

  // Takes a text that has not ended from the queue.
  void drop(minimind_generation& generation);

  // Keeps a generation that is released in a step until the step has ended.
  void release_later(minimind_generation& generation);
  void free_released();

  StepMutex mutex{*this};
  LoadedModel loaded;
  const std::size_t kv_memory;
  TextQueue queue;
  std::size_t weights = 0;  // grows when they are replaced
  bool keep_texts = false;
  std::set<minimind_generation*> generations{};  // that have not ended
  std::mutex mutex_of_released{};
  std::vector<minimind_generation*> released{};  // by the functions that a step calls
};

// The keys and values of a session, of which one text at a time may make use.
struct SessionContext {
  Context context;
  bool in_use = false;
  std::size_t weights = 0;  // ModelState::weights when its tokens were computed
};

}  // namespace minimind

using namespace minimind;

struct minimind_model {
  Failures failures;
  std::shared_ptr<ModelState> state;
};

struct minimind_session {
  Failures failures;
  std::shared_ptr<ModelState> state;
  std::shared_ptr<SessionContext> session;
};

struct minimind_generation {
  Failures failures;
  std::shared_ptr<ModelState> state;
  std::shared_ptr<SessionContext> session;  // that the text uses; null: none
  std::shared_ptr<GenerationTask> task = std::make_shared<GenerationTask>();
  std::atomic<bool> cancelled = false;
  std::string notes;
  std::size_t top_count = 0;
  bool held = false;  // not given to the queue yet
  // What the queue has reported.
  bool ended = false;
  std::exception_ptr error;
  Generated result;
  std::string text;                  // not taken yet
  std::size_t taken_tokens = 0;      // of the generated ones
  std::vector<std::size_t> weights;  // ModelState::weights when each token was computed, up to the last note
  // Of the last poll.
  std::string piece;
  std::vector<std::int32_t> ids, top_ids;
  std::vector<double> log_probabilities, top_log_probabilities;
  std::vector<std::size_t> polled_weights;
};

struct minimind_answer {
  Failures failures;
  AnswerParser parser;
  std::size_t calls = 0;
  std::string json;
};

struct minimind_recording {
  Failures failures;
  Recording recording;
  std::vector<std::string> names;
  std::vector<std::vector<std::size_t>> shapes;
};

std::size_t ModelState::started_texts() const {
  const auto waits_with_session = [&](const minimind_generation* generation) {
    return generation->session && !queue.running(*generation->task);
  };
  return queue.texts() - queue.waiting() +
         static_cast<std::size_t>(std::ranges::count_if(generations, waits_with_session));
}

void ModelState::note_weights() {
  for (minimind_generation* const generation : generations) {
    const Generation* const running = queue.running(*generation->task);
    if (running) generation->weights.resize(running->generated().size(), weights);
  }
}

void ModelState::drop(minimind_generation& generation) {
  if (generation.ended || generation.held) return;
  queue.remove(*generation.task);
  generations.erase(&generation);
  if (generation.session) generation.session->in_use = false;
}

void ModelState::release_later(minimind_generation& generation) {
  generation.cancelled = true;
  const std::lock_guard lock(mutex_of_released);
  released.push_back(&generation);
}

void ModelState::free_released() {
  const std::lock_guard lock(mutex_of_released);
  for (minimind_generation* const generation : std::exchange(released, {})) {
    drop(*generation);
    delete generation;
  }
}

namespace {

// Calls work(). If it fails and one of the files that it reads does not exist, that is the status.
template <class Work>
void reading(const std::vector<std::string>& files, Work&& work) {
  try {
    work();
  } catch (const Failure&) {
    throw;
  } catch (const Error& error) {
    for (const std::string& file : files) {
      std::error_code ignored;
      if (!std::filesystem::exists(file, ignored)) throw Failure(MINIMIND_NOT_FOUND, error.what());
    }
    throw;
  }
}

minimind_model_options default_options() {
  minimind_model_options options{};
  options.size = sizeof options;
  options.parallel = 16;
  return options;
}

// Calls copy(theirs, ours) for each number of the generation_parameters: that of a request, and the same of its text.
template <class Copy>
void for_each_number(minimind_request& request, GenerationParameters& parameters, Copy copy) {
  SamplingOptions& sampling = parameters.sampling;
  copy(request.max_tokens, parameters.max_tokens);
  copy(request.temperature, sampling.temperature);
  copy(request.top_k, sampling.top_k);
  copy(request.typical_p, sampling.typical_p);
  copy(request.top_p, sampling.top_p);
  copy(request.min_p, sampling.min_p);
  copy(request.repeat_penalty, sampling.repeat_penalty);
  copy(request.presence_penalty, sampling.presence_penalty);
  copy(request.frequency_penalty, sampling.frequency_penalty);
  copy(request.repeat_last_n, sampling.repeat_last_n);
  copy(request.dry_multiplier, sampling.dry.multiplier);
  copy(request.dry_base, sampling.dry.base);
  copy(request.dry_allowed_length, sampling.dry.allowed_length);
  copy(request.dry_penalty_last_n, sampling.dry.penalty_last_n);
}

minimind_request default_request_values() {
  GenerationParameters parameters;
  minimind_request request{};
  request.size = sizeof request;
  for_each_number(request, parameters, [](auto& theirs, const auto& ours) { theirs = ours; });
  return request;
}

template <class Structure>
void fill_defaults(Structure defaults, Structure* structure, std::size_t size) {
  if (!structure || size < sizeof(std::size_t)) return;
  defaults.size = size;  // a larger one is rejected where it is used
  std::memset(static_cast<void*>(structure), 0, size);
  std::memcpy(static_cast<void*>(structure), &defaults, std::min(size, sizeof defaults));
}

std::vector<std::string> files_of(const std::string& path, const minimind_model_options& options) {
  std::vector<std::string> files{path};
  for (const char* const file : {options.tokenizer, options.config, options.chat_template}) {
    if (file) files.emplace_back(file);
  }
  for (std::size_t i = 0; i < options.lora_count; ++i) files.push_back(parse_lora_argument(options.loras[i]).path);
  return files;
}

void check_options(const minimind_model_options& options) {
  if (options.parallel < 1 || options.parallel >= batch_tokens) {
    throw UsageError(fmt::format("parallel is {}, expected 1 to {}", options.parallel, batch_tokens - 1));
  }
  if (options.threads > 1024) throw UsageError(fmt::format("threads is {}, expected 0 to 1024", options.threads));
  for (const char* const lora : input(options.loras, options.lora_count, "loras")) required(lora, "a name of loras");
}

// ---- Prompts and options of a text ----

std::vector<LogitBias> logit_bias_of(const minimind_request& request, std::size_t vocab_size) {
  std::vector<LogitBias> biases;
  for (const auto& [token, bias] : input(request.logit_bias, request.logit_bias_count, "logit_bias")) {
    if (token < 0 || static_cast<std::size_t>(token) >= vocab_size) {
      throw UsageError(fmt::format("logit_bias names token {}, expected ids from 0 to {}", token, vocab_size - 1));
    }
    if (std::isnan(bias) || bias == std::numeric_limits<double>::infinity()) {
      throw UsageError(fmt::format("logit_bias of token {} is {}, expected a number or minus infinity", token, bias));
    }
    biases.push_back({token, bias});
  }
  return biases;
}

GenerationParameters parameters_of(minimind_request request, std::size_t vocab_size) {
  GenerationParameters parameters;
  parameters.stop = texts_of(request.stop, request.stop_count, "stop");
  for_each_number(request, parameters, [](const auto& theirs, auto& ours) { ours = theirs; });
  if (request.dry_sequence_breakers) {
    parameters.sampling.dry.sequence_breakers =
        texts_of(request.dry_sequence_breakers, request.dry_sequence_breaker_count, "dry_sequence_breakers");
  }
  parameters.sampling.logit_bias = logit_bias_of(request, vocab_size);
  parameters.seed = request.seed;
  parameters.ignore_eos = request.ignore_eos != 0;
  check(parameters.sampling);
  return parameters;
}

std::vector<std::int32_t> prompt_of(const minimind_request& request, const LoadedModel& loaded) {
  if (request.ids && request.text) throw UsageError("the prompt is given twice, as ids and as text; give one of them");
  if (!request.ids && !request.text) throw UsageError("the prompt is missing, expected ids or text");
  if (request.text) return loaded.tokenizer().encode_prompt({request.text, request.text_size});
  return {request.ids, request.ids + request.id_count};
}

// `tools` may be null.
MarkedText chat_prompt(const LoadedModel& loaded, const char* messages, std::size_t messages_size, const char* tools,
                       std::size_t tools_size, int thinking) {
  const std::string_view given = input_text(messages, messages_size, "messages");
  const std::string_view given_tools = tools ? input_text(tools, tools_size, "tools") : std::string_view();
  if (thinking < -1 || thinking > 1) throw UsageError(fmt::format("thinking is {}, expected -1, 0 or 1", thinking));
  const SavedConversation conversation = parse_conversation(given, "messages");
  if (conversation.messages.empty()) throw Error("messages is empty, expected at least one message");
  PromptSettings settings{.tools = conversation.tools, .think = std::nullopt, .now = std::time(nullptr)};
  if (tools) settings.tools = parse_tools(given_tools, "tools");
  if (thinking >= 0) settings.think = thinking == 1;
  return render_prompt(loaded.chat_template(), settings, conversation.messages, true);
}

// Minus infinity becomes the least number, because the sampler takes infinite logits for those of corrupt weights.
std::span<const float> check_processed(std::span<float> logits) {
  bool any = false;
  for (float& logit : logits) {
    if (std::isnan(logit) || logit == std::numeric_limits<float>::infinity()) {
      throw Error(fmt::format("process_logits wrote {}, expected numbers or minus infinity", logit));
    }
    any |= std::isfinite(logit);
    logit = std::max(logit, std::numeric_limits<float>::lowest());
  }
  if (!any) throw Error("process_logits excludes every token, expected one that may follow");
  return logits;
}

decltype(GenerateOptions::process) process_of(const minimind_request& request, const ModelState& model) {
  if (!request.process_logits) return nullptr;
  return [&model, process = request.process_logits, data = request.process_data, processed = std::vector<float>()](
             std::span<const std::int32_t> ids, std::span<const float> logits) mutable {
    processed.assign(logits.begin(), logits.end());
    const CallInStep call(model);
    if (process(data, ids.data(), ids.size(), processed.data(), processed.size()) == 0) {
      throw Error("process_logits returned 0: it failed");
    }
    return check_processed(processed);
  };
}

void read_task(const minimind_request& request, const ModelState& model, GenerationTask& task, std::string& notes) {
  const LoadedModel& loaded = model.loaded;
  task.prompt = prompt_of(request, loaded);
  const std::size_t positions = request.session ? request.session->session->context.capacity() : loaded.llm().positions;
  if (task.prompt.empty() || task.prompt.size() >= positions) {
    throw Error(fmt::format("the prompt has {} tokens, expected 1 to {}, one fewer than the maximum context length",
                            task.prompt.size(), positions - 1));
  }
  check_tokens(task.prompt, loaded.config().vocab_size);
  task.capacity = std::min(positions, task.prompt.size() + std::min(request.max_tokens, positions));
  const GenerationParameters parameters = parameters_of(request, loaded.config().vocab_size);
  const std::shared_ptr<const Grammar> grammar = grammar_of(request, notes);
  if (grammar || request.min_tokens > 0 || !parameters.stop.empty() || parameters.sampling.dry.on()) loaded.tokenizer();
  GenerateOptions& options = task.options;
  options = loaded.llm().generate_options(parameters, request.chat != 0, grammar);
  const auto stop_tokens = input(request.stop_tokens, request.stop_token_count, "stop_tokens");
  check_tokens(stop_tokens, loaded.config().vocab_size);
  options.end_tokens.insert(options.end_tokens.end(), stop_tokens.begin(), stop_tokens.end());
  if (request.min_tokens > request.max_tokens) {
    throw UsageError(fmt::format("min_tokens is {}, expected at most max_tokens, which is {}", request.min_tokens,
                                 request.max_tokens));
  }
  if (request.min_tokens > 0) {
    options.constraint = with_least_tokens(request.min_tokens, std::move(options.constraint));
  }
  if (request.top_count > loaded.config().vocab_size) {
    throw UsageError(fmt::format("top_count is {}, expected at most the vocabulary's {}", request.top_count,
                                 loaded.config().vocab_size));
  }
  if (request.log_probabilities) options.scores = request.top_count;
  options.process = process_of(request, model);
}

// Gives the text of a handle to the queue, which reports to the handle.
void submit(minimind_generation& handle) {
  const auto end = [&handle](Generated result, std::exception_ptr error) {
    handle.ended = true;
    handle.result = std::move(result);
    handle.error = std::move(error);
    if (handle.session) handle.session->in_use = false;
    handle.weights.resize(handle.result.tokens.size(), handle.state->weights);
    handle.state->generations.erase(&handle);
  };
  ModelState& state = *handle.state;
  if (!handle.session) {
    const LLM& llm = state.loaded.llm();
    ContextPool::check_fits(llm.config, llm.kv_type, state.kv_memory, handle.task->capacity);
  }
  state.generations.insert(&handle);
  state.queue.submit({TextJob{.task = handle.task,
                              .gone = &handle.cancelled,
                              .on_text = [&handle](std::string_view piece, const Generation&) { handle.text += piece; },
                              .on_end = end,
                              .context = handle.session ? &handle.session->context : nullptr}});
  if (handle.session) handle.session->in_use = true;
}

// ---- Sessions and logits ----

// Throws Failure if something uses the session.
void check_unused(const SessionContext& session) {
  if (session.in_use) {
    throw Failure(MINIMIND_BUSY, "the session is used by a text that is being written; finish or release it first");
  }
}

// Throws Failure if a session cannot be used now.
void check_session(const SessionContext& session, const ModelState& state) {
  check_unused(session);
  if (session.context.size() > 0 && session.weights != state.weights) {
    throw Failure(MINIMIND_BUSY,
                  "the weights were replaced after the session's tokens were computed; rewind the session to 0");
  }
}

// Gives the text to the queue. Throws Failure if its session cannot be used now.
void start(minimind_generation& handle) {
  if (handle.session) {
    check_session(*handle.session, *handle.state);
    handle.session->weights = handle.state->weights;
  }
  submit(handle);
  handle.held = false;
}

std::unique_ptr<minimind_session> open_session(minimind_model& model, std::size_t capacity) {
  const LoadedModel& loaded = model.state->loaded;
  if (capacity > loaded.llm().positions) {
    throw UsageError(
        fmt::format("capacity is {}, expected at most the context length, {}", capacity, loaded.llm().positions));
  }
  Context context = loaded.llm().context(capacity > 0 ? capacity : loaded.llm().positions);
  auto session = std::make_unique<minimind_session>();
  session->state = model.state;
  session->session = std::make_shared<SessionContext>(SessionContext{.context = std::move(context)});
  return session;
}

// Throws Failure unless the weights are still those.
void check_weights(const ModelState& state, std::size_t weights) {
  if (weights == state.weights) return;
  throw Failure(MINIMIND_BUSY, "the weights were replaced while these tokens were computed; call again");
}

// Runs ids in batches, between which other threads have their turn. Calls use(first, logits) after each: the logits of
// those of its tokens that are among the last `rows`, and the index of the first of them.
template <class Use>
void run_ids(ModelState& state, Context& context, std::span<const std::int32_t> ids, std::size_t rows, Use&& use) {
  const std::size_t vocab_size = state.loaded.config().vocab_size;
  const std::size_t unseen = ids.size() - rows;
  std::vector<float> storage(std::min(rows, batch_tokens) * vocab_size);
  std::optional<std::size_t> weights;
  for (std::size_t done = 0; done < ids.size();) {
    const std::size_t count = std::min(batch_tokens, ids.size() - done);
    const std::size_t wanted = done + count - std::clamp(unseen, done, done + count);
    const Matrix<float> logits{storage.data(), wanted, vocab_size};
    {
      const std::lock_guard lock(state.mutex);
      check_weights(state, weights.value_or(state.weights));
      weights = state.weights;
      state.queue.forward().run(context, ids.subspan(done, count), logits);
    }
    use(done + count - wanted, as_const(logits));
    done += count;
  }
}

void check_ids(const LoadedModel& loaded, std::span<const std::int32_t> ids) {
  if (ids.empty() || ids.size() > loaded.llm().positions) {
    throw Failure(MINIMIND_BAD_INPUT,
                  fmt::format("there are {} ids, expected 1 to {}", ids.size(), loaded.llm().positions));
  }
  check_tokens(ids, loaded.config().vocab_size);
}

void check_proceed(minimind_proceed proceed, void* data, std::size_t done) {
  if (proceed && proceed(data, done) == 0) throw Failure(MINIMIND_INTERRUPTED, "interrupted by the caller's function");
}

void run_session(minimind_session& handle, std::span<const std::int32_t> ids, std::size_t rows, float* logits,
                 std::size_t capacity) {
  ModelState& state = *handle.state;
  SessionContext& session = *handle.session;
  const LoadedModel& loaded = state.loaded;
  check_ids(loaded, ids);
  if (rows > ids.size()) throw UsageError(fmt::format("rows is {}, expected at most the {} ids", rows, ids.size()));
  const std::size_t vocab_size = loaded.config().vocab_size;
  if (rows > 0) required(logits, "logits");
  check_room(capacity, rows * vocab_size);
  std::size_t before = 0;
  {
    const std::lock_guard lock(state.mutex);
    check_session(session, state);
    before = session.context.size();
    const std::size_t room = session.context.capacity() - before;
    if (ids.size() > room) {
      throw Failure(
          MINIMIND_BAD_INPUT,
          fmt::format("there are {} ids, expected at most {}, the room that the session has left", ids.size(), room));
    }
    session.in_use = true;
    session.weights = state.weights;
  }
  const std::size_t unseen = ids.size() - rows;
  try {
    run_ids(state, session.context, ids, rows, [&](std::size_t first, Matrix<const float> batch) {
      std::copy_n(batch.data, batch.rows * vocab_size, logits + (first - unseen) * vocab_size);
    });
  } catch (...) {
    const std::lock_guard lock(state.mutex);
    session.context.rewind(before);
    session.in_use = false;
    throw;
  }
  const std::lock_guard lock(state.mutex);
  session.in_use = false;
}

std::unique_ptr<minimind_recording> record_ids(ModelState& state, std::span<const std::int32_t> ids,
                                               const std::vector<std::string>& patterns,
                                               std::span<const std::size_t> layers,
                                               const std::function<void(std::size_t)>& progress) {
  std::unique_lock lock(state.mutex);
  const LLM& llm = state.loaded.llm();
  const std::size_t weights = state.weights;
  const auto give_others_their_turn = [&](std::size_t done) {
    lock.unlock();
    progress(done);
    lock.lock();
    check_weights(state, weights);
  };
  Recording recording = record(*llm.model, llm.kernels, llm.kv_type, chosen_points(*llm.model, patterns, layers), ids,
                               give_others_their_turn);
  std::vector<std::string> names;
  std::vector<std::vector<std::size_t>> shapes;
  for (std::size_t i = 0; i < recording.points().size(); ++i) {
    names.push_back(own_name(llm.config, recording.points()[i].name));
    shapes.push_back(recording.shape(i));
  }
  return std::unique_ptr<minimind_recording>(new minimind_recording{
      .failures = {}, .recording = std::move(recording), .names = std::move(names), .shapes = std::move(shapes)});
}

// ---- What a poll returns ----

void take_scores(minimind_generation& handle, std::span<const TokenScore> scores) {
  handle.log_probabilities.clear();
  handle.top_ids.clear();
  handle.top_log_probabilities.clear();
  for (const TokenScore& score : scores) {
    handle.log_probabilities.push_back(score.token.log_probability);
    for (const ScoredToken& top : score.top) {
      handle.top_ids.push_back(top.token);
      handle.top_log_probabilities.push_back(top.log_probability);
    }
  }
}

minimind_finish finish_of(const minimind_generation& handle) {
  if (!handle.ended) return MINIMIND_RUNNING;
  if (handle.error) return MINIMIND_FAILED;
  switch (handle.result.finish_reason) {
    case FinishReason::stop:
      return MINIMIND_STOP;
    case FinishReason::length:
      return MINIMIND_LENGTH;
    case FinishReason::interrupted:
      break;
  }
  return MINIMIND_CANCELLED;
}

void poll(minimind_generation& handle, minimind_output* given) {
  const std::lock_guard lock(handle.state->mutex);
  if (handle.held) start(handle);
  std::span<const std::int32_t> generated = handle.result.tokens;
  std::span<const TokenScore> scores = handle.result.scores;
  if (const Generation* const running = handle.state->queue.running(*handle.task)) {
    generated = running->generated();
    scores = running->scores();
  }
  const auto fresh = generated.subspan(handle.taken_tokens);
  handle.ids.assign(fresh.begin(), fresh.end());
  const bool scored = handle.task->options.scores.has_value();
  // A token that made the text fail may have no score.
  take_scores(handle, scored ? scores.subspan(std::min(handle.taken_tokens, scores.size())) : scores.first(0));
  if (scored) handle.ids.resize(handle.log_probabilities.size());
  if (!handle.ended) handle.weights.resize(generated.size(), handle.state->weights);
  const auto first = handle.weights.begin() + static_cast<std::ptrdiff_t>(handle.taken_tokens);
  handle.polled_weights.assign(first, first + static_cast<std::ptrdiff_t>(handle.ids.size()));
  handle.piece = std::exchange(handle.text, {});
  handle.taken_tokens += handle.ids.size();
  const bool has_news = !handle.piece.empty() || !handle.ids.empty();
  const minimind_finish finish = finish_of(handle);
  minimind_output output{};
  output.text = handle.piece.data();
  output.text_size = handle.piece.size();
  output.ids = handle.ids.data();
  output.id_count = handle.ids.size();
  if (scored) {
    output.log_probabilities = handle.log_probabilities.data();
    output.top_ids = handle.top_ids.data();
    output.top_log_probabilities = handle.top_log_probabilities.data();
    output.top_count = handle.top_count;
  }
  output.weights = handle.polled_weights.data();
  output.finish = finish == MINIMIND_FAILED && has_news ? MINIMIND_RUNNING : finish;
  output.conforms = handle.result.conforms;
  output.prompt_tokens = handle.task->prompt.size();
  output.prompt_tokens_reused = handle.result.prompt_tokens_reused;
  output.notes = handle.notes.c_str();
  write_structure(output, given, "minimind_output");
  if (output.finish == MINIMIND_FAILED) std::rethrow_exception(handle.error);
}

ChatJson delta_of(const AnswerEvent& event, std::size_t& calls) {
  switch (event.kind) {
    case AnswerEvent::Kind::thought:
      return {{"reasoning_content", event.text}};
    case AnswerEvent::Kind::tool_call:
    case AnswerEvent::Kind::arguments:    // only of a parser that streams calls
    case AnswerEvent::Kind::broken_call:  // likewise
      break;
    case AnswerEvent::Kind::text:
    case AnswerEvent::Kind::not_a_call:
      return {{"content", event.text}};
  }
  const std::size_t index = calls++;
  const ChatJson function{{"name", event.call.name}, {"arguments", event.call.arguments}};
  const ChatJson call{
      {"index", index}, {"id", fmt::format("call_{}", calls)}, {"type", "function"}, {"function", function}};
  return {{"tool_calls", ChatJson::array({call})}};
}

}  // namespace

// Takes the place of __cxa_atexit in the library, on Windows of atexit: its static objects are not destroyed when a
// program ends, because threads of the program, such as daemon threads of Python, may still call it then. Windows has
// ended the library's own threads by then, for which they would wait.
#if defined(__APPLE__)  // whose linker gives no function a second name
#define ignore_exit_handler __cxa_atexit
#endif
extern "C" int ignore_exit_handler(void (*)(void*), void*, void*) {
  return 0;
}

// ---- The functions of the header, in its order ----

int minimind_abi() {
  return MINIMIND_ABI;
}

const char* minimind_version() {
  return MINIMIND_VERSION;
}

void minimind_default_model_options(minimind_model_options* options, size_t size) {
  fill_defaults(default_options(), options, size);
}

minimind_status minimind_open(const char* path, const minimind_model_options* options, minimind_model** model,
                              minimind_error* error) {
  return opened(error, [&] {
    required(model, "model") = nullptr;
    const std::string file = &required(path, "path");
    const minimind_model_options read = read_structure(options, default_options(), "minimind_model_options");
    check_options(read);
    reading(files_of(file, read),
            [&] { *model = new minimind_model{.failures = {}, .state = std::make_shared<ModelState>(file, read)}; });
  });
}

void minimind_close(minimind_model* model) {
  delete model;
}

const char* minimind_model_error(const minimind_model* model) {
  return message_of_handle(model);
}

minimind_status minimind_get_facts(const minimind_model* model, minimind_facts* given) {
  return guarded(model, [&] {
    const std::lock_guard lock(model->state->mutex);
    const LoadedModel& loaded = model->state->loaded;
    const Config& config = loaded.config();
    minimind_facts facts{};
    facts.family = loaded.family().c_str();
    facts.path = loaded.path().c_str();
    facts.kv_type = loaded.kv_type_name().c_str();
    facts.kernels = loaded.llm().kernels.name;
    facts.notes = loaded.notes().c_str();
    facts.vocab_size = config.vocab_size;
    facts.hidden_size = config.hidden_size;
    facts.layers = config.num_hidden_layers;
    facts.heads = config.num_attention_heads;
    facts.kv_heads = config.num_key_value_heads;
    facts.head_dim = config.head_dim;
    facts.experts = config.num_experts;
    facts.parameters = loaded.parameters();
    facts.context_length = loaded.llm().positions;
    facts.threads = loaded.llm().threads;
    const auto& tokenizer = loaded.llm().tokenizer;
    facts.has_tokenizer = tokenizer.has_value();
    facts.eos_token = tokenizer ? tokenizer->eos_id().value_or(-1) : -1;
    facts.tokenizer_size = tokenizer ? tokenizer->vocab_size() : 0;
    write_structure(facts, given, "minimind_facts");
  });
}

minimind_status minimind_reload(minimind_model* model, const char* path) {
  return guarded(model, [&] {
    const std::string file = &required(path, "path");
    const std::lock_guard lock(model->state->mutex);
    reading({file}, [&] { model->state->replace_weights([&] { model->state->loaded.reload(file); }); });
  });
}

minimind_status minimind_load_tensors(minimind_model* model, const minimind_tensor* tensors, size_t count) {
  return guarded(model, [&] {
    const auto given = input(tensors, count, "tensors");
    for (const minimind_tensor& tensor : given) {
      input(tensor.shape, tensor.rank, "the shape of a tensor");
      input(static_cast<const char*>(tensor.data), tensor.bytes, "the data of a tensor");
    }
    const std::lock_guard lock(model->state->mutex);
    model->state->replace_weights([&] { model->state->loaded.load_tensors(given); });
  });
}

minimind_status minimind_keep_texts(minimind_model* model, int keep) {
  return guarded(model, [&] {
    const std::lock_guard lock(model->state->mutex);
    model->state->keep_texts = keep != 0;
  });
}

minimind_status minimind_encode(const minimind_model* model, const char* text, size_t text_size, int encoding,
                                int32_t* ids, size_t capacity, size_t* count) {
  return guarded(model, [&] {
    const std::string_view given = input_text(text, text_size, "text");
    const Tokenizer& tokenizer = model->state->loaded.tokenizer();
    switch (encoding) {
      case MINIMIND_ENCODE_TEXT:
        return output(tokenizer.encode(given), ids, capacity, count);
      case MINIMIND_ENCODE_SPECIAL:
        return output(tokenizer.encode_with_special(given), ids, capacity, count);
      case MINIMIND_ENCODE_PROMPT:
        return output(tokenizer.encode_prompt(given), ids, capacity, count);
    }
    throw UsageError(fmt::format("encoding is {}, expected one of minimind_encoding", encoding));
  });
}

minimind_status minimind_decode(const minimind_model* model, const int32_t* ids, size_t id_count, int skip_special,
                                char* text, size_t capacity, size_t* count) {
  return guarded(model, [&] {
    const auto given = input(ids, id_count, "ids");
    output(model->state->loaded.tokenizer().decode(given, skip_special != 0), text, capacity, count);
  });
}

minimind_status minimind_render(const minimind_model* model, const char* json, size_t json_size, char* text,
                                size_t capacity, size_t* count) {
  return guarded(model, [&] {
    const ChatInput conversation = parse_chat_input(input_text(json, json_size, "json"), "the conversation");
    output(model->state->loaded.chat_template().render(conversation, std::time(nullptr)).bytes, text, capacity, count);
  });
}

minimind_status minimind_chat_prompt(const minimind_model* model, const char* messages, size_t messages_size,
                                     const char* tools, size_t tools_size, int thinking, char* text, size_t capacity,
                                     size_t* count) {
  return guarded(model, [&] {
    output(chat_prompt(model->state->loaded, messages, messages_size, tools, tools_size, thinking).bytes, text,
           capacity, count);
  });
}

minimind_status minimind_chat_ids(const minimind_model* model, const char* messages, size_t messages_size,
                                  const char* tools, size_t tools_size, int thinking, int plain_content, int32_t* ids,
                                  size_t capacity, size_t* count) {
  return guarded(model, [&] {
    const LoadedModel& loaded = model->state->loaded;
    const MarkedText prompt = chat_prompt(loaded, messages, messages_size, tools, tools_size, thinking);
    const TextMarks marks = plain_content ? prompt.marks : TextMarks();
    output(loaded.tokenizer().encode_with_special(prompt.bytes, marks), ids, capacity, count);
  });
}

int minimind_proceed_until_set(void* data, size_t) {
  return *static_cast<const volatile int*>(data) == 0;
}

minimind_status minimind_logits(minimind_model* model, const int32_t* ids, size_t count, float* logits, size_t capacity,
                                minimind_proceed proceed, void* data) {
  return guarded(model, [&] {
    const auto given = input(ids, count, "ids");
    const LoadedModel& loaded = model->state->loaded;
    check_ids(loaded, given);
    const std::size_t vocab_size = loaded.config().vocab_size;
    check_room(capacity, count * vocab_size);
    required(logits, "logits");
    Context context = loaded.llm().context(count);
    run_ids(*model->state, context, given, count, [&](std::size_t first, Matrix<const float> batch) {
      std::copy_n(batch.data, batch.rows * vocab_size, logits + first * vocab_size);
      check_proceed(proceed, data, first + batch.rows);
    });
  });
}

minimind_status minimind_score(minimind_model* model, const int32_t* ids, size_t count, double* log_probabilities,
                               size_t capacity, minimind_proceed proceed, void* data) {
  return guarded(model, [&] {
    const auto given = input(ids, count, "ids");
    const LoadedModel& loaded = model->state->loaded;
    check_ids(loaded, given);
    check_room(capacity, count - 1);
    if (count == 1) return;
    required(log_probabilities, "log_probabilities");
    Context context = loaded.llm().context(count);
    run_ids(*model->state, context, given.first(count - 1), count - 1,
            [&](std::size_t first, Matrix<const float> batch) {
              for (std::size_t row = 0; row < batch.rows; ++row) {
                log_probabilities[first + row] =
                    score_token({batch.row(row), batch.cols}, given[first + row + 1], 0).token.log_probability;
              }
              check_proceed(proceed, data, first + batch.rows);
            });
  });
}

minimind_status minimind_trace(minimind_model* model, const int32_t* ids, size_t count, const char* const* patterns,
                               size_t pattern_count, const size_t* layers, size_t layer_count, minimind_proceed proceed,
                               void* data, minimind_recording** recording, size_t* recorded) {
  return guarded(model, [&] {
    required(recording, "recording") = nullptr;
    const auto given = input(ids, count, "ids");
    check_ids(model->state->loaded, given);
    auto made =
        record_ids(*model->state, given, texts_of(patterns, pattern_count, "patterns"),
                   input(layers, layer_count, "layers"), [&](std::size_t done) { check_proceed(proceed, data, done); });
    if (recorded) *recorded = made->names.size();
    *recording = made.release();
  });
}

minimind_status minimind_recording_point(const minimind_recording* recording, size_t index, minimind_point* point) {
  return guarded(recording, [&] {
    if (index >= recording->names.size()) {
      throw UsageError(fmt::format("index is {}, expected at most {}", index, recording->names.size() - 1));
    }
    const Recording& values = recording->recording;
    write_structure(minimind_point{.size = 0,
                                   .name = recording->names[index].c_str(),
                                   .formula = values.points()[index].formula.c_str(),
                                   .values = values.values(index).data(),
                                   .shape = recording->shapes[index].data(),
                                   .rank = recording->shapes[index].size()},
                    point, "minimind_point");
  });
}

void minimind_recording_close(minimind_recording* recording) {
  delete recording;
}

const char* minimind_recording_error(const minimind_recording* recording) {
  return message_of_handle(recording);
}

void minimind_default_request(minimind_request* request, size_t size) {
  fill_defaults(default_request_values(), request, size);
}

minimind_status minimind_submit(minimind_model* model, const minimind_request* request,
                                minimind_generation** generation) {
  return guarded(model, [&] {
    required(generation, "generation") = nullptr;
    const minimind_request read =
        read_structure(&required(request, "request"), default_request_values(), "minimind_request");
    if (read.session && read.session->state != model->state) {
      throw UsageError("the session is one of another model, expected one of this model");
    }
    auto handle = std::make_unique<minimind_generation>();
    handle->state = model->state;
    read_task(read, *model->state, *handle->task, handle->notes);
    handle->top_count = read.top_count;
    if (read.session) handle->session = read.session->session;
    handle->held = read.held != 0;
    const std::lock_guard lock(model->state->mutex);
    if (!handle->held) start(*handle);
    *generation = handle.release();
  });
}

minimind_status minimind_step(minimind_model* model, size_t* texts) {
  return guarded(model, [&] {
    const std::lock_guard lock(model->state->mutex);
    model->state->queue.step();
    model->state->free_released();
    if (texts) *texts = model->state->queue.texts();
  });
}

minimind_status minimind_poll(minimind_generation* generation, minimind_output* given) {
  return guarded(generation, [&] { poll(*generation, given); });
}

void minimind_cancel(minimind_generation* generation) {
  if (generation) generation->cancelled = true;
}

void minimind_release(minimind_generation* generation) {
  if (!generation) return;
  ModelState& state = *generation->state;
  const bool in_step = CallInStep::is_of(state);
  generation->failures.guard([&] {
    if (in_step) return state.release_later(*generation);
    const std::lock_guard lock(state.mutex);
    state.drop(*generation);
  });
  if (!in_step) delete generation;
}

const char* minimind_generation_error(const minimind_generation* generation) {
  return message_of_handle(generation);
}

minimind_status minimind_session_open(minimind_model* model, size_t capacity, minimind_session** session) {
  return guarded(model, [&] {
    required(session, "session") = nullptr;
    *session = open_session(*model, capacity).release();
  });
}

minimind_status minimind_session_run(minimind_session* session, const int32_t* ids, size_t count, size_t rows,
                                     float* logits, size_t capacity) {
  return guarded(session, [&] { run_session(*session, input(ids, count, "ids"), rows, logits, capacity); });
}

minimind_status minimind_session_ids(const minimind_session* session, int32_t* ids, size_t capacity, size_t* count) {
  return guarded(session, [&] {
    const std::lock_guard lock(session->state->mutex);
    output(session->session->context.tokens(), ids, capacity, count);
  });
}

minimind_status minimind_session_rewind(minimind_session* session, size_t count) {
  return guarded(session, [&] {
    const std::lock_guard lock(session->state->mutex);
    Context& context = session->session->context;
    if (count > context.size()) {
      throw UsageError(fmt::format("count is {}, expected at most the session's {} tokens", count, context.size()));
    }
    check_unused(*session->session);
    if (count > 0) check_session(*session->session, *session->state);
    context.rewind(count);
  });
}

minimind_status minimind_session_save(minimind_session* session, const char* path) {
  return guarded(session, [&] {
    const std::string file = &required(path, "path");
    const std::lock_guard lock(session->state->mutex);
    check_session(*session->session, *session->state);
    Context& context = session->session->context;
    ConversationState conversation;
    conversation.tokens.assign(context.tokens().begin(), context.tokens().end());
    save_session(file, session->state->loaded.identity(), conversation, context);
  });
}

minimind_status minimind_session_load(minimind_session* session, const char* path) {
  return guarded(session, [&] {
    const std::string file = &required(path, "path");
    const std::lock_guard lock(session->state->mutex);
    SessionContext& own = *session->session;
    check_unused(own);
    reading({file}, [&] { load_session(file, session->state->loaded.identity(), own.context); });
    own.weights = session->state->weights;
  });
}

void minimind_session_close(minimind_session* session) {
  delete session;
}

const char* minimind_session_error(const minimind_session* session) {
  return message_of_handle(session);
}

minimind_status minimind_answer_open(const char* prompt, size_t prompt_size, minimind_answer** answer,
                                     minimind_error* error) {
  return opened(error, [&] {
    required(answer, "answer") = nullptr;
    const ThinkState state = think_state(input_text(prompt, prompt_size, "prompt"));
    *answer = new minimind_answer{.failures = {}, .parser = AnswerParser(state), .calls = 0, .json = {}};
  });
}

minimind_status minimind_answer_push(minimind_answer* answer, const char* text, size_t text_size, int last,
                                     const char** json, size_t* json_size) {
  return guarded(answer, [&] {
    std::vector<AnswerEvent> events;
    answer->parser.push(input_text(text, text_size, "text"), events);
    if (last) answer->parser.finish(events);
    ChatJson deltas = ChatJson::array();
    for (const AnswerEvent& event : events) deltas.push_back(delta_of(event, answer->calls));
    answer->json = json_line(deltas);
    required(json, "json") = answer->json.c_str();
    if (json_size) *json_size = answer->json.size();
  });
}

void minimind_answer_close(minimind_answer* answer) {
  delete answer;
}

const char* minimind_answer_error(const minimind_answer* answer) {
  return message_of_handle(answer);
}
