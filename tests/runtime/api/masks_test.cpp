#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/minimind.h"
#include "tests/support/c_interface.h"

namespace minimind {
namespace {

using Ids = std::vector<std::int32_t>;

// Every byte is the token of its number; then a token without text, "ab", and the end.
constexpr std::int32_t control = 256, ab = 257, end = 258;

std::unique_ptr<minimind_vocabulary, Close> make_vocabulary() {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  for (const char* const text : {"", "ab", "never read"}) texts.emplace_back(text);
  std::vector<const char*> tokens;
  std::vector<std::size_t> sizes;
  for (const std::string& text : texts) {
    tokens.push_back(text.data());
    sizes.push_back(text.size());
  }
  minimind_vocabulary* vocabulary = nullptr;
  minimind_error error{};
  EXPECT_EQ(minimind_vocabulary_open(tokens.data(), sizes.data(), tokens.size(), &end, 1, &vocabulary, &error),
            MINIMIND_OK)
      << error.message;
  return std::unique_ptr<minimind_vocabulary, Close>(vocabulary);
}

// A text of the regular expression.
std::unique_ptr<minimind_matcher, Close> make_matcher(const char* regex) {
  minimind_request request;
  minimind_default_request(&request, sizeof request);
  request.regex = regex;
  request.regex_size = std::strlen(regex);
  minimind_grammar* compiled = nullptr;
  minimind_error error{};
  EXPECT_EQ(minimind_grammar_compile(&request, &compiled, &error), MINIMIND_OK) << error.message;
  const std::unique_ptr<minimind_grammar, Close> grammar(compiled);
  minimind_matcher* matcher = nullptr;
  EXPECT_EQ(minimind_matcher_open(grammar.get(), make_vocabulary().get(), &matcher, &error), MINIMIND_OK);
  return std::unique_ptr<minimind_matcher, Close>(matcher);
}

Ids allowed(minimind_matcher* matcher, std::size_t max_tokens = SIZE_MAX) {
  std::vector<std::uint32_t> bits(9, 0xFFFFFFFF);
  EXPECT_EQ(minimind_matcher_mask(matcher, max_tokens, bits.data(), bits.size()), MINIMIND_OK)
      << minimind_matcher_error(matcher);
  Ids ids;
  for (std::int32_t id = 0; id < 288; ++id) {
    if ((bits[static_cast<std::size_t>(id / 32)] >> id % 32 & 1) != 0) ids.push_back(id);
  }
  return ids;
}

std::size_t accept(minimind_matcher* matcher, const Ids& ids) {
  std::size_t taken = 0;
  EXPECT_EQ(minimind_matcher_accept(matcher, ids.data(), ids.size(), &taken), MINIMIND_OK);
  return taken;
}

std::uint64_t tokens_to_end(minimind_matcher* matcher) {
  std::uint64_t tokens = 0;
  int may_end = 0;
  EXPECT_EQ(minimind_matcher_end(matcher, &tokens, &may_end), MINIMIND_OK);
  EXPECT_EQ(may_end != 0, tokens == 0);
  return tokens;
}

TEST(Masks, FollowATextToItsEnd) {
  const auto matcher = make_matcher("abc?");
  EXPECT_EQ(allowed(matcher.get()), (Ids{'a', ab}));
  EXPECT_EQ(tokens_to_end(matcher.get()), 1u);
  EXPECT_EQ(accept(matcher.get(), {ab}), 1u);
  EXPECT_EQ(allowed(matcher.get()), (Ids{'c', end}));
  EXPECT_EQ(accept(matcher.get(), {'c', 'c'}), 1u);
  EXPECT_EQ(accept(matcher.get(), {end, end, 'a'}), 2u);
  EXPECT_EQ(allowed(matcher.get()), (Ids{end}));
  EXPECT_EQ(accept(matcher.get(), {control}), 0u);
}

TEST(Masks, LeaveRoomForTheEnd) {
  const auto matcher = make_matcher("(ab)*x");
  EXPECT_EQ(allowed(matcher.get(), 3), (Ids{'a', 'x', ab}));
  EXPECT_EQ(allowed(matcher.get(), 2), (Ids{'x', ab}));
  EXPECT_EQ(allowed(matcher.get(), 1), (Ids{'x'}));
  EXPECT_EQ(allowed(matcher.get(), 0), Ids{});
}

TEST(Masks, RemoveTokens) {
  const auto matcher = make_matcher("abcd");
  EXPECT_EQ(accept(matcher.get(), {ab, 'c', 'd', end}), 4u);
  EXPECT_EQ(minimind_matcher_rollback(matcher.get(), 3), MINIMIND_OK);
  EXPECT_EQ(allowed(matcher.get()), (Ids{'c'}));
  EXPECT_EQ(minimind_matcher_rollback(matcher.get(), 2), MINIMIND_BAD_ARGUMENT);
  EXPECT_STREQ(minimind_matcher_error(matcher.get()), "count is 2, expected at most 1, the tokens of the text");
  EXPECT_EQ(minimind_matcher_rollback(matcher.get(), 1), MINIMIND_OK);
  EXPECT_EQ(allowed(matcher.get()), (Ids{'a', ab}));
}

TEST(Masks, SayWhatIsWrong) {
  const auto matcher = make_matcher("a");
  const std::int32_t beyond = 259;
  std::size_t taken = 0;
  std::uint32_t bits = 0;
  EXPECT_EQ(minimind_matcher_accept(matcher.get(), &beyond, 1, &taken), MINIMIND_BAD_ARGUMENT);
  EXPECT_STREQ(minimind_matcher_error(matcher.get()), "ids has 259, expected ids from 0 to 258");
  EXPECT_EQ(minimind_matcher_mask(matcher.get(), 1, &bits, 1), MINIMIND_TOO_SMALL);
  EXPECT_EQ(minimind_matcher_mask(nullptr, 1, &bits, 1), MINIMIND_BAD_ARGUMENT);
  minimind_request request;
  minimind_default_request(&request, sizeof request);
  minimind_grammar* grammar = nullptr;
  minimind_error error{};
  EXPECT_EQ(minimind_grammar_compile(&request, &grammar, &error), MINIMIND_BAD_ARGUMENT);
  EXPECT_STREQ(error.message, "the request has no constraint, expected one of grammar, json_schema, regex and choices");
}

}  // namespace
}  // namespace minimind
