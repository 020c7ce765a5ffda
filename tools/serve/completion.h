#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/chat/answer_parser.h"
#include "runtime/chat/chat_json.h"
#include "runtime/llm/text_queue.h"
#include "tools/http/http.h"
#include "tools/openai/answer_body.h"
#include "tools/openai/logprobs.h"
#include "tools/openai/request.h"
#include "tools/openai/request_error.h"
#include "tools/openai/text_model.h"
#include "tools/serve/answer_reader.h"

namespace minimind {

// The events of a streamed answer, each "data: {...}\n\n". `members` are further members of JSON, each after a comma.
class AnswerChunks {
 public:
  AnswerChunks(const std::string& id, const std::string& model, const Request& request, std::time_t now);

  // The first chunk of a choice of a chat, with `members` of its own.
  std::string begin(std::size_t index, std::string_view members) const;

  // A chunk with one choice of a chat.
  std::string delta(std::size_t index, const ChatJson& delta, const ChatJson& logprobs, std::string_view members) const;

  // A chunk with a piece of text of a choice: in the field of a chat's delta, or of a completion's choice.
  std::string text(std::size_t index, std::string_view field, std::string_view text, const ChatJson& logprobs,
                   std::string_view members) const;

  // The last chunk of a choice.
  std::string end(std::size_t index, std::string_view finish_reason, std::string_view members) const;

  // Sets the usage that the next chunks have; before, it is null with include_usage, and missing without.
  void set_usage(std::size_t prompt_tokens, std::size_t completion_tokens);

  // The last chunk of a stream with include_usage.
  std::string usage(const Usage& usage) const;

  static std::string error(const std::string& body);
  static std::string done();

 private:
  std::string chunk(std::string_view choice, std::string_view members_of_choice, std::string_view members = {}) const;

  bool chat_;
  std::string head_;   // the fields before the choices
  std::string usage_;  // the member after them
};

// Gives seeds to that many texts of a request: returns the first, after which the others count up.
using TakeSeeds = std::function<std::uint64_t(std::size_t texts)>;

// Gets the hints of a request, once it is read.
using TakeHints = std::function<void(const std::vector<std::string>& hints)>;

// Gives the texts of a request to what runs them.
using SubmitTexts = std::function<void(std::vector<TextJob>)>;

// The job of an only text, which is sent as `http`: `answer` lives as long, and gets its pieces by on_text(piece,
// scores), and its end by on_end(generated, error).
template <class Answer>
TextJob job_of(const std::shared_ptr<Answer>& answer, std::shared_ptr<const TextTask> task, const HttpAnswer& http) {
  return {
      .task = std::move(task),
      .gone = &http.gone(),
      .behind = &http.behind(),
      .on_text = [answer](std::string_view piece,
                          const Generation& generation) { answer->on_text(piece, generation.scores()); },
      .on_end = [answer](const Generated& generated,
                         const std::exception_ptr& error) { answer->on_end(generated, error); },
  };
}

// One answer to a chat completion or a completion, from the request to its last byte: submits the texts and writes what
// becomes of them, as a whole or as a stream.
class Completion {
 public:
  // Starts the answer, which then lives as long as its texts. `model` must outlive it. Throws RequestError, and what
  // `submit` throws.
  static void start(const TextModel& model, const SubmitTexts& submit, Request request, const TakeSeeds& take_seeds,
                    std::shared_ptr<HttpAnswer> answer);

  Completion(const TextModel& model, Request request, std::shared_ptr<HttpAnswer> answer);

 private:
  // One text and what a stream has of it.
  struct Text {
    Text(const TextModel& model, std::shared_ptr<const TextTask> with_task, AnswerChunks with_chunks,
         bool streams_calls);

    std::shared_ptr<const TextTask> task;
    AnswerChunks chunks;
    AnswerReader reader;
    CompletionLogprobs logprobs;
    bool has_begun = false;
    bool has_prompt_ids = false;
    std::size_t tokens = 0;  // whose ids are written
    std::size_t calls = 0, broken_calls = 0;
    TextAnswer result{};
  };

  void on_text(std::size_t index, std::string_view piece, const Generation& generation);
  void on_end(std::size_t index, Generated generated, const std::exception_ptr& error);

  bool begin_stream();
  void begin(std::size_t index, const std::vector<TokenScore>& prompt_scores);
  void write_piece(std::size_t index, std::string_view piece, const Generation& generation);
  void write_events(std::size_t index, const AnswerReader::Piece& piece, std::span<const std::int32_t> generated);
  std::string new_token_ids(Text& text, std::span<const std::int32_t> generated) const;
  void write_end(std::size_t index);
  void count(Text& text, std::size_t generated) const;
  void fail(const std::exception_ptr& error);
  void finish();
  ChatJson message_choice(std::size_t text, std::size_t index);
  Usage usage() const;

  const TextModel& model_;
  const Request request_;
  const std::shared_ptr<HttpAnswer> answer_;
  const std::time_t now_;
  const std::string id_, model_name_;
  const AnswerChunks chunks_;
  std::vector<Text> texts_;  // each is of the functions that are called for it, until finish()

  std::mutex mutex_;  // guards all below
  std::size_t ended_ = 0;
  bool streaming_ = false;
  bool failed_ = false;
};

inline constexpr std::string_view json_type = "application/json";

// The error of a request for what was thrown while its text was generated.
RequestError request_error_of(const std::exception_ptr& error);

// Returns an error in the form of an API.
using ErrorBody = std::string (*)(const RequestError& error);

// Sends an error.
void send_error(HttpAnswer& answer, const RequestError& error, ErrorBody body = error_body);

}  // namespace minimind
