#include "runtime/chat/chat_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/text/utf8.h"
#include "weights/base/text.h"
#include "weights/io/number_text.h"

namespace minimind {
namespace {

constexpr int max_depth = 150;
constexpr std::array<std::string_view, 8> fields_with_schemas = {
    "format", "functions", "guided_json", "json_schema", "response_format", "structured_outputs", "text", "tools"};

// Throws Error for rejected JSON; nlohmann's parser does not recurse.
class JsonCheck : public nlohmann::json_sax<ChatJson> {
 public:
  JsonCheck(const std::string& source, bool rejects_large) : source_(source), rejects_large_(rejects_large) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) check_large(std::to_string(value));
    return true;
  }
  bool number_float(number_float_t, const string_t& digits) override {
    if (digits.find_first_of(".eE") == string_t::npos) check_large(digits);
    return true;
  }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& name) override {
    if (depth_ == 1) field_ = name;
    if (depth_ <= schema_depth_) schema_depth_ = 0;
    if (schema_depth_ == 0 && std::ranges::find(fields_with_schemas, name) != fields_with_schemas.end())
      schema_depth_ = depth_;
    return true;
  }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }

  bool parse_error(std::size_t position, const std::string&, const ChatJson::exception&) override {
    throw Error(fmt::format("{}: is not valid JSON at byte {}", source_, position));
  }

 private:
  void check_large(const std::string& digits) const {
    if (!rejects_large_ || schema_depth_ > 0) return;
    throw LargeInteger(
        fmt::format("{}: the integer {} does not fit in 64 bits with a sign", source_, digits.substr(0, 40)), field_);
  }

  bool enter() {
    if (depth_ == max_depth)
      throw Error(fmt::format("{}: is nested too deeply, expected at most {} levels", source_, max_depth));
    ++depth_;
    return true;
  }

  bool leave() {
    --depth_;
    return true;
  }

  const std::string& source_;
  const bool rejects_large_;
  std::size_t depth_ = 0, schema_depth_ = 0;  // the latter of the field with schemas that this is in, from 1
  std::string field_;
};

// nlohmann's dump() on one line has no spaces, formats floats with other digits, and takes long for short values.
class ChatJsonWriter {
 public:
  explicit ChatJsonWriter(bool indented) : indented_(indented) {}

  void write(const ChatJson& value) {
    if (value.is_binary()) {  // JSON already
      text_.append(value.get_binary().begin(), value.get_binary().end());
    } else if (value.is_number_float()) {
      text_ += jinja::python_float(value.get<double>());
    } else if (value.is_number_unsigned()) {
      text_ += std::to_string(value.get<std::uint64_t>());
    } else if (value.is_number_integer()) {
      text_ += std::to_string(value.get<std::int64_t>());
    } else if (value.is_string()) {
      write_text(value.get_ref<const std::string&>());
    } else if (value.empty() || !value.is_structured()) {
      text_ += dump_json(value);
    } else if (value.is_array()) {
      write_items('[', value.get_ref<const ChatJson::array_t&>(), ']', [this](const ChatJson& item) { write(item); });
    } else {
      write_items('{', value.get_ref<const ChatJson::object_t&>(), '}', [this](const auto& member) {
        write_text(member.first);
        text_ += ": ";
        write(member.second);
      });
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void write_text(const std::string& text) {
    const auto is_escaped = [](unsigned char c) { return c < ' ' || c == '"' || c == '\\'; };
    if (std::ranges::any_of(text, is_escaped) || !is_utf8(text)) {
      text_ += dump_json(ChatJson(text), -1, InvalidUtf8::replace);
    } else {
      text_.append(1, '"').append(text).append(1, '"');
    }
  }

  template <class Items, class WriteItem>
  void write_items(char start, const Items& items, char end, const WriteItem& write_item) {
    text_ += start;
    ++level_;
    bool is_first = true;
    for (const auto& item : items) {
      if (!std::exchange(is_first, false)) text_ += indented_ ? "," : ", ";
      begin_line();
      write_item(item);
    }
    --level_;
    begin_line();
    text_ += end;
  }

  void begin_line() {
    if (indented_) text_.append("\n").append(2 * level_, ' ');
  }

  bool indented_;
  std::size_t level_ = 0;
  std::string text_;
};

std::string written(const ChatJson& value, bool indented) {
  ChatJsonWriter writer(indented);
  writer.write(value);
  return writer.take();
}

const ChatJson& checked_object(const ChatJson& value, const std::string& where) {
  if (value.is_object()) return value;
  throw Error(fmt::format("{} is {}, expected an object", where, kind_of(value)));
}

// The limits of parse_chat_json() have already been applied to this value.
jinja::Value value_of(const ChatJson& json, jinja::Budget& budget) {
  switch (json.type()) {
    case ChatJson::value_t::boolean:
      return json.get<bool>();
    case ChatJson::value_t::number_integer:
      return json.get<std::int64_t>();
    case ChatJson::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) return json.get<double>();
      return json.get<std::int64_t>();
    case ChatJson::value_t::number_float:
      return json.get<double>();
    case ChatJson::value_t::binary:
      return std::strtod(number_text(json)->c_str(), nullptr);
    case ChatJson::value_t::string:
      return MarkedText::all(json.get<std::string>());
    case ChatJson::value_t::array: {
      std::vector<jinja::Value> items;
      for (const ChatJson& item : json) items.push_back(value_of(item, budget));
      return jinja::make_list(std::move(items), budget);
    }
    case ChatJson::value_t::object: {
      jinja::Dict dict;
      for (const auto& item : json.items()) dict.set(MarkedText::all(item.key()), value_of(item.value(), budget));
      return jinja::make_dict(std::move(dict), budget);
    }
    default:
      return jinja::None{};
  }
}

}  // namespace

ChatJson parse_chat_json(std::string_view text, const std::string& source, std::optional<LargeIntegers> large) {
  if (text.size() > max_chat_json_size) {
    throw Error(fmt::format("{}: is {} bytes long, expected at most {}", source, text.size(), max_chat_json_size));
  }
  JsonCheck check(source, !large);
  // ChatJson::sax_parse() would bring the library's readers of five binary formats.
  const auto bytes = [text] { return nlohmann::detail::input_adapter(text.begin(), text.end()); };
  nlohmann::detail::parser<ChatJson, decltype(bytes())>(bytes()).sax_parse(&check);
  return parse_json<ChatJson>(text, source, max_depth, "a JSON text", large != LargeIntegers::rounded);
}

std::string_view kind_of(const ChatJson& value) {
  switch (value.type()) {
    case ChatJson::value_t::boolean:
      return "a boolean";
    case ChatJson::value_t::number_integer:
    case ChatJson::value_t::number_unsigned:
    case ChatJson::value_t::binary:
      return "an integer";
    case ChatJson::value_t::number_float:
      return "a float";
    case ChatJson::value_t::string:
      return "a string";
    case ChatJson::value_t::array:
      return "a list";
    case ChatJson::value_t::object:
      return "a mapping";
    default:
      return "none";
  }
}

std::string json_line(const ChatJson& value) {
  return written(value, false);
}

std::string json_indented(const ChatJson& value) {
  return written(value, true);
}

void WrittenList::push_back(const ChatJson& item) {
  const std::string text = (text_.empty() ? "[" : ", ") + json_line(item);
  text_.insert(text_.end(), text.begin(), text.end());
}

ChatJson WrittenList::take() {
  if (text_.empty()) return ChatJson::array();
  text_.push_back(']');
  return ChatJson::binary(std::exchange(text_, {}));
}

ChatFields::ChatFields(const ChatJson& object, std::string where)
    : BasicJsonFields(checked_object(object, where), "", where), object_(object) {}

const ChatJson& ChatFields::required(std::string_view key) const {
  const ChatJson* const value = find(key);
  if (!value) raise(fmt::format("{} has no \"{}\"", where(), key), key);
  return *value;
}

std::string ChatFields::required_text(std::string_view key) const {
  if (!required(key).is_string()) fail(key, "a string");
  return required(key).get<std::string>();
}

void ChatFields::allow_only(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : object_.items()) {
    // Clients send back what answers of other servers have for nothing, such as [] for annotations.
    const bool is_nothing = value.empty();  // null, [] or {}
    if (is_nothing || std::find(known.begin(), known.end(), key) != known.end()) continue;
    raise(fmt::format("{} has the unknown key {}, expected a known one; remove it", where(), quote(key)), key);
  }
}

std::string ChatFields::shown(const ChatJson& value) const {
  constexpr std::size_t longest = 200;
  if (value.is_structured()) return std::string(kind_of(value));
  const std::string text = json_line(value);
  return text.size() <= longest ? text : std::string(kind_of(value));
}

jinja::Value template_value(const ChatJson& value) {
  jinja::Budget budget({.steps = SIZE_MAX, .depth = SIZE_MAX, .bytes = SIZE_MAX, .output = SIZE_MAX});
  return value_of(value, budget);
}

}  // namespace minimind
