#include "tools/commands/scored_texts.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/chat/chat_json.h"
#include "runtime/chat/training_conversation.h"
#include "tools/options/lines.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/input_file.h"

namespace minimind {
namespace {

using Ids = std::vector<std::int32_t>;

// Adds a text without scoring its tokens.
void append(ScoredTexts& texts, std::span<const std::int32_t> tokens) {
  texts.tokens.insert(texts.tokens.end(), tokens.begin(), tokens.end());
  texts.uses.resize(texts.tokens.size(), TokenUse::read);
  texts.ends.push_back(texts.tokens.size());
}

void add_answer(ScoredTexts& texts, const Ids& prompt, const Ids& answer, const std::string& name) {
  if (prompt.empty() || answer.empty()) {
    throw Error(fmt::format("{} has a {} of 0 tokens, expected 1 or more", name, prompt.empty() ? "prompt" : "text"));
  }
  Ids tokens = prompt;
  tokens.insert(tokens.end(), answer.begin(), answer.end());
  append(texts, tokens);
  std::fill(texts.uses.end() - std::ssize(answer), texts.uses.end(), TokenUse::scored);
}

// The tokens that mark the ends of a text and the turns of a conversation in MiniMind's data.
struct Marks {
  std::int32_t bos, eos;
  std::string bos_text, eos_text;
};

Marks marks_of(const Tokenizer& tokenizer, const std::string& name) {
  if (!tokenizer.bos_id() || !tokenizer.eos_id()) {
    throw Error(
        fmt::format("{} requires the tokenizer's bos_token and eos_token, expected them in tokenizer_config.json; "
                    "name another tokenizer with --tokenizer",
                    name));
  }
  const std::int32_t bos = *tokenizer.bos_id(), eos = *tokenizer.eos_id();
  return {bos, eos, std::string(tokenizer.token_bytes(bos)), std::string(tokenizer.token_bytes(eos))};
}

// v2's first datasets have the marks in the texts, later ones do not; the result has one of each.
void add_pretrain_text(ScoredTexts& texts, const std::string& text, const std::string& name, const Tokenizer& tokenizer,
                       Family family) {
  const Marks marks = marks_of(tokenizer, name);
  const bool may_have_marks = family == Family::v2 || family == Family::llama;
  Ids tokens = tokenizer.encode(text);
  if (!may_have_marks || tokens.empty() || tokens.front() != marks.bos) tokens.insert(tokens.begin(), marks.bos);
  if (!may_have_marks || tokens.back() != marks.eos) tokens.push_back(marks.eos);
  const std::size_t begin = texts.tokens.size();
  add_text(texts, tokens, name);
  for (std::size_t i = begin; i < texts.tokens.size(); ++i) {
    if (texts.tokens[i] == tokenizer.pad_id()) texts.uses[i] = TokenUse::read;
  }
}

bool found_at(const Ids& tokens, std::size_t at, const Ids& wanted) {
  return at + wanted.size() <= tokens.size() &&
         std::equal(wanted.begin(), wanted.end(), tokens.begin() + std::ptrdiff_t(at));
}

// Returns the tokens of a mark, of which there must be some: no tokens would be found everywhere.
Ids tokens_of_mark(const Tokenizer& tokenizer, const std::string& mark, const std::string& name) {
  Ids tokens = tokenizer.encode(mark + "\n");
  if (!tokens.empty()) return tokens;
  throw Error(
      fmt::format("{} is a conversation, but the tokenizer has no tokens for {}, expected some; name another tokenizer "
                  "with --tokenizer",
                  name, quote(mark)));
}

// MiniMind's loss mask: the tokens after those that open an assistant's turn, up to and including those that close it,
// all shifted by `shift`.
std::vector<bool> assistant_mask(const Ids& tokens, const Ids& opening, const Ids& closing, std::size_t shift) {
  std::vector<bool> mask(tokens.size(), false);
  for (std::size_t i = 0; i < tokens.size();) {
    if (!found_at(tokens, i, opening)) {
      ++i;
      continue;
    }
    const std::size_t start = i + opening.size();
    std::size_t end = start;
    while (end < tokens.size() && !found_at(tokens, end, closing)) ++end;
    i = std::min(end + closing.size(), tokens.size());
    for (std::size_t j = start + shift; j < std::min(end + closing.size() + shift, tokens.size()); ++j) mask[j] = true;
  }
  return mask;
}

void add_conversation(ScoredTexts& texts, const ChatJson& list, const std::string& name, TokenUse use,
                      const Tokenizer& tokenizer, const TrainingTextOptions& options) {
  const Marks marks = marks_of(tokenizer, name);
  const TrainingConversation conversation = read_training_conversation(list, name);
  ChatInput input;
  input.messages = template_value(conversation.messages);
  input.tools = template_value(conversation.tools);
  std::string prompt;
  try {
    prompt = options.chat_template().render(input, std::time(nullptr)).bytes;
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", name, error.what()));
  }
  Ids tokens = tokenizer.encode(prompt);
  const std::size_t begin = texts.tokens.size();
  texts.conversations = true;
  if (options.all_turns) {
    add_text(texts, tokens, name);
    std::fill(texts.uses.begin() + std::ptrdiff_t(begin) + 1, texts.uses.end(), use);
    return;
  }
  // The first dataset's mask starts and ends one token late, so the last turn includes a padding token.
  const bool is_late = options.family == Family::v1 || options.family == Family::v2_early;
  if (is_late && tokenizer.pad_id()) tokens.push_back(*tokenizer.pad_id());
  const Ids opening = tokens_of_mark(tokenizer, marks.bos_text + "assistant", name);
  const Ids closing = tokens_of_mark(tokenizer, marks.eos_text, name);
  const std::vector<bool> mask = assistant_mask(tokens, opening, closing, is_late ? 1 : 0);
  if (std::find(mask.begin(), mask.end(), true) == mask.end()) {
    throw Error(fmt::format("{} has no turn that starts with {}assistant, expected one{}", name, marks.bos_text,
                            options.advice));
  }
  append(texts, tokens);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) texts.uses[begin + i] = use;
  }
}

}  // namespace

void add_text(ScoredTexts& texts, std::span<const std::int32_t> tokens, const std::string& name) {
  if (tokens.size() < 2) {
    throw Error(fmt::format("{} has {} token{}, expected 2 or more: the first one is not scored", name, tokens.size(),
                            tokens.size() == 1 ? "" : "s"));
  }
  append(texts, tokens);
  std::fill(texts.uses.end() - std::ssize(tokens) + 1, texts.uses.end(), TokenUse::scored);
}

void add_line(ScoredTexts& texts, const std::string& line, const std::string& name, const Tokenizer& tokenizer,
              const TrainingTextOptions& options) {
  const ChatJson json = parse_chat_json(line, name);
  if (json.is_string()) return add_text(texts, tokenizer.encode(json.get_ref<const std::string&>()), name);
  const auto find = [&](const char* key) -> const ChatJson* {
    return json.is_object() && json.contains(key) ? &json[key] : nullptr;
  };
  const ChatJson *const prompt = find("prompt"), *const answer = find("text");
  if (prompt && prompt->is_string() && answer && answer->is_string() && json.size() == 2) {
    return add_answer(texts, tokenizer.encode(prompt->get_ref<const std::string&>()),
                      tokenizer.encode(answer->get_ref<const std::string&>()), name);
  }
  const ChatJson* const conversation = find("conversations");
  const ChatJson *const chosen = find("chosen"), *const rejected = find("rejected");
  if (conversation) {
    add_conversation(texts, *conversation, name + ": conversations", TokenUse::scored, tokenizer, options);
  } else if (chosen && rejected) {
    add_conversation(texts, *chosen, name + ": chosen", TokenUse::chosen, tokenizer, options);
    add_conversation(texts, *rejected, name + ": rejected", TokenUse::rejected, tokenizer, options);
  } else if (answer && !prompt) {
    if (!answer->is_string()) {
      throw Error(fmt::format("{} has {} as \"text\", expected a string", name, kind_of(*answer)));
    }
    add_pretrain_text(texts, answer->get_ref<const std::string&>(), name, tokenizer, options.family);
  } else {
    throw Error(
        fmt::format("{} is not a text, expected a JSON string, {{\"prompt\": a string, \"text\": a "
                    "string}}, or MiniMind's {{\"text\": ...}}, {{\"conversations\": [...]}} or "
                    "{{\"chosen\": [...], \"rejected\": [...]}}",
                    name));
  }
  texts.training_data = true;
}

ScoredTexts read_lines(const std::string& contents, const std::string& file, const Tokenizer& tokenizer,
                       const TrainingTextOptions& options) {
  if (!file.empty()) check_not_mistaken(contents, contents.size(), file);
  ScoredTexts texts;
  for_each_line(contents, [&](const std::string& line, std::size_t number) {
    add_line(texts, line, place_of_line(file, number), tokenizer, options);
  });
  if (texts.ends.empty()) {
    throw Error(fmt::format("{}: is empty, expected one line of JSON per text; name the file of texts",
                            file.empty() ? "the input" : file));
  }
  return texts;
}

std::vector<bool> are_scored(const ScoredTexts& texts) {
  std::vector<bool> scored;
  for (const TokenUse use : texts.uses) scored.push_back(use != TokenUse::read);
  return scored;
}

WindowSize usual_windows(const ScoredTexts& texts, std::size_t positions) {
  const std::size_t size = std::clamp<std::size_t>(positions, 2, texts.training_data ? SIZE_MAX : 512);
  return {size, size / 2};
}

std::vector<Window> windows_over(const ScoredTexts& texts, WindowSize size) {
  const auto is_scored = [](TokenUse use) { return use != TokenUse::read; };
  std::vector<Window> windows;
  std::size_t begin = 0;
  for (const std::size_t end : texts.ends) {
    const auto first = texts.uses.begin() + std::ptrdiff_t(begin), last = texts.uses.begin() + std::ptrdiff_t(end);
    const auto first_scored = static_cast<std::size_t>(std::find_if(first, last, is_scored) - texts.uses.begin());
    const auto trailing = std::find_if(std::make_reverse_iterator(last), std::make_reverse_iterator(first), is_scored);
    for (Window window : sliding_windows(begin, static_cast<std::size_t>(trailing.base() - texts.uses.begin()),
                                         size.size, size.stride)) {
      window.first_scored = std::max(window.first_scored, first_scored);
      if (window.first_scored < window.end) windows.push_back(window);
    }
    begin = end;
  }
  return windows;
}

}  // namespace minimind
