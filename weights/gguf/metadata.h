#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace minimind {

// The facts of GGUF that its reader and writer share.
inline constexpr std::string_view gguf_magic = "GGUF";
inline constexpr std::string_view gguf_alignment_key = "general.alignment";
inline constexpr std::size_t gguf_default_alignment = 32;  // of each tensor, in bytes from the first
inline constexpr std::size_t gguf_most_dimensions = 4;     // ggml's GGML_MAX_DIMS
inline constexpr std::size_t gguf_longest_name = 63;       // ggml's GGML_MAX_NAME, without the zero that ends it

// Returns the next multiple of `alignment`. The result must not overflow.
constexpr std::size_t gguf_padded(std::size_t size, std::size_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

// The type codes of GGUF's metadata values.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

// "u32", "string", ...
std::string_view name_of(GgufType type);

// The numbers of an array. They take the memory of the type that they have in the file, and are read as the widest
// of their kind.
template <class Wide>
class GgufNumbers {
  template <class... Number>
  using Vectors = std::variant<std::vector<Number>...>;
  using Unsigned = Vectors<std::uint64_t, std::uint8_t, std::uint16_t, std::uint32_t>;
  using Signed = Vectors<std::int64_t, std::int8_t, std::int16_t, std::int32_t>;
  using Real = Vectors<double, float>;
  using Numbers = std::conditional_t<std::is_floating_point_v<Wide>, Real,
                                     std::conditional_t<std::is_signed_v<Wide>, Signed, Unsigned>>;

 public:
  template <class Number>
  requires std::is_constructible_v<Numbers, std::vector<Number>> GgufNumbers(std::vector<Number> numbers)
      : numbers_(std::move(numbers)) {}

  std::size_t size() const {
    return std::visit([](const auto& numbers) { return numbers.size(); }, numbers_);
  }
  Wide operator[](std::size_t i) const {
    return std::visit([&](const auto& numbers) { return Wide{numbers[i]}; }, numbers_);
  }
  std::vector<Wide> widened() const {
    return std::visit([](const auto& numbers) { return std::vector<Wide>(numbers.begin(), numbers.end()); }, numbers_);
  }
  bool operator==(const GgufNumbers& other) const { return widened() == other.widened(); }

 private:
  Numbers numbers_;
};

// The strings of an array, one after another in one text: as std::string, those of a few bytes would take four times
// the memory that they have in the file.
class GgufTexts {
 public:
  GgufTexts() = default;
  GgufTexts(const std::vector<std::string>& texts) {
    reserve(texts.size());
    for (const std::string& text : texts) add(text);
  }

  void reserve(std::size_t count) { ends_.reserve(count); }
  void add(std::string_view text) { ends_.push_back(joined_.append(text).size()); }
  std::size_t size() const { return ends_.size(); }
  // The result is valid until the next add().
  std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(joined_).substr(begin, ends_[i] - begin);
  }
  std::vector<std::string> separate() const {
    std::vector<std::string> texts(size());
    for (std::size_t i = 0; i < size(); ++i) texts[i] = (*this)[i];
    return texts;
  }
  bool operator==(const GgufTexts& other) const = default;

 private:
  std::string joined_;
  std::vector<std::size_t> ends_;
};

// One value of the metadata. A number is widened; `type` is the type in the file. For an array, `type` is the type of
// its elements. Arrays of arrays are not supported.
struct GgufValue {
  using Data = std::variant<std::uint64_t, std::int64_t, double, bool, std::string, GgufNumbers<std::uint64_t>,
                            GgufNumbers<std::int64_t>, GgufNumbers<double>, std::vector<bool>, GgufTexts>;
  GgufType type = GgufType::u32;  // of the value, or of each element
  Data data;

  bool is_array() const { return data.index() >= 5; }
  std::size_t size() const;  // the number of an array's elements
};

// Returns use.operator()<Wide, Number>() for a type of numbers: `Number` in the file, `Wide` as GgufValue has it.
template <class Use>
auto with_number_type(GgufType type, const Use& use) {
  switch (type) {
    case GgufType::u8:
      return use.template operator()<std::uint64_t, std::uint8_t>();
    case GgufType::u16:
      return use.template operator()<std::uint64_t, std::uint16_t>();
    case GgufType::u32:
      return use.template operator()<std::uint64_t, std::uint32_t>();
    case GgufType::u64:
      return use.template operator()<std::uint64_t, std::uint64_t>();
    case GgufType::i8:
      return use.template operator()<std::int64_t, std::int8_t>();
    case GgufType::i16:
      return use.template operator()<std::int64_t, std::int16_t>();
    case GgufType::i32:
      return use.template operator()<std::int64_t, std::int32_t>();
    case GgufType::i64:
      return use.template operator()<std::int64_t, std::int64_t>();
    case GgufType::f32:
      return use.template operator()<double, float>();
    default:
      return use.template operator()<double, double>();
  }
}

// The metadata. Keys are in the order of the file and are not repeated.
class GgufMetadata {
 public:
  // Returns the value of a key, null if it is absent.
  const GgufValue* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  // Sets a key; replaces the value of an existing key.
  void set(std::string key, GgufValue value);
  const std::vector<std::pair<std::string, GgufValue>>& entries() const { return entries_; }

  // For writing, in the types that llama.cpp expects.
  void set_u32(std::string key, std::uint32_t value) { set(std::move(key), {GgufType::u32, std::uint64_t{value}}); }
  void set_f32(std::string key, float value) { set(std::move(key), {GgufType::f32, double{value}}); }
  void set_bool(std::string key, bool value) { set(std::move(key), {GgufType::boolean, value}); }
  void set_string(std::string key, std::string value) { set(std::move(key), {GgufType::string, std::move(value)}); }
  void set_strings(std::string key, const std::vector<std::string>& values) {
    set(std::move(key), {GgufType::string, GgufTexts(values)});
  }
  void set_i32s(std::string key, const std::vector<std::int32_t>& values) {
    set(std::move(key), {GgufType::i32, GgufNumbers<std::int64_t>(values)});
  }

 private:
  // Returns where in by_key_ the entry of a key is, or would be.
  std::size_t place_of(std::string_view key) const;

  std::vector<std::pair<std::string, GgufValue>> entries_;
  std::vector<std::size_t> by_key_;  // positions in entries_, in the order of their keys
};

// The metadata of one file, read key by key. An unexpected value throws Error: "file: key is FOUND, expected WANTED".
class GgufFields {
 public:
  // `metadata` must outlive the reader.
  GgufFields(const GgufMetadata& metadata, std::string source) : metadata_(metadata), source_(std::move(source)) {}
  virtual ~GgufFields() = default;

  const std::string& source() const { return source_; }

  // Returns the value of a key; nullptr if it is missing. One that is no Data throws Error.
  const GgufValue* find(std::string_view key) const;
  template <class Data>
  const Data* get(std::string_view key, std::string_view wanted) const {
    const GgufValue* const value = find(key);
    const Data* const data = value ? std::get_if<Data>(&value->data) : nullptr;
    if (value && !data) fail(key, wanted);
    return data;
  }
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  // The number, or the numbers of an array of at most `most`; empty if the key is missing. One that overflows 64 bits
  // with a sign is -1.
  std::vector<std::int64_t> whole_numbers(std::string_view key, std::string_view wanted,
                                          std::size_t most = std::size_t{1} << 20) const;

  // Returns the keys that no call has read.
  std::vector<std::string> unused() const;

  // Throws Error about the value of a key.
  [[noreturn]] void fail(std::string_view key, std::string_view wanted) const;

 protected:
  virtual std::string message(std::string_view key, std::string_view wanted) const;

 private:
  const GgufMetadata& metadata_;
  std::string source_;
  mutable std::set<std::string, std::less<>> used_;
};

// Returns a readable form of a value: 768, 1e-06, true, "qwen3", [1, 2], "6400 strings". Long strings are truncated
// with their length.
std::string shown(const GgufValue& value);

// Returns the intended number: for a float32, the shortest decimal that rounds to it, 1e-06 instead of
// 9.999999974752427e-07.
double as_meant(double value, GgufType type);

}  // namespace minimind
