#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace minimind {

// The type codes of the format.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

// "u32", "string", ...
std::string_view name_of(GgufType type);

// One value of the metadata. Numbers are widened; `type` says what is, or will be, in the file. An array has the type
// of its elements in `type` and holds them in one of the vectors; arrays of arrays are not read.
struct GgufValue {
  using Data =
      std::variant<std::uint64_t, std::int64_t, double, bool, std::string, std::vector<std::uint64_t>,
                   std::vector<std::int64_t>, std::vector<double>, std::vector<bool>, std::vector<std::string>>;
  GgufType type = GgufType::u32;  // of the value, or of each element
  Data data;

  bool is_array() const { return data.index() >= 5; }
};

// Keys in the order of the file; no key is repeated.
class GgufMetadata {
 public:
  // std::nullopt if the key is absent.
  const GgufValue* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  // Replaces the value of a key that is there already.
  void set(std::string key, GgufValue value);
  const std::vector<std::pair<std::string, GgufValue>>& entries() const { return entries_; }

  // For writing, in the types that llama.cpp expects.
  void set_u32(std::string key, std::uint32_t value);
  void set_f32(std::string key, float value);
  void set_bool(std::string key, bool value);
  void set_string(std::string key, std::string value);
  void set_strings(std::string key, std::vector<std::string> values);
  void set_i32s(std::string key, const std::vector<std::int32_t>& values);

 private:
  std::vector<std::pair<std::string, GgufValue>> entries_;
};

// A value for people to read: 768, 1e-06, true, "qwen3", [1, 2], "6400 strings". Long texts are cut, and say how long
// they are.
std::string shown(const GgufValue& value);

// A number of the metadata as it was meant: a float32 is the shortest decimal that gives it, 1e-06 and not
// 9.999999974752427e-07.
double as_meant(double value, GgufType type);

}  // namespace minimind
