#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace minimind {

// Parses `text` as nlohmann::json or nlohmann::ordered_json, in time linear in its size; of a repeated key the last
// value is kept. Throws Error, starting with `source`, if `text` is not JSON or is nested over `most_levels` deep: the
// parser does not recurse, but printing, comparing and copying its values does. Throws Error, too, if the values would
// take more memory than 64 MiB and four times the text. The message names `wanted`, such as "a JSON object".
template <class Json>
Json parse_json(std::string_view text, const std::string& source, int most_levels, std::string_view wanted);

// Parses an object in the same way, and calls use(name, value) with each member instead of keeping it; the same name
// may come again. A key that is repeated inside of a member throws Error.
void read_json_members(std::string_view text, const std::string& source, int most_levels,
                       const std::function<void(const std::string& name, const nlohmann::json& value)>& use);

enum class InvalidUtf8 { refuse, replace };

// Returns an nlohmann::json or nlohmann::ordered_json as text, on one line or with `indent` spaces per level. Text that
// is not UTF-8 throws nlohmann's type_error or is replaced by U+FFFD.
template <class Json>
std::string dump_json(const Json& value, int indent = -1, InvalidUtf8 invalid = InvalidUtf8::refuse);

// Returns the JSON object in `text`. Throws Error, starting with `source`, if `text` is not JSON, is nested over 16
// levels deep or is another value.
nlohmann::json parse_json_object(std::string_view text, const std::string& source);

// Returns the JSON object in a file. Throws Error, too, if the file cannot be read or is over 64 MiB.
nlohmann::json read_json_object(const std::string& path);

// A JSON object from a file, read field by field. Throws Error for an unexpected field: "file: object.field is FOUND,
// expected WANTED".
class JsonFields {
 public:
  using Names = std::initializer_list<std::string_view>;

  // `name` is the object's own field name, empty for the whole file. `object` must outlive the reader.
  JsonFields(const nlohmann::json& object, std::string path, std::string name);

  // Returns the field, or null if it is missing.
  const nlohmann::json& get(std::string_view key) const;

  // Required fields of one type. A missing flag is `if_absent`, if given.
  JsonFields object(std::string_view key) const;
  bool flag(std::string_view key, std::optional<bool> if_absent = std::nullopt) const;
  std::string text(std::string_view key) const;
  std::vector<std::size_t> sizes(std::string_view key) const;

  // Optional fields: std::nullopt if all of `names` are missing or null. Several present names must agree.
  std::optional<std::size_t> optional_size(Names names, std::size_t largest) const;
  std::optional<double> optional_positive(Names names) const;
  std::optional<bool> optional_flag(Names names) const;
  std::optional<std::string> optional_text(Names names) const;
  std::optional<JsonFields> optional_object(Names names) const;

  // Throws Error if the object has a field that is not in `known`.
  void allow_only(Names known) const;

  // Returns the fields that no call of get or of another function has read.
  std::vector<std::string> unused() const;

  // Throws Error about a field.
  [[noreturn]] void fail(std::string_view key, std::string_view wanted) const;

  std::string name_of(std::string_view key) const;

 private:
  std::string_view find(Names names) const;

  const nlohmann::json& object_;
  std::string path_;
  std::string name_;
  mutable std::set<std::string, std::less<>> used_;
};

// Returns a value for an error message: a scalar or a short container as JSON, a longer container by its kind.
std::string describe(const nlohmann::json& value);

}  // namespace minimind
