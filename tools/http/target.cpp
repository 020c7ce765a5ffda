#include "tools/http/target.h"

#include <arpa/inet.h>

#include <algorithm>

#include "tools/http/head.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

[[noreturn]] void reject_target(std::string message) {
  throw HttpFailure{400, "bad_target", "request target: " + std::move(message)};
}

void check_bytes(std::string_view target) {
  for (const char c : target) {
    if (c <= ' ' || c >= 0x7f) reject_target("has a byte that is not visible ASCII, expected it percent-encoded");
    if (c == '#') reject_target("has a fragment, expected none");
  }
}

std::string decoded(std::string_view path) {
  std::string text;
  text.reserve(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      text += path[i];
      continue;
    }
    const int high = i + 2 < path.size() ? hex_value(path[i + 1]) : -1;
    const int low = i + 2 < path.size() ? hex_value(path[i + 2]) : -1;
    if (high < 0 || low < 0) reject_target("has a % that is not followed by two hexadecimal digits");
    if (high == 0 && low == 0) reject_target("has an encoded NUL");
    text += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return text;
}

bool is_port(std::string_view text) {
  return text.size() <= 5 && std::all_of(text.begin(), text.end(), is_digit);
}

bool is_host_character(char c) {
  return is_alphanumeric(c) || c == '.' || c == '-' || c == '_';
}

// Returns the part after "http://" or "https://"; std::nullopt if the target has another form.
std::optional<std::string_view> after_scheme(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (lower_case(target.substr(0, scheme.size())) == scheme) return target.substr(scheme.size());
  }
  return std::nullopt;
}

}  // namespace

HttpTarget parse_http_target(std::string_view method, std::string_view target) {
  check_bytes(target);
  if (target == "*") {
    if (method != "OPTIONS") reject_target("* is only for OPTIONS");
    return {"*", "", std::nullopt};
  }
  HttpTarget result;
  if (const auto rest = after_scheme(target)) {
    const std::size_t end = std::min(rest->find_first_of("/?"), rest->size());
    result.authority = std::string(rest->substr(0, end));
    const auto name = host_name(*result.authority);
    if (!name || name->empty()) reject_target("has a malformed host");
    target = rest->substr(end);
  } else if (!target.starts_with('/')) {
    reject_target("does not start with a slash");
  }
  const std::size_t question = std::min(target.find('?'), target.size());
  result.path = decoded(target.substr(0, question));
  if (result.path.empty()) result.path = "/";
  if (question < target.size()) result.query = std::string(target.substr(question + 1));
  return result;
}

std::optional<std::string> host_name(std::string_view authority) {
  std::string_view name, port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    name = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    in6_addr ignored;
    if (inet_pton(AF_INET6, std::string(name).c_str(), &ignored) != 1) return std::nullopt;
  } else {
    name = authority.substr(0, authority.find(':'));
    port = authority.substr(name.size());
    if (!std::all_of(name.begin(), name.end(), is_host_character)) return std::nullopt;
    if (name.empty() && !port.empty()) return std::nullopt;
  }
  if (!port.empty() && (port.front() != ':' || !is_port(port.substr(1)))) return std::nullopt;
  return lower_case(name);
}

bool is_local_host(std::string_view name) {
  const std::string text = lower_case(name.ends_with('.') ? name.substr(0, name.size() - 1) : name);
  if (text == "localhost") return true;
  in_addr four;
  if (inet_pton(AF_INET, text.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
  in6_addr six;
  if (inet_pton(AF_INET6, text.c_str(), &six) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127);
}

bool is_origin(std::string_view text) {
  if (text == "*") return true;
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view scheme = text.substr(0, colon), authority = text.substr(colon + 3);
  const bool named = std::all_of(scheme.begin(), scheme.end(),
                                 [](char c) { return is_alphanumeric(c) || c == '+' || c == '-' || c == '.'; });
  const auto host = host_name(authority);
  return named && host && !host->empty() && !authority.ends_with(':') && lower_case(text) == text;
}

bool is_field_name_list(std::string_view text) {
  const auto fits = [](char c) {
    return is_alphanumeric(c) || std::string_view("!#$%&'*+-.^_`|~, ").find(c) != std::string_view::npos;
  };
  return std::all_of(text.begin(), text.end(), fits);
}

}  // namespace minimind
