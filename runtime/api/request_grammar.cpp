#include "runtime/api/request_grammar.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "runtime/api/structures.h"
#include "runtime/chat/chat_json.h"
#include "runtime/grammar/gbnf.h"
#include "runtime/json_schema/json_schema.h"
#include "runtime/json_schema/text_grammar.h"
#include "runtime/text/utf8.h"
#include "weights/base/error.h"

namespace minimind {

std::vector<std::string> texts_of(const char* const* given, std::size_t count, const char* name) {
  std::vector<std::string> texts;
  for (const char* const each : input(given, count, name)) {
    const std::string text = &required(each, name);
    if (text.empty()) throw UsageError(fmt::format("{} has an empty string, expected text", name));
    if (!is_utf8(text)) throw UsageError(fmt::format("{} has a string that is not UTF-8", name));
    texts.push_back(text);
  }
  return texts;
}

std::shared_ptr<const Grammar> grammar_of(const minimind_request& request, std::string& notes) {
  if (!!request.grammar + !!request.json_schema + !!request.regex + (request.choice_count > 0) > 1) {
    throw UsageError("several constraints are given, expected one of grammar, json_schema, regex and choices");
  }
  if (request.regex) {
    const std::string_view pattern = input_text(request.regex, request.regex_size, "regex");
    return std::make_shared<const Grammar>(pattern_grammar(pattern, "the regular expression"));
  }
  if (request.choice_count > 0) {
    return std::make_shared<const Grammar>(
        choice_grammar(texts_of(request.choices, request.choice_count, "choices"), "choices"));
  }
  if (request.grammar) {
    return std::make_shared<const Grammar>(
        parse_grammar(input_text(request.grammar, request.grammar_size, "grammar"), "the grammar"));
  }
  if (!request.json_schema) return nullptr;
  const std::string source = "the JSON Schema";
  const ChatJson schema = parse_chat_json(input_text(request.json_schema, request.json_schema_size, "json_schema"),
                                          source, LargeIntegers::kept);
  JsonSchemaGrammar made = compile_json_schema(schema, source, {.closed = request.open_schema == 0, .references = {}});
  for (const std::string& keyword : made.ignored) {
    notes +=
        fmt::format("{}{}: ignored, because it says nothing about what is valid", notes.empty() ? "" : "\n", keyword);
  }
  return std::make_shared<const Grammar>(std::move(made.grammar));
}

}  // namespace minimind
