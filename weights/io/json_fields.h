#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace minimind {

// The JSON object in the file `path`. Throws Error when the file cannot be read, is over 64 MiB, is no JSON, is nested
// over 16 deep or holds something other than an object.
nlohmann::json read_json_object(const std::string& path);

// A JSON object from a file, read field by field. What is not as wanted throws Error with the file, the field's full
// name, what was found and what was wanted.
class JsonFields {
 public:
  // `name` is the object's own field name, empty for the whole file. `object` must outlive this.
  JsonFields(const nlohmann::json& object, std::string path, std::string name);

  // The field, or null when it is not there.
  const nlohmann::json& get(std::string_view key) const;

  // A field that must be an object.
  JsonFields object(std::string_view key) const;

  // A field that must be true or false; `if_absent` stands for a missing one.
  bool flag(std::string_view key, std::optional<bool> if_absent = std::nullopt) const;

  // A field that must be a string.
  std::string text(std::string_view key) const;

  // A field that is a string, or null or missing.
  std::optional<std::string> optional_text(std::string_view key) const;

  // Throws when the object has a field that is not in `known`.
  void allow_only(std::initializer_list<std::string_view> known) const;

  [[noreturn]] void fail(std::string_view key, std::string_view wanted) const;

  std::string name_of(std::string_view key) const;

 private:
  const nlohmann::json& object_;
  std::string path_;
  std::string name_;
};

// A value for an error message: a scalar as it stands, a container by its kind.
std::string describe(const nlohmann::json& value);

}  // namespace minimind
