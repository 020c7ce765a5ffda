#include "tools/openai/request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "runtime/grammar/state.h"
#include "tests/support/cases.h"
#include "tests/support/linear_time.h"
#include "tools/openai/body_fields.h"
#include "tools/openai/request_error.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using RequestJson = nlohmann::ordered_json;

// A body that has every field.
const RequestJson& full_chat() {
  static const RequestJson body = RequestJson::parse(R"({
      "model": "m", "messages": [{"role": "developer", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": null, "reasoning_content": "r",
         "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "1"}],
      "max_tokens": 6, "max_completion_tokens": 6, "temperature": 0.5, "top_p": 0.5, "min_p": 0.1, "typical_p": 0.9,
      "top_k": 5, "repeat_penalty": 1.1, "presence_penalty": 1, "frequency_penalty": -1, "dry_multiplier": 0.8,
      "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": 64, "dry_sequence_breakers": ["\n"],
      "seed": -2, "logit_bias": {"5": -100}, "stop": ["a", "b"], "logprobs": true, "top_logprobs": 3,
      "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties":
        {"x": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}}}],
      "tool_choice": {"type": "function", "function": {"name": "f"}}, "parallel_tool_calls": false,
      "reasoning_effort": "none", "open_thinking": false, "plain_content": true, "chat_template_kwargs": {"enable_thinking": false},
      "n": 2, "stream": true, "stream_options": {"include_usage": true}, "user": "u", "store": false,
      "metadata": {}, "modalities": ["text"], "verbosity": "low", "service_tier": "auto", "stop_token_ids": [3],
      "min_tokens": 2, "skip_special_tokens": true, "repeat_last_n": -1, "cache_prompt": true})");
  return body;
}

const RequestJson& full_completion() {
  static const RequestJson body = RequestJson::parse(R"({
      "model": "m", "prompt": [[1, 2], [3]], "max_tokens": 0, "echo": true, "logprobs": 5, "n": 2, "best_of": 3,
      "suffix": "", "stop": "x", "grammar": "root ::= \"a\"", "stream": false})");
  return body;
}

RequestDefaults defaults() {
  RequestDefaults defaults;
  defaults.model_names = {"m"};
  return defaults;
}

TEST(Request, PlainContentCanBeRequestedButNotRefused) {
  const auto read = [](const RequestJson& plain, bool always) {
    RequestJson body{{"messages", {{{"role", "user"}, {"content", "a"}}}}};
    if (!plain.is_null()) body["plain_content"] = plain;
    RequestDefaults defaults;
    defaults.plain_content = always;
    return read_request(body, true, defaults).plain_content;
  };
  EXPECT_FALSE(read(nullptr, false));
  EXPECT_FALSE(read(false, false));
  EXPECT_TRUE(read(true, false));
  EXPECT_TRUE(read(nullptr, true));
  EXPECT_TRUE(read(true, true));
  EXPECT_THROW(read(false, true), RequestError);
  EXPECT_THROW(read("yes", false), RequestError);
}

TEST(Request, AFormatDoesNotChangeAForcedCall) {
  RequestJson body = full_chat();
  const auto error_of = [&] {
    try {
      EXPECT_EQ(read_request(body, true, defaults()).grammar_param, "tool_choice");
    } catch (const RequestError& error) {
      return error.param();
    }
    return std::string();
  };
  body["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"schema", {{"type", "integer"}}}}}};
  EXPECT_EQ(error_of(), "");
  body["response_format"] = {{"type", "xml"}};
  EXPECT_EQ(error_of(), "response_format") << "it is read, though";
  body["response_format"] = nullptr;
  body["grammar"] = "root ::= \"a\"";
  EXPECT_EQ(error_of(), "grammar");
}

TEST(Request, ReadsEveryField) {
  const Request chat = read_request(full_chat(), true, defaults());
  EXPECT_EQ(chat.messages.size(), 4u);
  EXPECT_EQ(chat.max_tokens, 6u);
  EXPECT_EQ(chat.sampling.top_k, 5u);
  EXPECT_EQ(chat.sampling.dry.multiplier, 0.8);
  EXPECT_EQ(chat.seed, ~std::uint64_t{1});
  EXPECT_EQ(chat.sampling.logit_bias.size(), 1u);
  EXPECT_EQ(chat.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(chat.logprobs, 3u);
  EXPECT_EQ(chat.calls, CallRule::forced_one);
  EXPECT_TRUE(chat.grammar);
  EXPECT_EQ(chat.think, false);
  EXPECT_EQ(chat.n, 2u);
  EXPECT_TRUE(chat.stream && chat.include_usage);
  EXPECT_EQ(chat.stop_tokens, std::vector<std::int32_t>{3});
  EXPECT_EQ(chat.min_tokens, 2u);
  EXPECT_EQ(chat.hints, (std::vector<std::string>{"verbosity", "cache_prompt"}));
  const Request completion = read_request(full_completion(), false, defaults());
  EXPECT_EQ(completion.prompts.size(), 2u);
  EXPECT_EQ(completion.prompts[0].tokens, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(completion.best_of, 3u);
  EXPECT_TRUE(completion.echo);
}

TEST(Request, ALengthOfMinusOneIsNoLimitButTheContext) {
  for (const char* const name : {"max_tokens", "max_completion_tokens"}) {
    EXPECT_EQ(read_request({{"prompt", "a"}, {name, -1}}, false, defaults()).max_tokens, largest_whole);
  }
}

TEST(Request, PenaltiesMayBeForTheWholeText) {
  const RequestJson body{{"prompt", "a"}, {"dry_penalty_last_n", -1}, {"repeat_last_n", -1}};
  EXPECT_EQ(read_request(body, false, defaults()).sampling.dry.penalty_last_n, largest_whole);
  EXPECT_EQ(read_request(body, false, defaults()).sampling.repeat_last_n, largest_whole);
}

TEST(Request, AWholeNumberMayBeWrittenAsAFloat) {
  const RequestJson body{{"prompt", "a"}, {"max_tokens", 5.0}, {"n", 2.0}, {"top_k", -1.0}};
  const Request request = read_request(body, false, defaults());
  EXPECT_EQ(request.max_tokens, 5u);
  EXPECT_EQ(request.n, 2u);
  EXPECT_EQ(request.sampling.top_k, 0u);
  EXPECT_EQ(read_request({{"prompt", "a"}, {"seed", -2.0}}, false, defaults()).seed, ~std::uint64_t{1});
  EXPECT_EQ(read_request({{"prompt", "a"}, {"seed", -1.0}}, false, defaults()).seed, std::nullopt);
  for (const double wrong : {1.5, 1e300}) {
    EXPECT_THROW(read_request({{"prompt", "a"}, {"seed", wrong}}, false, defaults()), RequestError) << wrong;
  }
  for (const double wrong : {1.5, 1e300, -2.0}) {
    EXPECT_THROW(read_request({{"prompt", "a"}, {"max_tokens", wrong}}, false, defaults()), RequestError) << wrong;
    EXPECT_THROW(read_request({{"prompt", "a"}, {"n", wrong}}, false, defaults()), RequestError) << wrong;
  }
}

TEST(Request, ASeedOfMinusOneIsNone) {
  EXPECT_EQ(read_request({{"prompt", "a"}, {"seed", -1}}, false, defaults()).seed, std::nullopt);
  EXPECT_EQ(read_request({{"prompt", "a"}, {"seed", ~std::uint64_t{0}}}, false, defaults()).seed, ~std::uint64_t{0});
}

TEST(Request, AnEmptyStringStopsNothing) {
  EXPECT_TRUE(read_request({{"prompt", "a"}, {"stop", ""}}, false, defaults()).stop.empty());
  const RequestJson split{{"prompt", "a"}, {"stop", {"", "b"}}};
  EXPECT_EQ(read_request(split, false, defaults()).stop, std::vector<std::string>{"b"});
  EXPECT_THROW(read_request({{"prompt", "a"}, {"dry_sequence_breakers", {""}}}, false, defaults()), RequestError);
}

TEST(Request, ATemperatureBelowTheLeastIsZero) {
  for (const double low : {1e-8, 5e-324, 9.9e-7}) {
    EXPECT_EQ(read_request({{"prompt", "a"}, {"temperature", low}}, false, defaults()).sampling.temperature, 0) << low;
  }
  EXPECT_THROW(read_request({{"prompt", "a"}, {"temperature", -1e-8}}, false, defaults()), RequestError);
}

TEST(Request, ThinkingHasTheNamesOfEveryServer) {
  for (const auto& [fields, thinks] :
       {std::pair<const char*, bool>{R"({"chat_template_kwargs": {"thinking": false}})", false},
        {R"({"chat_template_kwargs": {"thinking": true}})", true},
        {R"({"chat_template_kwargs": {"reasoning_effort": "low"}})", true},
        {R"({"chat_template_kwargs": {"reasoning_effort": "none"}})", false},
        {R"({"reasoning_effort": "default"})", true},
        {R"({"reasoning": {"effort": "high"}})", true},
        {R"({"reasoning": {"enabled": false, "exclude": false}})", false},
        {R"({"thinking": {"type": "enabled"}})", true},
        {R"({"thinking": {"type": "disabled"}})", false},
        {R"({"enable_thinking": false, "thinking": {"type": "auto"}})", false},
        {R"({"reasoning": {"effort": "none"}})", false}}) {
    RequestJson body{{"messages", {{{"role", "user"}, {"content", "a"}}}}, {"ttl", 60}, {"reasoning_format", "auto"}};
    body.update(RequestJson::parse(fields));
    const Request request = read_request(body, true, defaults());
    EXPECT_EQ(request.think, thinks) << fields;
    EXPECT_EQ(request.hints, (std::vector<std::string>{"ttl", "reasoning_format"}));
  }
}

TEST(Request, APrefixThatIsTheLastMessageIsContinued) {
  const auto read = [](const RequestJson& mark) {
    RequestJson last{{"role", "assistant"}, {"content", "b"}};
    last.update(mark);
    return read_request({{"messages", {{{"role", "user"}, {"content", "a"}}, last}}}, true, defaults());
  };
  for (const char* const name : {"prefix", "partial"}) {
    EXPECT_TRUE(read({{name, true}}).continues);
    EXPECT_FALSE(read({{name, false}}).continues);
    EXPECT_THROW(read({{name, 1}}), RequestError);
  }
  EXPECT_THROW(read({{"other", true}}), RequestError);
  EXPECT_TRUE(read({{"prefix", true}, {"partial", nullptr}}).continues);
  EXPECT_THROW(read_request({{"messages", {1}}}, true, defaults()), RequestError);
}

TEST(Request, UsageIsPartOfAStreamByTheFieldsOfOtherServersToo) {
  RequestJson body{{"messages", {{{"role", "user"}, {"content", "a"}}}}, {"usage", {{"include", true}}}};
  EXPECT_FALSE(read_request(body, true, defaults()).include_usage);
  body["stream"] = true;
  EXPECT_TRUE(read_request(body, true, defaults()).include_usage);
  EXPECT_FALSE(read_request(body, true, defaults()).usage_of_each_chunk);
  for (const char* const name : {"continuous_usage_stats", "chunk_include_usage"}) {
    body["stream_options"] = {{"include_usage", true}, {name, true}};
    EXPECT_TRUE(read_request(body, true, defaults()).usage_of_each_chunk) << name;
  }
  for (const auto& [name, alone] : {std::pair("continuous_usage_stats", false), {"chunk_include_usage", true}}) {
    body["usage"]["include"] = false;
    body["stream_options"] = {{name, true}};
    EXPECT_FALSE(read_request(body, true, defaults()).include_usage) << name;
    EXPECT_EQ(read_request(body, true, defaults()).usage_of_each_chunk, alone) << name;
    body["usage"]["include"] = true;
    EXPECT_TRUE(read_request(body, true, defaults()).usage_of_each_chunk) << name;
  }
  body.erase("stream_options");
  body["usage"]["include"] = false;
  EXPECT_FALSE(read_request(body, true, defaults()).include_usage);
  RequestDefaults of_batch = defaults();
  of_batch.one_prompt = true;
  body.erase("stream");
  EXPECT_NO_THROW(read_request(body, true, of_batch));
}

TEST(Request, TheConstraintsOfSglangAreThoseOfEveryText) {
  for (const bool is_chat : {true, false}) {
    for (const char* const constraint :
         {R"({"json_schema": "{\"type\": \"integer\"}"})", R"({"regex": "[0-9]"})", R"({"ebnf": "root ::= [0-9]"})"}) {
      RequestJson body{{"prompt", "a"}};
      if (is_chat) body = {{"messages", {{{"role", "user"}, {"content", "a"}}}}};
      body.update(RequestJson::parse(constraint));
      EXPECT_TRUE(read_request(body, is_chat, defaults()).grammar) << constraint;
      body["guided_regex"] = "a";
      EXPECT_THROW(read_request(body, is_chat, defaults()), RequestError) << constraint;
    }
  }
}

TEST(Request, TheBudgetOfAThoughtIsAHint) {
  const RequestJson body = RequestJson::parse(
      R"({"messages": [{"role": "user", "content": "a"}], "reasoning": {"max_tokens": 9}, "thinking_budget": 9,
          "thinking": {"type": "enabled", "budget_tokens": 9}})");
  EXPECT_EQ(read_request(body, true, defaults()).hints,
            (std::vector<std::string>{"reasoning.max_tokens", "thinking.budget_tokens", "thinking_budget"}));
}

TEST(Request, FieldsOfOtherServersAreTakenIfTheyAreOff) {
  for (const bool is_chat : {true, false}) {
    RequestJson off{{"bad_words", RequestJson::array()},
                    {"logits_processors", RequestJson::array()},
                    {"plugins", RequestJson::array()},
                    {"include_reasoning", true},
                    {"safe_prompt", false},
                    {"return_hidden_states", false},
                    {"user_id", "u"},
                    {"enable_search", false},
                    {"no_stop_trim", false},
                    {"add_special_tokens", !is_chat},
                    {"echo", false},
                    {"logprobs", false},
                    {"best_of", 1}};
    if (is_chat) off["functions"] = RequestJson::array();
    const RequestJson prompt =
        is_chat ? RequestJson{{"messages", {{{"role", "user"}, {"content", "a"}}}}} : RequestJson{{"prompt", "a"}};
    off.update(prompt);
    EXPECT_NO_THROW(read_request(off, is_chat, defaults()));
    for (const auto& [name, on] : {std::pair<const char*, RequestJson>{"bad_words", {"a"}},
                                   {"include_reasoning", false},
                                   {"safe_prompt", true},
                                   {"return_hidden_states", true},
                                   {"enable_search", true},
                                   {"no_stop_trim", true},
                                   {"add_special_tokens", is_chat}}) {
      RequestJson body = prompt;
      body[name] = on;
      EXPECT_THROW(read_request(body, is_chat, defaults()), RequestError) << name;
    }
  }
}

TEST(Request, WithoutSamplingTheTemperatureIsZero) {
  for (const auto& [samples, temperature] : {std::pair{true, 0.5}, {false, 0.0}}) {
    const RequestJson body{{"prompt", "a"}, {"temperature", 0.5}, {"do_sample", samples}};
    EXPECT_EQ(read_request(body, false, defaults()).sampling.temperature, temperature);
  }
}

TEST(Request, MistralsNameOfTheSeedIsAnother) {
  EXPECT_EQ(read_request({{"prompt", "a"}, {"random_seed", 5}}, false, defaults()).seed, 5u);
  EXPECT_EQ(read_request({{"prompt", "a"}, {"random_seed", 5}, {"seed", 5.0}}, false, defaults()).seed, 5u);
  EXPECT_THROW(read_request({{"prompt", "a"}, {"random_seed", 5}, {"seed", 6}}, false, defaults()), RequestError);
}

TEST(Request, FieldsThatAreNullCountAsMissing) {
  RequestJson body = full_chat();
  for (const char* const name : {"audio", "functions", "function_call", "web_search_options", "max_tokens"}) {
    body[name] = nullptr;
  }
  EXPECT_EQ(read_request(body, true, defaults()).max_tokens, 6u);
}

TEST(Request, TakesMessagesWithTheEmptyListsOfOtherPrograms) {
  RequestJson body = full_chat();
  body["messages"][1]["tool_calls"] = RequestJson::array();
  body["messages"][2]["annotations"] = RequestJson::array();
  EXPECT_EQ(read_request(body, true, defaults()).messages.size(), 4u);
}

TEST(Request, SharesTheGrammarOfTheSameSchema) {
  const auto grammar = [](const RequestJson& schema) {
    const RequestJson format{{"type", "json_schema"}, {"json_schema", {{"schema", schema}}}};
    const RequestJson messages = RequestJson::parse(R"([{"role": "user", "content": "a"}])");
    return read_request({{"messages", messages}, {"response_format", format}}, true, defaults()).grammar;
  };
  EXPECT_EQ(grammar({{"enum", {1, 2}}}), grammar({{"enum", {1, 2}}}));
  EXPECT_NE(grammar({{"enum", {1, 2}}}), grammar({{"enum", {1, 3}}}));
}

TEST(Request, RejectsForABatchWhatItsLinesCannotHave) {
  RequestDefaults one = defaults();
  one.one_prompt = true;
  EXPECT_THROW(read_request({{"prompt", "a"}, {"stream", true}}, false, one), RequestError);
  const RequestJson several = RequestJson::parse(R"({"prompt": "a", "n": 2, "best_of": 3})");
  EXPECT_EQ(read_request(several, false, one).best_of, 3u);
  EXPECT_THROW(read_request({{"prompt", {"a", "b"}}}, false, one), RequestError);
  const RequestJson tokens = RequestJson::parse(R"({"prompt": [1, 2], "custom_id": "c"})");
  EXPECT_EQ(read_request(tokens, false, one).prompts.size(), 1u);
}

// Replaces a random value somewhere in the body by a value of another kind, of another size, or by none.
void mutate(RequestJson& value, std::mt19937& random) {
  if (value.is_structured() && !value.empty() && random() % 4 != 0) {
    auto item = value.begin();
    std::advance(item, static_cast<std::ptrdiff_t>(random() % value.size()));
    return mutate(*item, random);
  }
  static const RequestJson others = RequestJson::parse(
      R"([null, true, false, 0, -1, 1.5, 1e300, 18446744073709551615, "", "a", "none", "required", [], {}, [[]], [1], ["a"],
          [{}], {"type": "function"}, {"type": "json_schema", "json_schema": {"schema": true}}, {"$ref": "#"}])");
  value = others[random() % others.size()];
}

TEST(Request, RejectsRandomBodiesWithAnErrorOfTheirOwn) {
  std::mt19937 random(1);
  std::size_t rejected = 0;
  for (unsigned i = 0; i < cases(3000); ++i) {
    const bool chat = i % 2 == 0;
    RequestJson body = chat ? full_chat() : full_completion();
    for (std::size_t mutations = 1 + random() % 3; mutations > 0; --mutations) mutate(body, random);
    if (!body.is_object()) continue;
    try {
      read_request(body, chat, defaults());
    } catch (const RequestError& error) {
      ++rejected;
      EXPECT_TRUE(error.status() == 400 || error.status() == 404) << body;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << " for " << body;
    }
  }
  EXPECT_GT(rejected, 0u);
}

RequestJson chat_with(const char* fields) {
  RequestJson body = RequestJson::parse(fields);
  body["messages"] = RequestJson::parse(R"([{"role": "user", "content": "a"}])");
  return body;
}

// Returns which of the texts the answer may be.
std::vector<std::string> allowed(const Request& request, const std::vector<std::string>& texts) {
  std::vector<std::string> result;
  const std::shared_ptr<const Grammar> grammar = request.grammar ? request.grammar : request.call_grammar;
  if (!grammar) return texts;
  for (const std::string& text : texts) {
    GrammarState state(grammar);
    if (state.advance(text) && state.may_end()) result.push_back(text);
  }
  return result;
}

TEST(Request, ReadsTheConstraintsOfOtherServers) {
  const std::vector<std::string> texts{"a", "b", "ab", "1", R"({"a":1})", R"({"b":1})"};
  const std::vector<std::pair<const char*, std::vector<std::string>>> cases{
      {R"({"guided_json": {"properties": {"a": {"const": 1}}, "required": ["a"]}})", {R"({"a":1})"}},
      {R"({"guided_json": "{\"const\": 1}"})", {"1"}},
      {R"({"guided_regex": "a|b"})", {"a", "b"}},
      {R"({"guided_choice": ["ab", "1", "x"]})", {"ab", "1"}},
      {R"({"guided_grammar": "root ::= \"a\" \"b\"?"})", {"a", "ab"}},
      {R"({"structured_outputs": {"json": {"const": 1}}})", {"1"}},
      {R"({"structured_outputs": {"regex": ".b", "json": null}})", {"ab"}},
      {R"({"structured_outputs": {"choice": ["a"]}})", {"a"}},
      {R"({"structured_outputs": {"json_object": true}})", {R"({"a":1})", R"({"b":1})"}},
      {R"({"structured_outputs": {"grammar": "root ::= [0-9]"}})", {"1"}}};
  for (const auto& [fields, expected] : cases) {
    EXPECT_EQ(allowed(read_request(chat_with(fields), true, defaults()), texts), expected) << fields;
    RequestJson completion = RequestJson::parse(fields);
    completion["prompt"] = "a";
    EXPECT_EQ(allowed(read_request(completion, false, defaults()), texts), expected) << fields;
  }
}

TEST(Request, AFormatHasItsSchemaWhereAnyServerHasIt) {
  const std::string schema = R"({"properties": {"a": {"const": 1}}, "required": ["a"]})";
  for (const std::string& format :
       {R"("json_object", "schema": )" + schema, R"("json_object", "value": )" + schema,
        R"("json", "value": )" + schema, R"("json_schema", "json_schema": {"name": "n", "schema": )" + schema + "}",
        R"("json_schema", "schema": )" + schema, R"("json_schema", "value": {"schema": )" + schema + "}",
        std::string(R"("regex", "value": "[{]\"a\":1[}]")"), std::string(R"("regex", "pattern": "[{]\"a\":1[}]")"),
        std::string(R"("grammar", "grammar": "root ::= \"{\\\"a\\\":1}\"")")}) {
    const std::string fields = R"({"response_format": {"type": )" + format + "}}";
    EXPECT_EQ(allowed(read_request(chat_with(fields.c_str()), true, defaults()), {"1", R"({"a":1})", R"({"b":1})"}),
              std::vector<std::string>{R"({"a":1})"})
        << format;
  }
}

TEST(Request, AFormatWithoutItsFieldIsToldAllForms) {
  for (const char* const type : {"regex", "grammar", "xml"}) {
    RequestJson body = chat_with("{}");
    body["response_format"]["type"] = type;
    try {
      read_request(body, true, defaults());
      ADD_FAILURE() << type;
    } catch (const RequestError& error) {
      const std::string message = error.what();
      for (const char* const form : {"json_schema", "pattern", "grammar"}) {
        EXPECT_NE(message.find(std::string("\"") + form + "\": "), std::string::npos) << message;
      }
    }
  }
}

TEST(Request, RejectsSeveralConstraintsAndThoseThatAreNone) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {R"({"guided_regex": "a", "guided_choice": ["a"]})", "guided_choice"},
      {R"({"response_format": {"type": "json_object"}, "guided_json": {}})", "guided_json"},
      {R"({"grammar": "root ::= \"a\"", "structured_outputs": {"regex": "a"}})", "structured_outputs.regex"},
      {R"({"structured_outputs": {}})", "structured_outputs"},
      {R"({"structured_outputs": {"json_object": false}})", "structured_outputs.json_object"},
      {R"({"structured_outputs": {"regexp": "a"}})", "structured_outputs.regexp"},
      {R"({"structured_outputs": {"choice": []}})", "structured_outputs.choice"},
      {R"({"guided_choice": [1]})", "guided_choice"},
      {R"({"guided_choice": "a"})", "guided_choice"},
      {R"({"guided_json": "{"})", "guided_json"},
      {R"({"guided_json": true})", "guided_json"},
      {R"({"guided_regex": "(a"})", "guided_regex"},
      {R"({"guided_regex": "a^b"})", "guided_regex"}};
  for (const auto& [fields, param] : cases) {
    try {
      read_request(chat_with(fields), true, defaults());
      ADD_FAILURE() << fields;
    } catch (const RequestError& error) {
      EXPECT_EQ(error.param(), param) << fields << error.what();
    }
  }
}

// The field that the error of a body is about; empty if it has none.
std::string wrong_field(const RequestJson& body, bool is_chat = true) {
  try {
    read_request(body, is_chat, defaults());
  } catch (const RequestError& error) {
    return error.param();
  }
  return "";
}

TEST(Request, OnlyAnAnswerWithoutCallsIsContinued) {
  RequestJson body = chat_with(R"({"continue_final_message": true})");
  EXPECT_EQ(wrong_field(body), "continue_final_message") << "the last message is a question";
  body["messages"].push_back({{"role", "assistant"}, {"content", "b"}});
  EXPECT_EQ(wrong_field(body), "");
  body["messages"][1]["tool_calls"] =
      RequestJson::parse(R"([{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}])");
  EXPECT_EQ(wrong_field(body), "continue_final_message");
}

TEST(Request, AnAnswerThatIsLastGetsAnotherOneUnlessItIsACall) {
  RequestJson body = chat_with("{}");
  body["messages"].push_back({{"role", "assistant"}, {"content", "b"}});
  const Request request = read_request(body, true, defaults());
  EXPECT_TRUE(request.starts_answer && !request.continues);
  body["messages"][1]["tool_calls"] = RequestJson::parse(R"([{"function": {"name": "f", "arguments": "{}"}}])");
  EXPECT_EQ(wrong_field(body), "messages");
  body["add_generation_prompt"] = true;
  EXPECT_EQ(wrong_field(body), "");
}

TEST(Request, OnlyTheLastMessageIsAPrefix) {
  const RequestJson question{{"role", "user"}, {"content", "a"}};
  const RequestJson answer{{"role", "assistant"}, {"content", "b"}, {"prefix", false}};
  RequestJson body{{"messages", {question, answer, question, answer}}};
  body["messages"][3]["prefix"] = true;
  EXPECT_TRUE(read_request(body, true, defaults()).continues);
  body["continue_final_message"] = false;
  EXPECT_EQ(wrong_field(body), "continue_final_message");
  body["add_generation_prompt"] = true;
  EXPECT_EQ(wrong_field(body), "continue_final_message");
  body.erase("continue_final_message");
  EXPECT_EQ(wrong_field(body), "messages[3].prefix");
  body.erase("add_generation_prompt");
  body["messages"][3]["role"] = "user";
  EXPECT_EQ(wrong_field(body), "messages[3].prefix");
  body["messages"][1]["prefix"] = true;
  EXPECT_EQ(wrong_field(body), "messages[1].prefix");
  body["messages"][1]["prefix"] = 1;
  EXPECT_EQ(wrong_field(body), "messages[1].prefix");
}

TEST(Request, ABiasIsOfTheIdOfAToken) {
  for (const char* const name : {"-1", "01", " 1", "1.0", "2147483648"}) {
    EXPECT_EQ(wrong_field({{"prompt", "a"}, {"logit_bias", {{name, 1}}}}, false), "logit_bias") << name;
  }
}

TEST(Request, UsageOfEachChunkRequiresUsage) {
  RequestJson body = chat_with(R"({"stream": true, "stream_options": {"continuous_usage_stats": true}})");
  EXPECT_FALSE(read_request(body, true, defaults()).usage_of_each_chunk);
  body["stream_options"]["include_usage"] = true;
  EXPECT_TRUE(read_request(body, true, defaults()).usage_of_each_chunk);
}

TEST(Request, APredictionIsAHint) {
  RequestJson body = chat_with(R"({"prediction": {"type": "content", "content": "a"}})");
  body["messages"].push_back(RequestJson::parse(R"({"role": "assistant", "reasoning_content": "no content"})"));
  body["add_generation_prompt"] = true;
  EXPECT_EQ(read_request(body, true, defaults()).hints, std::vector<std::string>{"prediction"});
}

TEST(Request, RejectsTooManyTexts) {
  const RequestJson body{{"prompt", std::vector<std::string>(33, "a")}, {"n", 128}};
  EXPECT_EQ(wrong_field(body, false), "prompt");
}

TEST(Request, OutputsWithoutAConstraintAreOfAnother) {
  const RequestJson body = chat_with(R"({"guided_regex": "b", "structured_outputs": {"regex": null}})");
  EXPECT_EQ(allowed(read_request(body, true, defaults()), {"a", "b"}), std::vector<std::string>{"b"});
}

const std::string three_tools = R"("tools": [{"type": "function", "function": {"name": "f"}},
    {"type": "function", "function": {"name": "g", "parameters": {"type": "object", "description": "none"}}},
    {"type": "function", "function": {"name": "h", "parameters": {"type": "object", "properties": {}}}}])";

const std::vector<std::string> three_calls{R"({"name":"f","arguments":{}})", R"({"name":"f","arguments":{"a":1}})",
                                           R"({"name":"g","arguments":{}})", R"({"name":"g","arguments":{"a":1}})",
                                           R"({"name":"h","arguments":{}})", R"({"name":"h","arguments":{"a":1}})"};

TEST(Request, AFunctionWithoutPropertiesIsCalledWithNone) {
  const std::string body = "{" + three_tools + R"(, "tool_choice": "required"})";
  EXPECT_EQ(allowed(read_request(chat_with(body.c_str()), true, defaults()), three_calls),
            (std::vector<std::string>{three_calls[0], three_calls[2], three_calls[4]}));
}

TEST(Request, AllowedToolsLimitTheFunctionsThatAreCalled) {
  const auto read = [](const std::string& mode, const std::string& names) {
    const std::string body = "{" + three_tools +
                             R"(, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": ")" + mode +
                             R"(", "tools": )" + names + "}}}";
    return read_request(chat_with(body.c_str()), true, defaults());
  };
  const std::string two =
      R"([{"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "h"}}])";
  const Request free = read("auto", two);
  EXPECT_EQ(free.calls, CallRule::free);
  EXPECT_FALSE(free.grammar);
  EXPECT_EQ(allowed(free, three_calls),
            (std::vector<std::string>{three_calls[0], three_calls[1], three_calls[4], three_calls[5]}));
  const Request forced = read("required", two);
  EXPECT_EQ(forced.calls, CallRule::forced);
  EXPECT_EQ(allowed(forced, three_calls), (std::vector<std::string>{three_calls[0], three_calls[4]}));
  EXPECT_EQ(read("required", R"([{"type": "function", "function": {"name": "g"}}])").only_function, "g");
  for (const char* const names :
       {"[]", R"([{"type": "function", "name": "f"}])", R"([{"type": "function", "function": {"name": "x"}}])"}) {
    EXPECT_THROW(read("auto", names), RequestError) << names;
  }
  EXPECT_THROW(read("none", two), RequestError);
}

TEST(Request, ToolChoicesMayBeThoseOfHuggingFaceAndMistral) {
  const auto read = [](const std::string& choice) {
    return read_request(chat_with(("{" + three_tools + R"(, "tool_choice": )" + choice + "}").c_str()), true,
                        defaults());
  };
  for (const char* const named : {R"({"function": {"name": "g"}})", R"("g")"}) {
    EXPECT_EQ(read(named).calls, CallRule::forced_one) << named;
    EXPECT_EQ(read(named).only_function, "g") << named;
  }
  EXPECT_EQ(read(R"("any")").calls, CallRule::forced);
}

TEST(Request, TakesTheFieldsOfLlamaCppsPage) {
  RequestJson body{{"messages", {{{"role", "user"}, {"content", "a"}}}},
                   {"return_progress", true},
                   {"dynatemp_range", 0.0},
                   {"dynatemp_exponent", 1.0},
                   {"xtc_probability", 0},
                   {"xtc_threshold", 0.1},
                   {"n_probs", 0},
                   {"min_keep", 0}};
  EXPECT_EQ(read_request(body, true, defaults()).hints,
            (std::vector<std::string>{"return_progress", "dynatemp_exponent", "xtc_threshold"}));
  for (const char* const name : {"min_keep", "n_probs", "dynatemp_range"}) {
    body[name] = 1;
    EXPECT_EQ(wrong_field(body), name);
  }
}

TEST(Request, TakesTheHintsOfGroqsClient) {
  const RequestJson body = chat_with(R"({"disable_tool_validation": true, "citation_options": "enabled"})");
  EXPECT_EQ(read_request(body, true, defaults()).hints,
            (std::vector<std::string>{"disable_tool_validation", "citation_options"}));
}

TEST(Request, TakesLlamaCppsNameOfTheLength) {
  EXPECT_EQ(read_request(chat_with(R"({"n_predict": 5})"), true, defaults()).max_tokens, 5u);
  EXPECT_EQ(read_request(chat_with(R"({"max_tokens": 5, "n_predict": 5})"), true, defaults()).max_tokens, 5u);
  EXPECT_EQ(wrong_field(chat_with(R"({"max_completion_tokens": 5, "n_predict": 6})")), "max_completion_tokens");
  EXPECT_EQ(wrong_field(chat_with(R"({"n_predict": 0})")), "n_predict");
}

TEST(Request, TakesHintsForACacheOfTheWholeRequest) {
  const RequestJson body = chat_with(R"({"cache_control": {"type": "ephemeral"}, "prompt_cache_options": {}})");
  EXPECT_EQ(read_request(body, true, defaults()).hints,
            (std::vector<std::string>{"cache_control", "prompt_cache_options"}));
}

RequestJson with_answer(const std::string& fields) {
  return RequestJson::parse(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", )" + fields +
                            R"(}, {"role": "user", "content": "b"}]})");
}

TEST(Request, ReadsThoughtsThatArePartsOfAnswers) {
  const auto answer = [](const std::string& fields) {
    return read_request(with_answer(fields), true, defaults()).messages[1];
  };
  const std::string text = R"({"type": "text", "text": "c"})";
  const std::string thought = R"({"type": "thinking", "thinking": [{"type": "text", "text": "t"},
      {"type": "text", "text": "u"}], "closed": true})";
  const Message both = answer("\"content\": [" + thought + ", " + text + "]");
  EXPECT_EQ(both.reasoning, "tu");
  EXPECT_EQ(both.content, "c");
  const Message alone = answer(R"("content": [{"type": "thinking", "thinking": "t", "signature": "s"}])");
  EXPECT_EQ(alone.reasoning, "t");
  EXPECT_EQ(alone.content, "");
  EXPECT_EQ(answer("\"reasoning\": \"tu\", \"content\": [" + thought + "]").reasoning, "tu");
}

TEST(Request, RejectsThoughtsThatItDoesNotKnow) {
  const auto wrong = [](const std::string& part, const std::string& more = "") {
    return wrong_field(with_answer("\"content\": [" + part + "]" + more));
  };
  const std::string thought = R"({"type": "thinking", "thinking": "t"})";
  EXPECT_EQ(wrong(thought, R"(, "reasoning_content": "x")"), "messages");
  EXPECT_EQ(wrong(thought, R"(, "reasoning": "x")"), "messages");
  EXPECT_EQ(wrong(R"({"type": "thinking", "thinking": 5})"), "messages[1].content[0].thinking");
  EXPECT_EQ(wrong(R"({"type": "thinking"})"), "messages[1].content[0].thinking");
  EXPECT_EQ(wrong(R"({"type": "thinking", "thinking": ["b"]})"), "messages");
  EXPECT_EQ(
      wrong(R"({"type": "text", "text": "c"}, {"type": "thinking", "thinking": [{"type": "image", "text": "b"}]})"),
      "messages[1].content[1].thinking[0].type");
  EXPECT_EQ(wrong(R"({"type": "thinking", "thinking": "t", "foo": 1})"), "messages[1].content[0].foo");
  EXPECT_EQ(wrong_field(RequestJson::parse(R"({"messages": [{"role": "user", "content": [{"type": "thinking"}]}]})")),
            "messages");
}

TEST(Request, FunctionsAreToolsOfWhichOneIsCalled) {
  const auto read = [](const std::string& choice) {
    const std::string body = R"({"functions": [{"name": "f"}, {"name": "g"}])" + choice + "}";
    return read_request(chat_with(body.c_str()), true, defaults());
  };
  for (const char* const choice : {"", R"(, "function_call": "auto")", R"(, "function_call": null)"}) {
    EXPECT_TRUE(read(choice).function_call);
    EXPECT_EQ(read(choice).calls, CallRule::single);
    EXPECT_NE(read(choice).tools, "");
  }
  EXPECT_EQ(read(R"(, "function_call": "none")").tools, "");
  EXPECT_EQ(read(R"(, "function_call": {"name": "g"})").only_function, "g");
  EXPECT_EQ(read(R"(, "function_call": {"name": "g"})").calls, CallRule::forced_one);
  for (const auto& [field, value] : {std::pair{"function_call", R"({"name": "h"})"},
                                     {"function_call", R"({"name": "f", "x": 1})"},
                                     {"function_call", R"("any")"},
                                     {"function_call", "5"},
                                     {"functions", "{}"},
                                     {"tools", "[]"},
                                     {"tool_choice", R"("none")"}}) {
    RequestJson body = chat_with(R"({"functions": [{"name": "f"}]})");
    body[field] = RequestJson::parse(value);
    EXPECT_EQ(wrong_field(body), field) << value;
  }
  EXPECT_EQ(read(R"(, "function_call": {"name": "g"})").grammar_param, "function_call");
  const RequestJson large = chat_with(R"({"functions": [{"name": "f", "parameters": {"type": "object", "properties":
      {"a": {"type": "integer", "maximum": 18446744073709551615}}}}]})");
  EXPECT_EQ(wrong_field(large), "");
  EXPECT_EQ(wrong_field(chat_with(R"({"function_call": "auto"})")), "function_call");
  try {
    read(R"(, "function_call": {"name": "h"})");
    FAIL();
  } catch (const RequestError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("function_call as tool_choice: ")) << error.what();
  }
}

TEST(Request, NamesAToolChoiceThatIsNone) {
  for (const char* const choice :
       {R"("x")", R"({"type": "function", "function": "f"})", R"({"type": "function", "function": {}})",
        R"({"type": "function", "function": {"name": 1}})", R"({"type": "function"})", R"({"type": "allowed_tools"})",
        R"({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": "f"}})"}) {
    EXPECT_EQ(wrong_field(chat_with(("{" + three_tools + R"(, "tool_choice": )" + choice + "}").c_str())),
              "tool_choice")
        << choice;
  }
  for (const char* const choice : {"required", "f"}) {
    RequestJson body = chat_with(R"({"tools": []})");
    body["tool_choice"] = choice;
    EXPECT_EQ(wrong_field(body), "tool_choice") << choice;
    body["tools"] = "f";
    EXPECT_EQ(wrong_field(body), "tools") << choice;
  }
}

TEST(Request, ToolsMayBeFunctionsAlone) {
  const RequestJson body = chat_with(R"({"tools": [{"name": "f", "strict": true, "parameters": null},
      {"name": "g", "function": null, "strict": null}], "tool_choice": "required"})");
  EXPECT_EQ(allowed(read_request(body, true, defaults()), three_calls),
            (std::vector<std::string>{three_calls[0], three_calls[2]}));
}

TEST(Request, FunctionsOfTheSameNameAreForcedByIt) {
  const RequestJson body = chat_with(R"({"tools": [{"name": "f"}, {"name": "f", "parameters": {"properties": {"a": {}},
      "required": ["a"]}}], "tool_choice": {"type": "function", "function": {"name": "f"}}})");
  const Request request = read_request(body, true, defaults());
  EXPECT_EQ(request.only_function, "f");
  EXPECT_EQ(allowed(request, three_calls), (std::vector<std::string>{three_calls[0], three_calls[1]}));
}

TEST(Request, StrictFunctionsConstrainNothingThatIsNotCalled) {
  const RequestJson body = chat_with(R"({"tools": [{"name": "f", "strict": true}], "tool_choice": "none"})");
  const Request request = read_request(body, true, defaults());
  EXPECT_FALSE(request.call_grammar);
  EXPECT_EQ(request.tools, "");
}

TEST(Request, ReferencesInTheSchemaOfAFunctionStayItsOwn) {
  const auto with = [](const std::string& parameters) {
    return chat_with(
        (R"({"tool_choice": "required", "tools": [{"name": "f", "parameters": )" + parameters + "}]}").c_str());
  };
  const RequestJson body =
      with(R"({"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", "properties": {"a": {"const": 1}}}}})");
  EXPECT_EQ(allowed(read_request(body, true, defaults()), three_calls),
            (std::vector<std::string>{three_calls[0], three_calls[1]}));
  for (const char* const wrong : {R"({"$ref": 1})", R"({"$ref": "other.json"})", R"({"$ref": "#/none"})"}) {
    EXPECT_EQ(wrong_field(with(wrong)), "tools") << wrong;
  }
}

// Half of the text are tools, the other half names that none of them has.
TEST(Request, AllowedToolsAreFoundInAShortTime) {
  const auto function = [](const char* name) {
    return [name](std::size_t i) {
      return R"({"type": "function", "function": {"name": ")" + (name + std::to_string(i)) + R"("}})";
    };
  };
  const auto text = [&](std::size_t bytes) {
    return joined(bytes / 2, R"({"messages": [{"role": "user", "content": "a"}], "tools": [)", ",", "]",
                  function("f")) +
           joined(bytes / 2,
                  R"(, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [)", ",",
                  "]}}}", function("g"));
  };
  const auto read = [](const std::string& body) { read_request(parse_chat_json(body, "body"), true, defaults()); };
  expect_linear("tool_choice", {{"names", text}}, read, megabyte / 2);
}

TEST(Request, ALongGrammarIsLongWork) {
  const BriefWork brief;
  EXPECT_NO_THROW(gbnf_grammar("root ::= [a-z]{0,100}", "grammar"));
  EXPECT_THROW(gbnf_grammar("root ::= [a-z]{0,100000}", "grammar"), LongWork);
  EXPECT_THROW(gbnf_grammar("root = a", "grammar"), Error) << "it is wrong, and read at once";
  EXPECT_NO_THROW(regex_grammar("[a-z]{0,100}", "regex"));
  EXPECT_THROW(regex_grammar("[a-z]{0,10000}", "regex"), LongWork);
  EXPECT_THROW(choice_grammar_of({std::string(100'000, 'a')}, "choice"), LongWork);
}

}  // namespace
}  // namespace minimind
