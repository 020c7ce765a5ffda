#include "tools/openai/constraint_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "tools/openai/request_error.h"

namespace minimind {
namespace {

// What a field may say of a text.
enum class ConstraintKind : std::uint8_t { schema, named_schema, any_object, pattern, choice, grammar };

struct ConstraintField {
  std::string_view name;
  ConstraintKind kind;
};

// The first ones are SGLang's, of which llama.cpp has json_schema, too.
constexpr std::size_t sglang_fields = 3;
constexpr std::array own_fields{ConstraintField{"json_schema", ConstraintKind::schema},
                                ConstraintField{"regex", ConstraintKind::pattern},
                                ConstraintField{"ebnf", ConstraintKind::grammar},
                                ConstraintField{"grammar", ConstraintKind::grammar},
                                ConstraintField{"guided_json", ConstraintKind::schema},
                                ConstraintField{"guided_regex", ConstraintKind::pattern},
                                ConstraintField{"guided_choice", ConstraintKind::choice},
                                ConstraintField{"guided_grammar", ConstraintKind::grammar}};
constexpr std::array fields_of_outputs{
    ConstraintField{"json", ConstraintKind::schema}, ConstraintField{"json_object", ConstraintKind::any_object},
    ConstraintField{"regex", ConstraintKind::pattern}, ConstraintField{"choice", ConstraintKind::choice},
    ConstraintField{"grammar", ConstraintKind::grammar}};
// Of a type of response_format: OpenAI's own field, llama.cpp's `schema`, TGI's `value`, Together's `pattern` and
// Fireworks' `grammar`.
constexpr std::array fields_of_objects{ConstraintField{"schema", ConstraintKind::schema},
                                       ConstraintField{"value", ConstraintKind::schema}};
constexpr std::array fields_of_schemas{ConstraintField{"json_schema", ConstraintKind::named_schema},
                                       ConstraintField{"schema", ConstraintKind::schema},
                                       ConstraintField{"value", ConstraintKind::named_schema}};
constexpr std::array fields_of_patterns{ConstraintField{"value", ConstraintKind::pattern},
                                        ConstraintField{"pattern", ConstraintKind::pattern}};
constexpr std::array fields_of_grammars{ConstraintField{"grammar", ConstraintKind::grammar}};

// An object, or its text.
std::shared_ptr<const Grammar> read_schema(const BodyFields& fields, const std::string& name) {
  const ChatJson& value = *fields.find(name);
  const std::string source = fields.name_of(name);
  if (value.is_object()) return schema_grammar(value, source);
  if (!value.is_string()) fields.fail(name, "a JSON Schema: an object or its text");
  return schema_grammar(parse_chat_json(value.get_ref<const std::string&>(), source, LargeIntegers::kept), source);
}

// A schema with its name, as OpenAI's API has it.
std::shared_ptr<const Grammar> read_named_schema(const BodyFields& format, const std::string& name) {
  const std::string place = format.name_of(name);
  BodyFields schema(*format.object(name), place);
  for (const char* const its : {"name", "description"}) schema.text(its);
  schema.flag("strict");
  // As an extension, properties that the schema does not name are allowed, too, and any order.
  const bool open = schema.flag("open").value_or(false);
  const ChatJson& json_schema = schema.required("schema");
  schema.reject_the_rest();
  return schema_grammar(json_schema, place + ".schema", open);
}

std::shared_ptr<const Grammar> read_texts(const BodyFields& fields, const std::string& name) {
  const ChatJson& value = *fields.find(name);
  const auto is_text = [](const ChatJson& text) { return text.is_string(); };
  if (!value.is_array() || value.empty() || !std::ranges::all_of(value, is_text)) {
    fields.fail(name, "a list of one or more strings");
  }
  return choice_grammar_of(value.get<std::vector<std::string>>(), fields.name_of(name));
}

std::shared_ptr<const Grammar> read_field(const BodyFields& fields, const std::string& name, ConstraintKind kind) {
  switch (kind) {
    case ConstraintKind::schema:
      return read_schema(fields, name);
    case ConstraintKind::named_schema:
      return read_named_schema(fields, name);
    case ConstraintKind::any_object:
      fields.require(name, true);
      return schema_grammar(ChatJson{{"type", "object"}}, fields.name_of(name), true);
    case ConstraintKind::choice:
      return read_texts(fields, name);
    case ConstraintKind::pattern:
      return regex_grammar(*fields.text(name), fields.name_of(name));
    case ConstraintKind::grammar:
      break;
  }
  return gbnf_grammar(*fields.text(name), fields.name_of(name));
}

void use(TextConstraint& constraint, std::shared_ptr<const Grammar> grammar, const std::string& field) {
  if (!grammar) return;
  if (!constraint.field.empty()) {
    throw RequestError(
        fmt::format("{} and {} both constrain the answer, expected one of them", constraint.field, field), field);
  }
  constraint = {std::move(grammar), field};
}

void read_fields(const BodyFields& fields, std::span<const ConstraintField> names, TextConstraint& constraint) {
  for (const auto& [name_of_field, kind] : names) {
    const std::string name(name_of_field);
    if (!fields.find(name)) continue;
    const std::string field = fields.name_of(name);
    use(constraint, about(field, [&, kind = kind] { return read_field(fields, name, kind); }), field);
  }
}

std::span<const ConstraintField> fields_of_format(std::string_view type) {
  if (type == "json_object" || type == "json") return fields_of_objects;
  if (type == "json_schema") return fields_of_schemas;
  if (type == "grammar") return fields_of_grammars;
  return type == "regex" ? std::span<const ConstraintField>(fields_of_patterns) : std::span<const ConstraintField>();
}

std::shared_ptr<const Grammar> grammar_of_format(const BodyFields& body, const std::string& name) {
  const ChatJson* const format = body.object(name);
  if (!format) return nullptr;
  const BodyFields fields(*format, body.name_of(name));
  const std::string type = fields.text("type").value_or("");
  TextConstraint given;
  read_fields(fields, fields_of_format(type), given);
  if (type == "json_object" && !given.grammar) {
    given.grammar = schema_grammar(ChatJson{{"type", "object"}}, fields.where(), true);
  }
  if (type != "text" && !given.grammar) {
    body.fail(name, R"({"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "json_schema": )"
                    R"({"schema": ...}}, {"type": "regex", "pattern": ...} or {"type": "grammar", "grammar": ...})");
  }
  fields.reject_the_rest();
  return given.grammar;
}

}  // namespace

TextConstraint read_constraint(const BodyFields& body, bool chat, TextConstraint given) {
  TextConstraint constraint = std::move(given);
  if (chat) {
    auto format = read_format(body, "response_format");
    // It is the form of a text, which a forced call does not have: that is the constraint that was given.
    if (constraint.field.empty()) use(constraint, std::move(format), "response_format");
  }
  read_fields(body, own_fields, constraint);
  const ChatJson* const outputs = body.object("structured_outputs");
  if (!outputs) return constraint;
  const BodyFields fields(*outputs, "structured_outputs");
  read_fields(fields, fields_of_outputs, constraint);
  fields.reject_the_rest();
  if (constraint.field.empty()) {
    body.fail("structured_outputs", "an object with json, regex, choice or grammar");
  }
  return constraint;
}

std::vector<std::string> constraint_fields() {
  std::vector<std::string> names{"structured_outputs"};
  for (const ConstraintField& field : own_fields) names.emplace_back(field.name);
  return names;
}

std::shared_ptr<const Grammar> read_format(const BodyFields& body, const std::string& name) {
  return about(body.name_of(name), [&] { return grammar_of_format(body, name); });
}

TextConstraint read_sglang_constraint(const BodyFields& parameters) {
  TextConstraint constraint;
  read_fields(parameters, std::span(own_fields).first(sglang_fields), constraint);
  return constraint;
}

}  // namespace minimind
