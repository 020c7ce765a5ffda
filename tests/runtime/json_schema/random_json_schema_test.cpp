#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "runtime/grammar/state.h"
#include "runtime/json_schema/json_schema.h"
#include "tests/support/cases.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using SchemaValue = nlohmann::ordered_json;

// Random schemas of every keyword, and random values, versus a naive validator.
class RandomSchemas {
 public:
  explicit RandomSchemas(unsigned seed) : random_(seed) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  SchemaValue value(int depth = 0) {
    switch (below(depth < 3 ? 8 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return below(10) - 3;
      case 3:
        return (below(24) - 6) / 4.0;
      case 4:
      case 5:
        return text();
      case 6: {
        SchemaValue array = SchemaValue::array();
        for (int i = below(4); i > 0; --i) array.push_back(value(depth + 1));
        return array;
      }
      default: {
        SchemaValue object = SchemaValue::object();
        for (int i = below(4); i > 0; --i) object[name()] = value(depth + 1);
        return object;
      }
    }
  }

  SchemaValue schema(int depth = 0) {
    if (depth > 2 || below(12) == 0) {
      static const std::array<SchemaValue, 5> simple{
          true, false, SchemaValue::object(), {{"type", "integer"}}, {{"type", "string"}}};
      return simple[static_cast<std::size_t>(below(5))];
    }
    SchemaValue result = SchemaValue::object();
    for (int i = 1 + below(3); i > 0; --i) add_keyword(result, depth);
    return result;
  }

 private:
  std::string name() { return std::array{"a", "b", "ab"}[static_cast<std::size_t>(below(3))]; }

  std::string text() {
    std::string result;
    for (int i = below(4); i > 0; --i) result += std::array{"a", "b", "é", "\""}[static_cast<std::size_t>(below(4))];
    return result;
  }

  SchemaValue schemas(int depth) {
    SchemaValue result = SchemaValue::array();
    for (int i = 1 + below(3); i > 0; --i) result.push_back(schema(depth + 1));
    return result;
  }

  void add_keyword(SchemaValue& result, int depth) {
    static const std::array type_names{"object", "array", "string", "number", "integer", "boolean", "null"};
    static const std::array counts{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"};
    static const std::array bounds{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
    static const std::array parts{"items", "contains", "additionalProperties", "not", "propertyNames"};
    static const std::array lists{"allOf", "anyOf", "oneOf", "prefixItems"};
    const auto any = [&](const auto& names) {
      return names[static_cast<std::size_t>(below(static_cast<int>(names.size())))];
    };
    switch (below(13)) {
      case 0:
      case 1:
        result["type"] = any(type_names);
        return;
      case 2:
        result["enum"] = {value(1), value(1), value(1)};
        return;
      case 3:
        result["const"] = value(1);
        return;
      case 4:
        result[any(bounds)] = (below(12) - 4) / 2.0;
        return;
      case 5:
        result["multipleOf"] = 1 + below(3);
        return;
      case 6:
        result[any(counts)] = below(4);
        return;
      case 7:
        result[any(parts)] = schema(depth + 1);
        return;
      case 8:
        result[any(lists)] = schemas(depth);
        return;
      case 9:
        result["properties"][name()] = schema(depth + 1);
        return;
      case 10:
        result["required"] = {name()};
        return;
      case 11:
        result["uniqueItems"] = true;
        return;
      default:
        result["if"] = schema(depth + 1);
        result["then"] = schema(depth + 1);
        result["dependentRequired"][name()] = {name()};
    }
  }

  std::mt19937 random_;
};

bool is_valid(const SchemaValue& value, const SchemaValue& schema);

bool is_of_type(const SchemaValue& value, const std::string& type) {
  if (type == "integer") return value.is_number() && value.get<double>() == std::floor(value.get<double>());
  return type == value.type_name();
}

std::size_t characters(const SchemaValue& value) {
  const std::string text = value.get<std::string>();
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Objects are equal in any order of their names.
bool are_equal(const SchemaValue& a, const SchemaValue& b) {
  return nlohmann::json::parse(a.dump()) == nlohmann::json::parse(b.dump());
}

bool is_valid_number(double number, const std::string& keyword, double limit) {
  if (keyword == "minimum") return number >= limit;
  if (keyword == "maximum") return number <= limit;
  if (keyword == "exclusiveMinimum") return number > limit;
  if (keyword == "exclusiveMaximum") return number < limit;
  return keyword != "multipleOf" || std::fmod(number, limit) == 0;
}

bool is_valid_array(const SchemaValue& array, const std::string& keyword, const SchemaValue& rule,
                    const SchemaValue& schema) {
  const std::size_t prefix = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (keyword == "prefixItems" && i < prefix && !is_valid(array[i], rule[i])) return false;
    if (keyword == "items" && i >= prefix && !is_valid(array[i], rule)) return false;
    for (std::size_t k = 0; keyword == "uniqueItems" && k < i; ++k) {
      if (are_equal(array[i], array[k])) return false;
    }
  }
  if (keyword == "minItems") return array.size() >= rule;
  if (keyword == "maxItems") return array.size() <= rule;
  return keyword != "contains" ||
         std::any_of(array.begin(), array.end(), [&](const SchemaValue& item) { return is_valid(item, rule); });
}

bool is_valid_object(const SchemaValue& object, const std::string& keyword, const SchemaValue& rule,
                     const SchemaValue& schema) {
  for (const auto& [name, value] : object.items()) {
    const bool named = schema.contains("properties") && schema["properties"].contains(name);
    if (keyword == "properties" && rule.contains(name) && !is_valid(value, rule[name])) return false;
    if (keyword == "additionalProperties" && !named && !is_valid(value, rule)) return false;
    if (keyword == "propertyNames" && !is_valid(name, rule)) return false;
    if (keyword == "dependentRequired" && rule.contains(name) && !object.contains(rule[name][0].get<std::string>())) {
      return false;
    }
  }
  if (keyword == "required") return object.contains(rule[0].get<std::string>());
  if (keyword == "minProperties") return object.size() >= rule;
  return keyword != "maxProperties" || object.size() <= rule;
}

bool is_valid_logic(const SchemaValue& value, const std::string& keyword, const SchemaValue& rule,
                    const SchemaValue& schema) {
  if (keyword == "not") return !is_valid(value, rule);
  if (keyword == "if") return !is_valid(value, rule) || is_valid(value, schema["then"]);
  if (keyword == "enum") {
    return std::any_of(rule.begin(), rule.end(), [&](const SchemaValue& one) { return are_equal(value, one); });
  }
  if (keyword == "const") return are_equal(value, rule);
  if (keyword == "type") return is_of_type(value, rule.get<std::string>());
  if (keyword != "allOf" && keyword != "anyOf" && keyword != "oneOf") return true;
  const auto count = static_cast<std::size_t>(
      std::count_if(rule.begin(), rule.end(), [&](const SchemaValue& part) { return is_valid(value, part); }));
  return keyword == "allOf" ? count == rule.size() : keyword == "anyOf" ? count > 0 : count == 1;
}

bool is_valid(const SchemaValue& value, const SchemaValue& schema) {
  if (schema.is_boolean()) return schema.get<bool>();
  return std::all_of(schema.items().begin(), schema.items().end(), [&](const auto& item) {
    const auto& [keyword, rule] = std::pair<std::string, SchemaValue>(item.key(), item.value());
    if (!is_valid_logic(value, keyword, rule, schema)) return false;
    if (value.is_number() && rule.is_number() && !is_valid_number(value.get<double>(), keyword, rule.get<double>())) {
      return false;
    }
    if (value.is_string() && keyword == "minLength") return characters(value) >= rule;
    if (value.is_string() && keyword == "maxLength") return characters(value) <= rule;
    if (value.is_array()) return is_valid_array(value, keyword, rule, schema);
    return !value.is_object() || is_valid_object(value, keyword, rule, schema);
  });
}

TEST(RandomJsonSchema, AcceptsExactlyTheValidValues) {
  for (unsigned seed = 0; seed < cases(400); ++seed) {
    RandomSchemas random(seed);
    const SchemaValue schema = random.schema();
    std::vector<SchemaValue> values;
    for (int i = 0; i < 20; ++i) values.push_back(random.value());
    std::shared_ptr<const Grammar> grammar;
    try {
      grammar = std::make_shared<const Grammar>(compile_json_schema(schema, "random").grammar);
    } catch (const Error& error) {
      ASSERT_NE(std::string(error.what()).find("no value is valid"), std::string::npos) << schema << error.what();
    }
    for (const SchemaValue& value : values) {
      // Arrays with repeated items are not told apart where uniqueItems must not hold.
      bool accepted = false;
      if (grammar) {
        GrammarState state(grammar);
        accepted = state.advance(value.dump()) && state.may_end();
      }
      const bool valid = is_valid(value, schema);
      const bool under_not = schema.dump().find("uniqueItems") != std::string::npos;
      ASSERT_TRUE(accepted == valid || (valid && under_not)) << schema << "\n" << value << "\nseed " << seed;
    }
  }
}

// Every byte that may follow leads on: a random text ends, and is valid.
TEST(RandomJsonSchema, RandomTextsEndAndAreValid) {
  for (unsigned seed = 0; seed < cases(150); ++seed) {
    RandomSchemas random(1000 + seed);
    const SchemaValue schema = random.schema();
    std::shared_ptr<const Grammar> grammar;
    try {
      grammar = std::make_shared<const Grammar>(compile_json_schema(schema, "random").grammar);
    } catch (const Error&) {
      continue;
    }
    GrammarState state(grammar);
    std::string text;
    for (int i = 0; i < 60 || !state.may_end(); ++i) {
      ASSERT_LT(text.size(), std::size_t{400}) << schema << "\n" << text;
      std::vector<char> next;
      for (int c = 0; c < 256; ++c) {
        const char byte = static_cast<char>(c);
        if (!state.allows({&byte, 1})) continue;
        next.push_back(byte);
      }
      if (next.empty()) break;
      // After a while, towards the end of the text.
      char chosen = next[static_cast<std::size_t>(random.below(static_cast<int>(next.size())))];
      if (i >= 30) {
        std::uint64_t least = Grammar::longest_text + 1;
        for (const char byte : next) {
          GrammarState other(grammar);
          ASSERT_TRUE(other.advance(text + byte)) << schema << text;
          if (other.bytes_to_end() < least) chosen = byte;
          least = std::min(least, other.bytes_to_end());
        }
      }
      if (i >= 30 && state.may_end()) break;
      state.advance({&chosen, 1});
      text += chosen;
    }
    ASSERT_TRUE(state.may_end()) << schema << "\n" << text;
    ASSERT_TRUE(is_valid(SchemaValue::parse(text), schema)) << schema << "\n" << text;
  }
}

}  // namespace
}  // namespace minimind
