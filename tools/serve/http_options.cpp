#include "tools/serve/http_options.h"

#include <algorithm>
#include <chrono>

#include "tools/http/keys.h"
#include "tools/http/target.h"
#include "tools/options/option_checks.h"
#include "weights/base/error.h"
#include "weights/base/quote.h"

namespace minimind {
namespace {

constexpr std::size_t kb = std::size_t{1} << 10, mb = std::size_t{1} << 20;
constexpr std::size_t most_seconds = 86400;

std::size_t seconds(std::chrono::milliseconds time) {
  return static_cast<std::size_t>(std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

std::chrono::milliseconds milliseconds(std::size_t seconds) {
  return std::chrono::seconds(seconds);
}

std::string an_origin(const std::string& value) {
  if (is_origin(value)) return {};
  return "found " + quote(value) + ", expected an origin such as https://example.org or http://localhost:3000, or *";
}

std::string a_host_name(std::string& value) {
  const auto name = host_name(value);
  if (!name || name->empty() || value.find(':') != std::string::npos) {
    return "found " + quote(value) + ", expected a name such as llm.example.org, without a port";
  }
  value = *name;
  return {};
}

void add_number(CLI::App& command, const std::string& name, std::size_t& value, const char* unit, std::uint64_t least,
                std::uint64_t most, const std::string& description) {
  command.add_option(name, value, description)
      ->type_name(unit)
      ->default_str(std::to_string(value))
      ->transform(whole_number(least, most));
}

}  // namespace

HttpArguments::HttpArguments() {
  const HttpSettings usual;
  drain = seconds(usual.drain);
  head_timeout = seconds(usual.head_timeout);
  idle_timeout = seconds(usual.idle_timeout);
  header_kb = usual.request.head / kb;
  body_mb = usual.request.body / mb;
  unsent_kb = usual.unsent / kb;
  connections = usual.connections;
}

void HttpArguments::add_to(CLI::App& command) {
  command.add_option("--host", host, "address to listen on; 0.0.0.0: all, which requires --api-key-file")
      ->type_name("ADDRESS")
      ->default_str("127.0.0.1")
      ->check(not_empty);
  command.add_option("--port", port, "port to listen on; 0: a free one, which is printed")
      ->type_name("N")
      ->default_str("8998")
      ->transform(whole_number(0, 65535));
  command
      .add_option("--socket", socket,
                  "unix socket to listen on, instead of a port, or also if --host or --port is given")
      ->type_name("PATH")
      ->check(not_empty);
  command.add_option("--api-key-file", key_file, "file of the keys that clients may use, one per line")
      ->type_name("FILE")
      ->check(not_empty);
  command.add_flag("--no-api-key", no_key, "let other machines use the server without a key");
  command.add_option("--allow-host", allowed_hosts, "name of this server next to localhost, for a proxy; repeatable")
      ->type_name("NAME")
      ->transform(CLI::Validator(a_host_name, ""));
  command.add_option("--cors", cors_origins, "origin whose web pages may use the server; repeatable")
      ->type_name("ORIGIN")
      ->check(an_origin);
  add_number(command, "--drain", drain, "SECONDS", 0, most_seconds,
             "time for running answers when the server is stopped");
  add_number(command, "--header-timeout", head_timeout, "SECONDS", 1, most_seconds,
             "time for a client to send the header of a request");
  add_number(command, "--idle-timeout", idle_timeout, "SECONDS", 1, most_seconds,
             "time until a connection without requests is closed");
  add_number(command, "--max-connections", connections, "N", 1, 1'000'000, "clients that may be connected at once");
  add_number(command, "--max-header", header_kb, "KB", 1, 1024, "largest header of a request, in KB");
  add_number(command, "--max-body", body_mb, "MB", 1, 4096, "largest body of a request, in MB");
  add_number(command, "--max-unread", unsent_kb, "KB", 1, 1024 * 1024,
             "streamed output kept for a slow client, in KB; the client is dropped if there is more");
}

bool HttpArguments::is_local() const {
  return (!host || is_local_host(*host)) && allowed_hosts.empty() && cors_origins.empty();
}

HttpSettings HttpArguments::settings() const {
  if (no_key && !key_file.empty()) {
    throw UsageError("--no-api-key contradicts --api-key-file; omit one of them");
  }
  HttpSettings settings;
  settings.host = host.value_or(!socket.empty() && !port ? "" : settings.host);
  settings.port = port.value_or(settings.port);
  settings.socket = socket;
  if (!key_file.empty()) settings.keys = read_http_keys(key_file);
  settings.allow_no_key = no_key;
  settings.allowed_hosts = allowed_hosts;
  settings.cors_origins = cors_origins;
  settings.drain = milliseconds(drain);
  settings.head_timeout = milliseconds(head_timeout);
  settings.idle_timeout = milliseconds(idle_timeout);
  settings.request.head = header_kb * kb;
  settings.request.body = body_mb * mb;
  settings.body_memory = std::max<std::size_t>(settings.body_memory, 4 * body_mb * mb);
  settings.unsent = unsent_kb * kb;
  settings.connections = connections;
  settings.handle_signals = true;
  return settings;
}

}  // namespace minimind
