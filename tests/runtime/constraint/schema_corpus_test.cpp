#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/constraint/grammar_constraint.h"
#include "runtime/grammar/state.h"
#include "runtime/json_schema/json_schema.h"
#include "runtime/tokenizer/files.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using Json = nlohmann::ordered_json;

double cpu_microseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

std::string percentiles(std::vector<double> values) {
  if (values.empty()) return "none";
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
  };
  return fmt::format("p50 {:.1f}, p99 {:.1f}, worst {:.1f} microseconds", at(0.5), at(0.99), at(1));
}

// A folder of JSON Schemas, or of files {"schema": ..., "tests": [{"data": ..., "valid": ...}]}, as MaskBench has them:
//
//   MINIMIND_SCHEMAS=FOLDER MINIMIND_SCHEMA_TOKENIZER=tokenizer.json MINIMIND_SCHEMA_CLOSED=1
//   build/release/minimind_tests
//     --gtest_filter=SchemaCorpus.*
//
// Prints what is refused, judged wrongly and how long compiling and masks take. Closed texts have fewer properties, so
// that valid data is rejected.
class SchemaCorpus : public testing::Test {
 protected:
  void check(const std::string& path) {
    std::ifstream in(path);
    const Json file = Json::parse(in, nullptr, false);
    if (file.is_discarded()) return;
    ++schemas_;
    const bool has_tests = file.is_object() && file.contains("tests") && file.contains("schema");
    JsonSchemaOptions options;
    options.closed = std::getenv("MINIMIND_SCHEMA_CLOSED") != nullptr;
    const double start = cpu_microseconds();
    try {
      grammar_ = std::make_shared<const Grammar>(
          compile_json_schema(has_tests ? file["schema"] : file, path, options).grammar);
    } catch (const Error& error) {
      ++refused_;
      fmt::print("refused: {}\n", error.what());
      return;
    }
    compile_.push_back(cpu_microseconds() - start);
    if (!has_tests) return;
    bool wrongly_accepted = false, wrongly_rejected = false;
    for (const Json& test : file["tests"]) {
      const bool valid = test["valid"].get<bool>();
      bool accepted = false;
      try {
        accepted = accepts(test["data"].dump());
      } catch (const Error& error) {
        fmt::print("not followed: {}: {}\n", path, error.what());
      }
      wrongly_accepted = wrongly_accepted || (accepted && !valid);
      wrongly_rejected = wrongly_rejected || (valid && !accepted);
    }
    if (wrongly_accepted) fmt::print("accepts invalid data: {}\n", path);
    if (wrongly_rejected) fmt::print("rejects valid data: {}\n", path);
    false_accepts_ += wrongly_accepted ? 1 : 0;
    false_rejects_ += wrongly_rejected ? 1 : 0;
  }

  bool accepts(const std::string& text) {
    GrammarState state(grammar_);
    if (!tokenizer_) return state.advance(text) && state.may_end();
    std::vector<std::uint8_t> allowed(tokenizer_->vocab_size());
    for (const std::int32_t token : tokenizer_->encode(text)) {
      std::fill(allowed.begin(), allowed.end(), 0);
      const double start = cpu_microseconds();
      state.mark_allowed(*trie_, allowed);
      const bool taken = state.advance(tokenizer_->token_bytes(token));
      masks_.push_back(cpu_microseconds() - start);
      EXPECT_EQ(taken, allowed[static_cast<std::size_t>(token)] != 0) << text;
      if (!taken) return false;
    }
    return state.may_end();
  }

  std::optional<Tokenizer> tokenizer_;
  std::shared_ptr<const TokenTrie> trie_;
  std::shared_ptr<const Grammar> grammar_;
  std::size_t schemas_ = 0, refused_ = 0, false_accepts_ = 0, false_rejects_ = 0;
  std::vector<double> compile_, masks_;
};

TEST_F(SchemaCorpus, AcceptsNoInvalidText) {
  const char* const folder = std::getenv("MINIMIND_SCHEMAS");
  if (folder == nullptr) GTEST_SKIP() << "MINIMIND_SCHEMAS names no folder";
  if (const char* const path = std::getenv("MINIMIND_SCHEMA_TOKENIZER")) {
    tokenizer_.emplace(load_tokenizer(path));
    trie_ = make_token_trie(*tokenizer_);
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".json") check(entry.path());
  }
  fmt::print("{} schemas: {} refused, {} accept invalid data, {} reject valid data\ncompile: {}\nmask: {}\n", schemas_,
             refused_, false_accepts_, false_rejects_, percentiles(compile_), percentiles(masks_));
  EXPECT_EQ(false_accepts_, 0u);
}

}  // namespace
}  // namespace minimind
