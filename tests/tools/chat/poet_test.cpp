// The bundled model with the prompts of its card.

#include <fmt/core.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "tests/support/cases.h"
#include "tests/support/cli.h"

namespace minimind {
namespace {

class Poet : public Cli {
 protected:
  std::string answer(const std::string& question, int seed) const {
    const Outcome outcome = run(fmt::format("chat -q --seed {} -p '{}'{}", seed, question, demo));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  }
};

struct Form {
  std::string_view name;
  std::size_t couplets, characters;
};

constexpr std::size_t character_bytes = 3;  // of each character of the poems, including commas and full stops

bool has_form(std::string_view poem, const Form& form) {
  const std::size_t line = form.characters * character_bytes, couplet = 2 * (line + character_bytes);
  if (poem.size() != form.couplets * (couplet + 1)) return false;
  for (; !poem.empty(); poem.remove_prefix(couplet + 1)) {
    const std::string_view first = poem.substr(0, line), comma = poem.substr(line, character_bytes),
                           second = poem.substr(line + character_bytes, line), rest = poem.substr(couplet - 3, 4);
    if (comma != "，" || rest != "。\n") return false;
    for (const char* mark : {"，", "。"}) {
      if (first.find(mark) != first.npos || second.find(mark) != second.npos) return false;
    }
  }
  return true;
}

// The card states a share of at least 95 % over 500 titles. Of these 32 poems three may fail; at 95 % more fail in
// fewer than one set in ten.
TEST_F(Poet, KeepsTheRequestedForm) {
  constexpr std::array forms{Form{"五言绝句", 2, 5}, Form{"七言绝句", 2, 7}, Form{"五言律诗", 4, 5},
                             Form{"七律", 4, 7}};
  constexpr std::array titles{"山居", "秋夜", "送友人", "梅花", "登高", "春雨", "月下", "人工智能"};
  int poems = 0, formed = 0;
  for (const Form& form : forms) {
    for (const char* title : std::span(titles).first(cases(titles.size()))) {
      const std::string poem = answer(fmt::format("写一首{}，题目：{}", form.name, title), ++poems);
      EXPECT_EQ(poem.find("\xEF\xBF\xBD"), std::string::npos) << "a broken character in " << poem;
      formed += has_form(poem, form);
    }
  }
  EXPECT_GE(formed, poems - 3);
}

TEST_F(Poet, ContinuesALine) {
  int begun = 0;
  for (int seed = 1; seed <= 8; ++seed) begun += answer("续写：床前明月光", seed).starts_with("床前明月光，");
  EXPECT_GE(begun, 7);
}

}  // namespace
}  // namespace minimind
