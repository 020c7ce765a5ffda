#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/llm/text_queue.h"
#include "tools/batch/batch_lines.h"
#include "tools/batch/request_lines.h"
#include "tools/batch/result_files.h"
#include "tools/openai/request_error.h"
#include "tools/openai/text_model.h"
#include "tools/options/command_line.h"
#include "tools/options/generation_options.h"
#include "tools/options/help.h"
#include "tools/options/option_checks.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/progress.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// Instead of a name that requests may give the model.
constexpr std::string_view any_model = "any";

struct BatchCommand : GenerationArguments {
  std::string input;
  std::string output;
  std::string errors;
  std::string chat_template;
  std::string model_name;
  std::size_t first_line = 1;
  bool plain_content = false;
  ParallelArguments parallel;
};

// One request from its line to its result.
struct OpenRequest {
  std::size_t index;  // of the request
  LineId id;
  Request request;
  std::vector<TextTask> tasks;
  std::vector<TextAnswer> answers;  // [tasks]
  std::size_t ended = 0;            // texts
  bool failed = false;
};

// A text whose request has no seed gets one of the batch's that depends on the number of its line alone. Throws
// RequestError.
std::shared_ptr<OpenRequest> prepare(const TextModel& model, const RequestLine& line, const RequestDefaults& defaults,
                                     std::uint64_t seed, std::time_t now) {
  auto [request, custom_id] = parse_request(line.text, defaults);
  const std::uint64_t own_seed = seed + line.number - 1;
  std::vector<TextTask> tasks = model.tasks(request, own_seed, now);
  // The other texts of a request must not have the seeds of the next requests.
  for (std::size_t i = 0; i < tasks.size() && !request.seed; ++i) {
    tasks[i].options.sampling.seed = own_seed + (std::uint64_t{i} << 32);
  }
  const std::size_t texts = tasks.size();
  return std::make_shared<OpenRequest>(OpenRequest{.index = line.index,
                                                   .id = line.id(std::move(custom_id)),
                                                   .request = std::move(request),
                                                   .tasks = std::move(tasks),
                                                   .answers = std::vector<TextAnswer>(texts)});
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
  BatchRun(const BatchCommand& command, const TextModel& model, RequestLines& requests, RequestDefaults defaults,
           std::uint64_t seed, ResultFiles& files)
      : model_(model),
        requests_(requests),
        defaults_(std::move(defaults)),
        seed_(seed),
        texts_(command.parallel.texts),
        quiet_(command.run.quiet),
        queue_(model.llm(), {.parallel = texts_,
                             .kv_memory = command.parallel.kv_memory(command.run.quiet),
                             .step_tokens = batch_tokens,
                             .longest_step = std::numeric_limits<double>::infinity(),
                             .in_order = true}),
        results_(files),
        files_(files),
        progress_(std::string(translated("batch")), requests.size(), ProgressUnit::texts) {}

  std::size_t generated_tokens() const { return tokens_; }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void run() {
    const std::size_t done_before = files_.done();
    auto synced = Clock::now();
    while (files_.done() < requests_.size()) {
      fill();
      queue_.step();
      if (Clock::now() - synced > std::chrono::seconds(1)) {
        files_.sync();
        synced = Clock::now();
      }
      show_progress(done_before);
      message_.set(interrupted_now());
    }
    files_.sync();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Reads requests for the places that are free.
  void fill() {
    while (queue_.texts() < texts_ && results_.bytes() < most_waiting_bytes && read_request()) {
    }
  }

  // False if there is none. One that is wrong gets its error.
  bool read_request() {
    const std::optional<RequestLine> line = requests_.next();
    if (!line) return false;
    try {
      const std::shared_ptr<OpenRequest> open = prepare(model_, *line, defaults_, seed_, now_);
      note_hints(open->request.hints);
      std::vector<TextJob> jobs;
      for (std::size_t i = 0; i < open->tasks.size(); ++i) {
        jobs.push_back({.task = {open, &open->tasks[i]},
                        .on_end = [this, open, i](Generated generated, const std::exception_ptr& error) {
                          end(*open, i, std::move(generated), error);
                        }});
      }
      queue_.submit(std::move(jobs));
    } catch (const RequestError& error) {
      results_.add(line->index, error_line(line->id(), error), true);
    }
    return true;
  }

  // Names each field that changes nothing once.
  void note_hints(const std::vector<std::string>& hints) {
    for (const std::string& hint : hints) {
      if (hints_.insert(hint).second && !quiet_) note("requests have {}, which changes nothing here", hint);
    }
  }

  void end(OpenRequest& open, std::size_t text, Generated generated, const std::exception_ptr& error) {
    if (error) {
      try {
        std::rethrow_exception(error);
      } catch (const Error& known) {
        if (std::exchange(open.failed, true)) return;
        return results_.add(open.index, error_line(open.id, RequestError(known.what(), "")), true);
      }
    }
    TextAnswer& answer = open.answers[text];
    answer.generated = std::move(generated);
    tokens_ += answer.generated.tokens.size();
    read_answer(answer, open.tasks[text], tool_call_count(open.request.messages) + 1);
    if (++open.ended < open.tasks.size()) return;  // never all of a request of which one has failed
    results_.add(open.index,
                 response_line(open.id, model_, open.request, open.tasks.front(), open.answers, requests_.written()),
                 false);
  }

  std::string interrupted_now() const {
    return localized("interrupted after {} of {} requests; the same command continues", files_.done(),
                     requests_.size());
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

  const TextModel& model_;
  RequestLines& requests_;
  RequestDefaults defaults_;
  const std::uint64_t seed_;
  const std::time_t now_ = std::time(nullptr);  // that templates see
  const std::size_t texts_;                     // at once
  const bool quiet_;
  std::set<std::string> hints_;  // that were named
  TextQueue queue_;
  OrderedResults results_;
  ResultFiles& files_;
  std::size_t tokens_ = 0;
  const Clock::time_point start_ = Clock::now();
  Progress progress_;
  InterruptMessage message_{interrupted_now()};
};

int run_batch(const BatchCommand& command) {
  RequestDefaults defaults = defaults_of(command);
  defaults.one_prompt = true;
  defaults.plain_content = command.plain_content;
  const std::uint64_t seed = *std::exchange(defaults.parameters.seed, std::nullopt);
  const std::string errors = command.errors.empty() ? command.output + ".errors" : command.errors;
  require_two_files("IN", command.input, "--output", command.output);
  require_two_files("IN", command.input, "--errors", errors);
  require_two_files("--output", command.output, "--errors", errors);
  RequestLines requests(command.input, command.first_line);
  ResultFiles files(command.output, errors, requests);
  if (files.done() == requests.size()) {
    if (!command.run.quiet) {
      note(
          "{}: all {} requests have results or errors already, which stay if requests or options have changed; remove "
          "this file and {} to start over",
          command.output, requests.size(), errors);
    }
    return 0;
  }
  if (files.done() > 0 && !command.run.quiet) {
    note("{}: continuing after {} of {} requests; their results and errors stay if requests or options have changed",
         command.output, files.done(), requests.size());
  }
  const TextModel model(command, command.chat_template);
  if (command.model_name != any_model) defaults.model_names = model.names();
  if (!defaults.model_names.empty() && !command.model_name.empty()) defaults.model_names.push_back(command.model_name);
  if (!command.sampling.given.seed && !command.run.quiet) {
    note("seed {} plus the number of lines before it, for a request without one", seed);
  }
  BatchRun run(command, model, requests, std::move(defaults), seed, files);
  run.run();
  if (!command.run.quiet) {
    note("{} of {} requests done; {} tokens at {:.0f}/s", files.done(), requests.size(), run.generated_tokens(),
         static_cast<double>(run.generated_tokens()) / run.seconds());
    if (files.errors() > 0)
      note("{}: has the errors of {}", errors, counted(files.errors(), "{} request", "{} requests"));
  }
  return 0;
}

}  // namespace

Command add_batch(CommandOptions& command) {
  auto options = std::make_shared<BatchCommand>();
  command
      .add_positional("IN", options->input,
                      bilingual("JSONL file of requests, one per line", "请求的 JSONL 文件，每行一个"))
      ->required();
  command
      .add_option("-o,--output", options->output, common_group, "FILE",
                  bilingual("JSONL file for the results, in the order of the requests",
                            "写入结果的 JSONL 文件，顺序与请求一致"))
      ->required();
  command.add_option("--errors", options->errors, output_group, "FILE",
                     bilingual("JSONL file for the errors (default: the output's name and .errors)",
                               "写入错误的 JSONL 文件（默认：输出文件名加 .errors）"));
  options->add_to(command);
  command
      .add_option("--model-name", options->model_name, prompt_group, "NAME",
                  bilingual("another name that requests may give the model; any: they may give it any name",
                            "请求中的模型也可用此名称；any：可用任意名称"))
      ->check(not_empty);
  command
      .add_option("--first-line", options->first_line, prompt_group, "N",
                  bilingual("number of IN's first line, if IN is a part of another file (default: 1)",
                            "输入第一行的行号，用于输入是另一文件一部分的情况（默认：1）"))
      ->transform(whole_number(1, std::numeric_limits<std::uint32_t>::max()));
  add_template(command, options->chat_template);
  add_plain_content(command, options->plain_content);
  options->parallel.add_to(command);
  command.footer(
      bilingual("A request is a line of OpenAI's batch API, {\"custom_id\": ..., \"method\": \"POST\", \"url\": "
                "\"/v1/chat/completions\", \"body\": {...}}, or a body alone: {\"messages\": [...]} or {\"prompt\": "
                "...}, text or token ids. The sampling options are for requests that do not say. A batch that was "
                "stopped continues with the same command.",
                "请求为 OpenAI 批处理格式的一行：{\"custom_id\": ..., \"method\": \"POST\", \"url\": "
                "\"/v1/chat/completions\", \"body\": {...}}，或仅有 body：{\"messages\": [...]} 或 {\"prompt\": "
                "...}（文本或词元 id）。采样选项用于未指定的请求。中断后用同一命令继续。"));
  return [options] { return run_batch(*options); };
}

}  // namespace minimind
