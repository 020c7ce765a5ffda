#pragma once

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/chat/conversation.h"
#include "runtime/constraint/grammar_constraint.h"
#include "runtime/engine/forward.h"
#include "runtime/engine/load_model.h"
#include "runtime/grammar/gbnf.h"
#include "runtime/kernels/instruction_sets.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/support/stored.h"
#include "tests/support/temporary_folder.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {

// Returns a tokenizer of MiniMind 3's tags and special tokens, then every byte, then some words.
inline TokenizerData chat_tokenizer_data(bool special_tags = false) {
  TokenizerData data;
  data.source = "test.json";
  const auto add = [&](const std::string& text, bool special) {
    AddedToken token;
    token.id = static_cast<std::int32_t>(data.vocab.size());
    token.content = text;
    token.special = special;
    data.vocab.emplace_back(text, token.id);
    data.added_tokens.push_back(token);
  };
  for (const char* const text : {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>"}) add(text, true);
  for (const char* const text : {"<tool_call>", "</tool_call>", "<think>", "</think>"}) add(text, special_tags);
  for (int byte = 0; byte < 256; ++byte) {
    data.vocab.emplace_back(to_byte_level(std::string{static_cast<char>(byte)}), static_cast<int>(data.vocab.size()));
  }
  for (const char* const word : {"th", "the", "us", "use", "user"}) {
    const std::string text = word;
    data.vocab.emplace_back(text, static_cast<std::int32_t>(data.vocab.size()));
    data.merges.emplace_back(text.substr(0, text.size() - 1), text.substr(text.size() - 1));
  }
  data.eos_token = "<|im_end|>";
  return data;
}

// Returns a small checkpoint with random weights for a vocabulary of any size.
inline Checkpoint random_checkpoint(std::size_t vocab, unsigned seed = 1) {
  SmallModel shape;
  shape.vocab = vocab;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  StoredTensors tensors;
  for (const auto& [name, tensor] : shape.tensors()) {
    std::vector<float> values(size_of_shape(tensor.shape));
    for (float& value : values) value = normal(random);
    tensors.emplace(name, f32_tensor(tensor.shape, values));
  }
  const TemporaryFolder folder;
  return open_checkpoint(folder.write("model.safetensors", safetensors_bytes(tensors)), {});
}

// A conversation with a small model of random weights, and everything it requires.
struct SmallChat {
  SmallChat(Tokenizer with_tokenizer, ChatTemplate with_template, std::size_t capacity,
            ConversationOptions options = {}, unsigned seed = 1, KvType kv_type = KvType::f32)
      : tokenizer(std::move(with_tokenizer)),
        chat_template(std::move(with_template)),
        checkpoint(random_checkpoint(tokenizer.vocab_size(), seed)),
        model(load_model(checkpoint, std::nullopt, 1)),
        forward(model, kernels::choose(), 1, 64, capacity),
        context(model.config, capacity, kv_type),
        conversation(forward, context, tokenizer, chat_template, options) {}

  explicit SmallChat(Family family, std::size_t capacity = 2048, ConversationOptions options = {})
      : SmallChat(Tokenizer(chat_tokenizer_data()), ChatTemplate::of_family(family, {}), capacity, options) {}

  Answer ask(const std::string& text) { return conversation.ask(text, {}, interrupted); }

  Tokenizer tokenizer;
  ChatTemplate chat_template;
  Checkpoint checkpoint;
  Model model;
  Forward forward;
  Context context;
  Conversation conversation;
  std::atomic<bool> interrupted = false;
};

// Returns options that make every answer one of the texts of a grammar.
inline ConversationOptions answers_of(const std::string& grammar, std::size_t max_tokens = 400) {
  ConversationOptions options;
  options.generate.max_tokens = max_tokens;
  options.generate.constraint =
      constrain_to(std::make_shared<const Grammar>(parse_grammar("root ::= " + grammar, "test")));
  return options;
}

}  // namespace minimind
