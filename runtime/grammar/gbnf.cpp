#include "runtime/grammar/gbnf.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/grammar/builder.h"
#include "runtime/grammar/gbnf_reader.h"
#include "weights/io/error.h"
#include "weights/io/mapped_file.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

using Sequence = GrammarBuilder::Sequence;
using RuleId = GrammarBuilder::RuleId;

constexpr std::size_t max_file_size = std::size_t{1} << 20;
constexpr std::size_t max_nesting = 200;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

class GrammarParser {
 public:
  GrammarParser(std::string_view text, const std::string& source) : reader_(text, source), source_(source) {}

  Grammar parse() {
    reader_.skip_space(true);
    while (!reader_.at_end()) parse_rule();
    for (const auto& [name, rule] : rules_) {
      if (!rule.defined) reader_.fail_at(rule.first_use, fmt::format("there is no rule {}", quoted(name)));
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) throw Error(fmt::format("{}: has no rule 'root', which is the whole text", source_));
    try {
      return builder_.build(root->second.id);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", source_, error.what()));
    }
  }

 private:
  struct Rule {
    RuleId id;
    std::size_t first_use;
    bool defined = false;
  };

  Rule& rule_of(const std::string& name, std::size_t at) {
    const auto found = rules_.find(name);
    if (found != rules_.end()) return found->second;
    return rules_.emplace(name, Rule{builder_.declare(name), at}).first->second;
  }

  std::string parse_name() {
    std::string name;
    while (!reader_.at_end() && is_name_char(reader_.peek())) name += reader_.take();
    return name;
  }

  void parse_rule() {
    const std::size_t begin = reader_.position();
    const std::string name = parse_name();
    if (name.empty()) reader_.fail("wanted the name of a rule, of letters, digits and -");
    reader_.skip_space(false);
    if (!reader_.take_if("::=")) reader_.fail(fmt::format("wanted ::= after the name {}", quoted(name)));
    reader_.skip_space(true);
    Rule& rule = *reader_.located(begin, [&] { return &rule_of(name, begin); });
    if (rule.defined) reader_.fail_at(begin, fmt::format("rule {} is defined twice", quoted(name)));
    rule.defined = true;
    const std::vector<Sequence> alternatives = parse_alternatives(0);
    if (!reader_.at_end() && !reader_.take_if("\n") && !reader_.take_if("\r\n") && !reader_.take_if("\r")) {
      reader_.fail("wanted the end of the rule: | or the end of the line");
    }
    reader_.located(begin, [&] { builder_.define(rule.id, alternatives); });
    reader_.skip_space(true);
  }

  std::vector<Sequence> parse_alternatives(std::size_t nesting) {
    std::vector<Sequence> alternatives{parse_sequence(nesting)};
    while (reader_.take_if("|")) {
      reader_.skip_space(true);
      alternatives.push_back(parse_sequence(nesting));
    }
    return alternatives;
  }

  Sequence parse_sequence(std::size_t nesting) {
    Sequence sequence;
    for (;;) {
      const std::size_t begin = reader_.position();
      std::optional<Sequence> item;
      reader_.located(begin, [&] { item = parse_item(nesting); });
      if (!item) return sequence;
      reader_.skip_space(nesting > 0);
      while (reader_.located(begin, [&] { return parse_repetition(*item); })) reader_.skip_space(nesting > 0);
      sequence.insert(sequence.end(), item->begin(), item->end());
    }
  }

  // Nothing where none begins.
  std::optional<Sequence> parse_item(std::size_t nesting) {
    if (reader_.at_end()) return std::nullopt;
    const char c = reader_.peek();
    if (c == '"') return parse_literal();
    if (c == '[') return parse_set();
    if (c == '(') return parse_group(nesting);
    if (is_name_char(c)) {
      const std::size_t begin = reader_.position();
      return GrammarBuilder::reference(rule_of(parse_name(), begin).id);
    }
    if (reader_.take_if(".")) return builder_.characters(CodePoints::all());
    if (c == '<' || c == '!') {
      reader_.fail("references to tokens, such as <think> or !<[1000]>, are not supported; write the text itself");
    }
    if (c == '*' || c == '+' || c == '?' || c == '{') reader_.fail("there is nothing before this to repeat");
    return std::nullopt;
  }

  Sequence parse_literal() {
    const std::size_t begin = reader_.position();
    reader_.take();
    Sequence literal;
    while (!reader_.take_if("\"")) {
      if (reader_.at_end()) reader_.fail_at(begin, "this text has no closing \"");
      const Sequence character = builder_.characters(CodePoints().add(reader_.take_character()));
      literal.insert(literal.end(), character.begin(), character.end());
    }
    return literal;
  }

  Sequence parse_set() {
    const std::size_t begin = reader_.position();
    reader_.take();
    const bool negated = reader_.take_if("^");
    std::vector<CodePoints::Range> ranges;
    while (!reader_.take_if("]")) {
      if (reader_.at_end()) reader_.fail_at(begin, "this set has no closing ]");
      const std::size_t at = reader_.position();
      const char32_t first = reader_.take_character();
      const bool range = reader_.starts_with("-") && !reader_.starts_with("-]") && reader_.take_if("-");
      const char32_t last = range ? reader_.take_character() : first;
      if (last < first) reader_.fail_at(at, "this range ends before it begins");
      ranges.push_back({first, last});
    }
    if (ranges.empty()) reader_.fail_at(begin, "this set is empty; write . for any character");
    CodePoints set(std::move(ranges));
    if (negated) set = set.complement();
    if (set.empty()) reader_.fail_at(begin, "this set excludes every character");
    return builder_.characters(set);
  }

  Sequence parse_group(std::size_t nesting) {
    const std::size_t begin = reader_.position();
    if (nesting == max_nesting) reader_.fail(fmt::format("more than {} parentheses within another", max_nesting));
    reader_.take();
    reader_.skip_space(true);
    const std::vector<Sequence> alternatives = parse_alternatives(nesting + 1);
    if (reader_.at_end()) reader_.fail_at(begin, "this parenthesis is not closed");
    if (!reader_.take_if(")")) reader_.fail("wanted | or )");
    return builder_.choice(alternatives);
  }

  // Replaces the item by its repetition; false where there is none.
  bool parse_repetition(Sequence& item) {
    if (reader_.take_if("*")) {
      item = builder_.repeat(item, 0, std::nullopt);
    } else if (reader_.take_if("+")) {
      item = builder_.repeat(item, 1, std::nullopt);
    } else if (reader_.take_if("?")) {
      item = builder_.repeat(item, 0, 1);
    } else if (reader_.take_if("{")) {
      reader_.skip_space(true);
      const std::size_t min = parse_count();
      std::optional<std::size_t> max = min;
      if (reader_.take_if(",")) {
        reader_.skip_space(true);
        max = reader_.starts_with("}") ? std::optional<std::size_t>() : parse_count();
      }
      if (!reader_.take_if("}")) reader_.fail("wanted }");
      item = builder_.repeat(item, min, max);
    } else {
      return false;
    }
    return true;
  }

  std::size_t parse_count() {
    std::size_t count = 0, digits = 0;
    for (; !reader_.at_end() && reader_.peek() >= '0' && reader_.peek() <= '9'; ++digits) {
      count = std::min(count * 10 + static_cast<std::size_t>(reader_.take() - '0'), std::size_t{1} << 32);
    }
    if (digits == 0) reader_.fail("wanted a number");
    reader_.skip_space(true);
    return count;
  }

  GrammarReader reader_;
  std::string source_;
  GrammarBuilder builder_;
  std::map<std::string, Rule> rules_;
};

}  // namespace

Grammar parse_grammar(std::string_view text, const std::string& source) {
  return GrammarParser(text, source).parse();
}

Grammar load_grammar(const std::string& path) {
  const auto file = MappedFile::open(path);
  const std::span<const std::byte> bytes = file->bytes();
  if (bytes.size() > max_file_size) {
    throw Error(fmt::format("{}: holds {} bytes; at most {} are read", path, bytes.size(), max_file_size));
  }
  return parse_grammar({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace minimind
