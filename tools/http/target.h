#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace minimind {

// The target of a request line.
struct HttpTarget {
  std::string path;                      // percent-decoded; "*" for that of OPTIONS
  std::string query;                     // as sent, without the question mark
  std::optional<std::string> authority;  // of a target such as "http://host/path"
};

// Parses a target. Throws HttpFailure with status 400 if it is malformed: bytes that must be percent-encoded, an escape
// that is not two hexadecimal digits or encodes a NUL, a fragment, or no leading slash.
HttpTarget parse_http_target(std::string_view method, std::string_view target);

// Returns the name of a Host field or an authority, in lower case and without its port and brackets; std::nullopt if
// it is malformed. An empty value has the empty name.
std::optional<std::string> host_name(std::string_view authority);

// Whether a name or address reaches only this machine: "localhost", 127.0.0.0/8 and ::1.
bool is_local_host(std::string_view name);

// Whether text is the origin of a web page: scheme://host[:port] in lower case, or "*" for any.
bool is_origin(std::string_view text);

// Whether text is a comma-separated list of field names.
bool is_field_name_list(std::string_view text);

}  // namespace minimind
