#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "runtime/chat/message.h"
#include "runtime/generate/sampling_options.h"
#include "runtime/grammar/grammar.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/tool_choice.h"
#include "tools/options/generation_options.h"

namespace minimind {

// Alternatives to a token.
inline constexpr std::size_t most_top_logprobs = 20;

// What a request leaves open, and what it may ask for.
struct RequestDefaults {
  GenerationParameters parameters;                // without a seed
  std::shared_ptr<const Grammar> grammar;         // null: none
  std::vector<std::string> model_names;           // that a request may ask for; empty: any
  bool one_prompt = false;                        // rejects several prompts and stream
  bool plain_content = false;                     // of every chat
  std::size_t most_logprobs = most_top_logprobs;  // alternatives to a token
  bool trusts_templates = false;                  // chats may have chat templates
  bool only_prompt = false;                       // is wanted: a chat may end without the start of an answer
};

// A prompt of a completion.
struct TextPrompt {
  std::string text{};                  // unless tokens are given
  std::vector<std::int32_t> tokens{};  // if not empty
};

// The body of a request for one or more texts. Its seed is that of the first; the seed of text i is i more.
struct Request : GenerationParameters {
  bool chat = false;
  std::string model{};                            // as named; empty if it names none
  std::vector<Message> messages{};                // of a chat
  std::string tools{};                            // of a chat, as parse_tools() returns them; empty for none
  CallRule calls = CallRule::free;                // of a chat
  bool function_call = false;                     // of a chat: a call is in the answer's field of this name
  std::string only_function{};                    // of a chat: that forced calls are of; empty if there are several
  std::shared_ptr<const Grammar> call_grammar{};  // of calls that are not forced; null: none
  bool continues = false;                         // of a chat: the last message, an answer, is to be continued
  bool starts_answer = true;                      // of a chat: its prompt ends with the start of an answer
  std::optional<bool> think{};                    // of a chat
  bool plain_content = false;                     // of a chat: see ConversationOptions
  std::string chat_template{};                    // of a chat: Jinja source; empty: that of the model
  std::vector<TextPrompt> prompts{};              // of a completion
  bool echo = false;                              // of a completion: the text starts with the prompt
  std::optional<std::size_t> context{};      // positions for prompt and answer; std::nullopt: all that the model has
  std::shared_ptr<const Grammar> grammar{};  // null: none
  std::string grammar_param{};               // the field that has the grammar; empty if it is the default
  std::optional<std::size_t> logprobs{};     // log-probabilities of the tokens, with this many alternatives each
  std::size_t n = 1;                         // choices for each prompt
  std::size_t best_of = 1;                   // texts for each prompt, of which the best n are the choices
  std::vector<std::int32_t> stop_tokens{};   // end the text, too, also if end tokens do not
  std::size_t min_tokens = 0;                // end tokens and stop_tokens may come after these
  std::optional<std::size_t> prompt_logprobs{};  // as `logprobs`, of the prompt; not of a stream
  bool return_tokens = false;                    // the answer has the ids of prompt and text
  bool tokens_as_ids = false;                    // `logprobs` name tokens by ids, and have all; not of a stream
  std::vector<std::string> hints{};              // fields that were accepted, but change nothing here
  bool stream = false;
  bool include_usage = false;        // in a stream
  bool usage_of_each_chunk = false;  // in a stream: so far

  std::size_t text_count() const { return best_of * std::max<std::size_t>(prompts.size(), 1); }
};

// Returns what the command line says, the seed included.
RequestDefaults defaults_of(const GenerationArguments& arguments);

// Returns the values of the fields that a request leaves out, for the page.
ChatJson defaults_json(const RequestDefaults& defaults);

// Returns a request that leaves everything open.
Request request_with(const RequestDefaults& defaults);

// Of a text; with each of them every token is compared.
inline constexpr std::size_t most_stop_tokens = 1000;

// Fields of a completion that change nothing here: each is named once in the log.
inline constexpr auto hint_fields = {"verbosity",
                                     "cache_prompt",
                                     "id_slot",
                                     "n_keep",
                                     "keep_alive",
                                     "priority",
                                     "request_id",
                                     "cache_salt",
                                     "guided_decoding_backend",
                                     "mm_processor_kwargs",
                                     "thinking_budget",
                                     "timings_per_token",
                                     "return_progress",
                                     "dynatemp_exponent",
                                     "xtc_threshold",
                                     "ttl",
                                     "tool_stream",
                                     "disable_tool_validation",
                                     "citation_options",
                                     "provider",
                                     "models",
                                     "route",
                                     "transforms",
                                     "session_id",
                                     "rid",
                                     "reasoning_format",
                                     "cache_control",
                                     "prompt_cache_options",
                                     "response_fields"};

// These read fields of any API into a request, and throw RequestError.
//
// Reads ignore_eos, stop_token_ids and the least number of tokens, after max_tokens was read.
void read_ends(const BodyFields& body, Dialect dialect, Request& request);
// Reads logit_bias; empty if it is not there.
std::vector<LogitBias> read_logit_bias(const BodyFields& body);
// Adds the hints in the messages of a chat, whose form need not be checked.
void take_message_hints(const ChatJson& messages, std::vector<std::string>& hints);
// Checks that a text is not to be put before another one.
void require_no_suffix(const BodyFields& body);
// Checks that steps of sampling which there are not here are off. Special tokens, and what ended a text, may be part of
// SGLang's texts alone.
void require_no_other_sampling(const BodyFields& body, Dialect dialect);

// Reads the body of a chat completion or a completion. It may have what OpenAI's API has and changes the text or its
// form: model, messages or prompt, max_tokens, max_completion_tokens, temperature, top_p, stop, seed, presence_penalty,
// frequency_penalty, logit_bias, tools, tool_choice, parallel_tool_calls, response_format, reasoning_effort, logprobs,
// top_logprobs, echo, n, best_of, stream, stream_options; and the other generation_parameters,
// dry_sequence_breakers, the fields of read_constraint(), ignore_eos, stop_token_ids, min_tokens, prompt_logprobs,
// return_token_ids, return_tokens_as_token_ids, plain_content, chat_template, open_thinking and enable_thinking, also
// in chat_template_kwargs, which may have thinking and reasoning_effort, too; reasoning.effort and reasoning.enabled;
// thinking.type; usage.include; and prefix or partial of a last message, which is continue_final_message. Fields that
// change nothing, such as `user`, `store` and `metadata`, are accepted. Throws RequestError for anything else and for
// values of another type or out of range, naming the field.
Request read_request(const ChatJson& body, bool chat, const RequestDefaults& defaults);

}  // namespace minimind
