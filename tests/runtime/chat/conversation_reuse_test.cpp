#include <gtest/gtest.h>

#include <string>

#include "runtime/chat/conversation.h"
#include "runtime/kernels/instruction_sets.h"
#include "runtime/tokenizer/files.h"
#include "tests/support/cases.h"
#include "tests/support/golden_tokenizer.h"
#include "tests/support/small_chat.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {
namespace {

// An earlier thought is closed at once or gone, so that a prompt may differ from the one before at its last tokens.
constexpr std::size_t tokens_of_a_thought = 12;

void expect_no_prompt_computed_twice(const std::string& version, std::optional<bool> think) {
  const Tokenizer tokenizer = load_tokenizer(reference_tokenizers + "/" + version);
  ConversationOptions options;
  options.generate.max_tokens = 20;
  options.generate.end_tokens = {*tokenizer.eos_id()};
  SmallChat chat(tokenizer, ChatTemplate(tokenizer.chat_template().value(), version, {}), 4096, options);
  chat.conversation.set_think(think);
  std::size_t prompt_before = 0;
  for (int turn = 0; turn < 20; ++turn) {
    const Answer answer = chat.ask("问题 " + std::to_string(turn) + ": 天空为什么是蓝色的?");
    EXPECT_GE(answer.stats.reused_tokens + tokens_of_a_thought, prompt_before)
        << version << ", turn " << turn << ": " << answer.message.content;
    prompt_before = answer.stats.prompt_tokens;
  }
}

TEST(ConversationReuse, WithMiniMindsTemplatesNoPromptIsComputedTwice) {
  if (reference_tokenizers.empty()) GTEST_SKIP() << "MINIMIND_REFERENCE is not set";
  for (const std::string version : {"v1", "v2", "v3"}) {
    for (const std::optional<bool> think : {std::optional<bool>(), std::optional(false), std::optional(true)}) {
      expect_no_prompt_computed_twice(version, think);
    }
  }
}

TEST(ConversationReuse, TheDemoContinuesOverItsContext) {
  const std::string folder = MINIMIND_SOURCE_DIR "/weights/demo";
  const Tokenizer tokenizer = load_tokenizer(folder);
  const Model model = load_model(open_checkpoint(folder + "/model.pth", {}), std::nullopt, 1);
  const ChatTemplate chat_template = ChatTemplate::of_family(model.config.family, {});
  constexpr std::size_t capacity = 256;
  const unsigned turns = cases(40);
  Forward forward(model, kernels::choose(), 1, 64, capacity);
  Context context(model.config, capacity);
  ConversationOptions options;
  options.generate.max_tokens = 40;
  options.generate.end_tokens = {*tokenizer.eos_id()};
  Conversation conversation(forward, context, tokenizer, chat_template, options);
  const std::atomic<bool> interrupted = false;
  for (unsigned turn = 0; turn < turns; ++turn) {
    const Answer answer = conversation.ask("七言绝句《秋夜》", {}, interrupted);
    EXPECT_EQ(answer.stats.reused_tokens + answer.stats.computed_tokens, answer.stats.prompt_tokens);
  }
  EXPECT_EQ(conversation.turns(), turns);
  EXPECT_GT(conversation.dropped_turns(), turns / 2);
  EXPECT_GT(2 * conversation.total_stats().reused_tokens, conversation.total_stats().prompt_tokens);
  EXPECT_EQ(conversation.total_stats().decoded_tokens + conversation.turns(),
            conversation.total_stats().generated_tokens)
      << "of each answer, the first token comes out of the prompt's logits";
}

}  // namespace
}  // namespace minimind
