#pragma once

#include <cstddef>
#include <cstdint>
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
// Integers of more than 64 bits are doubles, or binary values of their digits, see number_text.h.
template <class Json>
Json parse_json(std::string_view text, const std::string& source, int most_levels, std::string_view wanted,
                bool keeps_large = false);

// Parses an object in the same way, and calls use(name, value) with each member instead of keeping it; the same name
// may come again. A key that is repeated inside of a member throws Error.
void read_json_members(std::string_view text, const std::string& source, int most_levels,
                       const std::function<void(const std::string& name, const nlohmann::json& value)>& use);

// Reads the JSON object in a file as read_json_object() does, but gives the contents of the objects and arrays in its
// member `member` to use(name of the object or array, name or empty, value) one by one, and leaves those empty. A key
// that is repeated elsewhere throws Error.
using UseInside = std::function<void(const std::string& of, const std::string& name, const nlohmann::json& value)>;
nlohmann::json read_json_inside(const std::string& path, std::string_view member, const UseInside& use);

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

// A JSON object from outside, nlohmann::json or nlohmann::ordered_json, read field by field. An unexpected field throws
// Error: "file: object.field is FOUND, expected WANTED".
template <class Json>
class BasicJsonFields {
 public:
  // The name of a field, or several names of the same one.
  class Names {
   public:
    Names(const char* name) : names_{name} {}
    Names(const std::string& name) : names_{name} {}
    Names(std::string_view name) : names_{name} {}
    Names(std::initializer_list<std::string_view> names) : names_(names) {}
    const std::vector<std::string_view>& all() const { return names_; }

   private:
    std::vector<std::string_view> names_;
  };

  // `source` is the file, empty if `name` tells enough; `name` is the object's own field name, empty for the whole
  // file. `object` must outlive the reader. Throws Error if it is not an object.
  BasicJsonFields(const Json& object, std::string source, std::string name);
  virtual ~BasicJsonFields() = default;

  // Returns the field; nullptr if it is missing or null.
  const Json* find(std::string_view key) const;
  // Returns the field, null if it is missing.
  const Json& get(std::string_view key) const;

  // Fields of one type; std::nullopt if all of `names` are missing or null. Several present names must agree.
  std::optional<std::uint64_t> whole(const Names& names, std::uint64_t least, std::uint64_t most) const;
  std::optional<double> positive(const Names& names) const;
  std::optional<bool> flag(const Names& names) const;
  std::optional<std::string> text(const Names& names) const;
  std::optional<BasicJsonFields> object(const Names& names) const;

  // The same, but a field that is missing or null throws Error.
  bool required_flag(std::string_view key) const;
  std::string required_text(std::string_view key) const;
  BasicJsonFields required_object(std::string_view key) const;
  std::vector<std::size_t> required_sizes(std::string_view key) const;
  // A flag that may be missing, but not null.
  bool flag_or(std::string_view key, bool if_missing) const;

  // Throws Error if the object has a field that is not in `known`.
  void allow_only(std::initializer_list<std::string_view> known) const;

  // Returns the fields that no call has read, or only those that are not null.
  enum class Nulls { counted, ignored };
  std::vector<std::string> unused(Nulls nulls = Nulls::counted) const;

  // Throws Error about a field.
  [[noreturn]] void fail(std::string_view key, std::string_view wanted) const;

  std::string name_of(std::string_view key) const;

 protected:
  const std::string& name() const { return name_; }

  // Returns a value for a message.
  virtual std::string shown(const Json& value) const;
  // Throws what throw_own() throws, else Error.
  [[noreturn]] void raise(const std::string& message, std::string_view key) const;
  // Throws the exception that a reader has in place of Error. `field` is the name of the field in the file.
  virtual void throw_own(const std::string& message, const std::string& field) const;

 private:
  std::string_view present(const Names& names) const;

  const Json& object_;
  std::string source_;
  std::string name_;
  mutable std::set<std::string, std::less<>> used_;
};

extern template class BasicJsonFields<nlohmann::json>;
extern template class BasicJsonFields<nlohmann::ordered_json>;

using JsonFields = BasicJsonFields<nlohmann::json>;

// Returns a value for an error message: a scalar or a short container as JSON, a longer container by its kind.
std::string describe(const nlohmann::json& value);

}  // namespace minimind
