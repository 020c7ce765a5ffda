#include "tools/openai/text_model.h"

#include <fmt/core.h>

#include <filesystem>

#include "runtime/chat/conversation_prompt.h"
#include "runtime/chat/message_json.h"
#include "runtime/constraint/least_tokens.h"
#include "runtime/engine/pack.h"
#include "runtime/generate/check_sampling.h"
#include "tools/openai/request_error.h"
#include "weights/base/cancel.h"
#include "weights/tensor/dtype.h"

namespace minimind {
namespace {

// What MiniMind's templates write before a call.
constexpr std::string_view call_opening = "<tool_call>\n";

// The name that a person knows the model by. Files of every model have the usual names, so that their folder has the
// model's.
std::string name_of(const std::filesystem::path& model) {
  const std::string stem = model.stem().string(), folder = model.parent_path().filename().string();
  const bool is_usual = stem == "model" || stem == "pytorch_model";
  if (!is_usual || folder.empty() || folder == ".") return stem;
  return folder == "demo" ? "minimind-poet" : folder;
}

std::vector<std::string> names_of(const std::string& given) {
  std::filesystem::path model = model_path(given);
  if (!model.has_filename()) model = model.parent_path();  // "out/"
  return {name_of(model), model.stem().string(), model.filename().string(), model.string(), "minimind"};
}

// The bytes of the weights, as stored or as a type.
std::size_t bytes_in_memory(const Checkpoint& checkpoint, WeightType type) {
  if (type) return parameter_count(checkpoint) * block_shape(*type).bytes / block_shape(*type).elements;
  std::size_t stored = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) stored += tensor.data.size();
  return stored;
}

CheckpointFacts facts_of(const Checkpoint& checkpoint, WeightType type) {
  const auto bytes = [](const auto& entry) { return entry.second.data.size(); };
  const auto largest = std::ranges::max_element(checkpoint.tensors, {}, bytes);
  const bool is_known = type || largest != checkpoint.tensors.end();
  return {.format = checkpoint.format,
          .type = is_known ? std::string(name_of(type ? *type : largest->second.dtype)) : "",
          .parameters = parameter_count(checkpoint),
          .bytes = bytes_in_memory(checkpoint, type)};
}

// How many a text may have, if it becomes as long as it may.
std::size_t log_probabilities_of(const TextTask& task) {
  const GenerateOptions& options = task.options;
  if (!options.scores) return 0;
  return (1 + *options.scores) * (task.capacity - (options.score_prompt ? 0 : task.prompt.size()));
}

void check_log_probabilities(const Request& request, std::size_t count) {
  if (count <= most_log_probabilities) return;
  const bool only_chooses = !request.logprobs && !request.prompt_logprobs;
  throw RequestError(
      fmt::format("the texts of the request may have {} log-probabilities with the alternatives of their tokens, "
                  "expected at most {}; ask for fewer texts, alternatives or tokens",
                  count, most_log_probabilities),
      request.prompt_logprobs ? "prompt_logprobs"
      : only_chooses          ? "best_of"
                              : "logprobs");
}

// Of all prompts of a request that has penalties by DRY: to read them takes a millisecond or two.
constexpr std::size_t most_brief_penalized = 4096;

// Reads the prompt once, for all its texts, and not on the engine's thread.
std::shared_ptr<const TextPenalties> penalties_after(const TextPenalties& before,
                                                     const std::vector<std::int32_t>& prompt) {
  check_cancelled();
  std::unique_ptr<TextPenalties> penalties = before.copy();
  for (const std::int32_t token : prompt) penalties->accept(token);
  return penalties;
}

// Throws RequestError for a value out of its range, naming the field.
void check_sampling(const SamplingOptions& sampling, std::size_t vocab_size) {
  try {
    check(sampling);
  } catch (const ParameterError& error) {
    throw RequestError(error.what(), error.name);
  }
  for (const LogitBias& bias : sampling.logit_bias) {
    if (static_cast<std::size_t>(bias.token) < vocab_size) continue;
    throw RequestError(fmt::format("logit_bias names token {}, expected ids from 0 to {}", bias.token, vocab_size - 1),
                       "logit_bias");
  }
}

}  // namespace

std::size_t bytes_of(const GenerationTask& task) {
  std::size_t bytes = sizeof(TextTask) + task.prompt.size() * sizeof task.prompt[0] +
                      task.options.sampling.logit_bias.size() * sizeof(LogitBias);
  for (const auto* const texts : {&task.options.stop, &task.options.sampling.dry.sequence_breakers}) {
    for (const std::string& text : *texts) bytes += sizeof text + text.size();
  }
  return bytes;
}

std::size_t weight_bytes_of(const GenerationArguments& arguments) {
  const CheckpointOptions& options = arguments.checkpoint;
  return bytes_in_memory(open_checkpoint(model_path(options.model), options.open_options()),
                         arguments.run.weight_type());
}

TextModel::TextModel(const GenerationArguments& arguments, const std::string& chat_template, const std::string& name)
    : checkpoint_options_(arguments.checkpoint),
      run_options_(arguments.run),
      llm_(load_llm(
          arguments, {.chat_template = chat_template},
          [this](const Checkpoint& checkpoint) { facts_ = facts_of(checkpoint, run_options_.weight_type()); })),
      names_(name.empty() ? names_of(arguments.checkpoint.model) : std::vector{name}) {
  if (!arguments.run.quiet) print_assumed_end(llm_);
}

Model TextModel::load_weights_of(const std::string& path) const {
  return load_new_weights(llm_, path, checkpoint_options_, run_options_);
}

bool TextModel::minds_thinking() const {
  return minimind::minds_thinking(*llm_.chat_template, {});
}

bool TextModel::minds_tools() const {
  static const std::string any = parse_tools(R"([{"type": "function", "function": {"name": "f"}}])", "tools");
  return minimind::minds_tools(*llm_.chat_template, {.tools = any});
}

MarkedText TextModel::chat_prompt(const Request& request, std::time_t now) const {
  PromptSettings settings{.tools = request.tools, .think = request.think, .now = now};
  std::optional<ChatTemplate> own;
  if (!request.chat_template.empty()) {
    begin_long_work();  // a short template may write a long text
    own =
        about("chat_template", [&] { return llm_.chat_template->with_source(request.chat_template, "chat_template"); });
  }
  const ChatTemplate& chat_template = own ? *own : *llm_.chat_template;
  if (!request.continues) return render_prompt(chat_template, settings, request.messages, request.starts_answer);
  const Message& answer = request.messages.back();
  settings.think = answer.reasoning.has_value();
  MarkedText prompt =
      render_prompt(chat_template, settings, {request.messages.begin(), request.messages.end() - 1}, true);
  if (answer.reasoning) {
    if (think_state(prompt.bytes) != ThinkState::open) {
      throw RequestError("the chat template has no thoughts, so that one cannot be continued",
                         "continue_final_message");
    }
    prompt.append(MarkedText::all(*answer.reasoning));
    if (!answer.content.empty()) prompt.append("\n</think>\n\n");
  }
  prompt.append(MarkedText::all(answer.content));
  return prompt;
}

void TextModel::set_prompt(TextTask& task, const Request& request, const TextPrompt* prompt, std::time_t now) const {
  if (prompt) {
    task.prompt = prompt->tokens.empty() ? llm_.tokenizer->encode(prompt->text) : prompt->tokens;
    if (task.prompt.empty()) task.prompt = llm_.tokenizer->encode_prompt("");  // the start of any text
    return;
  }
  MarkedText text = chat_prompt(request, now);
  task.thinks = think_state(text.bytes);
  if (request.continues) {
    const Message& answer = request.messages.back();
    task.thinks = answer.reasoning && answer.content.empty() ? ThinkState::open : ThinkState::none;
  }
  if (request.grammar && task.thinks == ThinkState::open) {
    const std::string& param = request.grammar_param.empty() ? "response_format" : request.grammar_param;
    throw RequestError(fmt::format("{} is for the answer, but the prompt starts a thought; turn thinking off", param),
                       param);
  }
  if (is_forced(request.calls)) task.opening = call_opening;
  text.append(task.opening);
  task.prompt = llm_.tokenizer->encode_with_special(text.bytes, request.plain_content ? text.marks : TextMarks());
}

// The tokens around a call. `is_free`: the model decides whether it makes one.
GrammarMarks TextModel::call_marks(bool is_free) const {
  GrammarMarks marks{
      .open = llm_.tokenizer->encode_with_special(is_free ? call_opening : "\n" + std::string(call_opening)),
      .close = llm_.tokenizer->encode_with_special("\n</tool_call>"),
      .anything_outside = is_free,
      .starts_open = !is_free};
  check_tokens(marks.open, llm_.config.vocab_size);
  check_tokens(marks.close, llm_.config.vocab_size);
  const bool has_mark = llm_.tokenizer->token_bytes(marks.open.front()) == answer_tags[2];
  if (is_free && !has_mark) {
    throw RequestError(
        "tools: strict and allowed_tools require a tokenizer with the token <tool_call>, which this model does not "
        "have; omit them, or require a call by tool_choice",
        "tools");
  }
  return marks;
}

MakeConstraint TextModel::constraint_of(const Request& request) const {
  const std::shared_ptr<const Grammar> grammar = request.grammar ? request.grammar : request.call_grammar;
  if (!grammar) return nullptr;
  std::optional<GrammarMarks> marks;
  if (request.calls == CallRule::forced || !request.grammar) {
    marks = about("tools", [&] { return call_marks(!is_forced(request.calls)); });
  }
  return constrain_to(grammar, llm_.token_trie(), std::move(marks));
}

TextTask TextModel::task_of(const Request& request, const TextPrompt* prompt, std::time_t now) const {
  const std::string param = request.chat ? "messages" : "prompt";
  TextTask task;
  about(param, [&] {
    set_prompt(task, request, prompt, now);
    check_tokens(task.prompt, llm_.config.vocab_size);
  });
  const std::size_t positions = request.context.value_or(llm_.positions);
  if (task.prompt.empty() || task.prompt.size() >= positions) {
    throw RequestError(
        fmt::format("the prompt has {} tokens, expected 1 to {}, one fewer than the maximum context length",
                    task.prompt.size(), positions - 1),
        param, "context_length_exceeded");
  }
  GenerateOptions& options = task.options;
  options = llm_.generate_options(request, request.chat);
  task.forced = is_forced(request.calls);
  task.plain = !request.chat || (request.grammar && !task.forced);
  const bool may_call = !task.plain && (!request.tools.empty() || request.function_call);
  if (request.calls == CallRule::single && may_call) options.stop.emplace_back(answer_tags.back());
  options.end_tokens.insert(options.end_tokens.end(), request.stop_tokens.begin(), request.stop_tokens.end());
  options.constraint = constraint_of(request);
  options.judges_text = false;
  if (request.min_tokens > 0) {
    options.constraint = with_least_tokens(request.min_tokens, std::move(options.constraint));
  }
  options.scores = std::max(request.logprobs, request.prompt_logprobs);
  if (request.best_of > request.n && !options.scores) options.scores = 0;
  options.score_prompt = (request.echo && request.logprobs) || request.prompt_logprobs;
  task.capacity = std::min(positions, task.prompt.size() + request.max_tokens);
  task.only_function = request.only_function;
  return task;
}

std::vector<TextTask> TextModel::tasks(const Request& request, std::uint64_t seed, std::time_t now) const {
  check_sampling(request.sampling, llm_.config.vocab_size);
  std::vector<TextTask> tasks;
  std::uint64_t next_seed = request.seed.value_or(seed);
  std::size_t bytes = 0, log_probabilities = 0, penalized = 0;
  std::shared_ptr<const TextPenalties> penalties;  // of an empty text
  for (std::size_t i = 0; i < (request.chat ? 1 : request.prompts.size()); ++i) {
    TextTask task = task_of(request, request.chat ? nullptr : &request.prompts[i], now);
    bytes += request.best_of * bytes_of(task);
    if (bytes > most_copied_bytes) {
      throw RequestError(fmt::format("the texts of the request take over {} bytes, expected fewer or shorter prompts",
                                     most_copied_bytes),
                         request.chat ? "messages" : "prompt");
    }
    log_probabilities += request.best_of * log_probabilities_of(task);
    check_log_probabilities(request, log_probabilities);
    if (const DryOptions& dry = task.options.sampling.dry; dry.on()) {
      penalized += task.prompt.size();
      if (penalized > most_brief_penalized) begin_long_work();
      if (!penalties) penalties = make_dry(dry, llm_.tokenizer_or_null(), llm_.config.vocab_size);
      task.options.penalties = penalties_after(*penalties, task.prompt);
    }
    for (std::size_t copy = 0; copy < request.best_of; ++copy) {
      tasks.push_back(task);
      tasks.back().options.sampling.seed = next_seed++;
    }
  }
  return tasks;
}

}  // namespace minimind
