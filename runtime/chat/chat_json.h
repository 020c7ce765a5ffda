#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/jinja/value.h"
#include "weights/base/error.h"
#include "weights/io/json_fields.h"

namespace minimind {

// The JSON of messages, tools and session files, with keys in their order.
using ChatJson = nlohmann::ordered_json;

inline constexpr std::size_t max_chat_json_size = std::size_t{16} << 20;

// An integer of more than 64 bits, in the field of the outermost object, if the text is one.
class LargeInteger : public Error {
 public:
  LargeInteger(const std::string& message, std::string field) : Error(message), field_(std::move(field)) {}
  const std::string& field() const { return field_; }

 private:
  std::string field_;
};

// What becomes of integers of more than 64 bits: doubles, or what number_text() takes.
enum class LargeIntegers : std::uint8_t { rounded, kept };

// Parses a JSON text; of a repeated key the last value is kept. Throws Error, which starts with `source`, if the text
// is not JSON, is longer than max_chat_json_size or is nested over 150 deep. Without `large`, integers of more than 64
// bits are kept in the fields of requests that have schemas, and others throw LargeInteger.
ChatJson parse_chat_json(std::string_view text, const std::string& source,
                         std::optional<LargeIntegers> large = std::nullopt);

// Returns the kind of a value for messages, such as "a string".
std::string_view kind_of(const ChatJson& value);

// Returns the value as Python's json.dumps(value, ensure_ascii=False) writes it, on one line or indented by two spaces
// per level.
std::string json_line(const ChatJson& value);
std::string json_indented(const ChatJson& value);

// A list whose items are written one by one: as text they take a tenth of the memory.
class WrittenList {
 public:
  void push_back(const ChatJson& item);
  // Returns the list, which only the two functions above can read, and begins a new one.
  ChatJson take();

 private:
  std::vector<std::uint8_t> text_{};
};

// The fields of an object in the JSON of a conversation or a request, read one by one. `where` names the object in
// messages: "WHERE.field is FOUND, expected WANTED".
class ChatFields : public BasicJsonFields<ChatJson> {
 public:
  // Throws Error if `object`, which must outlive this, is not an object.
  ChatFields(const ChatJson& object, std::string where);

  const std::string& where() const { return name(); }

  // Returns the field. Throws Error if it is missing or null: "WHERE has no "field"".
  const ChatJson& required(std::string_view key) const;
  // The same of a string.
  std::string required_text(std::string_view key) const;

  // Throws Error about a field that is not null, [] or {} and not in `known`, because saving would lose it.
  void allow_only(std::initializer_list<std::string_view> known) const;

 protected:
  std::string shown(const ChatJson& value) const override;

 private:
  const ChatJson& object_;
};

// Converts the value for a chat template. All its strings are marked, so that they can be told from the template's own
// text in what it renders.
jinja::Value template_value(const ChatJson& value);

}  // namespace minimind
