#include "tools/commands/scored_texts.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

// A tokenizer whose bos and eos are tokens of no text, and that has a token for "x" alone.
Tokenizer tokenizer_of_x() {
  TokenizerData data;
  data.source = "test.json";
  data.vocab = {{"<s>", 0}, {"</s>", 1}, {"x", 2}};
  data.bos_token = "<s>";
  data.eos_token = "</s>";
  return Tokenizer(data);
}

TEST(ScoredTexts, AConversationRequiresTokensForItsMarks) {
  const ChatTemplate chat_template = ChatTemplate::of_family(Family::v3, {});
  const TrainingTextOptions options{Family::v3, false, [&]() -> const ChatTemplate& { return chat_template; }};
  ScoredTexts texts;
  const std::string line =
      R"({"conversations": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}]})";
  EXPECT_EQ(error_of([&] { add_line(texts, line, "a.jsonl: line 7", tokenizer_of_x(), options); }),
            "a.jsonl: line 7: conversations is a conversation, but the tokenizer has no tokens for '<s>assistant', "
            "expected some; name another tokenizer with --tokenizer");
}

}  // namespace
}  // namespace minimind
