#include "tools/serve/responses.h"

#include <fmt/core.h>

#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "tools/openai/answer_body.h"
#include "tools/openai/request_error.h"
#include "tools/serve/answer_reader.h"
#include "tools/serve/response_items.h"

namespace minimind {
namespace {

TextTask task_of(const TextModel& model, const ResponseRequest& request, std::uint64_t seed, std::time_t now) {
  try {
    return std::move(model.tasks(request.text, seed, now).front());
  } catch (const RequestError& error) {
    throw response_error(error);
  }
}

// The answer to one request, from its text to the last event. Its text calls it from one thread at a time.
class ResponseAnswer {
 public:
  ResponseAnswer(const TextModel& model, ResponseRequest request, std::shared_ptr<ResponseStore> store,
                 std::shared_ptr<HttpAnswer> answer)
      : model_(model),
        request_(std::move(request)),
        store_(std::move(store)),
        answer_(std::move(answer)),
        items_([this](std::string_view type, const std::string& members) { emit(type, members); }) {}

  static void start(const std::shared_ptr<ResponseAnswer>& own, const SubmitTexts& submit,
                    const TakeSeeds& take_seeds) {
    own->task_ = std::make_shared<const TextTask>(task_of(own->model_, own->request_, take_seeds(1), own->now_));
    own->reader_.emplace(own->model_, own->task_, own->request_.stream);
    submit({job_of(own, own->task_, *own->answer_)});
  }

  void on_text(std::string_view piece, const std::vector<TokenScore>& scores) {
    if (!request_.stream) return;
    begin();
    add(reader_->push(piece, scores));
  }

  void on_end(const Generated& generated, const std::exception_ptr& error) {
    if (answer_->gone()) return;
    if (error) return fail(response_error(request_error_of(error)));
    begin();
    const AnswerReader::Piece rest = reader_->finish(generated);
    add(rest);
    if (request_.text.logprobs && rest.events.empty() && reader_->has_text(rest.scores)) {
      items_.add_logprobs(reader_->logprobs(rest.scores)["content"]);
    }
    const FinishReason reason = reason_of_end(generated.finish_reason, task_->forced && items_.is_call());
    const bool is_cut = reader_->has_cut_call() || reason == FinishReason::length;
    items_.finish(is_cut, reader_->has_cut_call());
    std::string whole = response(is_cut ? "incomplete" : "completed", usage_of(generated));
    if (request_.stores) store_->add(id_, {whole, request_.input, output_items()});
    if (!request_.stream) return answer_->send(200, json_type, std::move(whole));
    emit(is_cut ? "response.incomplete" : "response.completed", R"("response": )" + whole);
    answer_->finish();
  }

 private:
  // Writes an event of the stream. It may be large: it is only copied.
  void emit(std::string_view type, std::string_view members) {
    if (!request_.stream) return;
    answer_->write(fmt::format("event: {0}\ndata: {{\"type\": \"{0}\", {1}, \"sequence_number\": {2}}}\n\n", type,
                               members, events_++));
  }

  void begin() {
    if (!request_.stream || std::exchange(has_begun_, true)) return;
    answer_->start("text/event-stream; charset=utf-8");
    for (const char* const type : {"response.created", "response.in_progress"}) {
      emit(type, R"("response": )" + response("in_progress"));
    }
  }

  // Returns the response as JSON. The settings are text already: other texts wait for this one meanwhile.
  std::string response(std::string_view status, const ChatJson& usage = nullptr,
                       const ChatJson& error = nullptr) const {
    const ChatJson cut{{"reason", "max_output_tokens"}};
    std::string json = json_line({{"id", id_},
                                  {"object", "response"},
                                  {"created_at", now_},
                                  {"status", status},
                                  {"error", error},
                                  {"incomplete_details", status == "incomplete" ? cut : ChatJson(nullptr)},
                                  {"model", model_.name_for(request_.text.model)}});
    json.back() = ',';
    json += " \"output\": [";
    for (const ResponseItems::Item& item : items_.items())
      json.append(json.back() == '[' ? "" : ", ").append(item.json);
    return json + "], " + request_.settings + ", \"usage\": " + json_line(usage) + "}";
  }

  // The scores are with the first event.
  void add(const AnswerReader::Piece& piece) {
    std::span<const TokenScore> scores = piece.scores;
    for (const AnswerEvent& event : piece.events) {
      const bool has_scores = request_.text.logprobs && !scores.empty();
      items_.add(event, has_scores ? reader_->logprobs(std::exchange(scores, {}))["content"] : ChatJson::array());
    }
  }

  // The items by their ids, as JSON.
  std::map<std::string, std::string> output_items() const {
    std::map<std::string, std::string> texts;
    for (const auto& [id, json] : items_.items()) texts.emplace(id, json);
    return texts;
  }

  ChatJson usage_of(const Generated& generated) const {
    const std::size_t input = task_->prompt.size(), output = generated.tokens.size();
    return {{"input_tokens", input},
            {"input_tokens_details",
             {{"cached_tokens", generated.prompt_tokens_reused}, {"cache_write_tokens", generated.prompt_tokens_done}}},
            {"output_tokens", output},
            {"output_tokens_details", {{"reasoning_tokens", thought_tokens(model_, *task_, generated.tokens)}}},
            {"total_tokens", input + output}};
  }

  void fail(const RequestError& error) {
    if (!has_begun_) return send_error(*answer_, error);
    // What ends a text that runs is about no field.
    const std::string members = json_line({{"code", error.code()}, {"message", error.what()}, {"param", nullptr}});
    emit("error", std::string_view(members).substr(1, members.size() - 2));
    const ChatJson reason{{"code", "server_error"}, {"message", error.what()}};
    emit("response.failed", R"("response": )" + response("failed", nullptr, reason));
    answer_->finish();
  }

  const TextModel& model_;
  const ResponseRequest request_;
  const std::shared_ptr<ResponseStore> store_;
  const std::shared_ptr<HttpAnswer> answer_;
  const std::time_t now_ = std::time(nullptr);
  const std::string id_ = unique_id("resp_");
  std::shared_ptr<const TextTask> task_;
  std::optional<AnswerReader> reader_;
  ResponseItems items_;
  std::size_t events_ = 0;  // of the stream
  bool has_begun_ = false;
};

}  // namespace

void start_response(const TextModel& model, const SubmitTexts& submit, ResponseRequest request,
                    const TakeSeeds& take_seeds, std::shared_ptr<ResponseStore> store,
                    std::shared_ptr<HttpAnswer> answer) {
  const auto response =
      std::make_shared<ResponseAnswer>(model, std::move(request), std::move(store), std::move(answer));
  ResponseAnswer::start(response, submit, take_seeds);
}

ChatJson response_tokens(const TextModel& model, const ResponseRequest& request) {
  return {{"object", "response.input_tokens"},
          {"input_tokens", task_of(model, request, 0, std::time(nullptr)).prompt.size()}};
}

}  // namespace minimind
