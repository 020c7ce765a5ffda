#include "tools/serve/http_options.h"

#include <algorithm>
#include <chrono>

#include "tools/http/access.h"
#include "tools/http/target.h"
#include "tools/options/help.h"
#include "tools/options/option_checks.h"
#include "tools/terminal/language.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

constexpr std::size_t kb = std::size_t{1} << 10, mb = std::size_t{1} << 20;
constexpr std::size_t most_seconds = 86400;

std::size_t seconds(std::chrono::milliseconds time) {
  return static_cast<std::size_t>(std::chrono::duration_cast<std::chrono::seconds>(time).count());
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

// An IPv6 address may have the brackets that it has in a URL.
std::string an_address(std::string& value) {
  if (value.starts_with('[') && value.ends_with(']')) value = value.substr(1, value.size() - 2);
  return not_empty(value);
}

void add_number(CommandOptions& command, const std::string& name, std::size_t& value, const char* unit,
                std::uint64_t least, std::uint64_t most, const std::string& description) {
  command.add_option(name, value, server_group, unit, description)
      ->default_str(std::to_string(value))
      ->transform(whole_number(least, most));
}

void add_limits(CommandOptions& command, HttpArguments& http) {
  add_number(command, "--drain", http.drain, "SECONDS", 0, most_seconds,
             bilingual("time for running answers when the server is stopped; then they are truncated",
                       "停止服务器时，等待正在生成的回答的时间；之后截断"));
  add_number(command, "--header-timeout", http.head_timeout, "SECONDS", 1, most_seconds,
             bilingual("time for a client to send the header of a request; then status 408",
                       "客户端发送请求头的时限；超时返回 408"));
  add_number(command, "--idle-timeout", http.idle_timeout, "SECONDS", 1, most_seconds,
             bilingual("time until a connection without requests is closed", "空闲连接多久后关闭"));
  add_number(command, "--max-connections", http.connections, "N", 1, 1'000'000,
             bilingual("clients that may be connected at once; then a new one replaces those that are idle or send "
                       "slowly, or gets status 503 if there are none",
                       "同时连接的客户端数上限；再有新连接时，关闭空闲的或发送缓慢的连接，若无则返回 503"));
  add_number(command, "--max-header", http.header_kb, "KB", 1, 1024,
             bilingual("largest header of a request, in KB; over it status 431, or 414 if its first line is too long",
                       "请求头的大小上限，单位 KB；超出返回 431，若首行就过长则为 414"));
  add_number(
      command, "--max-body", http.body_mb, "MB", 1, 4096,
      bilingual("largest body of a request, in MB; over it status 413", "请求体的大小上限，单位 MB；超出返回 413"));
  add_number(
      command, "--max-unread", http.unsent_kb, "KB", 1, 1024 * 1024,
      bilingual("streamed output kept for a slow client, in KB; if it grows for 10 s with more, the client is dropped",
                "为读取缓慢的客户端暂存的流式输出上限，单位 KB；超出且仍在增长达 10 秒则断开"));
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

void HttpArguments::add_to(CommandOptions& command) {
  command
      .add_option("--host", host, server_group, "ADDRESS",
                  bilingual("address to listen on; 0.0.0.0: all, which requires --api-key-file",
                            "监听地址；0.0.0.0：所有地址，须同时给出 --api-key-file"))
      ->default_str("127.0.0.1")
      ->transform(an_address);
  command
      .add_option(
          "--port", port, server_group, "N",
          bilingual("port to listen on; 0: a free one, which is printed", "监听端口；0：任选一个空闲端口并显示"))
      ->default_str("8998")
      ->transform(whole_number(0, 65535));
  command.add_option("--socket", socket, server_group, "PATH",
                     bilingual("unix socket to listen on, instead of a port, or also if --host or --port is given",
                               "监听的 unix 套接字，代替端口；若给出 --host 或 --port 则同时监听"));
  command.add_option(
      "--api-key-file", key_file, server_group, "FILE",
      bilingual("file of the keys that clients may use, one per line", "客户端可用密钥的文件，每行一个"));
  command.add_flag("--no-api-key", no_key, server_group,
                   bilingual("let other machines use the server without a key", "允许其他机器不用密钥访问"));
  command
      .add_option("--allow-host", allowed_hosts, server_group, "NAME",
                  bilingual("name of this server next to localhost, for a proxy; repeatable",
                            "除 localhost 外本服务器的名称，供代理使用；可重复"))
      ->transform(a_host_name);
  command
      .add_option(
          "--cors", cors_origins, server_group, "ORIGIN",
          bilingual("origin whose web pages may use the server; repeatable", "允许哪些来源的网页访问服务器；可重复"))
      ->check(an_origin);
  command
      .add_option("--log", log_format, server_group, "FORMAT",
                  bilingual("form of the access log on standard error: text or json, an object per line",
                            "标准错误上访问日志的格式：text，或 json，每行一个对象"))
      ->capture_default_str()
      ->transform(one_of({"text", "json"}));
  add_limits(command, *this);
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
  settings.drain = std::chrono::seconds(drain);
  settings.head_timeout = std::chrono::seconds(head_timeout);
  settings.idle_timeout = std::chrono::seconds(idle_timeout);
  settings.request.head = header_kb * kb;
  settings.request.body = body_mb * mb;
  settings.body_memory = std::max<std::size_t>(settings.body_memory, 4 * body_mb * mb);
  settings.unsent = unsent_kb * kb;
  settings.behind = std::min(settings.behind, settings.unsent / 2);
  settings.connections = connections;
  settings.log_is_json = log_format == "json";
  settings.handle_signals = true;
  return settings;
}

}  // namespace minimind
