#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/chat/chat_json.h"
#include "runtime/generate/sampling_options.h"
#include "runtime/grammar/grammar.h"

namespace minimind {

// The APIs over HTTP, whose names of a parameter may differ.
enum class Dialect { openai, sglang, ollama, text_generation };

// Returns the names of a parameter in an API.
std::vector<std::string> names_of(const GenerationParameter& parameter, Dialect dialect);

// The fields of a request's body, read one by one. A field that is null counts as missing. Every function that finds a
// value of another type or out of range throws RequestError, naming the field, what was found and what was expected.
class BodyFields : public ChatFields {
 public:
  // `where` is the name of the object in the body, such as "stream_options". `object` must outlive this.
  explicit BodyFields(const ChatJson& object, std::string where = "");

  // A whole number, which some programs write as 5.0.
  std::optional<std::uint64_t> whole(const std::string& name, std::uint64_t least, std::uint64_t most) const;
  // All generation_parameters that there are, by the names that an API has for them; if there are several of a
  // parameter, their values must be equal. Negative numbers for no limit are -1 of top_k, of the length and of the
  // penalties' ranges, as in vLLM and llama.cpp, and Ollama's num_predict -2. A seed of -1 is none. A temperature
  // between 0 and its least is 0, and it is 0 if do_sample, GLM's word, is false.
  void read_parameters(GenerationParameters& parameters, Dialect dialect) const;
  // A string or a list of them, none of them too long: each token of a text is compared with all of them.
  static constexpr std::size_t most_short_texts = 64, longest_short_text = 1000;
  enum class EmptyTexts : std::uint8_t { rejected, dropped };
  std::vector<std::string> short_texts(const std::string& name, std::size_t most = most_short_texts,
                                       EmptyTexts empty = EmptyTexts::rejected) const;
  // An object, whose fields the caller reads.
  const ChatJson* object(const std::string& name) const;

  // Returns a field that must be there. Throws RequestError if it is missing or null: "FIELD is missing, expected
  // WANTED".
  const ChatJson& must_have(const std::string& name, std::string_view expected) const;
  [[noreturn]] static void fail_missing(const std::string& name, std::string_view expected);

  // Rejects every value but this one, because others would ask for what is not supported.
  void require(const std::string& name, const ChatJson& only) const;

  // Adds to `found` those of the names that are there: hints to other servers, which change no text.
  void take_hints(std::initializer_list<const char*> names, std::vector<std::string>& found) const;

  // Throws RequestError if the object has fields that none of the calls so far has named and that are not null.
  void reject_the_rest() const;

 protected:
  void throw_own(const std::string& message, const std::string& field) const override;

 private:
  void read(const GenerationParameter& parameter, const std::string& name, GenerationParameters& parameters) const;
  void read_number(const GenerationParameter& parameter, const std::string& name,
                   GenerationParameters& parameters) const;
};

// Reads the text of a body, or of another `source`. Throws RequestError if it is not UTF-8, or no JSON object.
ChatJson parse_body(std::string_view text, const std::string& source = "the body");

// Returns a field that is a string; empty for any other, also of what is not an object.
std::string text_or_empty(const ChatJson& object, const char* name);

// Whether a value is a token id, or a list of them.
bool is_token(const ChatJson& value);
bool is_token_list(const ChatJson& value);

// Returns the grammar of JSON with only the properties that the schema names, in their order, as OpenAI's structured
// outputs have it; or, `open`, with others and in any order. Requests with the same schema share it. Throws Error,
// whose message starts with `source`, Cancelled, and LongWork if it takes long and this thread is for brief work.
std::shared_ptr<const Grammar> schema_grammar(const ChatJson& schema, const std::string& source, bool open = false);

// Return the grammar of GBNF, of the texts that a regular expression matches from start to end, and of these texts;
// throw as schema_grammar() does.
std::shared_ptr<const Grammar> gbnf_grammar(const std::string& text, const std::string& source);
std::shared_ptr<const Grammar> regex_grammar(const std::string& pattern, const std::string& source);
std::shared_ptr<const Grammar> choice_grammar_of(const std::vector<std::string>& texts, const std::string& source);

}  // namespace minimind
