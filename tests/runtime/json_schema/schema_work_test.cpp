#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/grammar/gbnf.h"
#include "runtime/grammar/state.h"
#include "runtime/grammar/token_trie.h"
#include "runtime/grammar/work.h"
#include "runtime/json_schema/json_schema.h"
#include "runtime/json_schema/schema_cache.h"
#include "runtime/text/utf8.h"
#include "tests/support/cpu_seconds.h"
#include "tests/support/linear_time.h"
#include "tests/support/peak_memory.h"
#include "weights/base/cancel.h"

namespace minimind {
namespace {

using Json = nlohmann::ordered_json;
using Make = std::function<Json(std::size_t size)>;

// A schema of one construct, as large as `size` says.
struct Construct {
  std::string name;
  std::size_t size;
  Make make;
};

std::string name_of(std::size_t i, const char* start = "n") {
  return start + std::to_string(i);
}

Json list(std::size_t size, const std::function<Json(std::size_t)>& element) {
  Json result = Json::array();
  for (std::size_t i = 0; i < size; ++i) result.push_back(element(i));
  return result;
}

Json object(std::size_t size, const std::function<Json(std::size_t)>& value, const char* start = "n") {
  Json result = Json::object();
  // operator[] of an ordered object compares with every key before it.
  auto& members = result.get_ref<Json::object_t&>();
  for (std::size_t i = 0; i < size; ++i) members.Json::object_t::Container::emplace_back(name_of(i, start), value(i));
  return result;
}

Json all_of(std::size_t size, const std::function<Json(std::size_t)>& part) {
  return {{"allOf", list(size, part)}};
}

Json any_of(std::size_t size, const std::function<Json(std::size_t)>& part) {
  return {{"anyOf", list(size, part)}};
}

Json one_of(std::size_t size, const std::function<Json(std::size_t)>& part) {
  return {{"oneOf", list(size, part)}};
}

Json text(const std::string& pattern) {
  return {{"type", "string"}, {"pattern", pattern}};
}

// Chains of definitions, each of which names the next one.
Json chain(std::size_t size, const std::function<Json(const Json& next)>& link) {
  Json schema{{"$ref", "#/$defs/n0"}};
  schema["$defs"] = object(size, [&](std::size_t i) {
    return i + 1 < size ? link({{"$ref", "#/$defs/" + name_of(i + 1)}}) : Json{{"type", "string"}};
  });
  return schema;
}

std::vector<Construct> constructs_of_values() {
  const auto number = [](std::size_t i) { return Json(i * 7919 % 100'003); };
  const auto constant = [](std::size_t i) { return Json{{"const", i}}; };
  return {
      {"enum of numbers", 5000,
       [=](std::size_t n) {
         return Json{{"enum", list(n, number)}};
       }},
      {"enum of fractions", 1000,
       [](std::size_t n) {
         return Json{{"enum", list(n, [](std::size_t i) { return Json(double(i) / 7); })}};
       }},
      {"enum of strings", 2000,
       [](std::size_t n) {
         return Json{{"enum", list(n, [](std::size_t i) { return Json(name_of(i)); })}};
       }},
      {"enum of objects", 500,
       [](std::size_t n) {
         return Json{{"enum", list(n, [](std::size_t i) { return Json{{"a", i}}; })}};
       }},
      {"not enum", 5000,
       [=](std::size_t n) {
         return Json{{"not", {{"enum", list(n, number)}}}};
       }},
      {"anyOf const", 100, [=](std::size_t n) { return any_of(n, constant); }},
      {"anyOf const of many", 5000, [=](std::size_t n) { return any_of(n, constant); }},
      {"not oneOf of constants", 1000,
       [=](std::size_t n) {
         return Json{{"not", one_of(n, constant)}};
       }},
      {"not oneOf of properties", 1000,
       [](std::size_t n) {
         return Json{{"not", one_of(n, [](std::size_t i) {
                        return Json{{"properties", {{name_of(i), {{"const", i}}}}}};
                      })}};
       }},
      {"not anyOf of constants", 2500,
       [=](std::size_t n) {
         return Json{{"not", any_of(n, constant)}};
       }},
      {"not not oneOf of constants", 1000,
       [=](std::size_t n) {
         return Json{{"not", {{"not", one_of(n, constant)}}}};
       }},
      {"not oneOf of enums", 100,
       [=](std::size_t n) {
         return Json{{"not", one_of(n, [=](std::size_t) { return Json{{"enum", list(n, number)}}; })}};
       }},
      {"not oneOf of oneOf", 60,
       [=](std::size_t n) {
         return Json{{"not", one_of(n, [=](std::size_t) { return Json{{"not", one_of(n, constant)}}; })}};
       }},
      {"allOf not const", 500,
       [=](std::size_t n) { return all_of(n, [](std::size_t i) {
                              return Json{{"not", {{"const", i}}}};
                            }); }},
      {"oneOf const of many", 1000, [=](std::size_t n) { return one_of(n, constant); }},
      {"anyOf minimum", 50,
       [](std::size_t n) {
         return any_of(n, [](std::size_t i) { return Json{{"type", "number"}, {"minimum", static_cast<double>(i)}}; });
       }},
      {"large exponents", 50,
       [](std::size_t n) {
         const auto bound = [](std::size_t i) { return Json{{"minimum", std::stod("1e" + std::to_string(i % 300))}}; };
         return Json{{"type", "object"}, {"properties", object(n, bound)}};
       }},
      {"allOf multipleOf", 20,
       [](std::size_t n) { return all_of(n, [](std::size_t i) {
                             return Json{{"multipleOf", i + 3}};
                           }); }},
      {"multipleOf of properties", 5,
       [](std::size_t n) {
         const auto multiple = [](std::size_t i) { return Json{{"type", "number"}, {"multipleOf", 1000 + i}}; };
         return Json{{"type", "object"},
                     {"required", list(n, [](std::size_t i) { return name_of(i); })},
                     {"properties", object(n, multiple)}};
       }},
      {"maxLength next to a pattern", 20'000,
       [](std::size_t n) {
         return Json{{"type", "string"}, {"pattern", "^[a-z]+@[a-z]+$"}, {"maxLength", n}};
       }},
      {"minLength next to a pattern", 20'000,
       [](std::size_t n) {
         return Json{{"type", "string"}, {"pattern", "^[a-z]*$"}, {"minLength", n}, {"maxLength", 2 * n}};
       }},
  };
}

std::vector<Construct> constructs_of_patterns() {
  const auto repeated = [](const std::string& part) {
    return [=](std::size_t n) {
      std::string pattern;
      for (std::size_t i = 0; i < n; ++i) pattern += part;
      return text(pattern);
    };
  };
  return {
      {"anyOf pattern", 25,
       [](std::size_t n) { return any_of(n, [](std::size_t i) { return text(fmt::format("^[a-z]{{20}}x{}", i)); }); }},
      {"allOf pattern", 100, [](std::size_t n) { return all_of(n, [](std::size_t i) { return text(name_of(i)); }); }},
      {"repetition", 5000, [](std::size_t n) { return text(fmt::format("^(ab){{{}}}$", n)); }},
      {"repetition of repetitions", 500, [](std::size_t n) { return text(fmt::format("^((a{{{}}})b){{{}}}$", n, n)); }},
      {"ambiguous repetition", 2000, [](std::size_t n) { return text(fmt::format("^(a|ab|b){{0,{}}}$", n)); }},
      {"exponential automaton", 10, [](std::size_t n) { return text(fmt::format("^.*a.{{{}}}$", n)); }},
      {"look-ahead", 2000, [=](std::size_t n) { return repeated("(?=.*a.*b)")(n); }},
      {"category", 2000, repeated("\\p{L}")},
      {"words", 500,
       [](std::size_t n) {
         std::string pattern;
         for (std::size_t i = 0; i < n; ++i) pattern += (i > 0 ? "|" : "") + name_of(i * 7919 % 100'003);
         return text("^(" + pattern + ")$");
       }},
      {"set of many categories", 1000,
       [](std::size_t n) {
         std::string set;
         for (std::size_t i = 0; i < n; ++i) set += "\\p{L}";
         return text("[" + set + "]");
       }},
  };
}

std::vector<Construct> constructs_of_objects() {
  const auto string = [](std::size_t) { return Json{{"type", "string"}}; };
  const auto name = [](std::size_t i) { return Json(name_of(i)); };
  return {
      {"properties", 2000,
       [=](std::size_t n) {
         return Json{{"type", "object"}, {"properties", object(n, string)}};
       }},
      {"required", 2000,
       [=](std::size_t n) {
         return Json{{"type", "object"}, {"properties", object(n, string)}, {"required", list(n, name)}};
       }},
      {"maxProperties", 2000,
       [=](std::size_t n) {
         return Json{{"type", "object"}, {"properties", object(n, string)}, {"maxProperties", 5}};
       }},
      {"patternProperties", 500,
       [=](std::size_t n) {
         return Json{{"type", "object"}, {"patternProperties", object(n, string)}};
       }},
      {"properties and patternProperties", 500,
       [=](std::size_t n) {
         return Json{
             {"type", "object"}, {"properties", object(n, string)}, {"patternProperties", object(n, string, "")}};
       }},
      {"propertyNames", 2000,
       [=](std::size_t n) {
         return Json{{"type", "object"}, {"propertyNames", {{"enum", list(n, name)}}}, {"minProperties", 2}};
       }},
      {"long name", 20'000,
       [=](std::size_t n) {
         return Json{{"properties", {{std::string(n, 'k'), {{"properties", object(n / 20, string)}}}}}};
       }},
      {"dependentRequired", 2000,
       [=](std::size_t n) {
         return Json{{"type", "object"},
                     {"dependentRequired", object(n, [=](std::size_t i) { return Json{name_of(i, "b")}; })}};
       }},
      {"unevaluatedProperties", 50,
       [=](std::size_t n) {
         Json schema = all_of(n, [=](std::size_t i) { return Json{{"properties", {{name_of(i), string(i)}}}}; });
         schema["unevaluatedProperties"] = false;
         return schema;
       }},
      {"keywords that are ignored", 2000, [=](std::size_t n) { return object(n, string); }},
      {"references", 2000, [](std::size_t n) { return chain(n, [](const Json& next) { return next; }); }},
      {"references of references", 30'000,
       [](std::size_t n) { return chain(n, [](const Json& next) { return next; }); }},
      {"required references", 500,
       [](std::size_t n) {
         return chain(n, [](const Json& next) {
           return Json{{"type", "object"}, {"required", {"a"}}, {"properties", {{"a", next}}}};
         });
       }},
      {"allOf references", 2000,
       [](std::size_t n) {
         Json schema = all_of(n, [](std::size_t i) { return Json{{"$ref", "#/$defs/" + name_of(i)}}; });
         schema["$defs"] = object(n, [](std::size_t) { return Json{{"minimum", 1}}; });
         return schema;
       }},
  };
}

std::vector<Construct> constructs_of_alternatives() {
  const auto required = [](std::size_t i) { return Json{{"type", "object"}, {"required", {name_of(i)}}}; };
  return {
      {"oneOf that overlap", 500, [=](std::size_t n) { return one_of(n, required); }},
      {"oneOf with a discriminator", 1000,
       [](std::size_t n) {
         return one_of(n, [](std::size_t i) {
           return Json{{"type", "object"}, {"properties", {{"k", {{"const", i}}}}}, {"required", {"k"}}};
         });
       }},
      {"oneOf that are recursive", 16,
       [](std::size_t n) {
         Json schema{{"$ref", "#/$defs/r"}};
         schema["$defs"]["r"] = one_of(n, [](std::size_t i) {
           return Json{{"properties", {{"t", {{"$ref", "#/$defs/r"}}}, {name_of(i), {{"type", "string"}}}}},
                       {"required", {name_of(i)}}};
         });
         return schema;
       }},
      {"anyOf in allOf", 500,
       [=](std::size_t n) {
         return all_of(n, [=](std::size_t i) { return Json{{"anyOf", {required(i), required(i + 1'000'000)}}}; });
       }},
      {"if", 500,
       [=](std::size_t n) {
         return all_of(n, [=](std::size_t i) { return Json{{"if", required(i)}, {"then", required(i + 1'000'000)}}; });
       }},
      {"contains", 100,
       [](std::size_t n) {
         return Json{{"type", "array"}, {"allOf", list(n, [](std::size_t i) {
                                           return Json{{"contains", {{"const", i}}}};
                                         })}};
       }},
      {"minContains", 1000,
       [](std::size_t n) {
         return Json{{"type", "array"}, {"allOf", list(3, [=](std::size_t i) {
                                           return Json{{"contains", {{"const", i}}}, {"minContains", n}};
                                         })}};
       }},
      {"uniqueItems", 2000,
       [](std::size_t n) {
         return Json{{"type", "array"},
                     {"uniqueItems", true},
                     {"minItems", 3},
                     {"items", {{"enum", list(n, [](std::size_t i) { return Json(i); })}}}};
       }},
      {"prefixItems", 1000,
       [](std::size_t n) {
         return Json{{"type", "array"}, {"minItems", n}, {"prefixItems", list(n, [](std::size_t i) {
                                                            return Json{{"const", i}};
                                                          })}};
       }},
  };
}

std::string repeated(const std::string& part, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += part;
  return result;
}

// Parts each of which is worked on together with another long one.
std::vector<Construct> constructs_of_long_parts() {
  const auto under_long_id = [](std::size_t n, const char* keyword) {
    return Json{{"$id", "http://x/" + repeated("a/", 5 * n)}, {"$defs", object(n, [=](std::size_t i) {
                                                                 return Json{{keyword, name_of(i % 100)}};
                                                               })}};
  };
  const auto either = [](std::size_t i) {
    return Json{{"anyOf", {{{"required", {name_of(i)}}}, {{"required", {name_of(i, "m")}}}}}};
  };
  return {
      {"$id within a long $id", 4000, [=](std::size_t n) { return under_long_id(n, "$id"); }},
      {"$ref within a long $id", 4000,
       [=](std::size_t n) {
         Json schema = under_long_id(n, "$ref");
         schema["prefixItems"] = list(n, [](std::size_t) { return Json{{"$ref", "n0"}}; });
         schema["$defs"]["n0"] = {{"$id", "n0"}};
         return schema;
       }},
      {"$anchor next to $id", 3000,
       [](std::size_t n) {
         Json schema{{"$defs", object(n, [](std::size_t i) { return Json{{"$anchor", name_of(i)}}; })}};
         schema["$defs"]["ids"] = {{"prefixItems", list(n, [](std::size_t i) {
                                      return Json{{"$id", name_of(i, "u")}};
                                    })}};
         return schema;
       }},
      {"$dynamicRef next to $id", 3000,
       [](std::size_t n) {
         Json schema{{"prefixItems", list(n, [](std::size_t) { return Json{{"$dynamicRef", "t#x"}}; })}};
         schema["$defs"] = object(n, [](std::size_t i) { return Json{{"$id", name_of(i, "u")}}; });
         schema["$defs"]["t"] = {{"$id", "t"}, {"$dynamicAnchor", "x"}};
         return schema;
       }},
      {"parts of what a long fragment names", 5000,
       [](std::size_t n) {
         const std::string name(4 * n, 'k');
         const Json parts{{"prefixItems", list(n, [](std::size_t) { return Json::object(); })}};
         return Json{{"$ref", "#/$defs/a/" + name}, {"$defs", {{"a", {{"$id", "http://x/y"}, {name, parts}}}}}};
       }},
      {"not prefixItems", 15'000,
       [](std::size_t n) {
         return Json{{"not", {{"prefixItems", list(n, [](std::size_t) { return Json(true); })}}}};
       }},
      {"unevaluatedProperties of many alternatives", 750,
       [](std::size_t n) {
         Json schema = any_of(n, [](std::size_t i) {
           return Json{{"$ref", "#/$defs/b"}, {"unevaluatedProperties", false}, {"minProperties", i}};
         });
         schema["$defs"]["b"]["properties"] = object(10'000, [](std::size_t) { return Json(true); });
         return schema;
       }},
      {"alternatives next to a long name", 725,
       [=](std::size_t n) {
         Json schema = all_of(n, either);
         schema["required"] = {std::string(300'000, 'k')};
         return schema;
       }},
      {"maxLength next to patterns", 8,
       [](std::size_t n) {
         return Json{{"minItems", n}, {"prefixItems", list(n, [](std::size_t i) {
                                         return Json{{"pattern", "^[a-z]*$"}, {"maxLength", 1'500'000 + i}};
                                       })}};
       }},
      {"uniqueItems of a long text", 22'500,
       [](std::size_t n) {
         return Json{{"minItems", 1}, {"uniqueItems", true}, {"items", {{"enum", {std::string(n, 'k')}}}}};
       }},
      {"repeated set", 2500,
       [](std::size_t n) {
         std::string set;
         for (std::size_t i = 0; i < n; ++i) set += fmt::format("\\u{{{:x}}}", 0x20000 + 2 * i);
         return text("[" + set + "]{0,20000}");
       }},
      {"repeated empty alternatives", 500,
       [](std::size_t n) { return text("(" + std::string(n, '|') + "){0,20000}"); }},
  };
}

// Returns the steps; 0 if the schema is rejected.
std::size_t compile(const Json& schema) {
  try {
    return compile_json_schema(schema, "s").steps;
  } catch (const Error&) {
    return 0;
  }
}

class SchemaWork : public testing::TestWithParam<std::vector<Construct> (*)()> {};

// Each is either linear or rejected soon. Without the sanitizers, what a slow machine takes is below a few seconds.
TEST_P(SchemaWork, OfCompilingIsLinearOrRejectedSoon) {
  for (const Construct& construct : GetParam()()) {
    std::size_t steps = 0;
    for (const std::size_t factor : {1u, 4u}) {
      const Json schema = construct.make(factor * construct.size);
      const double start = cpu_seconds();
      const std::size_t now = compile(schema);
      EXPECT_LT(cpu_seconds() - start, most_cpu_seconds) << construct.name << ", " << factor << " times";
      if (steps > 0 && now > 0) {
        EXPECT_LT(static_cast<double>(now), 6 * static_cast<double>(steps))
            << construct.name << ", " << factor << " times";
      }
      steps = now;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(LongParts, SchemaWork, testing::Values(&constructs_of_long_parts));
INSTANTIATE_TEST_SUITE_P(Values, SchemaWork, testing::Values(&constructs_of_values));
INSTANTIATE_TEST_SUITE_P(Patterns, SchemaWork, testing::Values(&constructs_of_patterns));
INSTANTIATE_TEST_SUITE_P(Objects, SchemaWork, testing::Values(&constructs_of_objects));
INSTANTIATE_TEST_SUITE_P(Alternatives, SchemaWork, testing::Values(&constructs_of_alternatives));

TEST(SchemaWorkLimit, BoundsTheMemory) {
  if (!can_measure_memory) GTEST_SKIP() << "the sanitizers describe all memory";
  for (const Construct& construct : constructs_of_long_parts()) {
    const Json schema = construct.make(4 * construct.size);
    EXPECT_LT(peak_memory([&] { compile(schema); }), std::size_t{640} << 20) << construct.name;
  }
}

TEST(SchemaWorkLimit, CountsWhatAConditionThatIsMadeTakes) {
  if (!can_measure_memory) GTEST_SKIP() << "the sanitizers describe all memory";
  const auto constant = [](std::size_t i) { return Json{{"const", i}}; };
  const auto required = [](std::size_t i) { return Json{{"required", {name_of(i)}}}; };
  for (const std::function<Json(std::size_t)>& part : {std::function<Json(std::size_t)>(constant), {required}}) {
    const Json pairs{{"not", one_of(4000, part)}};
    for (const Json& schema : {pairs, Json{{"not", {{"not", {{"anyOf", {pairs, {{"type", "string"}}}}}}}}}}) {
      EXPECT_LT(peak_memory([&] { compile(schema); }), std::size_t{256} << 20);
    }
  }
}

TEST(SchemaWorkLimit, BoundsTheLengthOfAUri) {
  const auto error_of = [](std::size_t length) -> std::string {
    const std::string id = "http://x/" + std::string(length - 9, 'a');
    try {
      compile_json_schema(Json{{"$id", id}, {"$defs", {{"a", {{"$id", "b"}}}}}}, "s");
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(error_of(8192), "");
  EXPECT_NE(error_of(8193).find("has 8193 bytes, expected at most 8192; shorten $id"), std::string::npos);
}

std::string object_of_names(std::size_t count) {
  return object(count, [](std::size_t) { return Json(1); }).dump();
}

TEST(SchemaText, TakesTimeInProportionToItsNamesAndItems) {
  const auto grammar = std::make_shared<const Grammar>(compile_json_schema(Json{{"uniqueItems", true}}, "s").grammar);
  const auto items = [](std::size_t count) { return list(count, [](std::size_t i) { return Json(i); }).dump(); };
  for (const std::function<std::string(std::size_t)>& make : {std::function(object_of_names), std::function(items)}) {
    const auto seconds = [&](std::size_t count) {
      GrammarState state(grammar);
      const std::string text = make(count);
      const double start = cpu_seconds();
      for (const char byte : text) EXPECT_TRUE(state.advance({&byte, 1}));
      EXPECT_TRUE(state.may_end());
      return cpu_seconds() - start;
    };
    const double few = std::min(seconds(10'000), seconds(10'000));
    EXPECT_LT(seconds(80'000), 24 * few + 0.1);
  }
}

TEST(SchemaText, KnowsEachOfManyNames) {
  const auto grammar = std::make_shared<const Grammar>(compile_json_schema(Json{{"type", "object"}}, "s").grammar);
  GrammarState state(grammar);
  std::string text = object_of_names(500);
  text.back() = ',';
  ASSERT_TRUE(state.advance(text));
  for (std::size_t i = 0; i < 500; ++i) {
    EXPECT_FALSE(state.allows("\"" + name_of(i) + "\"")) << i;
    EXPECT_TRUE(state.allows("\"" + name_of(i) + "x\":{\"" + name_of(i) + "\":1}")) << i;
  }
  EXPECT_FALSE(state.allows("\"a\":1,\"a\""));
}

TEST(SchemaText, TakesLittleMemoryForEachOfManyProperties) {
  if (!can_measure_memory) GTEST_SKIP() << "the sanitizers describe all memory";
  constexpr std::size_t count = 5000;
  const Json schema{{"properties", object(count, [](std::size_t) { return Json{{"type", "integer"}}; })}};
  JsonSchemaOptions closed;
  closed.closed = true;
  const auto follow = [&] {
    GrammarState state(std::make_shared<const Grammar>(compile_json_schema(schema, "s", closed).grammar));
    if (!state.advance(object_of_names(count))) throw std::runtime_error("the text does not conform");
  };
  EXPECT_LT(peak_memory(follow), std::size_t{128} << 20);
}

TEST(SchemaWorkLimit, AcceptsTwentyThousandNumbers) {
  const Json schema{{"enum", list(20'000, [](std::size_t i) { return Json(i * 7919 % 1'000'003); })}};
  GrammarState state(std::make_shared<const Grammar>(compile_json_schema(schema, "s").grammar));
  EXPECT_TRUE(state.advance("7919"));
  EXPECT_TRUE(state.may_end());
  state.restart();
  EXPECT_TRUE(state.advance("7919.00"));
  EXPECT_TRUE(state.may_end());
  EXPECT_FALSE(state.allows("1"));
  state.restart();
  EXPECT_FALSE(state.advance("-7919"));
}

TEST(SchemaWorkLimit, AcceptsManyBoundsOfNumbersInAnySpelling) {
  const Json bounded = object(800, [](std::size_t i) { return Json{{"type", "integer"}, {"minimum", i}}; });
  const Json names = list(800, [](std::size_t i) { return Json(name_of(i)); });
  JsonSchemaOptions options;
  options.closed = options.any_spelling = true;
  const double start = cpu_seconds();
  EXPECT_NO_THROW(
      compile_json_schema({{"type", "object"}, {"properties", bounded}, {"required", names}}, "s", options));
  EXPECT_LT(cpu_seconds() - start, most_cpu_seconds);
}

TEST(SchemaNumbers, AreSpelledWithAnyZerosAtTheEndOfAFraction) {
  const Json schema = Json::parse(R"({"enum": [0, 5, 5.003, -1.5, 120, 1e30, 1e-7, 1e300]})");
  GrammarState state(std::make_shared<const Grammar>(compile_json_schema(schema, "s").grammar));
  const auto accepts = [&](const std::string& number) {
    state.restart();
    return state.advance(number) && state.may_end();
  };
  const std::string zeros(30, '0');
  for (const char* const number : {"0", "-0", "0.0", "-0.00", "5", "5.0", "5.00", "5.003", "5.0030", "-1.5", "-1.500",
                                   "120", "120.0", "1e+30", "0.0000001", "1e-07", "1e+300"}) {
    EXPECT_TRUE(accepts(number)) << number;
  }
  EXPECT_TRUE(accepts("1" + zeros));
  EXPECT_TRUE(accepts("5." + zeros + zeros.substr(0, 10)));
  EXPECT_FALSE(accepts("5." + zeros + zeros.substr(0, 11)));
  for (const char* const number : {"", "-", "5.", "5.004", "5.0031", "-5", "1.5", "-1.", "12", "1200", "1e+31", "00"}) {
    EXPECT_FALSE(accepts(number)) << number;
  }
}

TEST(SchemaWorkLimit, IsStatedInTheErrorAndTheSameForEachCompilation) {
  const Json schema = all_of(4000, [](std::size_t i) { return Json{{"anyOf", {{{"minimum", i}}, {{"maximum", i}}}}}; });
  std::string errors[2];
  for (std::string& error : errors) {
    try {
      compile_json_schema(schema, "s");
    } catch (const Error& thrown) {
      error = thrown.what();
    }
  }
  EXPECT_NE(errors[0].find("s: the schema takes over 20000000 steps, expected at most that"), std::string::npos)
      << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
}

TEST(SchemaWorkLimit, EndsTooMuchWorkOnTheTokensThatMayFollow) {
  // A set of so many ranges is spelled in several ways each.
  std::string set;
  for (unsigned c = 0x20000; c < 0x2F000; c += 2) set += fmt::format("\\u{{{:X}}}", c);
  GrammarState state(std::make_shared<const Grammar>(compile_json_schema(text("^[" + set + "]*$"), "s").grammar));
  const TokenTrie trie({{"\"", 0}, {"\"a", 1}});
  TokenBits allowed(1);
  const double start = cpu_seconds();
  try {
    state.mark_allowed(trie, allowed);
    FAIL() << "it was little work";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("takes over 150000 steps to work out"), std::string::npos) << error.what();
  }
  EXPECT_LT(cpu_seconds() - start, 4);
}

TEST(SchemaWorkLimit, TokensOfAStringOfLimitedLengthAreCounted) {
  GrammarState state(
      std::make_shared<const Grammar>(compile_json_schema({{"type", "string"}, {"maxLength", 1000}}, "s").grammar));
  ASSERT_TRUE(state.advance("\"a"));
  const std::string most(999, '-'), over(1000, '-');
  TokenBits allowed(1);
  const WorkLimit work(1'000'000, "the test");
  state.mark_allowed(TokenTrie({{most, 0}, {over, 1}}), allowed);
  EXPECT_EQ(allowed[0], 1u);
  EXPECT_LT(work.steps(), 100);
}

TEST(SchemaWorkLimit, AlternativesShareTheWorkOnTheirNames) {
  const Json any_of = list(100, [](std::size_t i) {
    Json properties{{"kind", {{"const", name_of(i)}}}};
    for (std::size_t k = 0; k < 5; ++k) properties[name_of(k) + std::string(40, 'x')] = {{"type", "string"}};
    return Json{{"type", "object"}, {"properties", properties}, {"required", {"kind"}}};
  });
  GrammarState state(std::make_shared<const Grammar>(compile_json_schema({{"anyOf", any_of}}, "s").grammar));
  ASSERT_TRUE(state.advance("{\""));
  const std::string name = name_of(3) + std::string(40, 'x') + "\"";
  TokenBits allowed(1);
  const WorkLimit work(1'000'000, "the test");
  state.mark_allowed(TokenTrie({{name, 0}}), allowed);
  EXPECT_EQ(allowed[0], 1u);
  EXPECT_LT(work.steps(), 2000);
}

// Members and items that fulfil a condition on some of them are values of their own.
TEST(SchemaWorkLimit, ValuesThatFulfilAConditionOnSomeAreReadyForTexts) {
  Json properties;
  for (std::size_t i = 0; i < 50; ++i) properties[name_of(i) + std::string(40, 'x')] = {{"type", "string"}};
  const Json value{{"type", "object"}, {"properties", properties}};
  const Json items{{"type", "array"}, {"contains", value}};
  const Json members{{"type", "object"}, {"not", {{"additionalProperties", {{"not", value}}}}}};
  for (const auto& [schema, start] : {std::pair(items, "["), std::pair(members, "{\"a\": ")}) {
    GrammarState state(std::make_shared<const Grammar>(compile_json_schema(schema, "s").grammar));
    ASSERT_TRUE(state.advance(start));
    TokenBits allowed(1);
    const WorkLimit work(1'000'000, "the test");
    state.mark_allowed(TokenTrie({{"{\"z", 0}}), allowed);
    EXPECT_EQ(allowed[0], 1u);
    EXPECT_LT(work.steps(), 5000) << schema;
  }
}

// The alternatives of oneOf get the opposites of the others, each of which is violated in one way for each property.
TEST(SchemaWorkLimit, MissingAndWrongPropertiesAreOneCase) {
  Json schema{{"$ref", "#/$defs/r"}};
  schema["$defs"]["r"] = one_of(16, [](std::size_t i) {
    return Json{{"properties", {{"t", {{"$ref", "#/$defs/r"}}}, {name_of(i), {{"type", "string"}}}}},
                {"required", {name_of(i)}}};
  });
  EXPECT_NO_THROW(compile_json_schema(schema, "s"));
}

TEST(SchemaWorkLimit, IsInterrupted) {
  std::atomic<bool> interrupted = true;
  const Cancellation cancellation(interrupted);
  const Json schema{{"enum", list(20'000, [](std::size_t i) { return Json(i); })}};
  EXPECT_THROW(compile_json_schema(schema, "s"), Cancelled);
  EXPECT_THROW(parse_grammar("root ::= \"a\"{9999}", "g"), Cancelled);
  interrupted = false;
  EXPECT_NO_THROW(compile_json_schema(schema, "s"));
}

TEST(JsonSchemaCache, KeepsSchemasByTheirContentAndOptions) {
  JsonSchemaCache cache;
  JsonSchemaOptions closed;
  closed.closed = true;
  const Json schema{{"type", "object"}, {"properties", {{"a", {{"type", "string"}}}}}};
  const auto grammar = cache.grammar(schema, "s", {});
  EXPECT_EQ(cache.grammar(Json::parse(schema.dump()), "s", {}), grammar);
  EXPECT_NE(cache.grammar(schema, "s", closed), grammar);
  EXPECT_NE(cache.grammar(schema, "t", {}), grammar);
  EXPECT_NE(cache.grammar({{"type", "object"}}, "s", {}), grammar);
  EXPECT_EQ(cache.size(), 4u);
}

TEST(JsonSchemaCache, KnowsWhyASchemaIsRefused) {
  JsonSchemaCache cache;
  for (int i = 0; i < 2; ++i) EXPECT_THROW(cache.grammar(false, "s", {}), Error);
  EXPECT_EQ(cache.size(), 1u);
}

TEST(JsonSchemaCache, WorksForSoManyStepsAndKeepsNothingOfLongerWork) {
  JsonSchemaCache cache;
  Json schema{{"enum", Json::array()}};
  for (int i = 0; i < 500; ++i) schema["enum"].push_back(7 * i);
  EXPECT_EQ(cache.grammar(schema, "s", {}, 100), nullptr);
  EXPECT_EQ(cache.size(), 0u);
  const auto grammar = cache.grammar(schema, "s", {});
  EXPECT_EQ(cache.grammar(schema, "s", {}, 100), grammar) << "it is known, which takes no work";
  const Json refused{{"type", "string"}, {"pattern", "^([a-z]{0,99}[0-9]{0,99}|[a-f0-9]{1,99}){1,32}$"}};
  EXPECT_EQ(cache.grammar(refused, "s", {}, 100'000), nullptr);
  EXPECT_THROW(cache.grammar(refused, "s", {}), Error);
  EXPECT_THROW(cache.grammar(refused, "s", {}, 100'000), Error);
}

TEST(SchemaWorkOfText, OfItemsWithinItemsIsLimited) {
  const Json schema{{"$ref", "#/$defs/a"},
                    {"$defs", {{"a", {{"uniqueItems", true}, {"items", {{"$ref", "#/$defs/a"}}}}}}}};
  const auto grammar = std::make_shared<const Grammar>(compile_json_schema(schema, "s").grammar);
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + '"' + std::string(1'000'000, 'k') + '"' + std::string(depth, ']');
  };
  GrammarState state(grammar);
  for (int text = 0; text < 2; ++text) {
    EXPECT_TRUE(state.advance(nested(40)) && state.may_end());
    state.restart();
  }
  EXPECT_THROW(state.advance(nested(80)), TooMuchWork);
}

TEST(JsonSchemaCache, IsBounded) {
  JsonSchemaCache cache;
  const auto first = cache.grammar({{"const", 0}}, "s", {});
  for (int i = 1; i < 1000; ++i) cache.grammar({{"const", i}}, "s", {});
  EXPECT_LE(cache.size(), 256u);
  EXPECT_NE(cache.grammar({{"const", 0}}, "s", {}), first);
}

JsonSchemaOptions any_spelling() {
  JsonSchemaOptions options;
  options.any_spelling = true;
  return options;
}

std::shared_ptr<const Grammar> grammar_of(const Json& schema, const JsonSchemaOptions& options) {
  return std::make_shared<const Grammar>(compile_json_schema(schema, "s", options).grammar);
}

TEST(SchemaWorkOfText, CountsTheCharactersOfALongString) {
  constexpr std::size_t limit = 1'000'000;
  const Json limits{{"minLength", limit - 1}, {"maxLength", limit}};
  Json with_pattern = limits;
  with_pattern["pattern"] = "^[a-z\\n]*$";
  with_pattern["minLength"] = 1;
  const Json repeated = text("^([a-z\\n]{50000})*$");
  for (const Json& schema : {limits, with_pattern, Json{{"not", {{"maxLength", limit - 1}}}}, repeated}) {
    GrammarState state(grammar_of(schema, any_spelling()));
    std::string string = "\"";
    for (std::size_t i = 0; i < limit / 2; ++i) string += "\\nx";
    const bool more = schema.contains("not"), allowed_before = schema.value("minLength", limit) < limit;
    EXPECT_EQ(state.advance(string.substr(0, string.size() - 1) + "\""), allowed_before) << schema;
    state.restart();
    EXPECT_TRUE(state.advance(string + "\"")) << schema;
    EXPECT_TRUE(state.may_end());
    state.restart();
    EXPECT_EQ(state.advance(string + "x\""), more) << schema;
  }
}

TEST(SchemaWorkOfText, IsTheSameHoweverManyBytesAreFollowedAtOnce) {
  const std::vector<std::string> parts{"a",           "b",       "\u00e4",  "\u4e2d",  "\U0001F600",     "\\n",
                                       "\\/",         "\\u0041", "\\u000a", "\\u4e2d", "\\ud83d\\ude00", "\\ud83d",
                                       "\\u0000",     "\\\"",    "\x80",    "\x01",    "\x7f",           "\\u00e",
                                       "\xed\xa0\x80"};
  std::uint32_t random = 1;
  const auto draw = [&](std::size_t below) { return (random = random * 1664525 + 1013904223) / 65536 % below; };
  for (const Json& schema : {Json{{"minLength", 5}, {"maxLength", 60}}, Json{{"pattern", "^(.{7}|[ab\\n])*$"}},
                             Json{{"pattern", "^.*a.{3}$"}, {"minLength", 40}, {"maxLength", 2000}}}) {
    for (const bool every_escape : {false, true}) {
      const auto grammar = grammar_of(schema, every_escape ? any_spelling() : JsonSchemaOptions());
      GrammarState whole(grammar), bytes(grammar);
      for (int i = 0; i < 300; ++i) {
        std::string string = "\"";
        for (std::size_t k = draw(80); k > 0; --k) string += parts[draw(draw(8) == 0 ? parts.size() : 5)];
        string += "\"";
        whole.restart();
        bytes.restart();
        std::size_t taken = 0;
        while (taken < string.size() && bytes.advance(string.substr(taken, 1))) ++taken;
        EXPECT_EQ(whole.advance(string), taken == string.size()) << string;
        EXPECT_EQ(whole.may_end(), bytes.may_end() && taken == string.size()) << string;
        whole.restart();
        EXPECT_EQ(whole.advance_within(string), taken) << string;
        EXPECT_EQ(whole.bytes_to_end(), bytes.bytes_to_end()) << string;
      }
    }
  }
}

TEST(SchemaWorkOfText, NamesTheLimitOfRules) {
  constexpr char32_t first = 0x4E00;
  Json schema{{"type", "object"}}, value;
  for (char32_t c = first; c < first + 2000; ++c) {
    std::string name;
    append_utf8(name, c);
    schema["properties"][name] = {{"type", "integer"}};
    value[name] = 1;
  }
  GrammarState state(grammar_of(schema, any_spelling()));
  try {
    state.advance(value.dump());
    FAIL() << "the rules were few";
  } catch (const TooMuchWork& error) {
    EXPECT_NE(std::string(error.what()).find("rules of its schema with over 4194304 symbols, expected at most that"),
              std::string::npos)
        << error.what();
  }
}

TEST(SchemaWorkOfText, LeavesTheStateAsItIsAfterALongTextThatDoesNotFit) {
  GrammarState state(grammar_of({{"maxItems", 100'000}}, {}));
  const std::string items = list(20'000, [](std::size_t i) { return Json(i % 5); }).dump();
  ASSERT_TRUE(state.advance("[0"));
  const std::string rest = "," + items.substr(1, items.size() - 2);
  EXPECT_FALSE(state.advance(rest + "}"));
  EXPECT_FALSE(state.allows(rest + "}"));
  EXPECT_EQ(state.advance_within(rest + "}"), rest.size());
  EXPECT_TRUE(state.advance(",7]"));
  EXPECT_TRUE(state.may_end());
}

// Returns the time of following a text that has all of an object's properties.
double seconds_of_properties(std::size_t count, bool closed, bool required, std::size_t min = 0) {
  Json schema{{"type", "object"}, {"minProperties", min}, {"maxProperties", count}}, value;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("property_{}", i);
    schema["properties"][name] = {{"type", "integer"}};
    if (required) schema["required"].push_back(name);
    value[name] = i;
  }
  JsonSchemaOptions options;
  options.closed = closed;
  GrammarState state(std::make_shared<const Grammar>(compile_json_schema(schema, "s", options).grammar));
  const std::string text = value.dump();
  const double start = cpu_seconds();
  for (const char byte : text) EXPECT_TRUE(state.advance({&byte, 1}));
  EXPECT_TRUE(state.may_end());
  return cpu_seconds() - start;
}

TEST(SchemaWorkOfText, IsLinearInThePropertiesOfWhichThereMustBeMany) {
  expect_times(
      20, [] { return seconds_of_properties(1000, false, false, 900); },
      [] { return seconds_of_properties(8000, false, false, 7200); }, "");
  EXPECT_NO_THROW(seconds_of_properties(4000, true, false, 3600));
}

TEST(SchemaWorkOfText, CountsThePropertiesThatMustFollow) {
  const Json schema{{"type", "object"},
                    {"minProperties", 3},
                    {"maxProperties", 4},
                    {"required", {"bb"}},
                    {"additionalProperties", false},
                    {"properties",
                     {{"a", {{"const", 1}}},
                      {"bb", {{"const", 2}}},
                      {"ccc", {{"const", "three"}}},
                      {"d", {{"const", 4}}},
                      {"e", false},
                      {"ffff", {{"const", 6}}}}}};
  JsonSchemaOptions in_order;
  in_order.closed = true;
  const auto bytes_after = [&](const std::string& text, const JsonSchemaOptions& options) -> std::uint64_t {
    GrammarState state(grammar_of(schema, options));
    return state.advance(text) ? state.bytes_to_end() : 0;
  };
  struct Case {
    std::string text;
    std::uint64_t any, in_order;  // bytes that must follow
  };
  for (const Case& its : std::vector<Case>{{"", 20, 20},
                                           {R"({"ccc)", 23, 0},
                                           {R"({"ffff)", 17, 0},
                                           {R"({"bb":2)", 13, 16},
                                           {R"({"bb":2, "c)", 18, 18},
                                           {R"({"a":1)", 14, 14},
                                           {R"({"a":1,"bb":2,"c)", 12, 12},
                                           {R"({"a":1,"ccc)", 17, 0},
                                           {R"({"a":1,"d":4,)", 7, 0}}) {
    EXPECT_EQ(bytes_after(its.text, {}), its.any) << its.text;
    EXPECT_EQ(bytes_after(its.text, in_order), its.in_order) << its.text;
  }
  EXPECT_THROW(compile_json_schema({{"type", "object"}, {"minProperties", 2}, {"maxProperties", 1}}, "s"), Error);
}

// What is open of several lists, as in exactly one of them, is worked out before the first text.
TEST(SchemaWorkOfText, ArraysOfExactlyOneListNeedNoMoreWork) {
  Json lists = Json::array();
  for (int list = 0; list < 7; ++list) {
    Json names = Json::array();
    for (int i = 0; i < 20; ++i) names.push_back("list " + std::to_string(list) + " entry " + std::to_string(i));
    lists.push_back({{"type", "array"}, {"items", {{"enum", names}}}});
  }
  const Json schema = {{"type", "object"}, {"properties", {{"a", {{"oneOf", lists}}}}}, {"required", {"a"}}};
  GrammarState state(std::make_shared<const Grammar>(compile_json_schema(schema, "s").grammar));
  EXPECT_TRUE(state.advance(R"({"a":["list 3 entry 4","list 3 entry 5"]})"));
  EXPECT_TRUE(state.may_end());
}

TEST(SchemaWorkOfText, IsLinearInTheProperties) {
  for (const bool closed : {false, true}) {
    for (const bool required : {false, true}) {
      expect_times(
          20, [&] { return seconds_of_properties(1000, closed, required); },
          [&] { return seconds_of_properties(8000, closed, required); }, fmt::format("{} {}", closed, required));
    }
  }
}

}  // namespace
}  // namespace minimind
