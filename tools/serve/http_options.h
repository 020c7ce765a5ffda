#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/http/settings.h"
#include "tools/options/command_options.h"

namespace minimind {

// The options of the HTTP server: where it listens, who may use it, and its limits.
struct HttpArguments {
  std::optional<std::string> host;
  std::optional<std::uint16_t> port;
  std::string socket;
  std::string key_file;
  bool no_key = false;
  std::vector<std::string> allowed_hosts, cors_origins;
  std::string log_format = "text";
  std::size_t drain, head_timeout, idle_timeout;  // seconds
  std::size_t header_kb, body_mb, unsent_kb, connections;

  // Sets the defaults, which are those of HttpSettings.
  HttpArguments();

  void add_to(CommandOptions& command);

  // Returns the settings; the server handles signals and has no log. Only --socket: no port. Throws UsageError for a
  // key file together with --no-api-key, Error if the key file cannot be read.
  HttpSettings settings() const;

  // Returns true if only programs on this machine reach the server, without a proxy.
  bool is_local() const;
};

}  // namespace minimind
