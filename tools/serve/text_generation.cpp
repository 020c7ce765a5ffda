#include "tools/serve/text_generation.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/generate/check_sampling.h"
#include "runtime/text/utf8.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/constraint_fields.h"
#include "tools/openai/request_error.h"
#include "tools/serve/ollama.h"

namespace minimind {
namespace {

constexpr std::size_t tokens_by_default = 100;

struct TextGenerationRequest {
  Request text;
  std::string inputs{};
  bool with_inputs = false;   // the text starts with them
  bool with_details = false;  // of a whole answer
  bool with_prefill = false;  // the details have the tokens of the prompt
};

// Any step of sampling turns it on; without one, the text has the top-1 tokens.
void read_sampling(const BodyFields& fields, Request& text) {
  text.sampling = sampling_off();
  text.max_tokens = tokens_by_default;
  fields.read_parameters(text, Dialect::text_generation);
  text.ignore_eos = fields.flag("ignore_eos_token").value_or(false);  // of vLLM's benchmark
  if (text.max_tokens == 0) fields.fail("max_new_tokens", fmt::format("a whole number, 1 to {}", largest_whole));
  const SamplingOptions& sampling = text.sampling;
  const bool has_step = sampling.temperature != 1 || sampling.top_k > 0 || sampling.top_p < 1 || sampling.typical_p < 1;
  if (!fields.flag("do_sample").value_or(false) && !has_step) text.sampling.temperature = 0;
  text.grammar = read_format(fields, "grammar");
  if (text.grammar) text.grammar_param = "grammar";
}

void read_generation_parameters(const ChatJson& object, const TextModel& model, TextGenerationRequest& request) {
  const BodyFields fields(object, "parameters");
  Request& text = request.text;
  read_sampling(fields, text);
  request.with_inputs = fields.flag("return_full_text").value_or(false);
  request.with_details = fields.flag("details").value_or(false);
  request.with_prefill = fields.flag("decoder_input_details").value_or(false);
  text.logprobs = fields.whole("top_n_tokens", 0, most_top_logprobs).value_or(0);
  if (request.with_prefill) text.prompt_logprobs = 0;
  if (request.with_prefill && text.stream) {
    fields.fail("decoder_input_details", "false, because stream is true, and they are of whole answers");
  }
  fields.require("best_of", 1);
  fields.require("watermark", false);
  if (const auto most = fields.whole("truncate", 1, largest_whole)) {
    std::vector<std::int32_t> tokens = model.tokenizer().encode(request.inputs);
    if (tokens.size() > *most)
      text.prompts.front().tokens.assign(tokens.end() - static_cast<long>(*most), tokens.end());
  }
  fields.reject_the_rest();
}

TextGenerationRequest read_text_generation(TextGenerationRoute route, const ChatJson& object, const TextModel& model) {
  TextGenerationRequest request;
  const BodyFields body(object);
  body.must_have("inputs", "a string");
  request.inputs = body.required_text("inputs");
  request.text.prompts.push_back({.text = request.inputs});
  request.text.stream = body.flag("stream").value_or(false) || route == TextGenerationRoute::generate_stream;
  const ChatJson none = ChatJson::object();
  const ChatJson* const parameters = body.object("parameters");
  read_generation_parameters(parameters ? *parameters : none, model, request);
  body.reject_the_rest();
  return request;
}

class TextGenerationAnswer {
 public:
  TextGenerationAnswer(TextGenerationRoute route, const TextModel& model, TextGenerationRequest request,
                       std::shared_ptr<HttpAnswer> answer)
      : route_(route), model_(model), request_(std::move(request)), answer_(std::move(answer)) {}

  static void start(const std::shared_ptr<TextGenerationAnswer>& own, const SubmitTexts& submit,
                    const TakeSeeds& take_seeds) {
    own->task_ =
        std::make_shared<const TextTask>(std::move(own->model_.tasks(own->request_.text, take_seeds(1), 0).front()));
    submit({job_of(own, own->task_, *own->answer_)});
  }

  // The last token that comes is the one of the last event.
  void on_text(std::string_view piece, const std::vector<TokenScore>& scores) {
    if (!request_.text.stream || is_end(scores.back().token.token)) return;
    write_tokens(scores, scores.size() - 1);
    piece_ += piece;
    if (!may_be_all(scores)) write_tokens(scores, scores.size());
  }

  void on_end(const Generated& generated, const std::exception_ptr& error) {
    if (answer_->gone()) return;
    if (error) return fail(request_error_of(error));
    const std::string text = (request_.with_inputs ? request_.inputs : "") + generated.text;
    if (!request_.text.stream) {
      ChatJson whole{{"generated_text", text}};
      if (request_.with_details) whole["details"] = all_details(generated);
      return answer_->send(200, json_type,
                           json_line(route_ == TextGenerationRoute::root ? ChatJson::array({whole}) : whole));
    }
    const std::vector<TokenScore>& scores = generated.scores;
    const std::size_t count = std::max<std::size_t>(scores.size(), 1);
    // The rest of the text is of the last token, or of the one before an end token.
    const bool has_end = count > 1 && is_end(scores.back().token.token);
    write_tokens(scores, count - (has_end ? 2 : 1));
    piece_ = generated.text.substr(bytes_);
    write_tokens(scores, count - 1);
    // A grammar may allow no text at all; clients read a token in every event.
    ChatJson last = event_of(scores.empty() ? TokenScore{} : scores.back());
    last.update({{"generated_text", text}, {"details", details(generated)}});
    write(last);
    answer_->finish();
  }

 private:
  bool is_end(std::int32_t token) const { return std::ranges::count(task_->options.end_tokens, token) > 0; }

  std::string text_of(std::int32_t token) const { return to_utf8_lossy(model_.tokenizer().token_bytes(token)); }

  ChatJson token_json(const ScoredToken& scored, std::string_view text) const {
    return {{"id", scored.token},
            {"text", text},
            {"logprob", scored.log_probability},
            {"special", model_.tokenizer().is_special(scored.token)}};
  }

  ChatJson top_json(const TokenScore& score) const {
    ChatJson top = ChatJson::array();
    for (const ScoredToken& other : score.top) top.push_back(token_json(other, text_of(other.token)));
    return top;
  }

  ChatJson event_of(const TokenScore& score) {
    const std::string text = std::exchange(piece_, "");
    bytes_ += text.size();
    ChatJson event{{"index", ++written_}, {"token", token_json(score.token, text)}};
    if (*request_.text.logprobs > 0) event["top_tokens"] = top_json(score);
    event.update({{"generated_text", nullptr}, {"details", nullptr}});
    return event;
  }

  void write(const ChatJson& event) {
    if (!std::exchange(streaming_, true)) answer_->start("text/event-stream; charset=utf-8");
    answer_->write(fmt::format("data: {}\n\n", json_line(event)));
  }

  // A token whose bytes are no whole character has an empty text, and the next one all of it.
  void write_tokens(const std::vector<TokenScore>& scores, std::size_t count) {
    while (written_ < count) write(event_of(scores[written_]));
  }

  // Whether a text may end with these tokens.
  bool may_be_all(const std::vector<TokenScore>& scores) const {
    const std::size_t most = std::min(task_->options.max_tokens, task_->capacity - task_->prompt.size());
    return scores.size() >= most || request_.text.grammar || !request_.text.stop.empty();
  }

  void fail(const RequestError& error) {
    if (!streaming_) return send_error(*answer_, error, ollama_error_body);
    answer_->write(AnswerChunks::error(ollama_error_body(error)));
    answer_->finish();
  }

  ChatJson details(const Generated& generated) const {
    // A grammar ends a text as an end token does.
    const bool at_end = request_.text.stop.empty() || generated.tokens.empty() || is_end(generated.tokens.back());
    const SamplingOptions& sampling = task_->options.sampling;
    return {{"finish_reason", generated.finish_reason == FinishReason::length ? "length"
                              : at_end                                        ? "eos_token"
                                                                              : "stop_sequence"},
            {"generated_tokens", generated.tokens.size()},
            {"seed", sampling.temperature > 0 ? ChatJson(sampling.seed) : ChatJson(nullptr)},
            {"input_length", task_->prompt.size()}};
  }

  ChatJson all_details(const Generated& generated) const {
    ChatJson all = details(generated);
    WrittenList prefill, tokens, tops;
    if (request_.with_prefill) {
      const std::int32_t first = task_->prompt.front();
      prefill.push_back({{"id", first}, {"text", text_of(first)}, {"logprob", nullptr}});
      for (const TokenScore& score : generated.prompt_scores) {
        prefill.push_back(token_json(score.token, text_of(score.token.token)));
      }
    }
    for (const TokenScore& score : generated.scores) {
      tokens.push_back(token_json(score.token, text_of(score.token.token)));
      tops.push_back(top_json(score));
    }
    all.update({{"prefill", prefill.take()}, {"tokens", tokens.take()}});
    if (*request_.text.logprobs > 0) all["top_tokens"] = tops.take();
    return all;
  }

  const TextGenerationRoute route_;
  const TextModel& model_;
  const TextGenerationRequest request_;
  const std::shared_ptr<HttpAnswer> answer_;
  std::shared_ptr<const TextTask> task_;
  bool streaming_ = false;
  std::size_t written_ = 0;  // tokens
  std::size_t bytes_ = 0;    // of the text that was written
  std::string piece_{};      // of the next token to be written
};

}  // namespace

void start_text_generation(TextGenerationRoute route, const TextModel& model, const SubmitTexts& submit,
                           const ChatJson& body, const TakeSeeds& take_seeds, std::shared_ptr<HttpAnswer> answer) {
  TextGenerationAnswer::start(
      std::make_shared<TextGenerationAnswer>(route, model, read_text_generation(route, body, model), std::move(answer)),
      submit, take_seeds);
}

}  // namespace minimind
