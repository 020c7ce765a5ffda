#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/answer_parser.h"
#include "runtime/chat/chat_json.h"
#include "runtime/chat/message.h"
#include "runtime/generate/generate.h"
#include "tools/openai/request.h"
#include "tools/openai/text_model.h"

namespace minimind {

// What the object of a request's answers and its id start with.
std::string_view object_name(const Request& request);   // "chat.completion" or "text_completion"
std::string_view id_prefix_of(const Request& request);  // "chatcmpl-" or "cmpl-"

// What computes the answers: this program. The client of Hugging Face's TGI requires it.
inline constexpr std::string_view system_fingerprint = "minimind-" MINIMIND_VERSION;

// A generated text, read.
struct TextAnswer {
  Generated generated;
  Message message;            // of a chat
  bool has_cut_call = false;  // the last call is incomplete, because a limit or a stop string ended the text in it
};

// Ends the answer of a chat, and returns whether its last call is incomplete: that call has the arguments as far as
// they go. A forced call whose name is incomplete, too, has the name of the only function that may be called, or is
// dropped.
bool finish_answer(const TextTask& task, FinishReason reason, AnswerParser& parser, std::vector<AnswerEvent>& events);

// Reads the message of a chat. Its calls have the ids "call_N", from `first_call` on.
void read_answer(TextAnswer& answer, const TextTask& task, std::size_t first_call);

// The reason for the end of an answer that may have whole calls which had to come: nothing is missing of these, though
// others could have followed.
constexpr FinishReason reason_of_end(FinishReason reason, bool has_forced_calls) {
  return has_forced_calls && reason == FinishReason::length ? FinishReason::stop : reason;
}

std::string_view finish_reason_of(const Request& request, const TextAnswer& answer);

// Adds what a request asks of its prompt: prompt_logprobs and prompt_token_ids. They are in the answer to a chat, and
// in each choice of a completion.
void add_prompt_facts(ChatJson& json, const TextModel& model, const Request& request, const TextTask& task,
                      const Generated& generated);

// A choice of an answer.
ChatJson choice_json(const TextModel& model, const Request& request, const TextTask& task, const TextAnswer& answer,
                     std::size_t index);

// Returns the indices of the texts that are the choices of a request, of all its texts in the order of its tasks: all,
// or of each prompt the n with the largest mean log-probability per token, the best first.
std::vector<std::size_t> chosen_texts(const Request& request, const std::vector<const Generated*>& texts);

// The tokens of all texts of an answer.
struct Usage {
  std::size_t prompt_tokens = 0;
  std::size_t completion_tokens = 0;
  std::size_t cached_tokens = 0;   // of the prompts
  std::size_t thought_tokens = 0;  // of completion_tokens
};
ChatJson usage_json(const Usage& usage);

// Returns how many of the generated tokens are a thought at the start of the answer, with its tags.
std::size_t thought_tokens(const TextModel& model, const TextTask& task, const std::vector<std::int32_t>& tokens);

// The whole answer.
ChatJson answer_json(const std::string& id, const std::string& model, const Request& request, ChatJson choices,
                     const Usage& usage, std::time_t now);

// The text of a prompt, which `echo` puts before that of the completion.
std::string prompt_text(const TextModel& model, const TextPrompt& prompt);

// Returns the id and the `piece` of a token: its text, or the list of its bytes if it is only a part of a character.
ChatJson piece_json(const Tokenizer& tokenizer, std::int32_t id);

// Returns `prefix` and 24 random letters and digits: no two calls give the same, in any process. Any thread may call.
std::string unique_id(std::string_view prefix);

}  // namespace minimind
