#include "tools/openai/body_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/grammar/gbnf.h"
#include "runtime/grammar/work.h"
#include "runtime/json_schema/schema_cache.h"
#include "runtime/json_schema/text_grammar.h"
#include "runtime/text/utf8.h"
#include "tools/openai/request_error.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::string_view dry_range = "dry_penalty_last_n";

// A double of this size or less is one integer alone.
constexpr double largest_exact = 9007199254740992;

// The least of the negative numbers that mean no limit; 0 if there are none.
int least_word(const GenerationParameter& parameter, std::string_view name) {
  if (name == "num_predict") return -2;  // Ollama's: until the context is full
  constexpr std::array with_word{std::string_view("max_tokens"), std::string_view("top_k"),
                                 std::string_view("repeat_last_n"), dry_range};
  return std::ranges::find(with_word, parameter.name) == with_word.end() ? 0 : -1;
}

// About a millisecond.
constexpr std::size_t most_brief_steps = 100'000;
constexpr std::size_t most_brief_symbols = 5'000;

}  // namespace

ChatJson parse_body(std::string_view text, const std::string& source) {
  if (const auto at = first_not_utf8(text)) {
    throw RequestError(fmt::format("{} is not UTF-8 at byte {}", source, *at), "", "invalid_json");
  }
  if (text.empty()) throw RequestError(source + " is empty, expected a JSON object", "", "invalid_json");
  ChatJson body;
  try {
    body = parse_chat_json(text, source);
  } catch (const LargeInteger& error) {
    throw RequestError(error.what(), error.field());
  } catch (const Error& error) {
    throw RequestError(error.what(), "", "invalid_json");
  }
  if (!body.is_object()) {
    throw RequestError(fmt::format("{} is {}, expected a JSON object", source, kind_of(body)), "", "invalid_json");
  }
  return body;
}

std::vector<std::string> names_of(const GenerationParameter& parameter, Dialect dialect) {
  const std::string_view own = dialect == Dialect::sglang   ? parameter.sglang
                               : dialect == Dialect::ollama ? parameter.ollama
                                                            : std::string_view();
  if (!own.empty()) return {std::string(own)};
  if (dialect == Dialect::text_generation && parameter.name == "max_tokens") return {std::string(parameter.sglang)};
  std::vector<std::string> names{std::string(parameter.name)};
  if (!parameter.alias.empty()) names.emplace_back(parameter.alias);
  if (dialect == Dialect::openai && parameter.name == "max_tokens") names.emplace_back("n_predict");  // llama.cpp's
  return names;
}

BodyFields::BodyFields(const ChatJson& object, std::string where) : ChatFields(object, std::move(where)) {}

std::optional<std::uint64_t> BodyFields::whole(const std::string& name, std::uint64_t least, std::uint64_t most) const {
  const ChatJson& value = get(name);
  const double number = value.is_number_float() ? value.get<double>() : NAN;
  const bool fits = number >= static_cast<double>(least) && number <= static_cast<double>(most);
  if (fits && number == std::floor(number)) return static_cast<std::uint64_t>(number);
  return ChatFields::whole(name, least, most);
}

void BodyFields::read_number(const GenerationParameter& parameter, const std::string& name,
                             GenerationParameters& parameters) const {
  const ChatJson& value = get(name);
  const double given = value.is_number() ? value.get<double>() : NAN;
  const double number = parameter.counts() && given != std::floor(given) ? NAN : given;
  const int word = least_word(parameter, name);
  if (number < 0 && number >= word) {
    return parameter.set(parameters, parameter.name == dry_range ? parameter.most : parameter.off);
  }
  // Some programs ask for the top-1 token by a temperature of 1e-8: at any this low it is the only one that is sampled.
  if (parameter.or_zero && number > 0 && number < parameter.least) return parameter.set(parameters, 0);
  if (parameter.fits(number)) return parameter.set(parameters, number);
  if (word < 0) fail(name, fmt::format("a whole number, {} to {}", word, parameter.most));
  fail(name, fmt::format("{} {}", parameter.counts() ? "a whole number," : "a number,", parameter.range()));
}

// OpenAI's seed is any integer of 64 bits, also written as 5.0. -1 is none, as in llama.cpp, Ollama and vLLM.
void BodyFields::read(const GenerationParameter& parameter, const std::string& name,
                      GenerationParameters& parameters) const {
  const ChatJson* const value = find(name);
  if (!value) return;
  if (parameter.is_number()) return read_number(parameter, name, parameters);
  if (parameter.name == "stop") {
    // Programs that split a text at a mark have an empty string where there is none: it stops nothing.
    parameters.stop = short_texts(name, most_short_texts, EmptyTexts::dropped);
    return;
  }
  const double real = value->is_number_float() ? value->get<double>() : NAN;
  const bool is_whole = std::abs(real) <= largest_exact && real == std::floor(real);
  if (!is_whole && !value->is_number_integer()) fail(name, "an integer of 64 bits");
  parameters.seed = value->is_number_unsigned() ? value->get<std::uint64_t>()
                                                : static_cast<std::uint64_t>(value->get<std::int64_t>());
  if (!value->is_number_unsigned() && *value == -1) parameters.seed.reset();
}

void BodyFields::read_parameters(GenerationParameters& parameters, Dialect dialect) const {
  for (const GenerationParameter& parameter : generation_parameters) {
    std::string before;  // that is given
    for (const std::string& name : names_of(parameter, dialect)) {
      read(parameter, name, parameters);
      const ChatJson* const value = find(name);
      if (!value) continue;
      if (!before.empty() && *find(before) != *value) {
        raise(fmt::format("{} is {}, but {} is {}, expected one of them", name_of(before), json_line(*find(before)),
                          name_of(name), json_line(*value)),
              before);
      }
      before = name;
    }
  }
  if (dialect != Dialect::text_generation && !flag("do_sample").value_or(true)) parameters.sampling.temperature = 0;
}

std::vector<std::string> BodyFields::short_texts(const std::string& name, std::size_t most, EmptyTexts empty) const {
  const ChatJson* const value = find(name);
  if (!value) return {};
  const std::size_t count = value->is_array() ? value->size() : 1;
  std::vector<std::string> texts;
  bool fits = count <= most;
  for (std::size_t i = 0; i < count && fits; ++i) {
    const ChatJson& text = value->is_array() ? (*value)[i] : *value;
    if (text == "" && empty == EmptyTexts::dropped) continue;
    fits = text.is_string() && text != "" && text.get_ref<const std::string&>().size() <= longest_short_text;
    if (fits) texts.push_back(text.get<std::string>());
  }
  if (fits) return texts;
  fail(name, fmt::format("a string or a list of at most {} strings, none of them {}over {} bytes", most,
                         empty == EmptyTexts::dropped ? "" : "empty or ", longest_short_text));
}

const ChatJson* BodyFields::object(const std::string& name) const {
  const ChatJson* const value = find(name);
  if (value && !value->is_object()) fail(name, "an object");
  return value;
}

const ChatJson& BodyFields::must_have(const std::string& name, std::string_view expected) const {
  const ChatJson* const value = find(name);
  if (!value) fail_missing(name_of(name), expected);
  return *value;
}

void BodyFields::fail_missing(const std::string& name, std::string_view expected) {
  throw RequestError(fmt::format("{} is missing, expected {}", name, expected), name, "missing_required_parameter");
}

void BodyFields::require(const std::string& name, const ChatJson& only) const {
  const ChatJson* const value = find(name);
  if (value && *value != only) fail(name, json_line(only) + ", because anything else is not supported");
}

void BodyFields::take_hints(std::initializer_list<const char*> names, std::vector<std::string>& found) const {
  for (const char* const name : names) {
    if (find(name)) found.push_back(name_of(name));
  }
}

void BodyFields::reject_the_rest() const {
  const std::vector<std::string> names = unused(Nulls::ignored);
  if (names.empty()) return;
  const std::string place = where().empty() ? "" : where() + ".";
  throw RequestError(fmt::format("{}{} is not a field that is supported", place, quote(names.front())),
                     place + names.front(), "unsupported_parameter");
}

void BodyFields::throw_own(const std::string& message, const std::string& field) const {
  throw RequestError(message, field);
}

std::string text_or_empty(const ChatJson& object, const char* name) {
  const auto field = object.find(name);
  return field != object.end() && field->is_string() ? field->get<std::string>() : "";
}

bool is_token(const ChatJson& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= INT32_MAX;
}

bool is_token_list(const ChatJson& value) {
  return value.is_array() && std::ranges::all_of(value, is_token);
}

std::shared_ptr<const Grammar> schema_grammar(const ChatJson& schema, const std::string& source, bool open) {
  static JsonSchemaCache known;
  JsonSchemaOptions options;
  options.closed = !open;
  if (!BriefWork::expected()) return known.grammar(schema, source, options);
  if (auto grammar = known.grammar(schema, source, options, most_brief_steps)) return grammar;
  throw LongWork();
}

namespace {

// Returns the grammar that `make` makes; throws LongWork if that takes over `most` steps and this thread is for brief
// work.
template <class Make>
std::shared_ptr<const Grammar> made_briefly(std::size_t most, const std::string& source, Make make) {
  const WorkLimit limit(BriefWork::expected() ? most : SIZE_MAX, source);
  try {
    return std::make_shared<const Grammar>(make());
  } catch (const Error&) {
    if (BriefWork::expected() && limit.exceeded()) throw LongWork();
    throw;
  }
}

}  // namespace

std::shared_ptr<const Grammar> gbnf_grammar(const std::string& text, const std::string& source) {
  return made_briefly(most_brief_symbols, source, [&] { return parse_grammar(text, source); });
}

std::shared_ptr<const Grammar> regex_grammar(const std::string& pattern, const std::string& source) {
  return made_briefly(most_brief_symbols, source, [&] { return pattern_grammar(pattern, source); });
}

std::shared_ptr<const Grammar> choice_grammar_of(const std::vector<std::string>& texts, const std::string& source) {
  return made_briefly(most_brief_symbols, source, [&] { return choice_grammar(texts, source); });
}

}  // namespace minimind
