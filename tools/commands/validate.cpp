#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/grammar/state.h"
#include "runtime/json_schema/json_schema.h"
#include "runtime/text/code_points.h"
#include "runtime/text/utf8.h"
#include "tools/options/command_line.h"
#include "tools/options/grammar_options.h"
#include "tools/options/help.h"
#include "tools/options/lines.h"
#include "tools/options/options.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/error.h"
#include "weights/base/suggestion.h"
#include "weights/base/text.h"
#include "weights/io/json_fields.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

using ReportJson = nlohmann::ordered_json;

struct ValidateOptions {
  GrammarArguments grammar;
  std::string file;
  bool jsonl = false;
  bool json = false;
  bool quiet = false;
};

// Where a text stops conforming.
struct Mismatch {
  std::size_t offset = 0;
  TextPlace place;
  std::string found, expected;
};

// Returns the characters that must follow `byte`, which is one, as far as only one byte may follow each. Escapes are
// omitted: they spell a character that is there anyway.
std::string forced_text(GrammarState& state, char byte) {
  constexpr std::size_t longest = 24;
  std::string text(1, byte);
  while (text.size() < longest) {
    char next = 0;
    int count = 0;
    for (int c = 0; c < 256 && count < 2; ++c) {
      if (c == '\\' || !state.allows(text + static_cast<char>(c))) continue;
      next = static_cast<char>(c);
      ++count;
    }
    if (count != 1) break;
    text += next;
  }
  return text.substr(0, first_not_utf8(text).value_or(text.size()));
}

// Lists the texts between two quotes that may follow; none if there are more than a few. Escapes are omitted.
std::vector<std::string> quoted_texts(GrammarState& state) {
  constexpr std::size_t most_texts = 8, longest = 48, most_looked_at = 400;
  std::vector<std::string> pending{"\""}, found;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (pending[i].size() > longest) return {};
    for (int c = ' '; c < 256; ++c) {
      const char byte = static_cast<char>(c);
      if (byte == '\\' || !state.allows(pending[i] + byte)) continue;
      (byte == '"' ? found : pending).push_back(pending[i] + byte);
      if (found.size() > most_texts || pending.size() > most_looked_at) return {};
    }
  }
  return found;
}

// The characters of a set as in a regular expression: [0-9a-f].
std::string set_text(const std::vector<bool>& set) {
  std::string ranges;
  bool beyond = false;
  for (std::size_t c = 0; c < set.size(); ++c) {
    if (!set[c]) continue;
    if (c >= 0x80) {
      beyond = true;
      continue;
    }
    std::size_t last = c;
    while (last + 1 < 0x7F && set[last + 1]) ++last;
    ranges += static_cast<char>(c);
    if (last > c + 1) ranges += '-';
    if (last > c) ranges += static_cast<char>(last);
    c = last;
  }
  const std::string text = ranges.empty() ? "" : "one of [" + ranges + "]";
  if (!beyond) return text;
  return text.empty() ? "a character beyond ASCII" : text + " or beyond ASCII";
}

// Names what may follow: words and property names whole, if they are few. Spaces and control characters are named if
// nothing else may follow.
std::string expected_text(GrammarState& state) {
  constexpr std::size_t most_listed = 6;
  std::vector<bool> set(256);
  std::size_t count = 0;
  for (std::size_t c = '!'; c < set.size(); ++c) {
    const char byte = static_cast<char>(c);
    set[c] = c != 0x7F && state.allows({&byte, 1});
    count += set[c] ? 1 : 0;
  }
  if (count > 1 && set['\\']) {
    set['\\'] = false;
    --count;
  }
  const auto all = [&](char first, char last) {
    return std::all_of(set.begin() + first, set.begin() + last + 1, [](bool in) { return in; });
  };
  std::vector<std::string> list;
  const bool in_string = all('a', 'z') && all('A', 'Z') && all('0', '9') && set['"'];
  const bool digits = all('0', '9'), number = digits && set['-'] && !in_string;
  if (in_string) {
    list = {"another character of a string", "its closing '\"'"};
  } else {
    if (number) list.emplace_back("a number");
    if (digits && !number) list.emplace_back("a digit");
    if (digits) std::fill(set.begin() + '0', set.begin() + '9' + 1, false);
    if (number) set['-'] = false;
    count = static_cast<std::size_t>(std::count(set.begin(), set.end(), true));
    if (count > most_listed) {
      list.push_back(set_text(set));
    } else {
      for (std::size_t c = 0; c < set.size(); ++c) {
        if (!set[c]) continue;
        const std::vector<std::string> texts = c == '"' ? quoted_texts(state) : std::vector<std::string>();
        list.insert(list.end(), texts.begin(), texts.end());
        if (texts.empty())
          list.push_back(c >= 0x80 ? "a character beyond ASCII" : quote(forced_text(state, static_cast<char>(c))));
        if (c >= 0x80) break;
      }
    }
  }
  if (state.may_end()) list.emplace_back("the end of the text");
  if (list.empty()) {
    for (int c = 0; c <= 0x7F; ++c) {
      const char byte = static_cast<char>(c);
      if (state.allows({&byte, 1})) list.push_back(quote(forced_text(state, byte)));
    }
  }
  return list.empty() ? "nothing" : alternatives(list);
}

// Returns the start of the character that has the byte at `offset`; the offset itself if the text is not UTF-8 there.
std::size_t start_of_character(std::string_view text, std::size_t offset) {
  constexpr std::size_t longest_character = 4;
  if (offset == text.size()) return offset;
  for (std::size_t start = offset; offset - start < longest_character; --start) {
    if (starts_character(text[start])) {
      return first_utf8(text.substr(start)).size > offset - start ? start : offset;
    }
    if (start == 0) break;
  }
  return offset;
}

// Returns the characters at the start of a text, of at most `most` bytes.
std::string_view first_characters(std::string_view text, std::size_t most) {
  std::size_t end = 0;
  while (end < text.size()) {
    const std::size_t next = end + first_utf8(text.substr(end)).size;
    if (next > most) break;
    end = next;
  }
  return text.substr(0, end);
}

// A text of a schema as it is judged, in which some numbers are spelled without their exponents.
struct JudgedText {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> ends;  // of these numbers: here, and in the original

  std::size_t original(std::size_t offset) const {
    const auto later = std::ranges::upper_bound(ends, offset, {}, &std::pair<std::size_t, std::size_t>::first);
    return later == ends.begin() ? offset : offset - std::prev(later)->first + std::prev(later)->second;
  }
};

// Returns where the next number starts at or after `at`, outside of strings, and where it ends.
std::pair<std::size_t, std::size_t> next_number(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] < '0' || text[at] > '9') && text[at] != '-') {
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    }
    ++at;
  }
  at = std::min(at, text.size());
  return {at, std::min(text.find_first_not_of("0123456789+-.eE", at), text.size())};
}

// Spells those numbers without their exponents that the schema does not take as they are: 3e1 where it has 30.
JudgedText with_plain_numbers(GrammarState& state, std::string_view text) {
  JudgedText judged;
  std::size_t taken = 0;
  for (auto [begin, end] = next_number(text, 0); begin < text.size(); std::tie(begin, end) = next_number(text, end)) {
    const std::string number(text.substr(begin, end - begin));
    if (number.find_first_of("eE") == std::string::npos) continue;
    const std::string_view before = text.substr(taken, begin - taken);
    if (!state.advance(before)) break;
    judged.text += before;
    taken = begin;
    const std::string after(1, end < text.size() ? text[end] : '\n');
    const auto plain = state.allows(number + after) ? std::nullopt : plain_number(number);
    const std::string chosen = plain && state.allows(*plain + after) ? *plain : number;
    if (!state.advance(chosen)) break;
    judged.text += chosen;
    judged.ends.emplace_back(judged.text.size(), end);
    taken = end;
  }
  judged.text += text.substr(taken);
  return judged;
}

std::optional<Mismatch> first_mismatch(GrammarState& state, std::string_view text, bool has_schema) {
  state.restart();
  Mismatch at;
  const JudgedText judged = has_schema ? with_plain_numbers(state, text) : JudgedText{std::string(text), {}};
  state.restart();
  const std::size_t followed = state.advance_within(judged.text), start = start_of_character(judged.text, followed);
  if (start < followed) {
    state.restart();
    state.advance(std::string_view(judged.text).substr(0, start));
  }
  at.offset = judged.original(start);
  const std::string_view rest = text.substr(at.offset);
  if (rest.empty() && state.may_end()) return std::nullopt;
  at.place = place_of(at.offset, text);
  at.found = rest.empty()           ? "the end of the text"
             : rest.front() == '\n' ? "the end of the line"
                                    : quote(first_characters(rest.substr(0, rest.find('\n')), 20));
  at.expected = expected_text(state);
  return at;
}

// An error about a text names it, and ends the command: the state cannot be used any more.
std::optional<Mismatch> first_mismatch(GrammarState& state, std::string_view text, bool has_schema,
                                       const std::string& name) {
  try {
    return first_mismatch(state, text, has_schema);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", name, error.what()));
  }
}

ReportJson json_of(const std::optional<Mismatch>& mismatch) {
  if (!mismatch) return {{"conforms", true}};
  return {{"conforms", false},
          {"offset", mismatch->offset},
          {"line", mismatch->place.line},
          {"column", mismatch->place.column},
          {"found", mismatch->found},
          {"expected", mismatch->expected}};
}

// Each line is a text. Returns true if all conform.
bool validate_lines(GrammarState& state, const std::string& input, bool has_schema, const std::string& name) {
  bool all = true;
  for_each_line(input, [&](const std::string& line, std::size_t number) {
    const auto mismatch = first_mismatch(state, line, has_schema, fmt::format("{}:{}", name, number));
    all = all && !mismatch;
    print_output("{}\n", dump_json(json_of(mismatch)));
  });
  return all;
}

// Returns the exit status. Throws Error if the text cannot be judged.
int judge(const ValidateOptions& options) {
  const auto grammar = options.grammar.load(false, options.quiet);
  if (!grammar) {
    throw UsageError("nothing to validate against; give --json-schema FILE, --regex PATTERN or --grammar FILE");
  }
  const std::string input = options.file.empty() ? read_standard_input() : read_text_or_pipe(options.file);
  GrammarState state(grammar);
  const std::string name = options.file.empty() ? "standard input" : options.file;
  const bool has_schema = !options.grammar.json_schema_file.empty();
  if (options.jsonl) return validate_lines(state, input, has_schema, name) ? 0 : 1;
  const auto mismatch = first_mismatch(state, input, has_schema, name);
  if (options.json) {
    print_output("{}\n", dump_json(json_of(mismatch)));
  } else if (mismatch) {
    note("{}", fmt::format("{}:{}:{}: found {}, expected {}", name, mismatch->place.line, mismatch->place.column,
                           mismatch->found, mismatch->expected));
  } else if (!options.quiet) {
    note("the text conforms");
  }
  return mismatch ? 1 : 0;
}

int run_validate(const ValidateOptions& options) {
  constexpr int cannot_be_judged = 3;
  try {
    return judge(options);
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    note("{}", error.what());
    return cannot_be_judged;
  }
}

}  // namespace

Command add_validate(CommandOptions& command) {
  auto options = std::make_shared<ValidateOptions>();
  options->grammar.add_to(command, false);
  command.add_positional("FILE", options->file, text_file_help());
  command.add_flag(
      "--jsonl", options->jsonl, prompt_group,
      bilingual("each line is a text; print a JSON object for each", "每行一段文本，各打印一个 JSON 对象"));
  command.add_flag("--json", options->json, output_group, bilingual("print a JSON object", "打印一个 JSON 对象"));
  add_quiet(command, options->quiet);
  return [options] { return run_validate(*options); };
}

}  // namespace minimind
