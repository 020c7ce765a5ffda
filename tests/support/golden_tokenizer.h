#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/tokenizer/tokenizer.h"

namespace minimind {

inline const std::string own_tokenizer = MINIMIND_SOURCE_DIR "/tests/golden_tokenizer";

// The folder of MiniMind's own tokenizers, v1, v2 and v3, and of what Hugging Face tokenizers made of texts with them:
// tokenizers/ in the folder that the environment's MINIMIND_REFERENCE names. Empty if it names none; the tests with
// them are then skipped.
inline const std::string reference_tokenizers = [] {
  const char* const folder = std::getenv("MINIMIND_REFERENCE");
  return folder ? std::string(folder) + "/tokenizers" : "";
}();

// Checks `tokenizer` against each line {text or null, ids, decoded, decoded_skip_special} of Hugging Face tokenizers.
inline void expect_golden(const Tokenizer& tokenizer, const std::string& path) {
  std::ifstream file(path);
  std::string line;
  int lines = 0;
  while (std::getline(file, line)) {
    const nlohmann::json golden = nlohmann::json::parse(line);
    const auto ids = golden.at("ids").get<std::vector<std::int32_t>>();
    if (golden.contains("text") && !golden["text"].is_null()) {
      ASSERT_EQ(tokenizer.encode(golden["text"].get<std::string>()), ids) << path << ": " << line;
    }
    ASSERT_EQ(tokenizer.decode(ids, false), golden.at("decoded").get<std::string>()) << path << ": " << line;
    ASSERT_EQ(tokenizer.decode(ids, true), golden.at("decoded_skip_special").get<std::string>())
        << path << ": " << line;
    ++lines;
  }
  EXPECT_GT(lines, 100) << path;
}

}  // namespace minimind
