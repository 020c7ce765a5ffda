#include "tools/serve/rollout.h"

#include <fmt/core.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "runtime/generate/sampling_off.h"
#include "runtime/text/utf8.h"
#include "tools/openai/answer_body.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/constraint_fields.h"
#include "tools/openai/request_error.h"

namespace minimind {
namespace {

constexpr std::size_t most_texts_of_rollout = 65536;

// What a rollout asks for beyond a completion.
struct RolloutRequest {
  Request texts;
  bool is_list = false;  // the answer is a list
  bool with_texts = false;
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
  request.texts.max_tokens = 128;
  fields.read_parameters(request.texts, Dialect::sglang);
  request.texts.n = request.texts.best_of = fields.whole("n", 1, 1024).value_or(1);
  TextConstraint constraint = read_sglang_constraint(fields);
  request.texts.grammar = std::move(constraint.grammar);
  request.texts.grammar_param = std::move(constraint.field);
  read_ends(fields, Dialect::sglang, request.texts);
  require_no_other_sampling(fields);
  fields.require("no_stop_trim", false);
  fields.reject_the_rest();
}

RolloutRequest read_rollout(const ChatJson& object) {
  RolloutRequest request;
  BodyFields body(object);
  read_prompts(body, request);
  const ChatJson none = ChatJson::object();
  const ChatJson* const params = body.object("sampling_params");
  read_sampling_params(params ? *params : none, request);
  const bool scored = body.flag("return_logprob").value_or(false);
  const std::size_t top = body.whole("top_logprobs_num", 0, 100).value_or(0);
  if (scored) request.texts.logprobs = top;
  request.with_texts = body.flag("return_text_in_logprobs").value_or(false);
  body.require("logprob_start_len", -1);
  body.require("stream", false);
  body.take_hints({"priority", "rid"}, request.texts.hints);
  body.reject_the_rest();
  request.is_list = request.is_list || request.texts.n > 1;
  if (request.texts.text_count() > most_texts_of_rollout) {
    throw RequestError(fmt::format("the request is for more than {} texts", most_texts_of_rollout), "input_ids");
  }
  return request;
}

// Collects the texts of a rollout and sends them together.
class Rollout {
 public:
  Rollout(const TextModel& model, RolloutRequest request, std::shared_ptr<HttpAnswer> answer)
      : model_(model), request_(std::move(request)), answer_(std::move(answer)) {}

  static void start(const std::shared_ptr<Rollout>& rollout, EngineThread& engine, const TakeSeeds& take_seeds) {
    std::vector<TextJob> jobs;
    for (TextTask& task : rollout->tasks(take_seeds(rollout->request_.texts.text_count()))) {
      const std::size_t index = jobs.size();
      rollout->prompt_tokens_.push_back(task.prompt.size());
      jobs.push_back({
          .task = std::make_shared<const TextTask>(std::move(task)),
          .gone = &rollout->answer_->gone(),
          .on_text = {},
          .on_end = [rollout, index](
                        Generated generated,
                        const std::exception_ptr& error) { rollout->on_end(index, std::move(generated), error); },
      });
    }
    rollout->results_.resize(jobs.size());
    engine.submit(std::move(jobs));
  }

 private:
  std::vector<TextTask> tasks(std::uint64_t seed) const {
    try {
      return model_.tasks(request_.texts, seed, 0);
    } catch (const RequestError& error) {
      if (error.param() != "prompt") throw;
      throw RequestError(error.what(), request_.texts.prompts.front().tokens.empty() ? "text" : "input_ids",
                         error.code());
    }
  }

  void on_end(std::size_t index, Generated generated, const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    ++ended_;
    if (failed_ || answer_->gone()) return;
    if (error) {
      failed_ = true;
      return send_error(*answer_, request_error_of(error));
    }
    results_[index] = std::move(generated);
    if (ended_ < results_.size()) return;
    ChatJson list = ChatJson::array();
    for (std::size_t i = 0; i < results_.size(); ++i) list.push_back(result_json(i));
    answer_->send(200, json_type, json_line(request_.is_list ? list : list.at(0)));
  }

  ChatJson scored_json(const ScoredToken& token) const {
    const ChatJson text =
        request_.with_texts ? ChatJson(to_utf8_lossy(model_.tokenizer().token_bytes(token.token))) : ChatJson(nullptr);
    return ChatJson::array({token.log_probability, token.token, text});
  }

  ChatJson result_json(std::size_t index) const {
    const Generated& result = results_[index];
    ChatJson reason{{"type", name_of(result.finish_reason)}};
    if (result.finish_reason == FinishReason::length) {
      reason["length"] = result.tokens.size();
    } else if (!result.tokens.empty()) {
      reason["matched"] = result.tokens.back();
    }
    ChatJson meta{{"id", unique_id("")},
                  {"finish_reason", std::move(reason)},
                  {"prompt_tokens", prompt_tokens_[index]},
                  {"completion_tokens", result.tokens.size()},
                  {"cached_tokens", result.prompt_tokens_reused}};
    if (request_.texts.logprobs) {
      meta["output_token_logprobs"] = ChatJson::array();
      for (const TokenScore& score : result.scores) meta["output_token_logprobs"].push_back(scored_json(score.token));
    }
    if (request_.texts.logprobs.value_or(0) > 0) {
      meta["output_top_logprobs"] = ChatJson::array();
      for (const TokenScore& score : result.scores) {
        ChatJson top = ChatJson::array();
        for (const ScoredToken& token : score.top) top.push_back(scored_json(token));
        meta["output_top_logprobs"].push_back(std::move(top));
      }
    }
    return {{"text", result.text}, {"output_ids", result.tokens}, {"meta_info", std::move(meta)}};
  }

  const TextModel& model_;
  const RolloutRequest request_;
  const std::shared_ptr<HttpAnswer> answer_;
  std::vector<std::size_t> prompt_tokens_;

  std::mutex mutex_;  // guards all below
  std::vector<Generated> results_;
  std::size_t ended_ = 0;
  bool failed_ = false;
};

}  // namespace

void start_rollout(const TextModel& model, EngineThread& engine, const ChatJson& body, const TakeSeeds& take_seeds,
                   const TakeHints& take_hints, std::shared_ptr<HttpAnswer> answer) {
  RolloutRequest request = read_rollout(body);
  take_hints(request.texts.hints);
  Rollout::start(std::make_shared<Rollout>(model, std::move(request), std::move(answer)), engine, take_seeds);
}

}  // namespace minimind
