#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "runtime/text/utf8.h"

namespace minimind {

// Random JSON Schemas, and a validator of the keywords that they use, written from the standard and nothing else.
class RandomSchema {
 public:
  using Json = nlohmann::ordered_json;

  explicit RandomSchema(unsigned seed) : random_(seed) {}

  Json make() {
    Json schema = any(3);
    schema["$defs"] = {{"list", Json::parse(R"({"type":"object","properties":{"head":{"type":"integer"},
        "tail":{"anyOf":[{"$ref":"#/$defs/list"},{"type":"null"}]}},"required":["head","tail"]})")}};
    return schema;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return below(100) < percent; }

  Json any(int depth) {
    switch (below(depth > 0 ? 12 : 6)) {
      case 0:
        return {{"type", chance(50) ? "boolean" : "null"}};
      case 1:
        return {{"enum", Json::array({1, "绿", nullptr, 2.5, "q\"\\\n"})}};
      case 2:
        return {{"const", chance(50) ? Json{{"k", Json::array({1, true})}} : Json("const")}};
      case 3:
        return number();
      case 4:
        return string();
      case 5:
        return {{"type", Json::array({"integer", "string"})}, {"maxLength", 3}, {"maximum", 7}};
      case 6:
        return {{"anyOf", Json::array({any(depth - 1), any(depth - 1)})}};
      case 7:
        return {{"$ref", "#/$defs/list"}};
      case 8:
      case 9:
        return array(depth);
      default:
        return object(depth);
    }
  }

  Json number() {
    Json schema{{"type", chance(50) ? "integer" : "number"}};
    const int low = below(2000) - 1000;
    if (chance(60)) schema[chance(50) ? "minimum" : "exclusiveMinimum"] = low;
    if (chance(60)) schema[chance(50) ? "maximum" : "exclusiveMaximum"] = low + 2 + below(300);
    return schema;
  }

  Json string() {
    Json schema{{"type", "string"}};
    const int min = below(4);
    if (chance(50)) schema["minLength"] = min;
    if (chance(70)) schema["maxLength"] = min + below(8);
    return schema;
  }

  Json array(int depth) {
    Json schema{{"type", "array"}};
    const int min = below(3);
    if (chance(30)) {
      schema["prefixItems"] = Json::array({any(depth - 1)});
    } else {
      schema["items"] = any(depth - 1);
    }
    if (chance(50)) schema["minItems"] = min;
    if (chance(70)) schema["maxItems"] = min + 1 + below(3);
    return schema;
  }

  Json object(int depth) {
    Json schema{{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
    for (const char* name : {"a", "名", "two words", "q\"", "ab"}) {
      if (chance(40)) schema["properties"][name] = any(depth - 1);
      if (chance(50) && schema["properties"].contains(name)) schema["required"].push_back(name);
    }
    if (chance(40)) schema["additionalProperties"] = chance(50) ? Json(false) : any(depth - 1);
    return schema;
  }

  std::mt19937 random_;
};

class SchemaValidator {
 public:
  using Json = nlohmann::ordered_json;

  explicit SchemaValidator(const Json& root) : root_(root) {}

  bool valid(const Json& value, const Json& schema) const {
    if (schema.is_boolean()) return schema.get<bool>();
    return std::all_of(schema.items().begin(), schema.items().end(),
                       [&](const auto& item) { return keyword_holds(value, schema, item.key(), item.value()); });
  }

 private:
  static bool is(const Json& value, const std::string& type) {
    if (type == "integer") return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
    if (type == "number") return value.is_number();
    return value.type_name() == type;
  }

  static std::size_t characters(const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = 0; at < text.size(); ++count) at += first_utf8(std::string_view(text).substr(at)).size;
    return count;
  }

  bool keyword_holds(const Json& value, const Json& schema, const std::string& name, const Json& wanted) const {
    const auto among = [](const Json& array, const Json& element) {
      return std::find(array.begin(), array.end(), element) != array.end();
    };
    const auto holds = [&](const Json& part) { return valid(value, part); };
    if (name == "$defs") return true;
    if (name == "$ref") return valid(value, root_["$defs"]["list"]);
    if (name == "enum") return among(wanted, value);
    if (name == "const") return value == wanted;
    if (name == "anyOf") return std::any_of(wanted.begin(), wanted.end(), holds);
    if (name == "type") {
      if (wanted.is_string()) return is(value, wanted);
      return std::any_of(wanted.begin(), wanted.end(), [&](const Json& type) { return is(value, type); });
    }
    if (value.is_number()) return number_holds(value, name, wanted);
    if (value.is_string()) {
      const std::size_t length = characters(value.get<std::string>());
      return (name != "minLength" || length >= wanted) && (name != "maxLength" || length <= wanted);
    }
    if (value.is_array()) return array_holds(value, name, wanted);
    if (value.is_object()) return object_holds(value, schema, name, wanted);
    return true;
  }

  static bool number_holds(const Json& value, const std::string& name, const Json& wanted) {
    return (name != "minimum" || value >= wanted) && (name != "maximum" || value <= wanted) &&
           (name != "exclusiveMinimum" || value > wanted) && (name != "exclusiveMaximum" || value < wanted);
  }

  bool array_holds(const Json& value, const std::string& name, const Json& wanted) const {
    if (name == "minItems") return value.size() >= wanted;
    if (name == "maxItems") return value.size() <= wanted;
    if (name == "items") {
      return std::all_of(value.begin(), value.end(), [&](const Json& item) { return valid(item, wanted); });
    }
    return name != "prefixItems" || value.empty() || valid(value[0], wanted[0]);
  }

  bool object_holds(const Json& value, const Json& schema, const std::string& name, const Json& wanted) const {
    const auto items = value.items();
    if (name == "required") {
      return std::all_of(wanted.begin(), wanted.end(),
                         [&](const Json& key) { return value.contains(key.get<std::string>()); });
    }
    if (name == "properties") {
      return std::all_of(items.begin(), items.end(), [&](const auto& item) {
        return !wanted.contains(item.key()) || valid(item.value(), wanted[item.key()]);
      });
    }
    return name != "additionalProperties" || std::all_of(items.begin(), items.end(), [&](const auto& item) {
             return schema["properties"].contains(item.key()) || valid(item.value(), wanted);
           });
  }

  const Json& root_;
};

}  // namespace minimind
