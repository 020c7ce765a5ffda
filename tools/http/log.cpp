#include "tools/http/log.h"

#include <fmt/format.h>

#include <ctime>

#include "tools/http/head.h"

namespace minimind {
namespace {

constexpr std::size_t longest_path = 200;

std::string timestamp(std::chrono::system_clock::time_point time) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, milliseconds % 1000);
}

std::string shown(std::string_view text) {
  if (text.empty()) return "-";
  std::string result;
  for (const char c : text.substr(0, longest_path)) {
    if (c > ' ' && c < 0x7f) {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return text.size() > longest_path ? result + "..." : result;
}

}  // namespace

std::string http_log_json(const HttpLogEntry& entry) {
  const auto text = [](std::string_view part) { return part.empty() ? "null" : json_string(shown(part)); };
  const double milliseconds = std::chrono::duration<double, std::milli>(entry.took).count();
  return fmt::format(
      R"({{"time": "{}", "client": {}, "method": {}, "path": {}, "status": {}, "bytes": {}, "ms": {:.1f}, )"
      R"("request_id": {}, "remark": {}}})",
      timestamp(entry.time), text(entry.client), text(entry.method), text(entry.path),
      entry.status == 0 ? "null" : std::to_string(entry.status), entry.bytes, milliseconds, text(entry.id),
      text(entry.remark));
}

std::string http_log_line(const HttpLogEntry& entry) {
  const double milliseconds = std::chrono::duration<double, std::milli>(entry.took).count();
  return fmt::format("{} {} {} {} {} {} {:.1f}ms{}{}", timestamp(entry.time), shown(entry.client), shown(entry.method),
                     shown(entry.path), entry.status == 0 ? "-" : std::to_string(entry.status), entry.bytes,
                     milliseconds, entry.remark.empty() ? "" : " ", entry.remark);
}

}  // namespace minimind
