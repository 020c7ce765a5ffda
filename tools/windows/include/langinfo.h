#pragma once
#include <clocale>

#define CODESET 14
#define LC_CTYPE_MASK 1

using locale_t = const char*;

// All text is UTF-8, in every locale.
inline locale_t newlocale(int, const char* name, locale_t) {
  return name;
}
inline void freelocale(locale_t) {}
inline const char* nl_langinfo_l(int, locale_t) {
  return "UTF-8";
}
