#include "runtime/grammar/json_pattern.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "runtime/text/utf8.h"
#include "weights/io/error.h"
#include "weights/io/quote.h"

namespace minimind {
namespace {

using Sequence = JsonGrammar::Sequence;

constexpr std::size_t max_groups = 100;
constexpr std::string_view punctuation = "^$\\.*+?()[]{}|/-";

CodePoints decimal_digits() {
  return CodePoints('0', '9');
}

CodePoints word_characters() {
  return CodePoints('0', '9').add('A', 'Z').add('_').add('a', 'z');
}

// WhiteSpace and LineTerminator of ECMA-262.
CodePoints white_space() {
  return CodePoints('\t', '\r')
      .add(' ')
      .add(0xA0)
      .add(0x1680)
      .add(0x2000, 0x200A)
      .add(0x2028, 0x2029)
      .add(0x202F)
      .add(0x205F)
      .add(0x3000)
      .add(0xFEFF);
}

CodePoints all_but_line_ends() {
  return CodePoints('\n', '\n').add('\r').add(0x2028, 0x2029).complement();
}

std::optional<CodePoints> class_of(char letter) {
  switch (letter) {
    case 'd':
      return decimal_digits();
    case 'D':
      return decimal_digits().complement();
    case 'w':
      return word_characters();
    case 'W':
      return word_characters().complement();
    case 's':
      return white_space();
    case 'S':
      return white_space().complement();
    default:
      return std::nullopt;
  }
}

class PatternParser {
 public:
  PatternParser(JsonGrammar& grammar, std::string_view pattern) : grammar_(grammar), pattern_(pattern) {}

  Sequence parse() {
    std::vector<Sequence> alternatives;
    do {
      const Sequence anything = builder().repeat(grammar_.any_character(), 0, std::nullopt);
      const bool from_begin = take_if("^");
      const Sequence match = parse_sequence(0);
      const bool to_end = take_if("$");
      alternatives.push_back(
          builder().concatenate({from_begin ? Sequence() : anything, match, to_end ? Sequence() : anything}));
    } while (take_if("|"));
    if (!at_end())
      fail("this is not closed, not opened, or an anchor that is not at the start or end of an alternative");
    const Sequence quote = builder().literal("\"");
    return builder().concatenate({quote, builder().choice(alternatives), quote});
  }

 private:
  GrammarBuilder& builder() { return grammar_.builder(); }
  bool at_end() const { return at_ == pattern_.size(); }
  bool starts_with(std::string_view wanted) const { return pattern_.substr(at_).starts_with(wanted); }

  bool take_if(std::string_view wanted) {
    if (!starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(fmt::format("the pattern {} at byte {}: {}", quote(pattern_), at_ + 1, reason));
  }

  Sequence parse_sequence(std::size_t nesting) {
    std::vector<Sequence> parts;
    while (!at_end() && !starts_with("|") && !starts_with(")") && !starts_with("$")) {
      Sequence atom = parse_atom(nesting);
      parse_quantifier(atom);
      parts.push_back(std::move(atom));
    }
    return builder().concatenate(parts);
  }

  Sequence parse_atom(std::size_t nesting) {
    if (starts_with("(")) return parse_group(nesting);
    if (take_if(".")) return grammar_.character(all_but_line_ends());
    if (starts_with("[")) return grammar_.character(parse_set());
    if (starts_with("\\")) return grammar_.character(parse_escape());
    if (std::string_view("^*+?{}]").find(pattern_[at_]) != std::string_view::npos) {
      fail("this is not supported here; escape it with a backslash for the character itself");
    }
    return grammar_.character(CodePoints().add(take_code_point()));
  }

  Sequence parse_group(std::size_t nesting) {
    if (nesting == max_groups) fail(fmt::format("the groups are nested too deeply, expected at most {}", max_groups));
    take_if("(");
    if (starts_with("?") && !take_if("?:")) {
      const bool named = starts_with("?<") && !starts_with("?<=") && !starts_with("?<!");
      const std::size_t end = pattern_.find('>', at_);
      if (!named || end == std::string_view::npos) fail("this group is not supported, expected (, (?: or (?<name>");
      at_ = end + 1;
    }
    std::vector<Sequence> alternatives;
    do alternatives.push_back(parse_sequence(nesting + 1));
    while (take_if("|"));
    if (!take_if(")")) fail(at_end() ? "a group is not closed" : "an anchor inside a group is not supported");
    return builder().choice(alternatives);
  }

  void parse_quantifier(Sequence& atom) {
    if (take_if("*")) {
      atom = builder().repeat(atom, 0, std::nullopt);
    } else if (take_if("+")) {
      atom = builder().repeat(atom, 1, std::nullopt);
    } else if (take_if("?")) {
      atom = builder().optional(atom);
    } else if (take_if("{")) {
      const std::size_t min = parse_count();
      std::optional<std::size_t> max = min;
      if (take_if(",")) max = starts_with("}") ? std::optional<std::size_t>() : parse_count();
      if (!take_if("}")) fail("expected }");
      atom = builder().repeat(atom, min, max);
    } else {
      return;
    }
    take_if("?");  // lazy repetition matches the same strings
  }

  std::size_t parse_count() {
    std::size_t count = 0, digits = 0;
    for (; !at_end() && pattern_[at_] >= '0' && pattern_[at_] <= '9'; ++digits, ++at_) {
      count = std::min(count * 10 + static_cast<std::size_t>(pattern_[at_] - '0'), std::size_t{1} << 32);
    }
    if (digits == 0) fail("expected a number");
    return count;
  }

  CodePoints parse_set() {
    const std::size_t begin = at_;
    take_if("[");
    const bool negated = take_if("^");
    CodePoints set;
    while (!take_if("]")) {
      if (at_end()) fail("a set is not closed");
      const CodePoints first = parse_set_member();
      if (!starts_with("-") || starts_with("-]")) {
        set.add(first);
        continue;
      }
      take_if("-");
      if (at_end()) fail("a set is not closed");
      const CodePoints last = parse_set_member();
      const auto single = [](const CodePoints& points) {
        return points.ranges().size() == 1 && points.ranges().front().first == points.ranges().front().last;
      };
      if (!single(first) || !single(last)) fail("a range requires a character on either side");
      const char32_t from = first.ranges().front().first, to = last.ranges().front().first;
      if (to < from) fail("a range ends before it starts");
      set.add(from, to);
    }
    if (negated) set = set.complement();
    if (set.empty()) {
      at_ = begin;
      fail("a set without characters matches nothing");
    }
    return set;
  }

  CodePoints parse_set_member() {
    if (starts_with("\\")) return parse_escape();
    return CodePoints().add(take_code_point());
  }

  char32_t take_code_point() {
    const Utf8Char next = first_utf8(pattern_.substr(at_));
    at_ += next.size;
    return next.code_point;
  }

  CodePoints parse_escape() {
    const std::size_t begin = at_++;
    const auto unsupported = [&] {
      at_ = begin;
      fail("this escape is not supported");
    };
    if (at_end()) unsupported();
    const char letter = pattern_[at_++];
    if (const auto set = class_of(letter)) return *set;
    static constexpr std::string_view letters = "tnvfr", meanings = "\t\n\v\f\r";
    const auto control = letters.find(letter);
    if (control != std::string_view::npos) return CodePoints().add(static_cast<char32_t>(meanings[control]));
    if (punctuation.find(letter) != std::string_view::npos) return CodePoints().add(static_cast<char32_t>(letter));
    std::optional<char32_t> code_point;
    if (letter == '0' && (at_end() || pattern_[at_] < '0' || pattern_[at_] > '9')) code_point = 0;
    if (letter == 'x') code_point = take_hexadecimal(2);
    if (letter == 'u' && take_if("{")) {
      const std::size_t end = pattern_.find('}', at_);
      if (end != std::string_view::npos) code_point = take_hexadecimal(end - at_);
      if (!take_if("}")) unsupported();
    } else if (letter == 'u') {
      code_point = take_hexadecimal(4);
    } else if (letter == 'c' && !at_end() && ((pattern_[at_] | 0x20) >= 'a' && (pattern_[at_] | 0x20) <= 'z')) {
      code_point = static_cast<char32_t>(pattern_[at_++] & 0x1F);
    }
    const bool surrogate = code_point && *code_point >= 0xD800 && *code_point <= 0xDFFF;
    if (!code_point || *code_point > last_code_point || surrogate) unsupported();
    return CodePoints().add(*code_point);
  }

  std::optional<char32_t> take_hexadecimal(std::size_t digits) {
    if (digits == 0 || digits > 6 || pattern_.size() - at_ < digits) return std::nullopt;
    char32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const char c = pattern_[at_++];
      const bool decimal = c >= '0' && c <= '9';
      const char lower = static_cast<char>(c | 0x20);
      if (!decimal && (lower < 'a' || lower > 'f')) return std::nullopt;
      value = value << 4 | static_cast<char32_t>(decimal ? c - '0' : lower - 'a' + 10);
    }
    return value;
  }

  JsonGrammar& grammar_;
  std::string_view pattern_;
  std::size_t at_ = 0;
};

}  // namespace

Sequence strings_with_match(JsonGrammar& grammar, std::string_view pattern) {
  return PatternParser(grammar, pattern).parse();
}

std::optional<std::string> pattern_of_format(std::string_view format) {
  // RFC 3339, with the lengths of months and leap years.
  static const std::string date =
      R"((?:[1-9]\d{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30))"
      R"(|02-(?:0[1-9]|1\d|2[0-8]))|(?:[1-9]\d(?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)-02-29))";
  static const std::string time =
      R"((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))";
  static const std::string label = "[a-z](?:-?[a-z0-9]){0,28}";
  static const std::string octet = R"((?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";
  std::string pattern;
  if (format == "date") pattern = date;
  if (format == "time") pattern = time;
  if (format == "date-time") pattern = date + "T" + time;
  if (format == "uuid") pattern = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}";
  if (format == "hostname") pattern = "(?:" + label + "\\.){0,3}" + label;
  if (format == "email") pattern = "[a-z0-9](?:[._+-]?[a-z0-9]){0,31}@(?:" + label + "\\.){1,3}" + label;
  if (format == "ipv4") pattern = "(?:" + octet + "\\.){3}" + octet;
  if (format == "ipv6") pattern = "(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}";
  if (pattern.empty()) return std::nullopt;
  return "^" + pattern + "$";
}

}  // namespace minimind
