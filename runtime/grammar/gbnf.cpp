#include "runtime/grammar/gbnf.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/grammar/work.h"
#include "runtime/text/code_points.h"
#include "runtime/text/utf8.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/input_file.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

// A position in the text of a GBNF grammar.
class GrammarReader {
 public:
  // Throws Error if the text is not UTF-8.
  GrammarReader(std::string_view text, const std::string& source);

  bool at_end() const { return at_ == text_.size(); }
  std::size_t position() const { return at_; }
  char peek() const { return text_[at_]; }
  char take() { return text_[at_++]; }
  bool starts_with(std::string_view wanted) const { return text_.substr(at_).starts_with(wanted); }
  bool take_if(std::string_view wanted);

  // Skips spaces, comments and, if `wanted`, ends of lines.
  void skip_space(bool newlines);

  // Reads a character of a text or a set, or its escape.
  char32_t take_character();

  [[noreturn]] void fail(const std::string& reason) const { fail_at(at_, reason); }
  [[noreturn]] void fail_at(std::size_t position, const std::string& reason) const;

  // Returns the result of `action`; adds `position` to an Error of the builder, which has none.
  template <class Action>
  auto located(std::size_t position, Action action) const {
    try {
      return action();
    } catch (const LocatedError&) {
      throw;
    } catch (const Error& error) {
      fail_at(position, error.what());
    }
  }

 private:
  class LocatedError : public Error {
   public:
    using Error::Error;
  };

  char32_t take_escape();

  std::string_view text_;
  const std::string& source_;
  std::size_t at_ = 0;
};

GrammarReader::GrammarReader(std::string_view text, const std::string& source) : text_(text), source_(source) {
  if (const auto at = first_not_utf8(text)) fail_at(*at, "this is not UTF-8");
}

void GrammarReader::fail_at(std::size_t position, const std::string& reason) const {
  const TextPlace place = place_of(position, text_);
  throw LocatedError(fmt::format("{}:{}:{}: {}", source_, place.line, place.column, reason));
}

bool GrammarReader::take_if(std::string_view wanted) {
  if (!starts_with(wanted)) return false;
  at_ += wanted.size();
  return true;
}

void GrammarReader::skip_space(bool newlines) {
  for (; !at_end(); ++at_) {
    const char c = peek();
    if (c == '#') at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
    if (at_end()) return;  // otherwise a comment is followed by the end of its line
    const bool ends_line = peek() == '\n' || peek() == '\r';
    if (c == '#' ? !newlines : !(c == ' ' || c == '\t' || (ends_line && newlines))) return;
  }
}

char32_t GrammarReader::take_character() {
  if (at_end()) fail("the grammar ends here, expected a character");
  if (peek() == '\\') return take_escape();
  const Utf8Char next = first_utf8(text_.substr(at_));
  at_ += next.size;
  return next.code_point;
}

char32_t GrammarReader::take_escape() {
  const std::size_t begin = at_;
  take();
  if (at_end()) fail_at(begin, "the grammar ends within this escape");
  const char kind = take();
  switch (kind) {
    case 'n':
      return U'\n';
    case 'r':
      return U'\r';
    case 't':
      return U'\t';
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-':
      return static_cast<char32_t>(kind);
    case 'x':
    case 'u':
    case 'U':
      break;
    default:
      fail_at(begin, "this escape is unknown, expected \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\xHH \\uHHHH or \\UHHHHHHHH");
  }
  const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
  const std::string_view hex = text_.substr(at_, digits);
  const auto code_point = hexadecimal(hex);
  if (hex.size() != digits || !code_point) {
    fail_at(begin, fmt::format("this escape requires {} hexadecimal digits", digits));
  }
  if (!is_scalar_value(*code_point)) fail_at(begin, "this escape is not a character");
  at_ += digits;
  return *code_point;
}

using Sequence = GrammarBuilder::Sequence;
using RuleId = GrammarBuilder::RuleId;

constexpr std::size_t max_gbnf_size = std::size_t{1} << 20;
constexpr std::size_t max_parentheses = 200;

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
      if (!rule.defined) reader_.fail_at(rule.first_use, fmt::format("there is no rule {}", quote(name)));
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
    if (name.empty()) reader_.fail("expected the name of a rule, of letters, digits and -");
    reader_.skip_space(false);
    if (!reader_.take_if("::=")) reader_.fail(fmt::format("expected ::= after the name {}", quote(name)));
    reader_.skip_space(true);
    Rule& rule = *reader_.located(begin, [&] { return &rule_of(name, begin); });
    if (rule.defined) reader_.fail_at(begin, fmt::format("the definition of rule {} is repeated", quote(name)));
    rule.defined = true;
    const std::vector<Sequence> alternatives = parse_alternatives(0);
    if (!reader_.at_end() && !reader_.take_if("\n") && !reader_.take_if("\r\n") && !reader_.take_if("\r")) {
      reader_.fail("expected the end of the rule: | or the end of the line");
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
      builder_.append(sequence, *item);
    }
  }

  // std::nullopt if no item starts here.
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
    if (c == '*' || c == '+' || c == '?' || c == '{') reader_.fail("there is no item before this to repeat");
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
      const bool range = !reader_.starts_with("-]") && reader_.take_if("-");
      const char32_t last = range ? reader_.take_character() : first;
      if (last < first) reader_.fail_at(at, "this range ends before it starts");
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
    if (nesting == max_parentheses)
      reader_.fail(fmt::format("the parentheses are nested too deeply, expected at most {}", max_parentheses));
    reader_.take();
    reader_.skip_space(true);
    const std::vector<Sequence> alternatives = parse_alternatives(nesting + 1);
    if (reader_.at_end()) reader_.fail_at(begin, "this parenthesis is not closed");
    if (!reader_.take_if(")")) reader_.fail("expected | or )");
    return builder_.choice(alternatives);
  }

  // Replaces the item by its repetition; returns false if there is none.
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
      if (!reader_.take_if("}")) reader_.fail("expected }");
      item = builder_.repeat(item, min, max);
    } else {
      return false;
    }
    return true;
  }

  std::size_t parse_count() {
    std::string digits;
    while (!reader_.at_end() && reader_.peek() >= '0' && reader_.peek() <= '9') digits += reader_.take();
    if (digits.empty()) reader_.fail("expected a number");
    reader_.skip_space(true);
    const auto count = number_in<std::size_t>(digits);
    if (!count) {
      throw Error(
          fmt::format("a repetition of {}, expected at most {}", quote(digits), GrammarBuilder::max_repetitions));
    }
    return *count;
  }

  GrammarReader reader_;
  std::string source_;
  GrammarBuilder builder_;
  std::map<std::string, Rule> rules_;
};

}  // namespace

Grammar parse_grammar(std::string_view text, const std::string& source) {
  const WorkLimit limit(2 * GrammarBuilder::max_symbols, "the grammar");  // lets it be interrupted
  return GrammarParser(text, source).parse();
}

Grammar load_grammar(const std::string& path) {
  const std::string text = read_text_or_pipe(path, max_gbnf_size);
  check_not_mistaken(text, text.size(), path);
  return parse_grammar(text, path);
}

}  // namespace minimind
