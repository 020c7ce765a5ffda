#include "runtime/json_schema/pattern.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "runtime/grammar/work.h"
#include "runtime/json_schema/script_table.h"
#include "runtime/text/utf8.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::size_t max_groups = 100;
constexpr std::size_t max_count = 100'000;
constexpr std::size_t max_positions = 200'000;  // of a pattern with its repetitions written out
constexpr std::size_t max_steps = 4'000'000;    // of the construction of its automaton

// A regular expression.
struct Term {
  enum class Kind : std::uint8_t {
    characters,
    sequence,
    choice,
    repeat,
    start,
    end,
    ahead,
    not_ahead,
    boundary,  // of a word: of ASCII's letters, digits and _
    not_boundary,
  };
  Kind kind = Kind::sequence;
  CodePoints set;           // of characters
  std::vector<Term> parts;  // of a sequence, a choice, a repetition and what is ahead
  std::size_t min = 0;      // of a repetition
  std::optional<std::size_t> max;
};

CodePoints decimal_digits() {
  return CodePoints('0', '9');
}

CodePoints word_characters() {
  return CodePoints('0', '9').add('A', 'Z').add('_').add('a', 'z');
}

// WhiteSpace and LineTerminator of ECMA-262.
CodePoints white_space() {
  CodePoints set('\t', '\r');
  for (const char32_t c : U" \u00A0\u1680\u2028\u2029\u202F\u205F\u3000\uFEFF") {
    if (c != 0) set.add(c);
  }
  return set.add(0x2000, 0x200A);
}

CodePoints all_but_line_ends() {
  return CodePoints('\n', '\n').add('\r').add(0x2028, 0x2029).complement();
}

// The character that stands for all that differ from it in their case alone: Unicode's simple case folding.
char32_t folded(char32_t character) {
  std::array<utf8proc_int32_t, 8> full{};
  const auto point = static_cast<utf8proc_int32_t>(character);
  const auto size = utf8proc_decompose_char(point, full.data(), full.size(), UTF8PROC_CASEFOLD, nullptr);
  if (size == 1) return static_cast<char32_t>(full[0]);
  constexpr char32_t dotted_capital_i = 0x130;  // its lower case is not its folding
  return character == dotted_capital_i ? character : static_cast<char32_t>(utf8proc_tolower(point));
}

// The characters that have others of another case, in groups of those that are equal without their case.
const std::vector<std::vector<char32_t>>& cases_of_characters() {
  static const std::vector<std::vector<char32_t>> groups = [] {
    constexpr char32_t last_with_case = 0x1FFFF;
    std::map<char32_t, std::vector<char32_t>> by_folded;
    for (char32_t c = 0; c <= last_with_case; ++c) {
      if (!is_scalar_value(c) || folded(c) == c) continue;
      std::vector<char32_t>& group = by_folded[folded(c)];
      if (group.empty()) group.push_back(folded(c));
      group.push_back(c);
    }
    std::vector<std::vector<char32_t>> result;
    for (auto& [first, group] : by_folded) result.push_back(std::move(group));
    return result;
  }();
  return groups;
}

// Adds to each character of the set those that differ from it in their case alone.
CodePoints in_any_case(const CodePoints& set) {
  std::vector<CodePoints::Range> ranges = set.ranges();
  for (const std::vector<char32_t>& group : cases_of_characters()) {
    spend(1);
    if (std::ranges::none_of(group, [&](char32_t c) { return set.contains(c); })) continue;
    for (const char32_t c : group) ranges.push_back({c, c});
  }
  return CodePoints(std::move(ranges));
}

// Of all except \W, whose complement is that of what it means in any case.
std::optional<CodePoints> class_of_escape(char letter) {
  switch (letter) {
    case 'd':
      return decimal_digits();
    case 'D':
      return decimal_digits().complement();
    case 'w':
      return word_characters();
    case 's':
      return white_space();
    case 'S':
      return white_space().complement();
    default:
      return std::nullopt;
  }
}

// The characters of a general category, such as Lu or L, by its short or long name.
std::optional<CodePoints> make_category(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> long_names{{{"Letter", "L"},
                                                                                            {"Uppercase_Letter", "Lu"},
                                                                                            {"Lowercase_Letter", "Ll"},
                                                                                            {"Number", "N"},
                                                                                            {"Decimal_Number", "Nd"},
                                                                                            {"Punctuation", "P"},
                                                                                            {"Symbol", "S"},
                                                                                            {"Separator", "Z"}}};
  for (const auto& [full, brief] : long_names) {
    if (name == full) name = brief;
  }
  static constexpr std::string_view majors = "LMNPSZC";
  if (name.empty() || name.size() > 2 || majors.find(name[0]) == std::string_view::npos) return std::nullopt;
  std::vector<CodePoints::Range> ranges;
  for (char32_t c = 0; c <= last_code_point; ++c) {
    const std::string_view category = utf8proc_category_string(static_cast<utf8proc_int32_t>(c));
    if (!category.starts_with(name)) continue;
    if (!ranges.empty() && ranges.back().last + 1 == c) {
      ranges.back().last = c;
    } else {
      ranges.push_back({c, c});
    }
  }
  if (ranges.empty()) return std::nullopt;
  return CodePoints(std::move(ranges));
}

// Calls use(word) with the words of a text that is separated by spaces.
template <class Use>
void for_each_word(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// The characters of a script of Unicode by its long or short name, such as Han or Hani.
std::optional<CodePoints> characters_of_script(std::string_view name) {
  for (const Script& script : scripts) {
    bool named = false;
    for_each_word(script.names, [&](std::string_view known) { named = named || known == name; });
    if (!named) continue;
    std::vector<CodePoints::Range> ranges;
    for_each_word(script.ranges, [&](std::string_view range) {
      const std::size_t dash = std::min(range.find('-'), range.size());
      const char32_t first = *hexadecimal(range.substr(0, dash));
      ranges.push_back({first, dash == range.size() ? first : *hexadecimal(range.substr(dash + 1))});
    });
    return CodePoints(std::move(ranges));
  }
  return std::nullopt;
}

// The characters of a property as in \p{...}: a general category, with or without its name, or a script.
std::optional<CodePoints> make_property(std::string_view property) {
  const std::size_t equals = property.find('=');
  if (equals == std::string_view::npos) return make_category(property);
  const std::string_view name = property.substr(0, equals), value = property.substr(equals + 1);
  if (name == "General_Category" || name == "gc") return make_category(value);
  if (name == "Script" || name == "sc") return characters_of_script(value);
  return std::nullopt;
}

std::optional<CodePoints> characters_of_property(std::string_view property) {
  static std::mutex mutex;
  static std::map<std::string, CodePoints, std::less<>> made;
  constexpr std::size_t longest = 64;
  if (property.size() > longest) return std::nullopt;
  const std::lock_guard lock(mutex);
  const auto known = made.find(property);
  if (known != made.end()) return known->second;
  auto set = make_property(property);
  if (set) made.emplace(property, *set);
  return set;
}

class PatternParser {
 public:
  explicit PatternParser(std::string_view pattern) : pattern_(pattern) {}

  Term parse() {
    any_case_ = take_if("(?i)");
    Term term = parse_choice(0);
    if (!at_end()) fail("a group is not opened");
    return term;
  }

  // The characters of words, whose boundaries \b and \B are about; empty if the expression has neither.
  CodePoints words() const {
    if (!boundaries_in_any_case_) return {};
    return *boundaries_in_any_case_ ? in_any_case(word_characters()) : word_characters();
  }

 private:
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

  // `set` as it matters for the expression.
  CodePoints cased(const CodePoints& set) const { return any_case_ ? in_any_case(set) : set; }

  static Term characters(CodePoints set) {
    spend(1 + set.ranges().size());
    Term term;
    term.kind = Term::Kind::characters;
    term.set = std::move(set);
    return term;
  }

  static Term around(Term::Kind kind, Term part) {
    Term term;
    term.kind = kind;
    term.parts.push_back(std::move(part));
    return term;
  }

  static Term anchor(Term::Kind kind) {
    Term term;
    term.kind = kind;
    return term;
  }

  Term parse_choice(std::size_t nesting) {
    Term choice;
    choice.kind = Term::Kind::choice;
    do choice.parts.push_back(parse_sequence(nesting));
    while (take_if("|"));
    if (choice.parts.size() == 1) return std::move(choice.parts.front());
    return choice;
  }

  Term parse_sequence(std::size_t nesting) {
    Term sequence;
    while (!at_end() && !starts_with("|") && !starts_with(")")) {
      Term atom = parse_atom(nesting);
      sequence.parts.push_back(parse_quantifier(std::move(atom)));
    }
    return sequence;
  }

  Term parse_atom(std::size_t nesting) {
    if (take_if("^")) return anchor(Term::Kind::start);
    if (take_if("$")) return anchor(Term::Kind::end);
    if (starts_with("(")) return parse_group(nesting);
    if (take_if(".")) return characters(all_but_line_ends());
    if (starts_with("\\b") || starts_with("\\B")) return parse_boundary();
    if (starts_with("[")) return characters(parse_set());
    if (starts_with("\\")) return characters(cased(parse_escape()));
    if (std::string_view("*+?").find(pattern_[at_]) != std::string_view::npos || starts_counts()) {
      fail("nothing to repeat; escape the character with a backslash for itself");
    }
    return characters(cased(CodePoints().add(take_code_point())));
  }

  Term parse_boundary() {
    if (boundaries_in_any_case_.value_or(any_case_) != any_case_) {
      fail("a boundary of words with (?i) beside one without is not supported");
    }
    boundaries_in_any_case_ = any_case_;
    if (take_if("\\b")) return anchor(Term::Kind::boundary);
    take_if("\\B");
    return anchor(Term::Kind::not_boundary);
  }

  Term parse_group(std::size_t nesting) {
    if (nesting == max_groups) fail(fmt::format("the groups are nested too deeply, expected at most {}", max_groups));
    take_if("(");
    auto look = Term::Kind::sequence;
    const bool any_case = any_case_;
    if (take_if("?i:")) {
      any_case_ = true;
    } else if (take_if("?-i:")) {
      any_case_ = false;
    } else if (take_if("?=")) {
      look = Term::Kind::ahead;
    } else if (take_if("?!")) {
      look = Term::Kind::not_ahead;
    } else if (starts_with("?") && !take_if("?:")) {
      const bool named = starts_with("?<") && !starts_with("?<=") && !starts_with("?<!");
      const std::size_t end = pattern_.find('>', at_);
      if (!named || end == std::string_view::npos) {
        fail("this group is not supported, expected (, (?:, (?i:, (?-i:, (?=, (?!, (?<name> or, at the start, (?i)");
      }
      at_ = end + 1;
    }
    Term term = parse_choice(nesting + 1);
    if (!take_if(")")) fail("a group is not closed");
    any_case_ = any_case;
    return look == Term::Kind::sequence ? term : around(look, std::move(term));
  }

  // Returns true if a { here starts a repetition; elsewhere it is a character.
  bool starts_counts() const {
    if (!starts_with("{")) return false;
    std::size_t at = at_ + 1;
    const auto digits = [&] {
      const std::size_t from = at;
      while (at < pattern_.size() && pattern_[at] >= '0' && pattern_[at] <= '9') ++at;
      return at > from;
    };
    if (!digits()) return false;
    if (at < pattern_.size() && pattern_[at] == ',') {
      ++at;
      digits();
    }
    return at < pattern_.size() && pattern_[at] == '}';
  }

  Term parse_quantifier(Term atom) {
    std::size_t min = 0;
    std::optional<std::size_t> max;
    const std::size_t begin = at_;
    if (take_if("+")) {
      min = 1;
    } else if (take_if("?")) {
      max = 1;
    } else if (starts_counts()) {
      take_if("{");
      min = parse_count();
      if (!take_if(",")) {
        max = min;
      } else if (!starts_with("}")) {
        max = parse_count();
      }
      take_if("}");
    } else if (!take_if("*")) {
      return atom;
    }
    if (max && *max < min) {
      at_ = begin;
      fail(fmt::format("repeated from {} to {} times, expected the smaller count first", min, *max));
    }
    take_if("?");  // a lazy repetition matches in the same strings
    Term repeat = around(Term::Kind::repeat, std::move(atom));
    repeat.min = min;
    repeat.max = max;
    return repeat;
  }

  std::size_t parse_count() {
    std::size_t count = 0;
    for (; !at_end() && pattern_[at_] >= '0' && pattern_[at_] <= '9'; ++at_) {
      count = count * 10 + static_cast<std::size_t>(pattern_[at_] - '0');
      if (count > max_count) fail(fmt::format("a repetition is over {}", max_count));
    }
    return count;
  }

  CodePoints parse_set() {
    take_if("[");
    const bool negated = take_if("^");
    std::vector<CodePoints::Range> ranges;
    const auto add = [&](const CodePoints& points) {
      spend(points.ranges().size());
      ranges.insert(ranges.end(), points.ranges().begin(), points.ranges().end());
    };
    while (!take_if("]")) {
      if (at_end()) fail("a set is not closed");
      const CodePoints first = parse_set_member();
      if (!starts_with("-") || starts_with("-]") || !single(first)) {
        add(first);
        continue;
      }
      take_if("-");
      if (at_end()) fail("a set is not closed");
      const CodePoints last = parse_set_member();
      if (!single(last)) {
        add(first);
        add(CodePoints('-', '-'));
        add(last);
        continue;
      }
      const char32_t from = first.ranges().front().first, to = last.ranges().front().first;
      if (to < from) fail("a range ends before it starts");
      add(CodePoints(from, to));
    }
    const CodePoints set = cased(CodePoints(std::move(ranges)));
    return negated ? set.complement() : set;
  }

  static bool single(const CodePoints& points) {
    return points.ranges().size() == 1 && points.ranges().front().first == points.ranges().front().last;
  }

  CodePoints parse_set_member() {
    if (take_if("\\b")) return CodePoints().add('\b');
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
    const char letter = pattern_[at_];
    const bool alphanumeric = word_characters().contains(static_cast<unsigned char>(letter)) && letter != '_';
    if (!alphanumeric) return CodePoints().add(take_code_point());
    ++at_;
    if (letter == 'W') return cased(word_characters()).complement();
    if (const auto set = class_of_escape(letter)) return *set;
    static constexpr std::string_view letters = "tnvfr", meanings = "\t\n\v\f\r";
    const auto control = letters.find(letter);
    if (control != std::string_view::npos) return CodePoints().add(static_cast<char32_t>(meanings[control]));
    if (letter == 'p' || letter == 'P') {
      const std::size_t end = starts_with("{") ? pattern_.find('}', at_) : std::string_view::npos;
      if (end == std::string_view::npos) unsupported();
      const auto set = characters_of_property(pattern_.substr(at_ + 1, end - at_ - 1));
      if (!set) {
        at_ = begin;
        fail(
            "this property is not supported, expected a general category such as \\p{L} or \\p{gc=Lu}, or a script "
            "such as \\p{Script=Han}");
      }
      at_ = end + 1;
      return letter == 'p' ? *set : set->complement();
    }
    const auto code_point = numbered(letter);
    if (!code_point || !is_scalar_value(*code_point)) unsupported();
    return CodePoints().add(*code_point);
  }

  // \0 \cX \xHH \uHHHH \u{H...}; a pair of \uHHHH may spell a character beyond U+FFFF.
  std::optional<char32_t> numbered(char letter) {
    if (letter == '0' && (at_end() || pattern_[at_] < '0' || pattern_[at_] > '9')) return U'\0';
    if (letter == 'x') return take_hexadecimal(2);
    if (letter == 'c' && !at_end() && ((pattern_[at_] | 0x20) >= 'a' && (pattern_[at_] | 0x20) <= 'z')) {
      return static_cast<char32_t>(pattern_[at_++] & 0x1F);
    }
    if (letter != 'u') return std::nullopt;
    if (take_if("{")) {
      const std::size_t end = pattern_.find('}', at_);
      if (end == std::string_view::npos) return std::nullopt;
      const auto code_point = take_hexadecimal(end - at_);
      return take_if("}") ? code_point : std::nullopt;
    }
    const auto first = take_hexadecimal(4);
    if (!first || *first < 0xD800 || *first > 0xDBFF || !take_if("\\u")) return first;
    const auto second = take_hexadecimal(4);
    if (!second || *second < 0xDC00 || *second > 0xDFFF) return std::nullopt;
    return 0x10000 + ((*first - 0xD800) << 10) + (*second - 0xDC00);
  }

  std::optional<char32_t> take_hexadecimal(std::size_t digits) {
    if (digits == 0 || digits > 6 || pattern_.size() - at_ < digits) return std::nullopt;
    at_ += digits;
    return hexadecimal(pattern_.substr(at_ - digits, digits));
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  bool any_case_ = false;
  std::optional<bool> boundaries_in_any_case_;  // std::nullopt: there are none
};

// The nondeterministic automaton of a term, and its deterministic one. A look-ahead is a condition on the rest of the
// string: a set of strings that the rest must be in. So is a boundary, which depends on the character before, too. A
// thread is a position together with the conditions it has met, each at the state that it has reached.
class PatternBuilder {
 public:
  // What is before a position: ^ matches only at the start, which is like a character that no word has.
  enum class Before : std::uint8_t { start, word, other };

  // `words` are the characters of words; empty if the expression has no boundaries of them.
  PatternBuilder(std::size_t& steps, const CodePoints& words) : steps_(steps), words_(words) {}

  // The strings that start with a match of `term`, or that contain one if `anywhere`. `before` is what is before these
  // strings.
  Automaton build(const Term& term, bool anywhere, Before before) {
    const Position start = add(), match = add(), matched = add();
    final_ = matched;
    if (anywhere) loop(start);
    positions_[start].free.push_back(match);
    add_term(term, match, matched);
    loop(matched);
    return determinize(start, before);
  }

 private:
  using Position = std::uint32_t;
  using Condition = std::pair<std::uint32_t, Automaton::State>;  // of conditions_, and its state

  struct Thread {
    Position position;
    std::vector<Condition> conditions;  // sorted
    auto operator<=>(const Thread&) const = default;
  };

  struct Place {
    std::vector<std::pair<const CodePoints*, Position>> edges;  // with sets of the terms, which repetitions share
    std::vector<Position> free;                                 // followed without a character
    std::vector<Position> at_start;                             // likewise, if at the start
    std::vector<std::pair<const Term*, Position>> looks;
  };

  struct Target {
    Automaton automaton;
    std::vector<bool> universal;  // [states], every continuation is accepted
  };

  Position add() {
    spend(1);
    if (positions_.size() == max_positions) throw Error("the pattern is too long; shorten its repetitions");
    positions_.emplace_back();
    return static_cast<Position>(positions_.size() - 1);
  }

  void loop(Position at) {
    static const CodePoints all = CodePoints::all();
    positions_[at].edges.emplace_back(&all, at);
  }

  void add_free(Position from, Position to) {
    std::vector<Position>& free = positions_[from].free;
    if (free.empty() || free.back() != to) free.push_back(to);  // alternatives may be empty, all of them
  }

  void add_term(const Term& term, Position from, Position to) {
    spend(1);
    switch (term.kind) {
      case Term::Kind::characters:
        if (!term.set.empty()) positions_[from].edges.emplace_back(&term.set, to);
        return;
      case Term::Kind::sequence:
        for (const Term& part : term.parts) {
          const Position next = add();
          add_term(part, from, next);
          from = next;
        }
        return add_free(from, to);
      case Term::Kind::choice:
        for (const Term& part : term.parts) add_term(part, from, to);
        return;
      case Term::Kind::repeat:
        return add_repeat(term, from, to);
      case Term::Kind::start:
        positions_[from].at_start.push_back(to);
        return;
      case Term::Kind::end:
      case Term::Kind::ahead:
      case Term::Kind::not_ahead:
      case Term::Kind::boundary:
      case Term::Kind::not_boundary:
        positions_[from].looks.emplace_back(&term, to);
        return;
    }
  }

  void add_repeat(const Term& term, Position from, Position to) {
    const Term& part = term.parts.front();
    for (std::size_t i = 0; i < term.min; ++i) {
      const Position next = add();
      add_term(part, from, next);
      from = next;
    }
    if (!term.max) {
      const Position again = add();
      add_free(from, again);
      add_term(part, again, again);
      return add_free(again, to);
    }
    for (std::size_t i = term.min; i < *term.max; ++i) {
      add_free(from, to);
      const Position next = add();
      add_term(part, from, next);
      from = next;
    }
    add_free(from, to);
  }

  // The strings that the rest must be in.
  Automaton rests(const Term& look, Before before) {
    if (look.kind == Term::Kind::end) return Automaton::of_texts({U""});
    Term word;
    word.kind = Term::Kind::characters;
    word.set = words_;
    const bool boundary = look.kind == Term::Kind::boundary || look.kind == Term::Kind::not_boundary;
    const Automaton ahead = PatternBuilder(steps_, words_).build(boundary ? word : look.parts.front(), false, before);
    // A boundary is before a word after anything else, and before anything else after a word.
    const bool must_match =
        boundary ? (look.kind == Term::Kind::boundary) != (before == Before::word) : look.kind == Term::Kind::ahead;
    return must_match ? ahead : ahead.complement();
  }

  // The number of a look-ahead's condition.
  std::uint32_t condition_of(const Term* look, Before before) {
    const auto [place, added] = numbers_.try_emplace({look, before}, static_cast<std::uint32_t>(conditions_.size()));
    if (!added) return place->second;
    conditions_.emplace_back();
    Automaton automaton = rests(*look, before);
    Target& target = conditions_[place->second];
    for (Automaton::State state = 0; state < automaton.states(); ++state) {
      CodePoints to_itself;
      for (auto [edge, end] = automaton.edges(state); edge != end; ++edge) {
        if (edge->to == state) to_itself.add(edge->first, edge->last);
      }
      target.universal.push_back(automaton.accepts_at(state) && to_itself.complement().empty());
    }
    target.automaton = std::move(automaton);
    return place->second;
  }

  void charge(std::size_t steps) {
    spend(steps);
    steps_ += steps;
    if (steps_ > max_steps) throw Error("the pattern is too complex; simplify it or shorten its repetitions");
  }

  // Adds a thread and all that it reaches without a character.
  void close(Thread thread, Before before, std::set<Thread>& closed) {
    std::vector<Thread> pending{std::move(thread)};
    while (!pending.empty()) {
      const Thread now = std::move(pending.back());
      pending.pop_back();
      // A thread without conditions is at least as good as one with them.
      if (!now.conditions.empty() && closed.contains({now.position, {}})) continue;
      if (!closed.insert(now).second) continue;
      charge(1 + now.conditions.size());
      const Place& place = positions_[now.position];
      for (const Position to : place.free) pending.push_back({to, now.conditions});
      for (const Position to : place.at_start) {
        if (before == Before::start) pending.push_back({to, now.conditions});
      }
      for (const auto& [look, to] : place.looks) {
        const std::uint32_t number = condition_of(look, before);
        const Target& target = conditions_[number];
        if (target.automaton.empty()) continue;
        Thread next{to, now.conditions};
        const Condition condition{number, 0};
        const auto at = std::lower_bound(next.conditions.begin(), next.conditions.end(), condition);
        if (!target.universal[0] && (at == next.conditions.end() || *at != condition)) {
          next.conditions.insert(at, condition);
        }
        pending.push_back(std::move(next));
      }
    }
  }

  // Only threads that take a character or end the match matter after closing.
  std::vector<Thread> kept(const std::set<Thread>& closed) const {
    std::vector<Thread> threads;
    for (const Thread& thread : closed) {
      if (thread.position != final_ && positions_[thread.position].edges.empty()) continue;
      if (!thread.conditions.empty() && closed.contains({thread.position, {}})) continue;
      threads.push_back(thread);
    }
    return threads;
  }

  bool accepts(const std::vector<Thread>& threads) const {
    return std::any_of(threads.begin(), threads.end(), [&](const Thread& thread) {
      return thread.position == final_ &&
             std::all_of(thread.conditions.begin(), thread.conditions.end(), [&](const Condition& condition) {
               return conditions_[condition.first].automaton.accepts_at(condition.second);
             });
    });
  }

  // The first characters of the ranges that all threads treat alike.
  std::vector<char32_t> cuts(const std::vector<Thread>& threads) {
    std::vector<char32_t> points{0};
    const auto cut = [&](char32_t first, char32_t last) {
      points.push_back(first);
      points.push_back(last + 1);
    };
    for (const CodePoints::Range& range : words_.ranges()) cut(range.first, range.last);
    for (const Thread& thread : threads) {
      for (const auto& [set, to] : positions_[thread.position].edges) {
        charge(2 * set->ranges().size());
        for (const CodePoints::Range& range : set->ranges()) cut(range.first, range.last);
      }
      for (const auto& [number, state] : thread.conditions) {
        auto [edge, end] = conditions_[number].automaton.edges(state);
        charge(2 * static_cast<std::size_t>(end - edge));
        for (; edge != end; ++edge) cut(edge->first, edge->last);
      }
    }
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    return points;
  }

  // The conditions after a character; std::nullopt if one is not met.
  std::optional<std::vector<Condition>> after(const std::vector<Condition>& conditions, char32_t character) const {
    std::vector<Condition> result;
    for (const auto& [number, state] : conditions) {
      const Target& target = conditions_[number];
      const auto to = target.automaton.next(state, character);
      if (!to) return std::nullopt;
      if (!target.universal[*to]) result.emplace_back(number, *to);
    }
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  // The threads after a character, not closed.
  std::vector<Thread> step(const std::vector<Thread>& threads, char32_t character) {
    std::vector<Thread> next;
    for (const Thread& thread : threads) {
      for (const auto& [set, to] : positions_[thread.position].edges) {
        charge(1);
        if (!set->contains(character)) continue;
        if (auto conditions = after(thread.conditions, character)) next.push_back({to, std::move(*conditions)});
      }
    }
    return next;
  }

  std::vector<Thread> closed(const std::vector<Thread>& threads, Before before) {
    std::set<Thread> reached;
    for (const Thread& thread : threads) close(thread, before, reached);
    return kept(reached);
  }

  Automaton determinize(Position start, Before before) {
    Automaton::Draft draft;
    std::map<std::vector<Thread>, Automaton::State> numbers;
    std::vector<const std::vector<Thread>*> sets;
    const auto number = [&](std::vector<Thread> threads) {
      // Once the match needs nothing further, everything follows.
      const Thread done{final_, {}};
      if (std::binary_search(threads.begin(), threads.end(), done)) threads = {done};
      const auto [place, added] = numbers.try_emplace(std::move(threads), static_cast<Automaton::State>(sets.size()));
      if (added) {
        draft.add(accepts(place->first));
        sets.push_back(&place->first);
      }
      return place->second;
    };
    number(closed({{start, {}}}, before));
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const std::vector<Thread>& threads = *sets[i];
      const std::vector<char32_t> points = cuts(threads);
      // Many ranges lead to the same threads, which are closed once.
      std::map<std::pair<Before, std::vector<Thread>>, std::optional<Automaton::State>> reached;
      for (std::size_t k = 0; k < points.size(); ++k) {
        const char32_t last = k + 1 < points.size() ? points[k + 1] - 1 : last_code_point;
        if (points[k] > last_code_point) break;
        const Before now = words_.contains(points[k]) ? Before::word : Before::other;
        const auto [place, added] = reached.try_emplace({now, step(threads, points[k])});
        if (added) {
          std::vector<Thread> next = closed(place->first.second, now);
          if (!next.empty()) place->second = number(std::move(next));
        }
        if (!place->second) continue;
        const CodePoints scalars(points[k], last);
        for (const CodePoints::Range& range : scalars.ranges()) {
          draft.edges[i].push_back({range.first, range.last, *place->second});
        }
      }
    }
    return Automaton(draft);
  }

  std::size_t& steps_;
  const CodePoints& words_;
  std::vector<Place> positions_;
  std::vector<Target> conditions_;
  std::map<std::pair<const Term*, Before>, std::uint32_t> numbers_;
  Position final_ = 0;
};

}  // namespace

Automaton pattern_automaton(std::string_view pattern, Matching matching) {
  PatternParser parser(pattern);
  Term term = parser.parse();
  if (matching == Matching::whole) {
    Term whole;
    whole.parts.resize(3);
    whole.parts[0].kind = Term::Kind::start;
    whole.parts[1] = std::move(term);
    whole.parts[2].kind = Term::Kind::end;
    term = std::move(whole);
  }
  const CodePoints words = parser.words();
  std::size_t steps = 0;
  try {
    return PatternBuilder(steps, words).build(term, matching == Matching::anywhere, PatternBuilder::Before::start);
  } catch (const Error& error) {
    throw Error(fmt::format("the pattern {}: {}", quote(pattern), error.what()));
  }
}

namespace {

// The patterns of formats, each for whole strings.
std::string date_pattern() {
  // RFC 3339, with the lengths of months and leap years.
  return R"((?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30))"
         R"(|02-(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29))";
}

std::string time_pattern() {
  // A leap second only where it is the last second of a day by UTC, written without an offset.
  return R"((?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d))"
         R"(|23:59:60(?:\.\d+)?(?:[Zz]|[+-]00:00)))";
}

std::string ipv4_pattern() {
  static const std::string octet = R"((?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";
  return "(?:" + octet + "\\.){3}" + octet;
}

std::string ipv6_pattern() {
  static const std::string group = "[0-9A-Fa-f]{1,4}";
  static const std::string last = "(?:" + group + ":" + group + "|" + ipv4_pattern() + ")";
  std::string pattern = "(?:" + group + ":){6}" + last;
  pattern += "|::(?:" + group + ":){5}" + last;
  for (int before = 0; before <= 4; ++before) {
    // `before` + 1 groups at most before the ::, and what is left of the 8 after it.
    pattern += fmt::format("|(?:(?:{0}:){{0,{1}}}{0})?::(?:{0}:){{{2}}}{3}", group, before, 4 - before, last);
  }
  pattern += "|(?:(?:" + group + ":){0,5}" + group + ")?::" + group;
  pattern += "|(?:(?:" + group + ":){0,6}" + group + ")?::";
  return "(?:" + pattern + ")";
}

std::string host_label() {
  // Labels with hyphens in the third and fourth place are encoded ones (xn--), which would have to be decoded.
  return "(?!..--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
}

std::string host_pattern() {
  return "(?:" + host_label() + "\\.)*" + host_label();
}

std::string email_pattern() {
  static const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
  static const std::string quoted = R"("(?:[ !#-\[\]-~]|\\[ -~])*")";
  static const std::string label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
  return "(?:" + atom + "(?:\\." + atom + ")*|" + quoted + ")@(?:" + label + "(?:\\." + label +
         ")*|\\[(?:" + ipv4_pattern() + "|IPv6:" + ipv6_pattern() + ")\\])";
}

// RFC 3986, or RFC 3987 with `more`: further characters that need no escape, and those that only a query may have.
std::string uri_pattern(bool relative, const std::string& more, const std::string& in_query) {
  const std::string unreserved = "A-Za-z0-9._~\\-" + more, delimiters = "!$&'()*+,;=", escaped = "%[0-9A-Fa-f]{2}";
  const auto some = [&](const std::string& further) {
    return "(?:[" + unreserved + delimiters + further + "]|" + escaped + ")";
  };
  const std::string character = some(":@");
  const std::string literal =
      "\\[(?:" + ipv6_pattern() + "|[vV][0-9A-Fa-f]+\\.[A-Za-z0-9._~\\-" + delimiters + ":]+)\\]";
  const std::string authority = "(?:" + some(":") + "*@)?(?:" + literal + "|" + some("") + "*)(?::[0-9]*)?";
  const std::string rest = "(?:\\?" + some(":@/?" + in_query) + "*)?(?:#" + some(":@/?") + "*)?";
  const std::string segments = "(?:/" + character + "*)*";
  const std::string rooted = "//" + authority + segments + "|/(?:" + character + "+" + segments + ")?";
  const std::string absolute =
      "[A-Za-z][A-Za-z0-9+.\\-]*:(?:" + rooted + "|" + character + "+" + segments + "|)" + rest;
  if (!relative) return absolute;
  return absolute + "|(?:" + rooted + "|" + some("@") + "+" + segments + "|)" + rest;
}

std::string iri_characters() {
  std::string set = "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}";
  for (unsigned plane = 1; plane <= 14; ++plane) {
    set += fmt::format("\\u{{{:X}}}-\\u{{{:X}}}", plane == 14 ? 0xE1000 : plane << 16, plane << 16 | 0xFFFD);
  }
  return set;
}

std::string private_characters() {
  return "\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}";
}

std::string duration_pattern() {
  const std::string time = "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S)";
  const std::string date = "(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)";
  return "P(?:" + date + "(?:" + time + ")?|" + time + "|\\d+W)";
}

// Regular expressions without look-behind, back references and named groups, with groups nested up to three deep.
std::string regex_pattern() {
  const std::string escape = R"(\\(?:[dDwWsStnvfrbB0^$\\.*+?()\[\]{}|/\-]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}))";
  const std::string range = "a-[b-z]|[a-y]-z|A-[B-Z]|[A-Y]-Z|0-[1-9]|[0-8]-9";
  const std::string member = R"((?:[^\]\\\-]|)" + range + "|" + escape + ")";
  const std::string set = "\\[\\^?-?" + member + "*-?\\]";
  const std::string repeat = R"((?:(?:[*+?]|\{\d+\}|\{\d+,\}|\{[01],[1-9]\}|\{\d,[1-9]\d+\})\??)?)";
  std::string choice = "[^]{0}";
  for (int depth = 0; depth < 4; ++depth) {
    std::string atom = R"(\.|[^\^$\\.*+?()\[\]{}|]|)" + escape + "|" + set;
    if (depth > 0) atom += "|\\((?:\\?:)?" + choice + "\\)";
    const std::string sequence = "(?:[\\^$]|(?:" + atom + ")" + repeat + ")*";
    choice = sequence + "(?:\\|" + sequence + ")*";
  }
  return choice;
}

// RFC 6570.
std::string uri_template_pattern() {
  const std::string character = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})";
  const std::string name = character + "(?:\\.?" + character + ")*";
  const std::string variable = name + "(?::[1-9][0-9]{0,3}|\\*)?";
  const std::string expression = "\\{[+#./;?&=,!@|]?" + variable + "(?:," + variable + ")*\\}";
  const std::string literal = "[!#$&'-;=?-\\[\\]_a-z~" + iri_characters() + private_characters() + "]|%[0-9A-Fa-f]{2}";
  return "(?:" + literal + "|" + expression + ")*";
}

std::optional<std::string> pattern_of(std::string_view format) {
  if (format == "date") return date_pattern();
  if (format == "time") return time_pattern();
  if (format == "date-time") return date_pattern() + "[Tt]" + time_pattern();
  if (format == "duration") return duration_pattern();
  if (format == "uuid") return "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}";
  if (format == "hostname") return host_pattern();
  if (format == "email") return email_pattern();
  if (format == "ipv4") return ipv4_pattern();
  if (format == "ipv6") return ipv6_pattern();
  if (format == "uri") return uri_pattern(false, "", "");
  if (format == "uri-reference") return uri_pattern(true, "", "");
  if (format == "iri") return uri_pattern(false, iri_characters(), private_characters());
  if (format == "iri-reference") return uri_pattern(true, iri_characters(), private_characters());
  if (format == "uri-template") return uri_template_pattern();
  if (format == "json-pointer") return "(?:/(?:[^/~]|~[01])*)*";
  if (format == "relative-json-pointer") return "(?:0|[1-9]\\d*)(?:#|(?:/(?:[^/~]|~[01])*)*)";
  if (format == "regex") return regex_pattern();
  return std::nullopt;
}

}  // namespace

std::optional<Automaton> format_automaton(std::string_view format) {
  // Some take milliseconds.
  static std::mutex mutex;
  static std::map<std::string, Automaton, std::less<>> made;
  const std::lock_guard lock(mutex);
  const auto known = made.find(format);
  if (known != made.end()) return known->second;
  const auto pattern = pattern_of(format);
  if (!pattern) return std::nullopt;
  const UncountedWork once;
  return made.emplace(format, pattern_automaton(*pattern, Matching::whole)).first->second;
}

}  // namespace minimind
