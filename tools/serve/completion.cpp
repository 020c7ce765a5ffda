#include "tools/serve/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/chat/message_json.h"
#include "runtime/grammar/work.h"

namespace minimind {
namespace {

constexpr std::string_view event_type = "text/event-stream; charset=utf-8";

ChatJson call_delta(const Request& request, std::size_t index, const ToolCall& call) {
  ChatJson function{{"name", call.name}, {"arguments", call.arguments}};
  if (request.function_call) return {{"function_call", std::move(function)}};
  return {
      {"tool_calls",
       ChatJson::array(
           {{{"index", index}, {"id", unique_id("call_")}, {"type", "function"}, {"function", std::move(function)}}})}};
}

ChatJson arguments_delta(const Request& request, std::size_t index, const std::string& text) {
  ChatJson function{{"arguments", text}};
  if (request.function_call) return {{"function_call", std::move(function)}};
  return {{"tool_calls", ChatJson::array({{{"index", index}, {"function", std::move(function)}}})}};
}

std::string delta_choice(std::size_t index, const ChatJson& delta, const ChatJson& logprobs) {
  return json_line({{"index", index}, {"delta", delta}, {"logprobs", logprobs}, {"finish_reason", nullptr}});
}

std::string token_ids_member(std::string_view name, std::span<const std::int32_t> ids) {
  return fmt::format(R"(, "{}": [{}])", name, fmt::join(ids, ", "));
}

// Of a stream, the prompt's scores become an event on the engine's thread, which other texts wait for meanwhile.
void check_echo(const Request& request, std::size_t prompt_tokens) {
  constexpr std::size_t most = 5000;
  if (!request.stream || !request.echo || !request.logprobs) return;
  const std::size_t scores = prompt_tokens * (1 + *request.logprobs);
  if (scores <= most) return;
  throw RequestError(
      fmt::format("echo with logprobs of a prompt of {} tokens gives {} scores at once, expected at most "
                  "{} if stream is true; ask for the whole answer",
                  prompt_tokens, scores, most),
      "stream");
}

}  // namespace

AnswerChunks::AnswerChunks(const std::string& id, const std::string& model, const Request& request, std::time_t now)
    : chat_(request.chat), usage_(request.include_usage ? R"(, "usage": null)" : "") {
  head_ = json_line({{"id", id},
                     {"object", chat_ ? "chat.completion.chunk" : "text_completion"},
                     {"created", now},
                     {"model", model},
                     {"system_fingerprint", system_fingerprint}});
  head_.back() = ',';
}

std::string AnswerChunks::chunk(std::string_view choice, std::string_view members_of_choice,
                                std::string_view members) const {
  choice.remove_suffix(1);  // its last brace
  return fmt::format("data: {} \"choices\": [{}{}}}]{}{}}}\n\n", head_, choice, members_of_choice, usage_, members);
}

void AnswerChunks::set_usage(std::size_t prompt_tokens, std::size_t completion_tokens) {
  usage_ = fmt::format(R"(, "usage": {{"prompt_tokens": {}, "completion_tokens": {}, "total_tokens": {}}})",
                       prompt_tokens, completion_tokens, prompt_tokens + completion_tokens);
}

std::string AnswerChunks::begin(std::size_t index, std::string_view members) const {
  return chunk(delta_choice(index, {{"role", "assistant"}, {"content", ""}, {"refusal", nullptr}}, nullptr), "",
               members);
}

std::string AnswerChunks::delta(std::size_t index, const ChatJson& delta, const ChatJson& logprobs,
                                std::string_view members) const {
  return chunk(delta_choice(index, delta, logprobs), members);
}

// Nearly every token comes here, and the model waits for it: no objects are made.
std::string AnswerChunks::text(std::size_t index, std::string_view field, std::string_view text,
                               const ChatJson& logprobs, std::string_view members) const {
  const std::string value = json_line(ChatJson(text));
  const std::string scores = logprobs.is_null() ? "null" : json_line(logprobs);
  return chunk(chat_ ? fmt::format(R"({{"index": {}, "delta": {{"{}": {}}}, "logprobs": {}, "finish_reason": null}})",
                                   index, field, value, scores)
                     : fmt::format(R"({{"index": {}, "{}": {}, "logprobs": {}, "finish_reason": null}})", index, field,
                                   value, scores),
               members);
}

std::string AnswerChunks::end(std::size_t index, std::string_view finish_reason, std::string_view members) const {
  ChatJson choice{{"index", index}};
  if (chat_) {
    choice["delta"] = ChatJson::object();
  } else {
    choice["text"] = "";
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = finish_reason;
  return chunk(json_line(choice), members);
}

std::string AnswerChunks::usage(const Usage& usage) const {
  return fmt::format("data: {} \"choices\": [], \"usage\": {}}}\n\n", head_, json_line(usage_json(usage)));
}

std::string AnswerChunks::error(const std::string& body) {
  return "data: " + body + "\n\n";
}

std::string AnswerChunks::done() {
  return "data: [DONE]\n\n";
}

RequestError request_error_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const RequestError& known) {
    return known;
  } catch (const UsageError& known) {
    return {known.what(), ""};
  } catch (const TooMuchWork& known) {
    return {known.what(), ""};  // of a grammar or schema of the request
  } catch (const std::exception& known) {
    return {known.what(), "", "server_error"};
  }
}

void send_error(HttpAnswer& answer, const RequestError& error, ErrorBody body) {
  const bool is_temporary = error.status() == 429 || error.status() == 503;
  answer.send(error.status(), json_type, body(error), is_temporary ? HttpHeaders{{"Retry-After", "1"}} : HttpHeaders{});
}

Completion::Text::Text(const TextModel& model, std::shared_ptr<const TextTask> with_task, AnswerChunks with_chunks,
                       bool streams_calls)
    : task(std::move(with_task)),
      chunks(std::move(with_chunks)),
      reader(model, task, streams_calls),
      logprobs(model.tokenizer()) {}

Completion::Completion(const TextModel& model, Request request, std::shared_ptr<HttpAnswer> answer)
    : model_(model),
      request_(std::move(request)),
      answer_(std::move(answer)),
      now_(std::time(nullptr)),
      id_(unique_id(id_prefix_of(request_))),
      model_name_(model.name_for(request_.model)),
      chunks_(id_, model_name_, request_, now_) {}

void Completion::start(const TextModel& model, const SubmitTexts& submit, Request request, const TakeSeeds& take_seeds,
                       std::shared_ptr<HttpAnswer> answer) {
  const auto completion = std::make_shared<Completion>(model, std::move(request), std::move(answer));
  const std::uint64_t seed = take_seeds(completion->request_.text_count());
  std::vector<TextJob> jobs;
  for (TextTask& task : model.tasks(completion->request_, seed, completion->now_)) {
    check_echo(completion->request_, task.prompt.size());
    const std::size_t index = jobs.size(), prompt_tokens = task.prompt.size();
    // A function_call that turns out to be none could not be taken back: tool_calls have an index for that.
    const bool streams_calls = !completion->request_.function_call || task.forced;
    completion->texts_.emplace_back(model, std::make_shared<const TextTask>(std::move(task)), completion->chunks_,
                                    streams_calls);
    jobs.push_back({
        .task = completion->texts_.back().task,
        .gone = &completion->answer_->gone(),
        .behind = &completion->answer_->behind(),
        .on_text = [completion, index](std::string_view piece,
                                       const Generation& generation) { completion->on_text(index, piece, generation); },
        .on_end = [completion, index](
                      Generated generated,
                      const std::exception_ptr& error) { completion->on_end(index, std::move(generated), error); },
        .prompt_values = prompt_tokens * (completion->request_.return_tokens + completion->request_.echo),
    });
  }
  submit(std::move(jobs));
}

void Completion::on_text(std::size_t index, std::string_view piece, const Generation& generation) {
  if (!request_.stream || !begin_stream()) return;
  count(texts_[index], generation.generated().size());
  begin(index, generation.prompt_scores());
  write_piece(index, piece, generation);
}

// The end of one text may be much to write, while the others go on: the mutex is not locked then.
void Completion::on_end(std::size_t index, Generated generated, const std::exception_ptr& error) {
  Text& text = texts_[index];
  if (!error && !answer_->gone()) {
    text.result.generated = std::move(generated);
    if (request_.stream && begin_stream()) {
      count(text, text.result.generated.tokens.size());
      begin(index, text.result.generated.prompt_scores);
      write_end(index);
    }
  }
  const std::lock_guard lock(mutex_);
  ++ended_;
  if (failed_ || answer_->gone()) return;
  if (error) return fail(error);
  if (ended_ == texts_.size()) finish();
}

// Gives the next chunks of a text its usage so far if they are to have it.
void Completion::count(Text& text, std::size_t generated) const {
  if (request_.usage_of_each_chunk) text.chunks.set_usage(text.task->prompt.size(), generated);
}

// Starts the stream. Returns false if it has failed.
bool Completion::begin_stream() {
  const std::lock_guard lock(mutex_);
  if (!failed_ && !std::exchange(streaming_, true)) answer_->start(event_type);
  return !failed_;
}

// Starts the part of a text in the stream.
void Completion::begin(std::size_t index, const std::vector<TokenScore>& prompt_scores) {
  Text& text = texts_[index];
  if (std::exchange(text.has_begun, true)) return;
  const std::vector<std::int32_t>& prompt = text.task->prompt;
  if (request_.chat) {
    answer_->write(text.chunks.begin(
        index, request_.return_tokens ? token_ids_member("prompt_token_ids", prompt) : std::string()));
  } else if (request_.echo) {
    if (request_.logprobs) text.logprobs.add_prompt(prompt.front(), prompt_scores);
    answer_->write(text.chunks.text(index, "text", prompt_text(model_, request_.prompts[index / request_.n]),
                                    request_.logprobs ? text.logprobs.take() : ChatJson(nullptr),
                                    new_token_ids(text, {})));
  }
}

// Those of the tokens that no chunk has yet, and of the prompt of a completion in its first chunk.
std::string Completion::new_token_ids(Text& text, std::span<const std::int32_t> generated) const {
  if (!request_.return_tokens) return {};
  const bool has_prompt = request_.chat || std::exchange(text.has_prompt_ids, true);
  const std::size_t before = std::exchange(text.tokens, std::max(text.tokens, generated.size()));
  return (has_prompt ? std::string() : token_ids_member("prompt_token_ids", text.task->prompt)) +
         token_ids_member("token_ids", generated.subspan(std::min(before, generated.size())));
}

void Completion::write_piece(std::size_t index, std::string_view piece, const Generation& generation) {
  Text& text = texts_[index];
  const AnswerReader::Piece read = text.reader.push(piece, generation.scores());
  if (request_.chat) return write_events(index, read, generation.generated());
  if (request_.logprobs) text.logprobs.add(read.scores);
  answer_->write(text.chunks.text(index, "text", piece, request_.logprobs ? text.logprobs.take() : ChatJson(nullptr),
                                  new_token_ids(text, generation.generated())));
}

// Writes the events of a chat; the scores and the ids of the tokens are in the first of them.
void Completion::write_events(std::size_t index, const AnswerReader::Piece& piece,
                              std::span<const std::int32_t> generated) {
  Text& text = texts_[index];
  std::span<const TokenScore> scores = piece.scores;
  std::string chunks;
  for (const AnswerEvent& event : piece.events) {
    const bool has_scores = request_.logprobs && !scores.empty();
    const ChatJson logprobs = has_scores ? text.reader.logprobs(std::exchange(scores, {})) : ChatJson(nullptr);
    const std::string token_ids = new_token_ids(text, generated);
    if (event.kind == AnswerEvent::Kind::tool_call) {
      chunks += text.chunks.delta(index, call_delta(request_, text.calls++, event.call), logprobs, token_ids);
    } else if (event.kind == AnswerEvent::Kind::arguments) {
      chunks += text.chunks.delta(index, arguments_delta(request_, text.calls - 1, event.text), logprobs, token_ids);
    } else {
      if (event.kind == AnswerEvent::Kind::broken_call) ++text.broken_calls;
      const bool is_thought = event.kind == AnswerEvent::Kind::thought;
      chunks += text.chunks.text(index, is_thought ? "reasoning_content" : "content", event.text, logprobs, token_ids);
    }
  }
  if (!chunks.empty()) answer_->write(std::move(chunks));
}

void Completion::write_end(std::size_t index) {
  Text& text = texts_[index];
  const std::span<const std::int32_t> generated = text.result.generated.tokens;
  AnswerReader::Piece rest = text.reader.finish(text.result.generated);
  text.result.has_cut_call = text.reader.has_cut_call();
  if (request_.chat) {
    if (rest.events.empty() && request_.logprobs && text.reader.has_text(rest.scores)) rest.events.emplace_back();
    write_events(index, rest, generated);
    text.result.message.tool_calls.resize(text.calls - text.broken_calls);
  } else if (request_.logprobs && !rest.scores.empty()) {
    text.logprobs.add(rest.scores);
    answer_->write(text.chunks.text(index, "text", "", text.logprobs.take(), new_token_ids(text, generated)));
  }
  answer_->write(text.chunks.end(index, finish_reason_of(request_, text.result), new_token_ids(text, generated)));
}

void Completion::fail(const std::exception_ptr& error) {
  failed_ = true;
  const RequestError known = request_error_of(error);
  if (!streaming_) return send_error(*answer_, known);
  answer_->write(AnswerChunks::error(error_body(known)));
  answer_->finish();
}

void Completion::finish() {
  if (request_.stream) {
    if (request_.include_usage) answer_->write(chunks_.usage(usage()));
    answer_->write(AnswerChunks::done());
    answer_->finish();
    return;
  }
  ChatJson choices = ChatJson::array();
  std::vector<const Generated*> texts;
  for (const Text& text : texts_) texts.push_back(&text.result.generated);
  for (const std::size_t text : chosen_texts(request_, texts)) choices.push_back(message_choice(text, choices.size()));
  ChatJson answer = answer_json(id_, model_name_, request_, std::move(choices), usage(), now_);
  if (request_.chat) {
    add_prompt_facts(answer, model_, request_, *texts_.front().task, texts_.front().result.generated);
  }
  answer_->send(200, json_type, json_line(answer));
}

ChatJson Completion::message_choice(std::size_t index_of_text, std::size_t index) {
  Text& text = texts_[index_of_text];
  if (request_.chat) {
    read_answer(text.result, *text.task, 1);
    for (ToolCall& call : text.result.message.tool_calls) call.id = unique_id("call_");
  }
  ChatJson choice = choice_json(model_, request_, *text.task, text.result, index);
  if (request_.chat) {
    ChatJson& message = choice["message"];
    const bool has_call = message.contains("tool_calls") || message.contains("function_call");
    if (has_call && message["content"] == "") message["content"] = nullptr;
    message["refusal"] = nullptr;
  }
  return choice;
}

Usage Completion::usage() const {
  Usage usage;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const Text& text = texts_[i];
    usage.completion_tokens += text.result.generated.tokens.size();
    usage.thought_tokens += thought_tokens(model_, *text.task, text.result.generated.tokens);
    if (i % request_.best_of != 0) continue;
    usage.prompt_tokens += text.task->prompt.size();
    usage.cached_tokens += text.result.generated.prompt_tokens_reused;
  }
  return usage;
}

}  // namespace minimind
