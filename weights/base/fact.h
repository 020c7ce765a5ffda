#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace minimind {

// Something that a person should know, found below `tools`: a sentence with {} and the values for them. The sentence
// identifies the fact. Whoever tells the fact chooses its language; errors and output for programs are English.
class Fact {
 public:
  struct Value;

  Fact() = default;

  // The values are whole numbers, texts that are the same in every language, such as names, and other facts.
  template <class... Values>
  explicit Fact(fmt::format_string<const Values&...> sentence, const Values&... values);

  // Returns the sentence with its values, each sentence as `translate` gives it.
  std::string told(std::string_view (*translate)(std::string_view english)) const;
  std::string english() const {
    return told([](std::string_view sentence) { return sentence; });
  }

  // Returns true if both say the same.
  bool operator==(const Fact& other) const { return english() == other.english(); }

 private:
  std::string_view sentence_;
  std::vector<Value> values_;
};

struct Fact::Value {
  std::variant<std::size_t, std::string, Fact> value;

  template <class Given>
  static Value of(const Given& given) {
    if constexpr (std::is_same_v<Given, Fact>) {
      return {given};
    } else if constexpr (std::is_integral_v<Given>) {
      static_assert(std::is_unsigned_v<Given>);
      return {std::size_t{given}};
    } else {
      return {std::string(given)};
    }
  }
};

template <class... Values>
Fact::Fact(fmt::format_string<const Values&...> sentence, const Values&... values) : values_{Value::of(values)...} {
  const fmt::string_view text = sentence;
  sentence_ = {text.data(), text.size()};
}

}  // namespace minimind

// In English.
template <>
struct fmt::formatter<minimind::Fact> : fmt::formatter<std::string> {
  auto format(const minimind::Fact& fact, fmt::format_context& context) const {
    return fmt::formatter<std::string>::format(fact.english(), context);
  }
};
