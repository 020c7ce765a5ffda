#include "tools/commands/calibration_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/golden_tokenizer.h"
#include "tests/support/peak_memory.h"
#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

class CalibrationTextFile : public testing::Test {
 protected:
  CalibrationTextFile() {
    config_.vocab_size = 430;
    config_.max_position_embeddings = 1000;
  }

  ReadCalibrationText read(const std::string& path, std::size_t most_tokens) const {
    return read_calibration_text(path, config_, own_tokenizer, most_tokens);
  }

  TemporaryFolder folder_;
  Config config_;
};

TEST_F(CalibrationTextFile, TakesLinesFromAllPartsOfTheFile) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += R"({"text": ")" + std::string(i < 500 ? "a" : "b") + "\"}\n\n";
  const std::string path = folder_.write("text.jsonl", lines);
  const ReadCalibrationText all = read(path, 100);
  EXPECT_GE(all.text.tokens.size(), 100u);
  EXPECT_LT(all.text.tokens.size(), 110u);
  const std::int32_t a = read(folder_.write("a.txt", "aa"), 9).text.tokens.front();
  const auto first_half = std::count(all.text.tokens.begin(), all.text.tokens.end(), a);
  EXPECT_NEAR(static_cast<double>(first_half), static_cast<double>(all.text.ends.size()) / 2, 2);
}

TEST_F(CalibrationTextFile, NamesALineAmongEmptyOnesByItsNumber) {
  std::string lines;
  for (int i = 0; i < 2000; ++i) lines += R"({"text": "a"})" + std::string(i % 7 == 0 ? "\n\r\n" : "\n");
  lines += "{\n" + std::string(2000, '\n');
  const std::string path = folder_.write("text.jsonl", lines);
  const std::string message = error_of([&] { read(path, 1'000'000); });
  EXPECT_TRUE(message.starts_with(path + ": line 2287: ")) << message;
}

TEST_F(CalibrationTextFile, TakesLessMemoryThanAFileOfShortLines) {
  if (!can_measure_memory) GTEST_SKIP() << "the sanitizers describe all memory";
  std::string lines;
  while (lines.size() < std::size_t{16} << 20) lines += "{}\n";
  const std::string path = folder_.write("text.jsonl", lines);
  EXPECT_LT(peak_memory([&] { read(path, 100); }), lines.size());
}

TEST_F(CalibrationTextFile, ReadsPartsOfAFileTooLongForOthers) {
  std::string text;
  while (text.size() < std::size_t{70} << 20) text += "Words of a long text.\n";
  const ReadCalibrationText parts = read(folder_.write("text.txt", text), 2000);
  EXPECT_GE(parts.text.tokens.size(), 2000u);
  EXPECT_LT(parts.text.tokens.size(), 2600u);
  EXPECT_EQ(parts.split_characters, 0u);
}

TEST_F(CalibrationTextFile, RejectsALineTooLongForAnyRecord) {
  const std::string path = folder_.write("text.jsonl", "{}\n{");
  std::filesystem::resize_file(path, (std::uintmax_t{64} << 20) + 10);
  EXPECT_EQ(error_of([&] { read(path, 100); }), path + ": line 2: has over 67108864 bytes, expected a record of fewer");
}

TEST_F(CalibrationTextFile, ReadsAPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string text = "Some words";
  ASSERT_EQ(write(ends[1], text.data(), text.size()), std::ssize(text));
  close(ends[1]);
  EXPECT_EQ(read("/dev/fd/" + std::to_string(ends[0]), 100).text.tokens,
            read(folder_.write("text.txt", text), 100).text.tokens);
  close(ends[0]);
}

TEST_F(CalibrationTextFile, PredictsOnlyTheAnswersOfConversations) {
  folder_.write("tokenizer/tokenizer.json", read_whole_file(own_tokenizer + "/tokenizer.json"));
  folder_.write("tokenizer/tokenizer_config.json",
                R"j({"bos_token": "<|user|>", "eos_token": "<|end|>", "chat_template":
    "{% for m in messages %}<|user|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}"})j");
  const std::string path = folder_.write(
      "text.jsonl", R"({"conversations": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}]})");
  const ReadCalibrationText read = read_calibration_text(path, config_, folder_.path() + "/tokenizer", 1000);
  const auto predicted = std::count(read.text.predicted.begin(), read.text.predicted.end(), true);
  EXPECT_GE(predicted, 2) << "the answer and its end";
  EXPECT_LT(predicted, std::ssize(read.text.tokens) / 2);
}

TEST_F(CalibrationTextFile, CountsTokensThatArePartsOfCharacters) {
  const ReadCalibrationText text = read(folder_.write("text.txt", "龘靐齉"), 100);
  EXPECT_EQ(text.split_characters, text.text.tokens.size());
  EXPECT_GE(text.split_characters, 6u);
}

TEST_F(CalibrationTextFile, RejectsTokensOutsideTheVocabulary) {
  config_.vocab_size = 10;
  const std::string message = error_of([&] { read(folder_.write("text.txt", "Some words"), 100); });
  EXPECT_NE(message.find("expected ids below the model's 10; the tokenizer"), std::string::npos) << message;
}

}  // namespace
}  // namespace minimind
