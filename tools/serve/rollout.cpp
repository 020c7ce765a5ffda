#include "tools/serve/rollout.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/generate/check_sampling.h"
#include "runtime/text/utf8.h"
#include "tools/openai/answer_body.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/constraint_fields.h"
#include "tools/openai/request_error.h"

namespace minimind {
namespace {

constexpr std::size_t most_texts_of_rollout = 65536;

// How other servers find a place for a request, and what they log of it.
constexpr auto rollout_hints = {"priority", "session_id",  "conversation_id",    "routing_key",
                                "no_logs",  "log_metrics", "data_parallel_rank", "routed_dp_rank"};

// What a rollout asks for beyond a completion.
struct RolloutRequest {
  Request texts;
  bool is_list = false;                       // the answer is a list
  bool with_texts = false;                    // log-probabilities have the texts of their tokens
  bool with_special_tokens = false;           // texts have them
  bool with_ends = false;                     // texts have what ended them
  std::optional<std::size_t> first_scored{};  // token of the prompt, from which it has log-probabilities
  std::vector<std::string> ids{};             // of the texts: one of each, or the start of all; empty: any
};

void read_prompts(const BodyFields& body, RolloutRequest& request) {
  const ChatJson* const ids = body.find("input_ids");
  const ChatJson* const text = body.find("text");
  if ((ids != nullptr) == (text != nullptr)) {
    throw RequestError("the prompt is missing or given twice, expected either input_ids or text",
                       ids ? "text" : "input_ids", "missing_required_parameter");
  }
  const char* const name = ids ? "input_ids" : "text";
  const ChatJson& given = ids ? *ids : *text;
  request.is_list = given.is_array() && (text || given.empty() || !is_token(given.front()));
  for (std::size_t i = 0; i < (request.is_list ? given.size() : 1); ++i) {
    const ChatJson& prompt = request.is_list ? given[i] : given;
    const bool fits = ids ? is_token_list(prompt) : prompt.is_string();
    if (!fits || prompt.empty()) body.fail(name, ids ? "a list of ids, or a list of such lists" : "a text, or a list");
    request.texts.prompts.push_back(ids ? TextPrompt{.tokens = prompt.get<std::vector<std::int32_t>>()}
                                        : TextPrompt{.text = prompt.get<std::string>()});
  }
  if (request.texts.prompts.empty()) body.fail(name, "at least one prompt");
}

void read_sampling_params(const ChatJson& object, RolloutRequest& request) {
  BodyFields fields(object, "sampling_params");
  request.texts.sampling = sampling_off();
  // Only a null of SGLang's length says something: that there is no limit.
  request.texts.max_tokens = object.contains("max_new_tokens") ? largest_whole : 128;
  fields.read_parameters(request.texts, Dialect::sglang);
  request.texts.sampling.logit_bias = read_logit_bias(fields);
  request.texts.n = request.texts.best_of = fields.whole("n", 1, 1024).value_or(1);
  TextConstraint constraint = read_sglang_constraint(fields);
  request.texts.grammar = std::move(constraint.grammar);
  request.texts.grammar_param = std::move(constraint.field);
  read_ends(fields, Dialect::sglang, request.texts);
  require_no_other_sampling(fields, Dialect::sglang);
  request.with_special_tokens = !fields.flag("skip_special_tokens").value_or(true);
  request.with_ends = fields.flag("no_stop_trim").value_or(false);
  fields.require("custom_params", ChatJson::object());
  fields.reject_the_rest();
}

void read_scores(const BodyFields& body, RolloutRequest& request) {
  const bool scored = body.flag("return_logprob").value_or(false);
  const std::size_t top = body.whole("top_logprobs_num", 0, 100).value_or(0);
  request.with_texts = body.flag("return_text_in_logprobs").value_or(false);
  const ChatJson* const start = body.find("logprob_start_len");
  if (start && *start != -1) request.first_scored = body.whole("logprob_start_len", 0, largest_whole);
  if (!scored) {
    request.first_scored.reset();
    return;
  }
  request.texts.logprobs = top;
  if (request.first_scored) request.texts.prompt_logprobs = top;
  if (!request.texts.stream) return;
  throw RequestError("return_logprob is for whole answers, but stream is true; expected one of them", "return_logprob");
}

void read_ids(const BodyFields& body, RolloutRequest& request) {
  request.ids = body.short_texts("rid", most_texts_of_rollout);
  const std::size_t texts = request.texts.text_count();
  if (request.ids.size() > 1 && request.ids.size() != texts) {
    body.fail("rid", fmt::format("a string, or one for each of the {} texts", texts));
  }
}

RolloutRequest read_rollout(const ChatJson& object) {
  RolloutRequest request;
  BodyFields body(object);
  read_prompts(body, request);
  const ChatJson none = ChatJson::object();
  const ChatJson* const params = body.object("sampling_params");
  read_sampling_params(params ? *params : none, request);
  request.is_list = request.is_list || request.texts.n > 1;
  if (request.texts.text_count() > most_texts_of_rollout) {
    throw RequestError(fmt::format("the request is for more than {} texts", most_texts_of_rollout), "input_ids");
  }
  request.texts.stream = body.flag("stream").value_or(false);
  read_scores(body, request);
  read_ids(body, request);
  for (const char* const name : {"image_data", "video_data", "audio_data", "token_ids_logprob"}) {
    body.require(name, ChatJson::array());
  }
  body.require("lora_path", "");
  for (const char* const name : {"return_hidden_states", "return_routed_experts"}) body.require(name, false);
  body.take_hints(rollout_hints, request.texts.hints);
  body.reject_the_rest();
  return request;
}

// The texts of a rollout, which it sends together or as a stream.
class Rollout {
 public:
  Rollout(const TextModel& model, RolloutRequest request, std::shared_ptr<HttpAnswer> answer)
      : model_(model), request_(std::move(request)), answer_(std::move(answer)) {}

  static void start(const std::shared_ptr<Rollout>& rollout, const SubmitTexts& submit, const TakeSeeds& take_seeds) {
    std::vector<TextJob> jobs;
    for (TextTask& task : rollout->tasks(take_seeds(rollout->request_.texts.text_count()))) {
      const std::size_t index = jobs.size();
      rollout->add_text(task);
      jobs.push_back({
          .task = std::make_shared<const TextTask>(std::move(task)),
          .gone = &rollout->answer_->gone(),
          .behind = &rollout->answer_->behind(),
          .on_text = {},
          .on_end = [rollout, index](
                        Generated generated,
                        const std::exception_ptr& error) { rollout->on_end(index, std::move(generated), error); },
      });
      if (!rollout->request_.texts.stream) continue;
      jobs.back().on_text = [rollout, index](std::string_view piece, const Generation& generation) {
        rollout->on_text(index, piece, generation);
      };
    }
    submit(std::move(jobs));
  }

 private:
  struct Text {
    std::string id;
    std::size_t prompt_tokens = 0;
    std::int32_t first_scored = 0;  // token of the prompt, if there is one
    Generated result{};             // once it has ended, or how much of the prompt was in the context
    bool ended = false;
    std::string text{}, ids{};  // in a stream, so far: the insides of a JSON string and a list
    std::size_t tokens = 0;
  };

  std::vector<TextTask> tasks(std::uint64_t seed) const {
    std::vector<TextTask> tasks;
    try {
      tasks = model_.tasks(request_.texts, seed, 0);
    } catch (const RequestError& error) {
      const std::string& param = error.param();
      const char* const prompt = request_.texts.prompts.front().tokens.empty() ? "text" : "input_ids";
      if (param == "prompt") throw RequestError(error.what(), prompt, error.code());
      if (param.ends_with("logprobs")) throw RequestError(error.what(), "return_logprob", error.code());
      throw;
    }
    if (!request_.with_special_tokens) return tasks;
    const Tokenizer& tokenizer = model_.tokenizer();
    std::vector<std::int32_t> special;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(tokenizer.vocab_size()); ++id) {
      if (tokenizer.is_special(id)) special.push_back(id);
    }
    for (TextTask& task : tasks) task.options.text_tokens = special;
    return tasks;
  }

  void add_text(const TextTask& task) {
    const std::size_t index = texts_.size(), first = request_.first_scored.value_or(0);
    if (first > task.prompt.size()) {
      throw RequestError(fmt::format("logprob_start_len is {}, expected at most {}, the tokens of the prompt", first,
                                     task.prompt.size()),
                         "logprob_start_len");
    }
    const auto& ids = request_.ids;
    const bool share = ids.size() == 1 && request_.texts.text_count() > 1;
    texts_.push_back({.id = ids.empty() ? unique_id("")
                            : share     ? fmt::format("{}_{}", ids.front(), index)
                                        : ids[index],
                      .prompt_tokens = task.prompt.size(),
                      .first_scored = first < task.prompt.size() ? task.prompt[first] : 0});
  }

  void on_text(std::size_t index, std::string_view piece, const Generation& generation) {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    Text& text = texts_[index];
    const std::string written = json_line(ChatJson(piece));
    text.text += std::string_view(written).substr(1, written.size() - 2);
    for (const std::int32_t id : generation.generated().subspan(text.tokens)) {
      text.ids += fmt::format("{}{}", text.ids.empty() ? "" : ", ", id);
    }
    text.tokens = generation.generated().size();
    text.result.prompt_tokens_reused = text.prompt_tokens - generation.prompt_tokens();
    // The model waits for it, and it is as long as the text: no objects are made of that.
    write(index, fmt::format(R"({{"text": "{}", "output_ids": [{}], "meta_info": {}}})", text.text, text.ids,
                             json_line(meta_json(text))));
  }

  void on_end(std::size_t index, Generated generated, const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    ++ended_;
    if (failed_ || answer_->gone()) return;
    if (error) return fail(error);
    texts_[index].result = std::move(generated);
    texts_[index].ended = true;
    texts_[index].tokens = texts_[index].result.tokens.size();
    if (request_.texts.stream) write(index, json_line(result_json(texts_[index])));
    if (ended_ == texts_.size()) finish();
  }

  // Writes an event of a stream: an object with all of a text so far.
  void write(std::size_t index, std::string_view object) {
    if (!std::exchange(streaming_, true)) answer_->start("text/event-stream; charset=utf-8");
    object.remove_suffix(1);  // its last brace
    const std::string place = request_.is_list ? fmt::format(R"(, "index": {})", index) : "";
    answer_->write(fmt::format("data: {}{}}}\n\n", object, place));
  }

  void fail(const std::exception_ptr& error) {
    failed_ = true;
    const RequestError known = request_error_of(error);
    if (!streaming_) return send_error(*answer_, known);
    answer_->write(AnswerChunks::error(error_body(known)));
    answer_->finish();
  }

  void finish() {
    if (request_.texts.stream) {
      answer_->write(AnswerChunks::done());
      return answer_->finish();
    }
    ChatJson list = ChatJson::array();
    for (const Text& text : texts_) list.push_back(result_json(text));
    answer_->send(200, json_type, json_line(request_.is_list ? list : list.at(0)));
  }

  // The text of all tokens, also of what ended it.
  std::string whole_text(const Generated& result) const {
    return model_.tokenizer().decode(result.tokens, !request_.with_special_tokens);
  }

  // What ended a text: a stop string, or a token.
  ChatJson matched(const Generated& result) const {
    const std::int32_t last = result.tokens.back();
    const std::vector<std::string>& stops = request_.texts.stop;
    if (stops.empty() || model_.tokenizer().is_special(last)) return last;
    const std::string whole = whole_text(result);
    const std::string_view rest = std::string_view(whole).substr(std::min(result.text.size(), whole.size()));
    const std::string* found = nullptr;
    for (const std::string& stop : stops) {
      if (rest.starts_with(stop) && (!found || stop.size() < found->size())) found = &stop;
    }
    return found ? ChatJson(*found) : ChatJson(last);
  }

  ChatJson finish_reason(const Text& text) const {
    if (!text.ended) return nullptr;
    const Generated& result = text.result;
    ChatJson reason{{"type", name_of(result.finish_reason)}};
    if (result.finish_reason == FinishReason::length) {
      reason["length"] = result.tokens.size();
    } else if (!result.tokens.empty()) {
      reason["matched"] = matched(result);
    }
    return reason;
  }

  ChatJson scored_json(const ChatJson& log_probability, std::int32_t token) const {
    const ChatJson text =
        request_.with_texts ? ChatJson(to_utf8_lossy(model_.tokenizer().token_bytes(token))) : ChatJson(nullptr);
    return ChatJson::array({log_probability, token, text});
  }

  // Adds the log-probabilities of tokens and, if there are some, of their alternatives, as `kind`_token_logprobs and
  // `kind`_top_logprobs. SGLang's have none of the `first` token.
  void add_scores(ChatJson& meta, std::string_view kind, std::optional<std::int32_t> first,
                  std::span<const TokenScore> scores) const {
    WrittenList tokens, tops;
    if (first) {
      tokens.push_back(scored_json(nullptr, *first));
      tops.push_back(nullptr);
    }
    for (const TokenScore& score : scores) {
      tokens.push_back(scored_json(score.token.log_probability, score.token.token));
      ChatJson top = ChatJson::array();
      for (const ScoredToken& other : score.top) top.push_back(scored_json(other.log_probability, other.token));
      tops.push_back(top);
    }
    meta[fmt::format("{}_token_logprobs", kind)] = tokens.take();
    if (*request_.texts.logprobs > 0) meta[fmt::format("{}_top_logprobs", kind)] = tops.take();
  }

  void add_all_scores(ChatJson& meta, const Text& text) const {
    if (!request_.texts.logprobs) return;
    if (const auto start = request_.first_scored) {
      const std::span<const TokenScore> scores = text.result.prompt_scores;
      const bool has_first = *start < text.prompt_tokens;
      add_scores(meta, "input", has_first ? std::optional(text.first_scored) : std::nullopt,
                 scores.subspan(std::min(*start, scores.size())));
    }
    add_scores(meta, "output", std::nullopt, text.result.scores);
  }

  ChatJson meta_json(const Text& text) const {
    return {{"id", text.id},
            {"finish_reason", finish_reason(text)},
            {"prompt_tokens", text.prompt_tokens},
            {"completion_tokens", text.tokens},
            {"cached_tokens", text.result.prompt_tokens_reused}};
  }

  ChatJson result_json(const Text& text) const {
    const Generated& result = text.result;
    ChatJson meta = meta_json(text);
    add_all_scores(meta, text);
    const bool is_whole = request_.with_ends && result.finish_reason == FinishReason::stop;
    return {{"text", is_whole ? whole_text(result) : result.text},
            {"output_ids", result.tokens},
            {"meta_info", std::move(meta)}};
  }

  const TextModel& model_;
  const RolloutRequest request_;
  const std::shared_ptr<HttpAnswer> answer_;

  std::mutex mutex_;  // guards all below, once the texts are submitted
  std::vector<Text> texts_;
  std::size_t ended_ = 0;
  bool streaming_ = false;
  bool failed_ = false;
};

}  // namespace

void start_rollout(const TextModel& model, const SubmitTexts& submit, const ChatJson& body, const TakeSeeds& take_seeds,
                   const TakeHints& take_hints, std::shared_ptr<HttpAnswer> answer) {
  RolloutRequest request = read_rollout(body);
  take_hints(request.texts.hints);
  Rollout::start(std::make_shared<Rollout>(model, std::move(request), std::move(answer)), submit, take_seeds);
}

}  // namespace minimind
