#include "tools/openai/answer_body.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <span>

#include "runtime/chat/message_json.h"
#include "runtime/text/utf8.h"
#include "tools/openai/logprobs.h"

namespace minimind {
namespace {

// The prompt may have more alternatives than the text.
std::vector<TokenScore> with_alternatives(std::vector<TokenScore> scores, std::size_t most) {
  for (TokenScore& score : scores) score.top.resize(std::min(score.top.size(), most));
  return scores;
}

ChatJson logprobs_of(const TextModel& model, const Request& request, const TextTask& task, const Generated& generated) {
  if (!request.logprobs) return nullptr;
  TokenPieces pieces(model.tokenizer(), task.options.text_tokens);
  const std::vector<TokenScore> all = with_alternatives(generated.scores, *request.logprobs);
  // With ids there is an entry for each token, also for those of a stop string.
  const TokenNames names = request.tokens_as_ids ? TokenNames::ids : TokenNames::texts;
  const auto scores = request.tokens_as_ids ? std::span(all) : pieces.take_rest(all, generated.text.size());
  if (request.chat) return chat_logprobs(model.tokenizer(), pieces, scores, names);
  CompletionLogprobs logprobs(model.tokenizer(), names);
  if (request.echo) {
    logprobs.add_prompt(task.prompt.front(), with_alternatives(generated.prompt_scores, *request.logprobs));
  }
  logprobs.add(scores);
  return logprobs.take();
}

// A token of a prompt with its alternatives, by their ids, as vLLM has them.
ChatJson prompt_token(const TextModel& model, const TokenScore& score) {
  ChatJson tokens = ChatJson::object();
  const auto add = [&](const ScoredToken& token, std::size_t rank) {
    const std::string text = to_utf8_lossy(model.tokenizer().token_bytes(token.token));
    tokens.emplace(std::to_string(token.token),
                   ChatJson{{"logprob", token.log_probability}, {"rank", rank}, {"decoded_token", text}});
  };
  add(score.token, score.rank);
  for (std::size_t i = 0; i < score.top.size(); ++i) add(score.top[i], i + 1);  // it may be among them
  return tokens;
}

// The message of an answer. Its only call may be as OpenAI's API had it before tools.
ChatJson message_of(const Request& request, const Message& answer) {
  ChatJson message = messages_json({answer}, false).at(0);
  if (!request.function_call || answer.tool_calls.empty()) return message;
  ChatJson function = message["tool_calls"][0]["function"];
  message.erase("tool_calls");
  message["function_call"] = std::move(function);
  return message;
}

double mean_log_probability(const Generated& generated) {
  if (generated.scores.empty()) return 0;
  const double sum =
      std::accumulate(generated.scores.begin(), generated.scores.end(), 0.0,
                      [](double so_far, const TokenScore& score) { return so_far + score.token.log_probability; });
  return sum / static_cast<double>(generated.scores.size());
}

}  // namespace

bool finish_answer(const TextTask& task, FinishReason reason, AnswerParser& parser, std::vector<AnswerEvent>& events) {
  const bool is_cut = (task.forced || reason == FinishReason::length) && parser.take_cut_call(events);
  const std::size_t known = events.size();
  parser.finish(events);
  if (!task.forced) return is_cut;
  // All text of a forced answer is the start of a call.
  const auto is_call_start = [](const AnswerEvent& event) { return event.kind == AnswerEvent::Kind::not_a_call; };
  const auto end = events.begin() + static_cast<std::ptrdiff_t>(known);
  const bool has_start = std::any_of(end, events.end(), is_call_start);
  std::erase_if(events, [](const AnswerEvent& event) {
    return event.kind != AnswerEvent::Kind::tool_call && event.kind != AnswerEvent::Kind::arguments;
  });
  if (!has_start || task.only_function.empty()) return is_cut;
  events.push_back({.kind = AnswerEvent::Kind::tool_call,
                    .text = "",
                    .call = {.id = "", .name = task.only_function, .arguments = ""}});
  return true;
}

void read_answer(TextAnswer& answer, const TextTask& task, std::size_t first_call) {
  answer.message = {.role = Role::assistant};
  if (task.plain) {
    answer.message.content = answer.generated.text;
    return;
  }
  AnswerParser parser(task.thinks);
  std::vector<AnswerEvent> events;
  parser.push(task.opening + answer.generated.text, events);
  answer.has_cut_call = finish_answer(task, answer.generated.finish_reason, parser, events);
  for (AnswerEvent& event : events) add_event(event, answer.message, first_call);
}

std::string_view finish_reason_of(const Request& request, const TextAnswer& answer) {
  const bool has_calls = !answer.has_cut_call && !answer.message.tool_calls.empty();
  const FinishReason reason = reason_of_end(answer.generated.finish_reason, is_forced(request.calls) && has_calls);
  const std::string_view name = answer.has_cut_call ? name_of(reason) : finish_reason_name(reason, answer.message);
  return request.function_call && name == "tool_calls" ? "function_call" : name;
}

std::vector<std::size_t> chosen_texts(const Request& request, const std::vector<const Generated*>& texts) {
  std::vector<std::size_t> chosen(texts.size());
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  if (request.best_of == request.n) return chosen;
  std::vector<std::size_t> best;
  for (std::size_t first = 0; first < texts.size(); first += request.best_of) {
    const auto begin = chosen.begin() + static_cast<std::ptrdiff_t>(first);
    std::stable_sort(begin, begin + static_cast<std::ptrdiff_t>(request.best_of), [&](std::size_t a, std::size_t b) {
      return mean_log_probability(*texts[a]) > mean_log_probability(*texts[b]);
    });
    best.insert(best.end(), begin, begin + static_cast<std::ptrdiff_t>(request.n));
  }
  return best;
}

std::string_view object_name(const Request& request) {
  return request.chat ? "chat.completion" : "text_completion";
}

std::string_view id_prefix_of(const Request& request) {
  return request.chat ? "chatcmpl-" : "cmpl-";
}

std::string prompt_text(const TextModel& model, const TextPrompt& prompt) {
  return prompt.tokens.empty() ? prompt.text : model.tokenizer().decode(prompt.tokens, false);
}

void add_prompt_facts(ChatJson& json, const TextModel& model, const Request& request, const TextTask& task,
                      const Generated& generated) {
  if (request.return_tokens) json["prompt_token_ids"] = task.prompt;
  if (!request.prompt_logprobs) return;
  WrittenList list;
  list.push_back(nullptr);  // of the first token, before which there is nothing
  for (const TokenScore& score : generated.prompt_scores) list.push_back(prompt_token(model, score));
  json["prompt_logprobs"] = list.take();
}

ChatJson choice_json(const TextModel& model, const Request& request, const TextTask& task, const TextAnswer& answer,
                     std::size_t index) {
  const Generated& generated = answer.generated;
  ChatJson logprobs = logprobs_of(model, request, task, generated);
  if (!request.chat) {
    const std::string before = request.echo ? prompt_text(model, request.prompts[index / request.n]) : "";
    ChatJson choice{{"index", index},
                    {"text", before + generated.text},
                    {"logprobs", std::move(logprobs)},
                    {"finish_reason", name_of(generated.finish_reason)}};
    add_prompt_facts(choice, model, request, task, generated);
    if (request.return_tokens) choice["token_ids"] = generated.tokens;
    return choice;
  }
  ChatJson choice{{"index", index},
                  {"message", message_of(request, answer.message)},
                  {"logprobs", std::move(logprobs)},
                  {"finish_reason", finish_reason_of(request, answer)}};
  if (request.return_tokens) choice["token_ids"] = generated.tokens;
  return choice;
}

ChatJson usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.thought_tokens}}}};
}

std::size_t thought_tokens(const TextModel& model, const TextTask& task, const std::vector<std::int32_t>& tokens) {
  const auto start = model.tokenizer().id_of(answer_tags[0]), end = model.tokenizer().id_of(answer_tags[1]);
  if (task.plain || !end) return 0;
  const bool starts = !tokens.empty() && tokens.front() == start;
  if (task.thinks != ThinkState::open && !starts) return 0;
  const auto found = std::ranges::find(tokens, *end);
  return static_cast<std::size_t>(found - tokens.begin()) + (found == tokens.end() ? 0 : 1);
}

ChatJson answer_json(const std::string& id, const std::string& model, const Request& request, ChatJson choices,
                     const Usage& usage, std::time_t now) {
  ChatJson answer{{"id", id},
                  {"object", object_name(request)},
                  {"created", now},
                  {"model", model},
                  {"system_fingerprint", system_fingerprint},
                  {"choices", std::move(choices)},
                  {"usage", usage_json(usage)}};
  if (request.chat) answer["service_tier"] = "default";  // which LiteLLM requires of Groq's answers
  return answer;
}

ChatJson piece_json(const Tokenizer& tokenizer, std::int32_t id) {
  const std::string_view bytes = tokenizer.token_bytes(id);
  ChatJson piece = ChatJson(std::string(bytes));
  if (!is_utf8(bytes)) {
    piece = ChatJson::array();
    for (const char c : bytes) piece.push_back(static_cast<unsigned char>(c));
  }
  return {{"id", id}, {"piece", std::move(piece)}};
}

std::string unique_id(std::string_view prefix) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  constexpr std::size_t length = 24;
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::array<std::uint32_t, 8> entropy{};
    for (std::uint32_t& word : entropy) word = device();
    std::seed_seq seed(entropy.begin(), entropy.end());
    return std::mt19937_64(seed);
  }();
  std::uniform_int_distribution<std::size_t> any(0, letters.size() - 1);
  std::string id(prefix);
  for (std::size_t i = 0; i < length; ++i) id += letters[any(random)];
  return id;
}

}  // namespace minimind
