#include "tools/openai/constraint_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/openai/request_error.h"

namespace minimind {
namespace {

// What a field may say of a text.
enum class ConstraintKind : std::uint8_t { schema, any_object, pattern, choice, grammar };

struct ConstraintField {
  std::string_view name;
  ConstraintKind kind;
};

constexpr std::array own_fields{
    ConstraintField{"grammar", ConstraintKind::grammar}, ConstraintField{"guided_json", ConstraintKind::schema},
    ConstraintField{"guided_regex", ConstraintKind::pattern}, ConstraintField{"guided_choice", ConstraintKind::choice},
    ConstraintField{"guided_grammar", ConstraintKind::grammar}};
constexpr std::array fields_of_outputs{
    ConstraintField{"json", ConstraintKind::schema}, ConstraintField{"json_object", ConstraintKind::any_object},
    ConstraintField{"regex", ConstraintKind::pattern}, ConstraintField{"choice", ConstraintKind::choice},
    ConstraintField{"grammar", ConstraintKind::grammar}};
constexpr std::array sglang_fields{ConstraintField{"json_schema", ConstraintKind::schema},
                                   ConstraintField{"regex", ConstraintKind::pattern},
                                   ConstraintField{"ebnf", ConstraintKind::grammar}};

std::shared_ptr<const Grammar> read_json_schema(const ChatJson& format) {
  BodyFields fields(format, "response_format");
  fields.find("type");
  const ChatJson* const given = fields.object("json_schema");
  fields.reject_the_rest();
  BodyFields schema(*given, "response_format.json_schema");
  for (const char* const name : {"name", "description"}) schema.text(name);
  schema.flag("strict");
  schema.find("schema");
  // As an extension, properties that the schema does not name are allowed, too, and any order.
  const bool open = schema.flag("open").value_or(false);
  schema.reject_the_rest();
  const ChatJson& json_schema = given->at("schema");
  const std::string source = "response_format.json_schema.schema";
  return schema_grammar(json_schema, source, open);
}

std::shared_ptr<const Grammar> read_response_format(const BodyFields& body) {
  const ChatJson* const format = body.find("response_format");
  if (!format) return nullptr;
  const ChatJson type = format->is_object() ? format->value("type", ChatJson()) : ChatJson();
  if (type == "text" || type == "json_object") {
    BodyFields fields(*format, "response_format");
    fields.find("type");
    // As llama.cpp's server takes it.
    const ChatJson* const schema = type == "text" ? nullptr : fields.object("schema");
    fields.reject_the_rest();
    if (type == "text") return nullptr;
    return schema ? schema_grammar(*schema, "response_format.schema")
                  : schema_grammar(ChatJson{{"type", "object"}}, "response_format", true);
  }
  const bool has_schema = type == "json_schema" && format->contains("json_schema") &&
                          format->at("json_schema").is_object() && format->at("json_schema").contains("schema");
  if (!has_schema) {
    body.fail("response_format", R"({"type": "text"}, {"type": "json_object"}, or {"type": "json_schema", )"
                                 R"("json_schema": {"schema": ...}})");
  }
  return read_json_schema(*format);
}

// An object, or its text.
std::shared_ptr<const Grammar> read_schema(const BodyFields& fields, const std::string& name) {
  const ChatJson& value = *fields.find(name);
  const std::string source = fields.name_of(name);
  if (value.is_object()) return schema_grammar(value, source);
  if (!value.is_string()) fields.fail(name, "a JSON Schema: an object or its text");
  return schema_grammar(parse_chat_json(value.get_ref<const std::string&>(), source, LargeIntegers::kept), source);
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

}  // namespace

TextConstraint read_constraint(const BodyFields& body, bool chat, TextConstraint given) {
  TextConstraint constraint = std::move(given);
  if (chat) {
    auto format = about("response_format", [&] { return read_response_format(body); });
    // It is the form of a text, which a forced call does not have: that is the constraint that was given.
    if (constraint.field.empty()) use(constraint, std::move(format), "response_format");
  }
  read_fields(body, own_fields, constraint);
  const ChatJson* const outputs = body.object("structured_outputs");
  if (!outputs) return constraint;
  const BodyFields fields(*outputs, "structured_outputs");
  const std::string before = constraint.field;
  read_fields(fields, fields_of_outputs, constraint);
  fields.reject_the_rest();
  if (constraint.field == before && before.empty()) {
    body.fail("structured_outputs", "an object with json, regex, choice or grammar");
  }
  return constraint;
}

std::vector<std::string> constraint_fields() {
  std::vector<std::string> names{"structured_outputs"};
  for (const ConstraintField& field : own_fields) names.emplace_back(field.name);
  return names;
}

TextConstraint read_sglang_constraint(const BodyFields& parameters) {
  TextConstraint constraint;
  read_fields(parameters, sglang_fields, constraint);
  return constraint;
}

}  // namespace minimind
