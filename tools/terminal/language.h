#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace minimind {

// What help, notes and the chat's own words are written in. Errors are English in every language, so that they can be
// searched for, and so is what programs read.
enum class Language { english, chinese };

// "zh" and "en", also as in zh_CN.UTF-8 or zh-Hans; nullopt for any other.
std::optional<Language> parse_language(std::string_view name);

// That of the locale: the first of LC_ALL, LC_MESSAGES, LANG and LANGUAGE that is set decides. Chinese only if the
// locale is Chinese and its characters are UTF-8; English otherwise.
Language language_of_environment();

// The language in force: English until it is set.
void set_language(Language language);
Language language();

struct Translation {
  std::string_view english, chinese;
};

// All that is said, in both languages. The Chinese has the same {} as the English, numbered where their order differs.
std::span<const Translation> translations();

// Likewise, what the code below `tools` says in notes.
std::span<const Translation> sentence_translations();

// `english` in the language in force; itself if there is no translation.
std::string_view translated(std::string_view english);

// A sentence that the code below `tools` has composed in English, in the language in force: the first of
// sentence_translations() that fits it, with what is in place of its {} translated in the same way; itself if none
// fits.
std::string translated_sentence(std::string_view english);

// fmt::format in the language in force.
template <class... Args>
std::string localized(fmt::format_string<Args...> english, Args&&... args) {
  const fmt::string_view text = english;
  const std::string_view format = translated({text.data(), text.size()});
  return fmt::vformat({format.data(), format.size()}, fmt::make_format_args(args...));
}

// `one` if the count is 1, otherwise `many`, as in counted(turns, "{} turn", "{} turns").
std::string counted(std::size_t count, fmt::format_string<std::size_t&> one, fmt::format_string<std::size_t&> many);

}  // namespace minimind
