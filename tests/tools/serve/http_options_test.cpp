#include "tools/serve/http_options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "tests/support/temporary_file.h"

namespace minimind {
namespace {

// Returns the settings of a command line; throws CLI::ParseError and Error.
HttpSettings http_settings_of(const std::string& line) {
  CLI::App app;
  CommandOptions command(app);
  HttpArguments arguments;
  arguments.add_to(command);
  app.parse(line);
  return arguments.settings();
}

TEST(HttpOptions, DefaultsAreThoseOfTheServer) {
  const HttpSettings settings = http_settings_of(""), usual;
  EXPECT_EQ(settings.host, "127.0.0.1");
  EXPECT_EQ(settings.port, 8998);
  EXPECT_EQ(settings.socket, "");
  EXPECT_TRUE(settings.keys.empty());
  EXPECT_FALSE(settings.allow_no_key);
  EXPECT_EQ(settings.drain, usual.drain);
  EXPECT_EQ(settings.head_timeout, usual.head_timeout);
  EXPECT_EQ(settings.idle_timeout, usual.idle_timeout);
  EXPECT_EQ(settings.request.head, usual.request.head);
  EXPECT_EQ(settings.request.body, usual.request.body);
  EXPECT_EQ(settings.unsent, usual.unsent);
  EXPECT_EQ(settings.unsent_time, std::chrono::seconds(10)) << "the help says so";
  EXPECT_EQ(settings.connections, usual.connections);
  EXPECT_EQ(settings.body_memory, usual.body_memory);
}

TEST(HttpOptions, TheLogIsTextOrJson) {
  EXPECT_FALSE(http_settings_of("").log_is_json);
  EXPECT_FALSE(http_settings_of("--log text").log_is_json);
  EXPECT_TRUE(http_settings_of("--log json").log_is_json);
  EXPECT_THROW(http_settings_of("--log xml"), CLI::ParseError);
}

TEST(HttpOptions, SetTheSettings) {
  const TemporaryFile keys("one\ntwo\n");
  const HttpSettings settings = http_settings_of(
      "--host 0.0.0.0 --port 0 --drain 5 --max-body 100 --max-header 32 --max-unread 64 "
      "--max-connections 10 --header-timeout 3 --idle-timeout 4 --cors https://a.example "
      "--cors http://localhost:3000 --allow-host LLM.example.org --api-key-file " +
      keys.path());
  EXPECT_EQ(settings.host, "0.0.0.0");
  EXPECT_EQ(settings.port, 0);
  EXPECT_EQ(settings.keys, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(settings.drain, std::chrono::seconds(5));
  EXPECT_EQ(settings.head_timeout, std::chrono::seconds(3));
  EXPECT_EQ(settings.idle_timeout, std::chrono::seconds(4));
  EXPECT_EQ(settings.request.body, std::uint64_t{100} << 20);
  EXPECT_EQ(settings.request.head, std::size_t{32} << 10);
  EXPECT_EQ(settings.unsent, std::size_t{64} << 10);
  EXPECT_EQ(settings.connections, 10u);
  EXPECT_GE(settings.body_memory, settings.request.body);
  EXPECT_EQ(settings.cors_origins, (std::vector<std::string>{"https://a.example", "http://localhost:3000"}));
  EXPECT_EQ(settings.allowed_hosts, std::vector<std::string>{"llm.example.org"});
}

TEST(HttpOptions, ASocketTakesThePlaceOfAPort) {
  EXPECT_EQ(http_settings_of("--socket /tmp/s").host, "");
  EXPECT_EQ(http_settings_of("--socket /tmp/s --port 1234").host, "127.0.0.1");
  EXPECT_EQ(http_settings_of("--socket /tmp/s --host ::1").host, "::1");
  EXPECT_EQ(http_settings_of("--host [::1]").host, "::1");
}

TEST(HttpOptions, WrongValuesAreRejected) {
  for (const char* line : {"--port 65536", "--port -1", "--port x", "--host ''", "--host []", "--cors example.org",
                           "--cors null", "--cors https://a.example/", "--allow-host a:80", "--allow-host ''",
                           "--drain -1", "--drain x", "--max-body 0", "--max-connections 0", "--header-timeout 0"}) {
    EXPECT_THROW(http_settings_of(line), CLI::ParseError) << line;
  }
  EXPECT_NE(error_of([] { http_settings_of("--no-api-key --api-key-file x"); }), "");
  EXPECT_NE(error_of([] { http_settings_of("--api-key-file /no/such/file"); }), "");
}

}  // namespace
}  // namespace minimind
