#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weights/base/fact.h"

namespace minimind {

// The language of help, notes and the chat's own texts. Errors are always English, so that they can be searched for,
// and so is output for programs.
enum class Language { english, chinese };

// Parses "zh" and "en", also as in zh_CN.UTF-8 or zh-Hans; std::nullopt for any other.
std::optional<Language> parse_language(std::string_view name);

// Returns the language of the locale, which is the first of LC_ALL, LC_MESSAGES, LANG and LANGUAGE that is set: Chinese
// if the locale is Chinese with UTF-8, otherwise English.
Language language_of_environment();

// The current language: English until it is set.
void set_language(Language language);
Language language();

struct Translation {
  std::string_view english, chinese;
};

// The texts of notes in both languages; those of help stand where options and commands are made. The Chinese text has
// the same {} as the English one, numbered if their order differs.
std::span<const Translation> translations();

// Returns one string with a text in both languages, for texts that are kept where CLI11 has a place for one: see
// in_language(). Neither has a line's end.
std::string bilingual(std::string_view english, std::string_view chinese);

// Returns the part of a bilingual() string that is in the current language.
std::string_view in_language(std::string_view both);

// Returns `english` in the current language; unchanged if there is no translation.
std::string_view translated(std::string_view english);

// fmt::format in the current language.
template <class... Args>
std::string localized(fmt::format_string<Args...> english, Args&&... args) {
  const fmt::string_view text = english;
  const std::string_view format = translated({text.data(), text.size()});
  return fmt::vformat({format.data(), format.size()}, fmt::make_format_args(args...));
}

// Returns the sentence of a fact in the current language.
inline std::string localized(const Fact& fact) {
  return fact.told(translated);
}

// Formats `one` if the count is 1, otherwise `many`, as in counted(turns, "{} turn", "{} turns").
std::string counted(std::size_t count, fmt::format_string<std::size_t&> one, fmt::format_string<std::size_t&> many);

}  // namespace minimind
