#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "runtime/chat/answer_parser.h"
#include "runtime/chat/conversation_prompt.h"
#include "runtime/generate/context_pool.h"
#include "runtime/generate/scheduler.h"
#include "runtime/tokenizer/files.h"
#include "tools/batch/request.h"
#include "tools/batch/request_lines.h"
#include "tools/batch/response.h"
#include "tools/batch/result_files.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/commands.h"
#include "tools/options/find_template.h"
#include "tools/options/generation_limits.h"
#include "tools/options/generation_options.h"
#include "tools/options/load_engine.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/note.h"
#include "tools/terminal/progress.h"
#include "weights/io/error.h"

namespace minimind {
namespace {

struct BatchCommand : GenerationArguments {
  std::string input;
  std::string output;
  std::string errors;
  std::string chat_template;
  std::size_t parallel = 16;
  std::optional<std::size_t> kv_memory_mb;
};

// Half of what the system says could be had without swapping.
std::size_t default_kv_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (std::size_t kilobytes = 0; file >> name >> kilobytes; std::getline(file, unit)) {
    if (name == "MemAvailable:") return kilobytes * 1024 / 2;
  }
  return std::size_t{1} << 30;
}

std::size_t kv_memory(const BatchCommand& command) {
  if (command.kv_memory_mb) return *command.kv_memory_mb * 1'000'000;
  const std::size_t bytes = default_kv_memory();
  if (!command.run.quiet) {
    note("keys and values may take {:.1f} GB, half of the memory that is free; --kv-memory sets another limit",
         1e-9 * static_cast<double>(bytes));
  }
  return bytes;
}

// What all requests share.
struct BatchModel {
  explicit BatchModel(const BatchCommand& command)
      : engine(load_engine(command.checkpoint, command.run)),
        tokenizer_data(read_tokenizer(require_tokenizer_path(command.tokenizer, command.checkpoint.model))),
        tokenizer(tokenizer_data),
        chat_template(
            template_or_family(command.chat_template, tokenizer_data, engine.model.config.family, command.run.quiet)),
        positions(context_size(command.context, engine.model.config, command.run.quiet)),
        end(end_tokens(engine, &tokenizer)),
        tags(answer_tag_tokens(tokenizer)) {
    if (!command.run.quiet) {
      warn_of_misfit(tokenizer, engine.model.config);
      print_assumed_end(engine, &tokenizer);
    }
  }

  // Made for the first request with a grammar: few batches have one.
  std::shared_ptr<const TokenTrie> token_trie() const {
    if (!trie) trie = make_token_trie(tokenizer);
    return trie;
  }

  Engine engine;
  TokenizerData tokenizer_data;
  Tokenizer tokenizer;
  ChatTemplate chat_template;
  std::size_t positions;  // of a text
  std::vector<std::int32_t> end;
  std::vector<std::int32_t> tags;                 // tokens of an answer's structure, which are part of its text
  mutable std::shared_ptr<const TokenTrie> trie;  // null: not made yet
};

// One request from its line to its result.
struct Text {
  std::size_t index;  // of the request
  LineId id;
  Request request;
  ThinkState thinks = ThinkState::none;
  std::vector<std::int32_t> prompt{};
  GenerateOptions options{};
  std::size_t capacity = 0;
  Context* context = nullptr;
  std::unique_ptr<Generation> generation{};
};

std::vector<std::int32_t> encode_prompt(const BatchModel& model, Text& text, std::time_t now) {
  const Request& request = text.request;
  if (!request.tokens.empty()) return request.tokens;
  if (!request.chat) return model.tokenizer.encode(request.prompt);
  const PromptSettings settings{.tools = request.tools, .think = request.think, .now = now};
  const std::string prompt = render_prompt(model.chat_template, settings, request.messages, true);
  text.thinks = think_state(prompt);
  if (request.grammar && text.thinks == ThinkState::open) {
    throw RequestError("response_format is for the answer, but the prompt starts a thought; turn thinking off",
                       "response_format");
  }
  return model.tokenizer.encode_with_special(prompt);
}

// Throws RequestError.
std::unique_ptr<Text> prepare(const BatchModel& model, const RequestLine& line, const RequestDefaults& defaults,
                              std::time_t now) {
  Request parsed = parse_request(line.text, defaults);
  auto text =
      std::make_unique<Text>(Text{.index = line.index, .id = line.id(parsed.custom_id), .request = std::move(parsed)});
  Request& request = text->request;
  // Each text without a seed of its own has another one, which does not depend on what runs beside it.
  if (!request.has_seed) request.sampling.seed += line.index;
  try {
    text->prompt = encode_prompt(model, *text, now);
    check_tokens(text->prompt, model.engine.model.config.vocab_size);
    check(request.sampling);
  } catch (const RequestError&) {
    throw;
  } catch (const Error& error) {
    throw RequestError(error.what(), request.chat ? "messages" : "prompt");
  }
  if (text->prompt.empty() || text->prompt.size() >= model.positions) {
    throw RequestError(fmt::format("the prompt has {} tokens, expected 1 to {}, one fewer than the context holds",
                                   text->prompt.size(), model.positions - 1),
                       request.chat ? "messages" : "prompt", "context_length_exceeded");
  }
  text->options.max_tokens = request.max_tokens;
  text->options.end_tokens = model.end;
  text->options.stop = request.stop;
  if (request.chat) text->options.text_tokens = model.tags;
  text->options.sampling = request.sampling;
  text->options.grammar = request.grammar;
  if (request.grammar) text->options.token_trie = model.token_trie();
  text->capacity = std::min(model.positions, text->prompt.size() + request.max_tokens);
  return text;
}

// The lines of results wait here until those of all requests before them are written.
class OrderedResults {
 public:
  explicit OrderedResults(ResultFiles& files) : files_(files), next_(files.done()) {}

  std::size_t bytes() const { return bytes_; }  // of the lines that wait

  void add(std::size_t index, std::string line, bool is_error) {
    bytes_ += line.size();
    waiting_.emplace(index, Line{std::move(line), is_error});
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_; first = waiting_.begin()) {
      files_.append(first->second.text, first->second.is_error);
      bytes_ -= first->second.text.size();
      waiting_.erase(first);
      ++next_;
    }
  }

 private:
  struct Line {
    std::string text;
    bool is_error;
  };
  ResultFiles& files_;
  std::size_t next_;
  std::size_t bytes_ = 0;
  std::map<std::size_t, Line> waiting_;
};

// Of results that wait for that of a long text. Until it is there, no other texts start.
constexpr std::size_t most_waiting_bytes = std::size_t{16} << 20;

class BatchRun {
 public:
  BatchRun(const BatchCommand& command, const BatchModel& model, RequestLines& requests, RequestDefaults defaults,
           ResultFiles& files, const std::atomic<bool>& interrupted)
      : model_(model),
        requests_(requests),
        defaults_(std::move(defaults)),
        interrupted_(interrupted),
        forward_(model.engine.forward(batch_tokens, model.positions)),
        scheduler_(forward_, command.parallel, std::numeric_limits<double>::infinity()),
        pool_(model.engine.model.config, model.engine.kv_type, kv_memory(command)),
        results_(files),
        files_(files),
        progress_(std::string(translated("batch")), requests.size(), ProgressUnit::texts) {}

  std::size_t generated_tokens() const { return tokens_; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void run() {
    const std::size_t done_before = files_.done();
    auto synced = Clock::now();
    while (!interrupted_ && files_.done() < requests_.size()) {
      fill();
      for (const auto& [generation, error] : scheduler_.step()) finish(generation, error);
      if (Clock::now() - synced > std::chrono::seconds(1)) {
        files_.sync();
        synced = Clock::now();
      }
      show_progress(done_before);
    }
    files_.sync();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Starts as many requests as there are places and memory for.
  void fill() {
    while (!interrupted_ && !scheduler_.full() && results_.bytes() < most_waiting_bytes) {
      if (!waiting_ && !read_request()) return;
      if (!waiting_) continue;
      if (!start(*waiting_)) return;
      if (waiting_->generation) texts_.push_back(std::move(waiting_));
      waiting_.reset();
    }
  }

  // False if there is none. One that is wrong gets its error.
  bool read_request() {
    const std::optional<RequestLine> line = requests_.next();
    if (!line) return false;
    try {
      waiting_ = prepare(model_, *line, defaults_, now_);
    } catch (const RequestError& error) {
      results_.add(line->index, error_line(line->id(), error), true);
    }
    return true;
  }

  // False if there is no memory before another text ends, or another text computes its prefix. A request that can never
  // run gets its error.
  bool start(Text& text) {
    try {
      text.context = pool_.acquire(text.prompt, text.capacity);
      if (!text.context) return false;
      text.generation = std::make_unique<Generation>(
          model_.engine.model, *text.context, &model_.tokenizer, text.prompt, text.options, [](std::string_view) {},
          interrupted_);
      scheduler_.add(*text.generation);
    } catch (const Error& error) {
      fail(text, error.what());
    }
    return true;
  }

  void fail(Text& text, const std::string& message) {
    results_.add(text.index, error_line(text.id, RequestError(message, "")), true);
    if (text.context) pool_.release(text.context);
    text.generation.reset();
  }

  void finish(Generation* generation, const std::exception_ptr& error) {
    const auto found = std::ranges::find(texts_, generation, [](const auto& text) { return text->generation.get(); });
    const std::unique_ptr<Text> text = std::move(*found);
    texts_.erase(found);
    if (interrupted_) return;
    if (error) {
      try {
        std::rethrow_exception(error);
      } catch (const Error& known) {
        return fail(*text, known.what());
      }
    }
    const Generated result = text->generation->finish();
    tokens_ += result.tokens.size();
    const Message answer = text->request.grammar
                               ? Message{.role = Role::assistant, .content = result.text}
                               : parse_answer(result.text, text->thinks, tool_call_count(text->request.messages) + 1);
    results_.add(text->index,
                 response_line(text->id, defaults_.model_names.front(), text->request, result, answer,
                               text->prompt.size(), std::time(nullptr)),
                 false);
    pool_.release(text->context);
  }

  void show_progress(std::size_t done_before) {
    const std::size_t done = files_.done();
    const double left = done > done_before ? seconds() / static_cast<double>(done - done_before) *
                                                 static_cast<double>(requests_.size() - done)
                                           : 0;
    const auto whole_seconds = static_cast<long>(left);
    progress_.show(done, fmt::format("{:.0f}/s {}:{:02}:{:02}", static_cast<double>(tokens_) / seconds(),
                                     whole_seconds / 3600, whole_seconds / 60 % 60, whole_seconds % 60));
  }

  const BatchModel& model_;
  RequestLines& requests_;
  RequestDefaults defaults_;
  const std::atomic<bool>& interrupted_;
  const std::time_t now_ = std::time(nullptr);  // that templates see
  Forward forward_;
  Scheduler scheduler_;
  ContextPool pool_;
  OrderedResults results_;
  ResultFiles& files_;
  std::unique_ptr<Text> waiting_;  // for memory
  std::vector<std::unique_ptr<Text>> texts_;
  std::size_t tokens_ = 0;
  const Clock::time_point start_ = Clock::now();
  Progress progress_;
};

RequestDefaults defaults_of(const BatchCommand& command) {
  const std::filesystem::path model = model_path(command.checkpoint.model);
  return {.sampling = command.sampling.sampling(),
          .grammar = command.sampling.grammar(command.run.quiet),
          .max_tokens = command.max_tokens,
          .model_names = {model.stem().string(), model.filename().string(), model.string(), "minimind"}};
}

int run_batch(const BatchCommand& command) {
  RequestDefaults defaults = defaults_of(command);
  const std::string errors = command.errors.empty() ? command.output + ".errors" : command.errors;
  require_two_files("IN", command.input, "--output", command.output);
  require_two_files("IN", command.input, "--errors", errors);
  require_two_files("--output", command.output, "--errors", errors);
  RequestLines requests(command.input);
  ResultFiles files(command.output, errors, requests);
  if (files.done() == requests.size()) {
    if (!command.run.quiet) note("{}: has the results of all {} requests already", command.output, requests.size());
    return 0;
  }
  if (files.done() > 0 && !command.run.quiet) {
    note("{}: continuing after {} of {} requests", command.output, files.done(), requests.size());
  }
  const BatchModel model(command);
  if (!command.sampling.seed && !command.run.quiet) {
    note("seed {} plus the number of requests before it, for a request without one", defaults.sampling.seed);
  }
  const std::atomic<bool>& interrupted = watch_interrupts();
  BatchRun run(command, model, requests, std::move(defaults), files, interrupted);
  run.run();
  if (!command.run.quiet) {
    note("{} of {} requests done; {} tokens at {:.0f}/s", files.done(), requests.size(), run.generated_tokens(),
         static_cast<double>(run.generated_tokens()) / run.seconds());
    if (files.errors() > 0) note("{}: has the errors of {} requests", errors, files.errors());
    if (interrupted) note("interrupted; the same command continues");
  }
  return interrupted ? interrupted_status() : 0;
}

}  // namespace

Command add_batch(CLI::App& app) {
  auto options = std::make_shared<BatchCommand>();
  CLI::App* command = app.add_subcommand("batch", "generate many texts at once, from a file of requests");
  command->add_option("IN", options->input, "JSONL file of requests, one per line")->required()->check(not_empty);
  command->add_option("-o,--output", options->output, "JSONL file for the results, in the order of the requests")
      ->required()
      ->check(not_empty);
  command->add_option("--errors", options->errors,
                      "JSONL file for the errors (default: the output's name and .errors)");
  options->add_to(*command, "at most N tokens per text, unless its request says");
  add_template(*command, options->chat_template);
  command->add_option("--parallel", options->parallel, "generate up to N texts at once")
      ->capture_default_str()
      ->transform(whole_number(1, batch_tokens - 1));
  command
      ->add_option("--kv-memory", options->kv_memory_mb,
                   "memory for the keys and values of all texts, in MB (default: half of what is free)")
      ->transform(whole_number(1, 1 << 30));
  command->footer(
      "A request is a line of OpenAI's batch API, {\"custom_id\": ..., \"method\": \"POST\", \"url\": "
      "\"/v1/chat/completions\", \"body\": {...}}, or a body alone: {\"messages\": [...]} or {\"prompt\": ...}, text "
      "or "
      "token ids. The sampling options are for requests that do not say. A batch that was stopped continues with the "
      "same command.");
  return [options] { return run_batch(*options); };
}

}  // namespace minimind
