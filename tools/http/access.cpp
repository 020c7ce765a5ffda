#include "tools/http/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "tools/http/target.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/file_lock.h"
#include "weights/io/sha256.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

std::array<std::byte, 32> hash_of(std::string_view text) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text)));
  return sha.digest();
}

// Takes the same time wherever they differ.
bool are_equal(const std::array<std::byte, 32>& a, const std::array<std::byte, 32>& b) {
  std::byte difference{};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{};
}

bool contains(const std::vector<std::string>& values, const std::string& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// Returns the key of "Bearer KEY"; empty if the field has another form.
std::string_view bearer_key(std::string_view authorization) {
  constexpr std::string_view scheme = "bearer ";
  if (lower_case(authorization.substr(0, scheme.size())) != scheme) return {};
  const std::size_t start = authorization.find_first_not_of(' ', scheme.size());
  return start == std::string_view::npos ? std::string_view() : authorization.substr(start);
}

HttpFailure other_origin() {
  return {403, "origin_not_allowed",
          "request: comes from a web page of another origin; to allow it, start the server with --cors ORIGIN"};
}

}  // namespace

HttpKeys::HttpKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) hashes_.push_back(hash_of(key));
}

bool HttpKeys::contains(std::string_view given) const {
  const auto hash = hash_of(given);
  bool found = false;
  for (const auto& one : hashes_) found |= are_equal(one, hash);
  return found;
}

std::vector<std::string> read_http_keys(const std::string& path) {
  const std::string text = read_text_or_pipe(path, std::size_t{1} << 20);
  std::vector<std::string> keys;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view key = trimmed(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (key.empty()) continue;
    if (!std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; })) {
      throw Error(
          fmt::format("{}: the key in line {} has a byte that is not visible ASCII, expected letters, digits "
                      "and punctuation without spaces",
                      path, number + 1));
    }
    keys.emplace_back(key);
  }
  if (keys.empty()) throw Error(fmt::format("{}: has no key, expected one per line", path));
  return keys;
}

HttpAccess::HttpAccess(const HttpSettings& settings)
    : settings_(settings), keys_(settings.keys), machine_(lower_case(machine_name())) {}

std::optional<HttpFailure> HttpAccess::reject(const HttpAccessRequest& access) const {
  if (auto failure = reject_host(access)) return failure;
  const HttpRequest& request = access.request;
  if (request.method == "OPTIONS") return std::nullopt;
  const std::string* site = request.header("sec-fetch-site");
  const std::string* origin = request.header("origin");
  const bool from_elsewhere = site && *site != "same-origin" && *site != "none";
  if (from_elsewhere && request.method != "GET" && !(origin && allows_origin(*origin))) {
    return other_origin();
  }
  if (keys_.empty() || is_public(request) || key_of(request)) return std::nullopt;
  if (!request.header("authorization")) {
    return HttpFailure{401, "missing_api_key", "request: has no API key, expected 'Authorization: Bearer KEY'"};
  }
  return HttpFailure{401, "invalid_api_key", "request: incorrect API key, expected 'Authorization: Bearer KEY'"};
}

std::string HttpAccess::client_of(const HttpRequest& request, const std::string& network) const {
  const std::optional<std::string_view> key = settings_.keys.size() > 1 ? key_of(request) : std::nullopt;
  return key ? sha256_of(*key) : network;
}

// The key of the server that the request has, if any.
std::optional<std::string_view> HttpAccess::key_of(const HttpRequest& request) const {
  const std::string* const azures = request.header("api-key");
  if (azures && keys_.contains(*azures)) return *azures;
  const std::string* const authorization = request.header("authorization");
  if (!authorization || !keys_.contains(bearer_key(*authorization))) return std::nullopt;
  return bearer_key(*authorization);
}

std::optional<HttpFailure> HttpAccess::reject_host(const HttpAccessRequest& access) const {
  const std::string* host = access.request.header("host");
  if (!host && access.is_http_1_1) {
    return HttpFailure{400, "missing_host", "request: has no Host field, which HTTP/1.1 requires"};
  }
  if (host) {
    if (auto failure = reject_name(*host, access.checks_host && !(host->empty() && access.authority))) return failure;
  }
  return access.authority ? reject_name(*access.authority, access.checks_host) : std::nullopt;
}

std::optional<HttpFailure> HttpAccess::reject_name(const std::string& authority, bool checks_host) const {
  const auto name = host_name(authority);
  if (!name) return HttpFailure{400, "malformed_host", "request: malformed Host, expected NAME or NAME:PORT"};
  if (!checks_host || is_local_host(*name)) return std::nullopt;
  if (!name->empty() && (*name == machine_ || *name == lower_case(settings_.host))) return std::nullopt;
  if (contains(settings_.allowed_hosts, *name)) return std::nullopt;
  return HttpFailure{403, "host_not_allowed",
                     fmt::format("request: Host is {}, expected localhost or an address of this machine; to allow it, "
                                 "start the server with --allow-host NAME",
                                 quote(*name))};
}

bool HttpAccess::is_public(const HttpRequest& request) const {
  return request.method == "GET" && contains(settings_.public_paths, request.path);
}

bool HttpAccess::allows_origin(const std::string& origin) const {
  return contains(settings_.cors_origins, origin) || contains(settings_.cors_origins, "*");
}

HttpHeaders HttpAccess::cors_headers(const HttpRequest& request) const {
  if (settings_.cors_origins.empty()) return {};
  HttpHeaders headers;
  const bool any = contains(settings_.cors_origins, "*");
  const std::string* origin = request.header("origin");
  if (origin && allows_origin(*origin)) {
    headers.emplace_back("Access-Control-Allow-Origin", any ? "*" : *origin);
    headers.emplace_back("Access-Control-Expose-Headers", "Retry-After, X-Request-Id");
  }
  if (!any) headers.emplace_back("Vary", "Origin");
  return headers;
}

bool HttpAccess::is_preflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && request.header("origin") && request.header("access-control-request-method");
}

std::optional<HttpFailure> HttpAccess::answer_preflight(const HttpRequest& request, HttpHeaders& headers) const {
  if (!allows_origin(*request.header("origin"))) {
    return other_origin();
  }
  headers.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE");
  headers.emplace_back("Access-Control-Max-Age", "600");
  const std::string* wanted = request.header("access-control-request-headers");
  if (wanted && is_field_name_list(*wanted)) headers.emplace_back("Access-Control-Allow-Headers", *wanted);
  if (request.header("access-control-request-private-network")) {
    headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  }
  return std::nullopt;
}

}  // namespace minimind
