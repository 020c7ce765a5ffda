#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/http/head.h"
#include "tools/http/http.h"
#include "tools/http/settings.h"

namespace minimind {

// The head of a request with the facts that decide who may use the server.
struct HttpAccessRequest {
  const HttpRequest& request;
  const std::optional<std::string>& authority;  // of the target
  bool is_http_1_1;
  bool checks_host;  // whether the client reached an address that only this machine reaches
};

// The keys that clients may send. Only their hashes are kept, and comparing takes the same time for every given key.
class HttpKeys {
 public:
  explicit HttpKeys(const std::vector<std::string>& keys);

  bool empty() const { return hashes_.empty(); }
  bool contains(std::string_view given) const;

 private:
  std::vector<std::array<std::byte, 32>> hashes_;
};

// Reads a file of keys, one per line; skips empty lines. Throws Error if the file cannot be read, has no key, or if a
// key has a byte that is not visible ASCII. Never shows a key.
std::vector<std::string> read_http_keys(const std::string& path);

// Decides who may use a server.
class HttpAccess {
 public:
  // Keeps a reference to the settings.
  explicit HttpAccess(const HttpSettings& settings);
  explicit HttpAccess(HttpSettings&&) = delete;

  // Returns why the request is rejected; std::nullopt if it is allowed.
  // - A page of another site can make its name resolve to 127.0.0.1. Its requests then carry that name in Host.
  // - A page of another origin can send simple requests without permission. Browsers mark them with Sec-Fetch-Site.
  std::optional<HttpFailure> reject(const HttpAccessRequest& access) const;

  // Returns HttpRequest::client: the hash of its key if there are several keys, else `network`, which is network_of()
  // its address.
  std::string client_of(const HttpRequest& request, const std::string& network) const;

  // Returns the header fields that let the page that sent the request read the answer.
  HttpHeaders cors_headers(const HttpRequest& request) const;

  // Whether OPTIONS is a browser's question before a request of another origin.
  static bool is_preflight(const HttpRequest& request);

  // Returns the answer to a preflight: status 204 with these fields, or a failure if the origin is not allowed.
  std::optional<HttpFailure> answer_preflight(const HttpRequest& request, HttpHeaders& headers) const;

 private:
  std::optional<std::string_view> key_of(const HttpRequest& request) const;
  std::optional<HttpFailure> reject_host(const HttpAccessRequest& access) const;
  std::optional<HttpFailure> reject_name(const std::string& authority, bool checks_host) const;
  bool is_public(const HttpRequest& request) const;
  bool allows_origin(const std::string& origin) const;

  const HttpSettings& settings_;
  HttpKeys keys_;
  std::string machine_;  // the name of this machine, which no page of another site can have
};

}  // namespace minimind
