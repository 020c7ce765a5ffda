#include "tools/terminal/language.h"

#include <langinfo.h>
#include <locale.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "weights/base/text.h"

namespace minimind {
namespace {

Language in_force = Language::english;

bool is_utf8_codeset(std::string_view codeset) {
  const std::string name = lower_case(codeset);
  return name == "utf-8" || name == "utf8";
}

// LANGUAGE is a list; the first one is preferred.
std::string locale_name() {
  for (const char* variable : {"LC_ALL", "LC_MESSAGES", "LANG", "LANGUAGE"}) {
    const char* value = std::getenv(variable);
    if (value && *value) return std::string(value).substr(0, std::string_view(value).find(':'));
  }
  return "";
}

// Whether a locale without a character set in its name uses UTF-8, which is assumed if the system lacks the locale.
bool has_utf8_characters(const std::string& locale) {
  const locale_t found = newlocale(LC_CTYPE_MASK, locale.c_str(), nullptr);
  if (!found) return true;
  const bool utf8 = is_utf8_codeset(nl_langinfo_l(CODESET, found));
  freelocale(found);
  return utf8;
}

}  // namespace

std::optional<Language> parse_language(std::string_view name) {
  const std::string language = lower_case(name.substr(0, std::min(name.find_first_of("_-.@"), name.size())));
  if (language == "zh") return Language::chinese;
  if (language == "en") return Language::english;
  return std::nullopt;
}

Language language_of_environment() {
  const std::string locale = locale_name();
  if (parse_language(locale) != Language::chinese) return Language::english;
  const std::size_t dot = locale.find('.');
  if (dot == std::string::npos) return has_utf8_characters(locale) ? Language::chinese : Language::english;
  const std::string codeset = locale.substr(dot + 1, locale.find('@', dot) - dot - 1);
  return is_utf8_codeset(codeset) ? Language::chinese : Language::english;
}

void set_language(Language language) {
  in_force = language;
}

Language language() {
  return in_force;
}

std::string bilingual(std::string_view english, std::string_view chinese) {
  return fmt::format("{}\n{}", english, chinese);
}

std::string_view in_language(std::string_view both) {
  const std::size_t end = both.find('\n');
  if (end == std::string_view::npos) return both;
  return in_force == Language::english ? both.substr(0, end) : both.substr(end + 1);
}

std::string_view translated(std::string_view english) {
  if (in_force == Language::english) return english;
  static const auto chinese_of = [] {
    std::unordered_map<std::string_view, std::string_view> map;
    for (const Translation& translation : translations()) map.emplace(translation.english, translation.chinese);
    return map;
  }();
  const auto found = chinese_of.find(english);
  return found == chinese_of.end() ? english : found->second;
}

std::string counted(std::size_t count, fmt::format_string<std::size_t&> one, fmt::format_string<std::size_t&> many) {
  return localized(count == 1 ? one : many, count);
}

}  // namespace minimind
