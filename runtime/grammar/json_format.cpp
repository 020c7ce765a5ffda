#include "runtime/grammar/json_format.h"

namespace minimind {

std::optional<std::string> pattern_of_format(std::string_view format) {
  // RFC 3339, with the lengths of months and leap years.
  static const std::string date =
      R"((?:[1-9]\d{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30))"
      R"(|02-(?:0[1-9]|1\d|2[0-8]))|(?:[1-9]\d(?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)-02-29))";
  static const std::string time =
      R"((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))";
  static const std::string label = "[a-z](?:-?[a-z0-9]){0,28}";
  static const std::string octet = R"((?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";
  std::string pattern;
  if (format == "date") pattern = date;
  if (format == "time") pattern = time;
  if (format == "date-time") pattern = date + "T" + time;
  if (format == "uuid") pattern = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}";
  if (format == "hostname") pattern = "(?:" + label + "\\.){0,3}" + label;
  if (format == "email") pattern = "[a-z0-9](?:[._+-]?[a-z0-9]){0,31}@(?:" + label + "\\.){1,3}" + label;
  if (format == "ipv4") pattern = "(?:" + octet + "\\.){3}" + octet;
  if (format == "ipv6") pattern = "(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}";
  if (pattern.empty()) return std::nullopt;
  return "^" + pattern + "$";
}

}  // namespace minimind
