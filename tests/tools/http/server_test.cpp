#include "tools/http/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <future>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cases.h"
#include "tests/support/end_child.h"
#include "tests/support/http_client.h"
#include "tests/support/temporary_folder.h"
#include "tools/http/listener.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string http_get(const std::string& target, const std::string& fields = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
}

// A server with a few routes, on a thread.
class TestServer {
 public:
  explicit TestServer(HttpSettings settings = {}) {
    settings.port = 0;
    settings.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_.push_back(line);
    };
    server_.emplace(std::move(settings), [this](HttpRequest request, const std::shared_ptr<HttpAnswer>& answer) {
      handle(std::move(request), answer);
    });
    thread_ = std::thread([this] { all_ended_ = server_->run(); });
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer() {
    if (server_) server_->stop_now();
    if (thread_.joinable()) thread_.join();
  }

  HttpServer& operator*() { return *server_; }
  HttpClient connect(int receive_buffer = 0) { return HttpClient(server_->port(), receive_buffer); }
  HttpReply ask(std::string_view request) { return connect().ask(request); }

  // Returns the answer of the next request for /hold.
  std::shared_ptr<HttpAnswer> held() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 10s, [this] { return !held_.empty(); }));
    if (held_.empty()) return nullptr;
    auto answer = held_.front();
    held_.erase(held_.begin());
    return answer;
  }

  // Lets the client ask for /hold, and starts a stream as its answer.
  std::shared_ptr<HttpAnswer> stream_to(HttpClient& client) {
    client.send(http_get("/hold"));
    auto answer = held();
    answer->start("text/event-stream");
    return answer;
  }

  // Lets the client ask for /hold, and sends so many bytes as its answer.
  std::shared_ptr<HttpAnswer> send_to(HttpClient& client, std::size_t bytes) {
    client.send(http_get("/hold"));
    auto answer = held();
    answer->send(200, "text/plain", std::string(bytes, 'x'));
    return answer;
  }

  // A request for /block keeps the thread of all connections from then on, until unblock().
  void wait_until_blocked() { is_blocked_.get_future().wait(); }
  void unblock() { unblocked_.set_value(); }

  // Waits for run() to return; returns what it returned.
  bool join() {
    thread_.join();
    return all_ended_;
  }
  void destroy() { server_.reset(); }

  std::vector<std::string> log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

 private:
  void handle(HttpRequest request, const std::shared_ptr<HttpAnswer>& answer) {
    if (request.path == "/echo") {
      answer->send(200, "text/plain", request.method + " " + request.query + " " + request.body, {{"X-Extra", "1"}});
    } else if (request.path == "/client") {
      answer->send(200, "text/plain", request.client);
    } else if (request.path == "/pieces") {
      answer->start("text/event-stream");
      for (const char* piece : {"a", "", "bc"}) answer->write(piece);
      answer->finish();
    } else if (request.path == "/hold") {
      const std::lock_guard lock(mutex_);
      held_.push_back(answer);
      changed_.notify_all();
    } else if (request.path == "/status") {
      answer->send(std::stoi(request.query), "text/plain", "body");
    } else if (request.path == "/block") {
      is_blocked_.set_value();
      unblocked_.get_future().wait();
      answer->send(200, "text/plain", "");
    } else if (request.path == "/throw") {
      throw std::runtime_error("secret");
    } else if (request.path == "/bad-field") {
      answer->send(200, "text/plain", "", {{"X", "a\r\nb"}});
    } else if (request.path != "/forget") {
      answer->send(404, "application/json", "{}");
    }
  }

  std::optional<HttpServer> server_;
  std::thread thread_;
  std::atomic<bool> all_ended_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<HttpAnswer>> held_;
  std::vector<std::string> log_;
  std::promise<void> is_blocked_, unblocked_;
};

std::string http_post(const std::string& target, const std::string& body, const std::string& fields = "") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n{}", target, fields,
                     body.size(), body);
}

template <class Condition>
bool becomes_true(Condition condition, std::chrono::milliseconds within = 10s) {
  const auto end = Clock::now() + within;
  while (Clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return condition();
}

// Each failure is in the shape of OpenAI's errors, and the connection closes after it.
void expect_http_failure(HttpClient client, const std::string& request, int status) {
  const HttpReply reply = client.ask(request);
  EXPECT_EQ(reply.status, status) << request;
  EXPECT_TRUE(reply.is_complete);
  EXPECT_EQ(reply.headers.at("Content-Type"), "application/json");
  for (const char* field : {R"({"error": {"message": ")", R"(", "type": ")", R"(", "param": null, "code": ")"}) {
    EXPECT_NE(reply.body.find(field), std::string::npos) << reply.body;
  }
  EXPECT_EQ(reply.headers.at("Connection"), "close");
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpServer, AnswersRequests) {
  TestServer server;
  HttpClient client = server.connect();
  const HttpReply reply = client.ask(http_post("/echo?a=b", "body"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "POST a=b body");
  EXPECT_EQ(reply.headers.at("Content-Type"), "text/plain");
  EXPECT_EQ(reply.headers.at("X-Extra"), "1");
  EXPECT_EQ(reply.headers.at("X-Content-Type-Options"), "nosniff");
  EXPECT_TRUE(reply.headers.contains("Date"));
  EXPECT_FALSE(reply.headers.contains("Access-Control-Allow-Origin"));
  EXPECT_EQ(client.ask(http_get("/echo")).body, "GET  ");  // the connection is kept
  EXPECT_EQ(client.ask(http_get("/nowhere")).status, 404);
}

TEST(HttpServer, StreamsPieces) {
  TestServer server;
  HttpClient client = server.connect();
  const HttpReply reply = client.ask(http_get("/pieces"));
  EXPECT_EQ(reply.body, "abc");
  EXPECT_EQ(reply.headers.at("Transfer-Encoding"), "chunked");
  EXPECT_EQ(client.ask(http_get("/pieces")).body, "abc");
}

TEST(HttpServer, SendsPiecesAsTheyAreWritten) {
  TestServer server;
  HttpClient client = server.connect();
  const auto answer = server.stream_to(client);
  std::string expected;
  for (int i = 0; i < 20; ++i) {
    answer->write("piece " + std::to_string(i));
    while (client.received().find("piece " + std::to_string(i) + "\r\n") == std::string::npos) {
      ASSERT_TRUE(client.receive(5s));
    }
    expected += "piece " + std::to_string(i);
  }
  answer->finish();
  EXPECT_EQ(client.read().body, expected);
}

TEST(HttpServer, PiecesInQuickSuccessionAreSentTogether) {
  TestServer server;
  HttpClient client = server.connect();
  const auto answer = server.stream_to(client);
  constexpr std::size_t pieces = 200;
  for (std::size_t i = 0; i < pieces; ++i) {
    answer->write("~");
    std::this_thread::sleep_for(100us);
  }
  while (std::ranges::count(client.received(), '~') < static_cast<std::ptrdiff_t>(pieces)) {
    ASSERT_TRUE(client.receive(5s)) << "pieces wait for others";
  }
  std::size_t chunks = 0;
  const std::string& received = client.received();
  for (std::size_t at = 0; (at = received.find("~\r\n", at)) != std::string::npos; ++at) ++chunks;
  EXPECT_LT(chunks, pieces / 2);
  answer->finish();
  EXPECT_EQ(client.read().body, std::string(pieces, '~'));
}

TEST(HttpServer, AnswersHttp10UntilItCloses) {
  TestServer server;
  HttpClient client = server.connect();
  const HttpReply reply = client.ask("GET /pieces HTTP/1.0\r\n\r\n");
  EXPECT_EQ(reply.body, "abc");
  EXPECT_FALSE(reply.headers.contains("Transfer-Encoding"));
  EXPECT_TRUE(client.is_closed());
  HttpClient kept = server.connect();
  EXPECT_EQ(kept.ask("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").headers.at("Connection"), "keep-alive");
  EXPECT_EQ(kept.ask("GET /echo HTTP/1.0\r\n\r\n").status, 200);
  EXPECT_TRUE(kept.is_closed());
  HttpClient streamed = server.connect();
  EXPECT_EQ(streamed.ask("GET /pieces HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").body, "abc");
  EXPECT_TRUE(streamed.is_closed()) << "the end of the stream";
}

TEST(HttpServer, ClosesWhenAsked) {
  TestServer server;
  HttpClient client = server.connect();
  EXPECT_EQ(client.ask(http_get("/echo", "Connection: close\r\n")).headers.at("Connection"), "close");
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpServer, AnswersHeadWithoutABody) {
  TestServer server;
  HttpClient client = server.connect();
  const HttpReply reply = client.ask("HEAD /echo?q HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("Content-Length"), "6");  // that of GET
  EXPECT_EQ(client.ask("HEAD /pieces HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
  EXPECT_EQ(client.ask("HEAD /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 404);
  EXPECT_EQ(client.ask(http_get("/echo")).body, "GET  ");
}

TEST(HttpServer, ReadsChunkedBodies) {
  TestServer server;
  HttpClient client = server.connect();
  const std::string head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(client.ask(head + "3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: u\r\n\r\n").body, "POST  abcde");
  const std::string bytes = head + "3\r\nabc\r\n0\r\n\r\n";
  for (const char byte : bytes) ASSERT_TRUE(client.send(std::string(1, byte)));
  EXPECT_EQ(client.read().body, "POST  abc");
}

TEST(HttpServer, ContinuesOnceTheHeadIsAccepted) {
  HttpSettings settings;
  settings.request.body = 100;
  TestServer server(settings);
  HttpClient client = server.connect();
  client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.read().status, 100);
  EXPECT_EQ(client.ask("abc").body, "POST  abc");
  EXPECT_EQ(client.ask(http_post("/echo", "d", "Expect: 100-continue\r\n")).body, "POST  d");  // it did not wait
  const std::string large =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n";
  expect_http_failure(server.connect(), large, 413);
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInOrder) {
  TestServer server;
  HttpClient client = server.connect();
  std::string requests = http_get("/hold");
  for (int i = 0; i < 100; ++i) requests += http_post("/echo", std::to_string(i)) + http_get("/pieces");
  client.send(requests + requests);
  for (int round = 0; round < 2; ++round) {
    server.held()->send(200, "text/plain", "held");
    EXPECT_EQ(client.read().body, "held");
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(client.read().body, "POST  " + std::to_string(i));
      ASSERT_EQ(client.read().body, "abc");
    }
  }
}

// More than the server reads ahead and the system keeps between the two.
TEST(HttpServer, ManyPipelinedBytesWait) {
  TestServer server;
  HttpClient client = server.connect();
  const std::string body(100'000, 'x');
  constexpr std::size_t count = 400;
  std::string requests;
  for (std::size_t i = 0; i < count; ++i) requests += http_post("/echo", body);
  std::string_view unsent = requests;
  client.send(http_get("/hold"));
  while (const std::size_t sent = client.send_some(unsent, 1s)) unsent.remove_prefix(sent);
  EXPECT_GT(unsent.size(), requests.size() / 4) << "the server has read what it was not yet to read";
  std::thread sender([&] { client.send(unsent); });
  server.held()->send(200, "text/plain", "held");
  EXPECT_EQ(client.read().body, "held");
  std::size_t answered = 0;
  while (answered < count && client.read().body == "POST  " + body) ++answered;
  client.close();  // in case the server no longer reads
  sender.join();
  EXPECT_EQ(answered, count);
}

TEST(HttpServer, RejectsMalformedRequests) {
  TestServer server;
  expect_http_failure(server.connect(), "nonsense\r\n\r\n", 400);
  expect_http_failure(server.connect(), "GET / HTTP/1.1\r\n\r\n", 400);  // no Host
  expect_http_failure(server.connect(), http_get("/", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400);
  expect_http_failure(server.connect(), http_get("/", "Host: localhost\r\n"), 400);
  expect_http_failure(server.connect(), "GET / HTTP/2.0\r\n\r\n", 505);
  expect_http_failure(server.connect(), "GET / HTTP/1.1\n", 400);  // at once, without the rest
  expect_http_failure(server.connect(), http_post("/echo", "", "Transfer-Encoding: chunked\r\n"), 400);
}

// What follows a malformed request is not read as another one.
TEST(HttpServer, SmuggledRequestsAreNotAnswered) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
      http_get("/hold"));
  EXPECT_EQ(client.read().status, 400);
  EXPECT_EQ(client.read().status, 0);
  EXPECT_EQ(server.log().size(), 1u);
}

TEST(HttpServer, HoldsItsLimits) {
  HttpSettings settings;
  settings.request = {.head = 2000, .fields = 10, .body = 1000};
  TestServer server(settings);
  expect_http_failure(server.connect(), http_get("/" + std::string(3000, 'a')), 414);
  expect_http_failure(server.connect(), http_get("/", "A: " + std::string(3000, 'a') + "\r\n"), 431);
  expect_http_failure(server.connect(), http_post("/echo", std::string(1001, 'a')), 413);
  EXPECT_EQ(server.ask(http_post("/echo", std::string(1000, 'a'))).status, 200);
  // The client receives the status although it is still sending.
  expect_http_failure(server.connect(), http_post("/echo", std::string(3'000'000, 'a')), 413);
}

TEST(HttpServer, BodiesShareALimit) {
  HttpSettings settings;
  settings.body_memory = 100'000;
  TestServer server(settings);
  const std::string rest(1000, 'a');  // that is not sent at first
  const auto begin = [&](std::size_t bytes) {
    HttpClient client = server.connect();
    const std::string request = http_post("/echo", std::string(bytes, 'a'));
    client.send(std::string_view(request).substr(0, request.size() - rest.size()));
    return client;
  };
  std::vector<HttpClient> large;
  large.push_back(begin(40'000));
  std::this_thread::sleep_for(200ms);
  large.push_back(begin(30'000));
  HttpClient next = begin(50'000);
  const HttpReply reply = large[0].read();
  EXPECT_EQ(reply.status, 503) << "it has had most memory for the longest time";
  EXPECT_EQ(reply.headers.at("Retry-After"), "1");
  EXPECT_NE(reply.body.find("too_many_bodies"), std::string::npos);
  EXPECT_FALSE(large[1].receive(1ms));
  next.send(rest);
  EXPECT_EQ(next.read().status, 200);
  large.clear();
  std::vector<HttpClient> small;
  for (int i = 0; i < 7; ++i) small.push_back(begin(16'000));
  EXPECT_TRUE(becomes_true([&] { return begin(20'000).receive(100ms); })) << "is rejected";
  HttpClient fitting = begin(15'000);
  fitting.send(rest);
  EXPECT_EQ(fitting.read().status, 200) << "a small body always fits";
  for (HttpClient& client : small) EXPECT_FALSE(client.receive(1ms));
  small.clear();
  EXPECT_TRUE(becomes_true([&] { return server.ask(http_post("/echo", std::string(60'000, 'a'))).status == 200; }));
}

TEST(HttpServer, ABodyCountsOnlyWhileItArrives) {
  HttpSettings settings;
  settings.body_memory = 100'000;
  TestServer server(settings);
  const std::string body(60'000, 'a');
  HttpClient first = server.connect();
  first.send(http_post("/hold", body));
  const auto answer = server.held();
  EXPECT_EQ(server.ask(http_post("/echo", body)).status, 200);
  answer->send(200, "text/plain", "");
  EXPECT_EQ(first.read().status, 200);
}

TEST(HttpServer, SilentAndIdleConnectionsAreClosed) {
  HttpSettings settings;
  settings.head_timeout = 300ms;
  settings.idle_timeout = 300ms;
  TestServer server(settings);
  HttpClient silent = server.connect(), idle = server.connect();
  EXPECT_EQ(idle.ask(http_get("/echo")).status, 200);
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(idle.is_closed());
  EXPECT_EQ(silent.received() + idle.received(), "");
}

// Far more bytes than arrive in the time, each of which would extend it.
TEST(HttpServer, BytesDoNotExtendTheTimeOfASlowRequest) {
  HttpSettings settings;
  settings.head_timeout = 300ms;
  settings.body_timeout = 300ms;
  TestServer server(settings);
  const std::string head = http_get("/" + std::string(1000, 'a')), post = http_post("/echo", std::string(1000, 'a'));
  for (const auto& [start, rest] :
       {std::pair(std::string(), head), std::pair(post.substr(0, 70), post.substr(70, 900))}) {
    HttpClient client = server.connect();
    client.send(start);
    bool is_answered = false;
    for (std::size_t i = 0; i < rest.size() && !is_answered; ++i) {
      client.send(rest.substr(i, 1));
      is_answered = client.receive(10ms);
    }
    EXPECT_TRUE(is_answered);
    EXPECT_EQ(client.read().status, 408);
    EXPECT_TRUE(client.is_closed());
  }
  EXPECT_TRUE(becomes_true([&] { return (*server).connections() == 0; }));
}

TEST(HttpServer, TooManyConnectionsAreToldSo) {
  HttpSettings settings;
  settings.connections = 3;
  TestServer server(settings);
  std::vector<HttpClient> clients;
  std::vector<std::shared_ptr<HttpAnswer>> answers;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(server.connect());
    answers.push_back(server.stream_to(clients.back()));
  }
  HttpClient refused[] = {server.connect(), server.connect()};
  for (HttpClient& client : refused) {
    client.send(http_get("/echo"));
    const HttpReply reply = client.read();
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(reply.headers.at("Retry-After"), "1");
    EXPECT_NE(reply.body.find("too_many_connections"), std::string::npos);
    EXPECT_TRUE(client.is_closed());
  }
  for (HttpClient& client : refused) client.close();
  clients.pop_back();
  EXPECT_TRUE(becomes_true([&] { return server.ask(http_get("/echo")).status == 200; }));
}

TEST(HttpServer, IdleConnectionsMakeRoomBeforeRequestsThatArrive) {
  HttpSettings settings;
  settings.connections = 2;
  TestServer server(settings);
  const std::string request = http_post("/echo", std::string(20'000, 'a'));
  HttpClient sending = server.connect();
  sending.send(request.substr(0, 18'000));
  std::this_thread::sleep_for(20ms);
  HttpClient idle = server.connect();
  std::this_thread::sleep_for(20ms);
  HttpClient held = server.connect();
  const auto answer = server.stream_to(held);
  EXPECT_TRUE(idle.is_closed());
  sending.send(request.substr(18'000));
  EXPECT_EQ(sending.read().status, 200);
}

// Whether a client has a connection and sends nothing or a part of a request.
TEST(HttpServer, ANewClientTakesThePlaceOfTheOneThatIsWaitedForLongest) {
  for (const std::string& sent : {http_get("/echo"), std::string("GET /echo HTTP/1.1\r\nHost: localh"),
                                  http_post("/echo", std::string(20'000, 'a')).substr(0, 18'000)}) {
    HttpSettings settings;
    settings.connections = 3;
    TestServer server(settings);
    std::vector<HttpClient> clients;
    for (int i = 0; i < 3; ++i) {
      clients.push_back(server.connect());
      clients.back().send(sent);
      std::this_thread::sleep_for(20ms);
    }
    EXPECT_EQ(server.ask(http_get("/echo")).status, 200);
    EXPECT_TRUE(clients[0].is_closed());
    HttpClient added = server.connect();
    EXPECT_EQ(added.ask(http_get("/echo")).status, 200);
    EXPECT_FALSE(clients[2].is_closed(1ms));
  }
}

// A client has its place until it has read its answer, but not before all others.
TEST(HttpServer, AClientThatDoesNotReadItsAnswerMakesRoom) {
  HttpSettings settings;
  settings.connections = 2;
  TestServer server(settings);
  HttpClient unread = server.connect(4096), running = server.connect();
  server.send_to(unread, 10'000'000);
  const auto answer = server.stream_to(running);
  EXPECT_TRUE(becomes_true([&] { return server.ask(http_get("/echo")).status == 200; }));
  EXPECT_TRUE(unread.is_closed());
  answer->write("a");
  answer->finish();
  EXPECT_EQ(running.read().body, "a");
}

TEST(HttpServer, AConnectionThatWasUsedIsNotIdle) {
  HttpSettings settings;
  settings.connections = 2;
  TestServer server(settings);
  HttpClient first = server.connect(), second = server.connect();
  for (HttpClient* const client : {&first, &second, &first}) {
    EXPECT_EQ(client->ask(http_get("/echo")).status, 200);
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(server.ask(http_get("/echo")).status, 200);
  EXPECT_TRUE(second.is_closed());
  EXPECT_EQ(first.ask(http_get("/echo")).status, 200);
}

TEST(HttpServer, ChecksHostKeyAndOrigin) {
  HttpSettings settings;
  settings.keys = {"key"};
  settings.public_paths = {"/pieces"};
  settings.cors_origins = {"https://example.org"};
  TestServer server(settings);
  expect_http_failure(server.connect(), "GET /echo HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403);
  expect_http_failure(server.connect(), http_get("/echo"), 401);
  expect_http_failure(server.connect(), http_get("/echo", "Authorization: Bearer wrong\r\n"), 401);
  EXPECT_EQ(server.ask(http_get("/echo", "Authorization: Bearer wrong\r\n")).headers.at("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(server.ask(http_get("/pieces")).status, 200);

  const HttpReply allowed =
      server.ask(http_get("/echo", "Authorization: Bearer key\r\nOrigin: https://example.org\r\n"));
  EXPECT_EQ(allowed.status, 200);
  EXPECT_EQ(allowed.headers.at("Access-Control-Allow-Origin"), "https://example.org");
  // A page can read the error, too.
  EXPECT_EQ(server.ask(http_get("/echo", "Origin: https://example.org\r\n")).headers.at("Access-Control-Allow-Origin"),
            "https://example.org");
  EXPECT_EQ(
      server.ask(http_get("/pieces", "Origin: https://example.org\r\n")).headers.at("Access-Control-Allow-Origin"),
      "https://example.org");
  EXPECT_FALSE(server.ask(http_get("/pieces", "Origin: https://evil.example\r\n"))
                   .headers.contains("Access-Control-Allow-Origin"));

  const std::string question = "OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\nAccess-Control-Request-Method: POST\r\n";
  const HttpReply preflight = server.ask(question + "Origin: https://example.org\r\n\r\n");
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.headers.at("Access-Control-Allow-Methods"), "GET, HEAD, POST, DELETE");
  EXPECT_EQ(server.ask(question + "Origin: https://evil.example\r\n\r\n").status, 403);
}

TEST(HttpServer, HandlersThatFailGiveStatus500) {
  TestServer server;
  HttpClient client = server.connect();
  const HttpReply thrown = client.ask(http_get("/throw"));
  EXPECT_EQ(thrown.status, 500);
  EXPECT_EQ(thrown.body.find("secret"), std::string::npos);
  EXPECT_EQ(client.ask(http_get("/forget")).status, 500);
  EXPECT_TRUE(server.connect().ask(http_get("/bad-field")).status == 0);
  EXPECT_EQ(server.ask(http_get("/echo")).status, 200);
}

TEST(HttpServer, AnUnfinishedAnswerIsVisiblyIncomplete) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(http_get("/hold"));
  auto answer = server.held();
  answer->start("text/plain");
  answer->write("half");
  answer.reset();
  const HttpReply reply = client.read();
  EXPECT_EQ(reply.status, 200);
  EXPECT_FALSE(reply.is_complete);
  EXPECT_TRUE(client.is_closed());
}

// Only a reset tells it in HTTP/1.0, where the end of the connection is the end of an answer.
TEST(HttpServer, AnUnfinishedAnswerOfHttp10EndsWithAReset) {
  TestServer server;
  HttpClient client = server.connect();
  client.send("GET /hold HTTP/1.0\r\n\r\n");
  auto answer = server.held();
  answer->start("text/plain");
  answer->write("half");
  while (client.received().find("half") == std::string::npos) ASSERT_TRUE(client.receive(5s));
  answer.reset();
  EXPECT_TRUE(client.is_closed());
  EXPECT_TRUE(client.was_reset());
  ASSERT_TRUE(becomes_true([&] { return server.log().size() == 1; }));
  EXPECT_TRUE(server.log()[0].ends_with(" incomplete")) << server.log()[0];
}

TEST(HttpServer, AnAnswerThatItsClientDidNotWaitForIsLoggedAsDisconnected) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(http_get("/hold"));
  client.end_sending();
  auto answer = server.held();
  ASSERT_TRUE(becomes_true([&] { return answer->gone().load(); }));
  answer.reset();
  EXPECT_TRUE(client.is_closed());
  ASSERT_TRUE(becomes_true([&] { return server.log().size() == 1; }));
  EXPECT_TRUE(server.log()[0].ends_with(" disconnected")) << server.log()[0];
}

TEST(HttpServer, AnAnswerIsGivenOnce) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(http_get("/hold") + http_get("/hold"));
  const auto whole = server.held();
  whole->send(200, "text/plain", "first");
  whole->send(500, "text/plain", "second");
  whole->start("text/plain");
  whole->write("third");
  whole->finish();
  EXPECT_EQ(client.read().body, "first");
  const auto pieces = server.held();
  pieces->write("too early");
  pieces->finish();
  pieces->start("text/plain");
  pieces->start("text/html");
  pieces->send(500, "text/plain", "not whole");
  pieces->write("piece");
  pieces->finish();
  pieces->write("too late");
  const HttpReply reply = client.read();
  EXPECT_EQ(reply.body, "piece");
  EXPECT_EQ(reply.headers.at("Content-Type"), "text/plain");
  EXPECT_EQ(client.ask(http_get("/echo")).status, 200);
}

TEST(HttpServer, SomeStatusesHaveNoBody) {
  TestServer server;
  HttpClient client = server.connect();
  for (const int status : {204, 304}) {
    const HttpReply reply = client.ask(http_get("/status?" + std::to_string(status)));
    EXPECT_EQ(reply.status, status);
    EXPECT_FALSE(reply.headers.contains("Content-Length"));
  }
  EXPECT_EQ(client.ask(http_get("/status?202")).body, "body");
}

TEST(HttpServer, ARejectedHeadRequestHasNoBody) {
  TestServer server;
  HttpClient client = server.connect();
  const HttpReply reply = client.ask("HEAD /echo HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_EQ(reply.status, 403);
  EXPECT_NE(reply.headers.at("Content-Length"), "0");
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(client.received(), "");
  HttpClient other = server.connect();
  EXPECT_EQ(other.ask("HEAD /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 400);
  EXPECT_TRUE(other.is_closed());
  EXPECT_EQ(other.received(), "");
}

// More than the system keeps between the two, which the client takes slowly.
TEST(HttpServer, AStreamOfMuchTextArrivesWhole) {
  HttpSettings settings;
  settings.unsent = 8'000'000;
  TestServer server(settings);
  HttpClient client = server.connect(4096);
  const auto answer = server.stream_to(client);
  std::string expected;
  for (int i = 0; i < 300; ++i) {
    const std::string piece(20'000, static_cast<char>('a' + i % 26));
    answer->write(piece);
    expected += piece;
    if (i % 3 == 0) client.receive(5s);
  }
  answer->finish();
  const HttpReply reply = client.read();
  EXPECT_TRUE(reply.is_complete);
  EXPECT_EQ(reply.body.size(), expected.size());
  EXPECT_TRUE(reply.body == expected);
}

// The client sends no more while it still takes the part of an answer that was given up.
TEST(HttpServer, AHalfClosedClientGetsAllThatWasWritten) {
  HttpSettings settings;
  settings.unsent = 8'000'000;
  TestServer server(settings);
  HttpClient client = server.connect(4096);
  client.send(http_get("/hold"));
  auto answer = server.held();
  answer->start("text/plain");
  const std::string text(4'000'000, 'x');
  answer->write(text);
  answer.reset();
  ASSERT_TRUE(becomes_true([&] { return server.log().size() == 1; }));
  client.end_sending();
  const HttpReply reply = client.read();
  EXPECT_FALSE(reply.is_complete);
  EXPECT_EQ(reply.body.size(), text.size());
  EXPECT_TRUE(client.is_closed());
}

// Before, while and after pieces are written, with and without requests in the pipeline.
TEST(HttpServer, ADisconnectIsNoticedWithin50Milliseconds) {
  TestServer server;
  for (int way = 0; way < 10; ++way) {
    HttpClient client = server.connect();
    client.send(http_get("/hold"));
    if (way == 8) client.send(http_get("/echo"));
    if (way == 9) client.send(http_post("/echo", std::string(150'000, 'a')));
    const auto answer = server.held();
    if (way % 4 >= 2) {
      answer->start("text/plain");
      answer->write("piece");
    }
    EXPECT_EQ(server.ask(http_get("/echo")).status, 200);  // after what was sent before
    // Nothing shows when the server has looked at a client of which it reads no more for the first time.
    if (way == 9) std::this_thread::sleep_for(30ms);
    EXPECT_FALSE(answer->gone());
    if (way % 2 == 0) {
      client.close();
    } else {
      client.reset();
    }
    EXPECT_TRUE(becomes_true([&] { return answer->gone().load(); }, 50ms)) << way;
    answer->write("lost");
  }
  EXPECT_TRUE(becomes_true([&] { return (*server).connections() == 0; }));
}

// A client may end its own side after its requests.
TEST(HttpServer, AHalfClosedClientIsStillAnswered) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(http_get("/echo") + http_get("/pieces"));
  client.end_sending();
  EXPECT_EQ(client.read().body, "GET  ");
  EXPECT_EQ(client.read().body, "abc");
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpServer, AHalfClosedClientDoesNotKeepItsPlace) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(http_get("/hold"));
  client.end_sending();
  const auto answer = server.held();
  EXPECT_TRUE(becomes_true([&] { return answer->gone().load(); }, 50ms));
  EXPECT_TRUE(client.is_closed(3s));
  EXPECT_TRUE(becomes_true([&] { return (*server).connections() == 0; }));
}

// Slow readers are dropped after their time, and others are served meanwhile.
TEST(HttpServer, SlowReadersAreDropped) {
  HttpSettings settings;
  settings.unsent = 50'000;
  settings.unsent_time = 200ms;
  TestServer server(settings);
  std::vector<HttpClient> slow;
  std::vector<std::shared_ptr<HttpAnswer>> answers;
  const std::size_t count = cases(300);
  for (std::size_t i = 0; i < count; ++i) {
    slow.push_back(server.connect(4096));
    answers.push_back(server.stream_to(slow.back()));
    answers.back()->write(std::string(1'000'000, 'x'));
  }
  HttpClient quick = server.connect();
  const auto all_are_gone = [&] {
    EXPECT_EQ(quick.ask(http_get("/echo")).status, 200);
    for (const auto& answer : answers) answer->write("x");
    return std::all_of(answers.begin(), answers.end(), [](const auto& answer) { return answer->gone().load(); });
  };
  EXPECT_TRUE(becomes_true(all_are_gone));
  EXPECT_TRUE(becomes_true([&] { return (*server).connections() == 1; }));
  const std::vector<std::string> lines = server.log();
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const auto& line) { return line.ends_with(" too slow"); }),
            static_cast<std::ptrdiff_t>(count));
}

TEST(HttpServer, SaysWhetherAClientIsBehind) {
  TestServer server;
  HttpClient client = server.connect(4096);
  const auto answer = server.stream_to(client);
  for (int round = 0; round < 2; ++round) {
    std::size_t sent = 0;
    while (!answer->behind()) {
      ASSERT_LT(sent, 1'000'000u);
      answer->write(std::string(2'000, 'x'));
      sent += 2'000;
      EXPECT_EQ(server.ask(http_get("/echo")).status, 200);  // after the server has looked at the piece
    }
    EXPECT_GT(sent, 15'000u) << "it has read half of what may be unread";
    while (answer->behind()) {
      ASSERT_TRUE(client.receive(5s, 2'000));
      EXPECT_EQ(server.ask(http_get("/echo")).status, 200);
    }
  }
  EXPECT_FALSE(answer->gone());
}

// Pieces that are small beside the memory that a string which grows takes.
TEST(HttpServer, StreamsThatNobodyReadsHaveBoundedMemory) {
  HttpSettings settings;
  settings.answer_memory = 80'000'000;
  TestServer server(settings);
  std::vector<HttpClient> idle;
  std::vector<std::shared_ptr<HttpAnswer>> answers;
  for (int i = 0; i < 100; ++i) {
    idle.push_back(server.connect(4096));
    answers.push_back(server.stream_to(idle.back()));
  }
  for (int i = 0; i < 600; ++i) {
    for (const auto& answer : answers) answer->write(std::string(1'000, 'x'));
    EXPECT_EQ(server.ask(http_get("/echo")).status, 200);
  }
  const auto is_gone = [](const auto& answer) { return answer->gone().load(); };
  // 60 MB were written, whose bytes would fit, in strings of 1 MB each.
  EXPECT_TRUE(becomes_true([&] { return std::ranges::count_if(answers, is_gone) >= 20; }, 1s));
}

// Its text waits for it.
TEST(HttpServer, AStreamOfWhichLittleIsUnreadMayStallAsLongAsAnIdleConnection) {
  HttpSettings settings;
  settings.stall_timeout = 100ms;
  settings.idle_timeout = 3s;
  TestServer server(settings);
  HttpClient client = server.connect(4096);
  const auto answer = server.stream_to(client);
  answer->write(std::string(70'000, 'x'));
  ASSERT_TRUE(becomes_true([&] { return answer->behind().load(); }));
  std::this_thread::sleep_for(500ms);
  EXPECT_FALSE(answer->gone());
  EXPECT_TRUE(becomes_true([&] { return answer->gone().load(); }));
}

// What the system holds of it is delivered also if the server ends.
TEST(HttpServer, AStreamThatIsMadeIsTheSystemsToSend) {
  TestServer server;
  HttpClient client = server.connect(4096);
  const auto answer = server.stream_to(client);
  answer->write(std::string(80'000, 'x'));
  ASSERT_TRUE(becomes_true([&] { return answer->behind().load(); }));
  answer->finish();
  EXPECT_TRUE(becomes_true([&] { return !answer->behind().load(); }));
  EXPECT_EQ(client.read().body.size(), 80'000u);
}

// Its text waits, and a client on a slow network may need longer for what there is.
TEST(HttpServer, AStreamThatDoesNotGrowHasTime) {
  HttpSettings settings;
  settings.unsent = 50'000;
  settings.unsent_time = 100ms;
  TestServer server(settings);
  HttpClient client = server.connect(4096);
  const auto answer = server.stream_to(client);
  answer->write(std::string(500'000, 'x'));
  std::this_thread::sleep_for(400ms);
  EXPECT_FALSE(answer->gone());
  answer->write("x");
  EXPECT_TRUE(becomes_true([&] { return answer->gone().load(); }));
}

// As at the end of a response, whose last events repeat all of it.
TEST(HttpServer, LargePiecesAtOnceDropNoClientThatReads) {
  HttpSettings settings;
  settings.unsent = 50'000;
  TestServer server(settings);
  HttpClient client = server.connect(4096);
  const auto answer = server.stream_to(client);
  for (int i = 0; i < 5; ++i) answer->write(std::string(2'000'000, 'x'));
  EXPECT_EQ(server.ask(http_get("/echo")).status, 200);  // after the server has looked at the pieces
  answer->write("end");
  answer->finish();
  const HttpReply reply = client.read();
  EXPECT_TRUE(reply.is_complete);
  EXPECT_EQ(reply.body.size(), 10'000'003);
}

// The client that reads keeps its answer, although it is the oldest.
TEST(HttpServer, AnswersThatNobodyReadsHaveBoundedMemory) {
  HttpSettings settings;
  settings.answer_memory = 100'000'000;
  TestServer server(settings);
  const std::string body(10'000'000, 'x');
  HttpClient honest = server.connect(4096);
  honest.send(http_get("/hold"));
  server.held()->send(200, "text/plain", body);
  std::vector<HttpClient> idle;
  std::vector<std::shared_ptr<HttpAnswer>> answers;
  for (int i = 0; i < 40; ++i) {
    idle.push_back(server.connect(4096));
    idle.back().send(http_get("/hold"));
    answers.push_back(server.held());
    answers.back()->send(200, "text/plain", body);
    EXPECT_EQ(server.ask(http_get("/echo")).status, 200);
    const std::size_t had = honest.received().size();
    while (honest.received().size() < had + 50'000) ASSERT_TRUE(honest.receive(5s));
  }
  const auto is_gone = [](const auto& answer) { return answer->gone().load(); };
  EXPECT_TRUE(becomes_true([&] { return std::count_if(answers.begin(), answers.end(), is_gone) >= 29; }));
  EXPECT_FALSE(is_gone(answers.back()));
  EXPECT_EQ(honest.read().body.size(), body.size());
}

TEST(HttpServer, AnswersThatWereReadTakeNoMemory) {
  HttpSettings settings;
  settings.answer_memory = 50'000'000;
  TestServer server(settings);
  const std::string body(10'000'000, 'x');
  std::vector<HttpClient> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(server.connect());
    clients.back().send(http_get("/hold"));
    server.held()->send(200, "text/plain", body);
    EXPECT_EQ(clients.back().read().body.size(), body.size());
  }
  std::vector<HttpClient> slow;
  std::vector<std::shared_ptr<HttpAnswer>> answers;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(server.connect(4096));
    slow.back().send(http_get("/hold"));
    answers.push_back(server.held());
    answers.back()->send(200, "text/plain", body);
    EXPECT_EQ(server.ask(http_get("/echo")).status, 200);
  }
  for (const auto& answer : answers) EXPECT_FALSE(answer->gone());
}

// A stream that grows by much until it is behind for too long.
TEST(HttpServer, AStalledReaderOfALargeStreamIsDroppedSoon) {
  HttpSettings settings;
  settings.answer_memory = 20'000'000;
  settings.large_stall = 100ms;
  TestServer server(settings);
  HttpClient idle = server.connect(4096), honest = server.connect();
  idle.send(http_get("/hold"));
  const auto unread = server.held();
  honest.send(http_get("/hold"));
  const auto whole = server.held();
  whole->send(200, "text/plain", std::string(10'000'000, 'x'));
  unread->start("text/event-stream");
  unread->write(std::string(15'000'000, 'x'));
  std::this_thread::sleep_for(300ms);
  EXPECT_FALSE(unread->gone());
  unread->write(std::string(15'000'000, 'x'));
  EXPECT_TRUE(becomes_true([&] { return unread->gone().load(); }, 5s));
  EXPECT_EQ(honest.read().body.size(), 10'000'000u);
}

// The system is ready for more of the answer only when the client has read a large part of what it has.
TEST(HttpServer, AClientThatReadsSlowlyButSteadilyIsNotStalled) {
  HttpSettings settings;
  settings.stall_timeout = settings.idle_timeout = 2s;
  TestServer server(settings);
  HttpClient client = server.connect(4096);
  const auto answer = server.send_to(client, 2'000'000);
  for (int i = 0; i < 90; ++i) {  // 16 KB take 1.1 s
    ASSERT_TRUE(client.receive(1s, 750)) << i;
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_FALSE(answer->gone());
}

TEST(HttpServer, AClientThatReadsHardlyAnythingIsDropped) {
  HttpSettings settings;
  settings.stall_timeout = settings.idle_timeout = 1s;
  TestServer server(settings);
  HttpClient client = server.connect(4096);
  const auto answer = server.send_to(client, 2'000'000);
  for (int i = 0; i < 600 && !answer->gone(); ++i) {
    client.receive(1s, 100);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(answer->gone());
}

// The rest of it takes no more memory than an idle connection.
TEST(HttpServer, WhatIsReadOfALargeAnswerIsForgotten) {
  HttpSettings settings;
  settings.answer_memory = 1'000'000;
  settings.behind = 250'000;
  TestServer server(settings);
  HttpClient slow = server.connect(4096), other = server.connect(4096);
  const auto first = server.send_to(slow, 3'000'000);
  while (slow.received().size() < 2'600'000) ASSERT_TRUE(slow.receive(5s));
  server.send_to(other, 3'000'000);
  EXPECT_EQ(server.ask(http_get("/echo")).status, 200);
  EXPECT_FALSE(first->gone()) << "it takes memory that the other needs";
}

TEST(HttpServer, AUnixSocketHoldsLittleOfAStream) {
  const TemporaryFolder folder;
  HttpSettings settings;
  settings.socket = folder.path() + "/socket";
  TestServer server(settings);
  HttpClient client(settings.socket);
  const auto answer = server.stream_to(client);
  answer->write(std::string(150'000, 'x'));
  EXPECT_TRUE(becomes_true([&] { return answer->behind().load(); }));
}

TEST(HttpServer, AnAnswerThatIsMadeIsSentToAClientThatEndsItsOwnSide) {
  for (const bool ends_before : {true, false}) {
    TestServer server;
    HttpClient client = server.connect(4096);
    client.send(http_get("/hold"));
    const auto answer = server.held();
    const std::string body(2'000'000, 'x');
    if (ends_before) {
      client.end_sending();
      ASSERT_TRUE(becomes_true([&] { return answer->gone().load(); }));
    }
    answer->send(200, "text/plain", body);
    ASSERT_TRUE(client.receive(5s));
    if (!ends_before) client.end_sending();
    std::this_thread::sleep_for(500ms);
    EXPECT_EQ(client.read().body.size(), 2'000'000u) << ends_before;
  }
}

TEST(HttpServer, AClientOfASmallAnswerIsNotDroppedForThoseOfLargeOnes) {
  HttpSettings settings;
  settings.answer_memory = 1'000'000;
  TestServer server(settings);
  HttpClient client = server.connect(4096), first = server.connect(4096), second = server.connect(4096);
  const auto small = server.stream_to(client);
  small->write(std::string(60'000, 'x'));
  ASSERT_TRUE(becomes_true([&] { return small->behind().load(); }));
  const auto large = server.send_to(first, 2'000'000);
  server.send_to(second, 2'000'000);
  EXPECT_TRUE(becomes_true([&] { return large->gone().load(); }));
  EXPECT_FALSE(small->gone());
}

// Pieces are not kept for a client that is gone; one that has ended only its own side sees that some are missing.
TEST(HttpServer, AStreamThatLacksPiecesDoesNotEndAsAWholeOne) {
  TestServer server;
  HttpClient client = server.connect();
  const auto answer = server.stream_to(client);
  answer->write("first");
  client.end_sending();
  ASSERT_TRUE(becomes_true([&] { return answer->gone().load(); }));
  answer->write("last");
  answer->finish();
  EXPECT_FALSE(client.read().is_complete);
}

TEST(HttpServer, AStalledReaderIsDropped) {
  HttpSettings settings;
  settings.stall_timeout = 200ms;
  TestServer server(settings);
  HttpClient client = server.connect(4096);
  const auto answer = server.send_to(client, 20'000'000);
  EXPECT_TRUE(becomes_true([&] { return answer->gone().load(); }));
  EXPECT_TRUE(becomes_true([&] { return (*server).connections() == 0; }));
}

TEST(HttpServer, WholeAnswersMayBeLarge) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(http_get("/hold") + http_get("/echo"));
  const std::string body(20'000'000, 'x');
  server.held()->send(200, "text/plain", body);
  EXPECT_TRUE(client.read().body == body);
  EXPECT_EQ(client.read().body, "GET  ");
}

TEST(HttpServer, AnswersFromManyThreads) {
  TestServer server;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      HttpClient client = server.connect();
      for (int round = 0; round < 20; ++round) {
        client.send(http_get("/hold"));
        const auto answer = server.held();  // perhaps that of another client
        answer->start("text/plain");
        for (int piece = 0; piece < 20; ++piece) answer->write(std::to_string(i));
        answer->finish();
        const HttpReply reply = client.read();
        EXPECT_TRUE(reply.is_complete);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HttpServer, StopLetsAnswersEnd) {
  TestServer server;
  HttpClient running = server.connect(), idle = server.connect(), partial = server.connect();
  running.send(http_get("/hold") + http_get("/echo"));
  const auto answer = server.held();
  EXPECT_EQ(idle.ask(http_get("/echo")).status, 200);
  partial.send("GET / HTTP/1.1\r\nHo");
  ASSERT_TRUE(becomes_true([&] { return (*server).connections() == 3; }));
  const std::uint16_t port = (*server).port();
  (*server).stop();
  EXPECT_TRUE(idle.is_closed());
  const HttpReply reply = partial.read();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.headers.at("Retry-After"), "1");
  EXPECT_TRUE(becomes_true([&] {
    try {
      return !HttpClient(port).send("");
    } catch (const std::runtime_error&) {
      return true;
    }
  }));
  EXPECT_FALSE(answer->gone());
  answer->start("text/plain");
  answer->write("end");
  answer->finish();
  EXPECT_EQ(running.read().body, "end");
  EXPECT_EQ(running.read().status, 0);  // the request after it is not answered
  EXPECT_TRUE(server.join());
}

TEST(HttpServer, StopRejectsRequestsThatAreStillArriving) {
  TestServer server;
  HttpClient head = server.connect(), body = server.connect();
  head.send("GET /echo HTTP/1.1\r\nHo");
  body.send(http_post("/echo", "0123456789").substr(0, 60));
  ASSERT_TRUE(becomes_true([&] { return (*server).connections() == 2; }));
  (*server).stop();
  for (HttpClient* const client : {&head, &body}) {
    const HttpReply reply = client->read();
    EXPECT_EQ(reply.status, 503);
    EXPECT_NE(reply.body.find("server_stopping"), std::string::npos) << reply.body;
    EXPECT_TRUE(client->is_closed());
  }
  EXPECT_TRUE(server.join());
}

// It has arrived, but has not been read when the server stops.
TEST(HttpServer, StopRejectsARequestThatHasJustArrived) {
  TestServer server;
  HttpClient kept = server.connect(), blocking = server.connect();
  EXPECT_EQ(kept.ask(http_get("/echo")).status, 200);
  blocking.send(http_get("/block"));
  server.wait_until_blocked();
  kept.send(http_get("/echo"));
  (*server).stop();
  server.unblock();
  const HttpReply reply = kept.read();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.headers.at("Retry-After"), "1");
  EXPECT_EQ(blocking.read().status, 200);
  EXPECT_TRUE(server.join());
}

// A client that was rejected has two seconds to read why; a server that stops does not wait for it so long.
TEST(HttpServer, StopDoesNotWaitForClientsThatLinger) {
  TestServer server;
  HttpClient client = server.connect();
  EXPECT_EQ(client.ask("nonsense\r\n\r\n").status, 400);
  const auto start = Clock::now();
  (*server).stop();
  EXPECT_TRUE(server.join());
  EXPECT_LT(Clock::now() - start, 1500ms);
}

TEST(HttpServer, StopAsksTheHandlerToRejectWhatItHasNotBegun) {
  std::shared_ptr<HttpAnswer> waiting;
  HttpSettings settings;
  settings.on_stop = [&] { waiting->send(503, "text/plain", "stopping"); };
  TestServer server(settings);
  HttpClient client = server.connect();
  client.send(http_get("/hold"));
  waiting = server.held();
  (*server).stop();
  EXPECT_EQ(client.read().body, "stopping");
  EXPECT_TRUE(server.join()) << "without waiting for the time limit";
}

TEST(HttpServer, StopEndsAtTheTimeLimit) {
  HttpSettings settings;
  settings.drain = 200ms;
  TestServer server(settings);
  HttpClient client = server.connect();
  client.send(http_get("/hold"));
  const auto answer = server.held();
  const auto start = Clock::now();
  (*server).stop();
  EXPECT_FALSE(server.join());
  EXPECT_GE(Clock::now() - start, 150ms);
  EXPECT_LT(Clock::now() - start, 5s);
  EXPECT_TRUE(answer->gone());
  answer->send(200, "text/plain", "too late");
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpServer, TheHandlerHasLastWordsAtTheTimeLimit) {
  std::shared_ptr<HttpAnswer> answer;
  HttpSettings settings;
  settings.drain = 50ms;
  settings.on_drained = [&] {
    answer->write("the end");
    answer->finish();
  };
  TestServer server(settings);
  HttpClient client = server.connect();
  client.send(http_get("/hold"));
  answer = server.held();
  answer->start("text/plain");
  answer->write("begun, ");
  (*server).stop();
  const HttpReply reply = client.read();
  EXPECT_TRUE(reply.is_complete) << reply.body;
  EXPECT_EQ(reply.body, "begun, the end");
  EXPECT_FALSE(server.join()) << "it was not the answer's own end";
}

TEST(HttpServer, LastWordsHaveALimitThemselves) {
  HttpSettings settings;
  settings.drain = 50ms;
  settings.last_words = 100ms;
  int calls = 0;
  settings.on_drained = [&] { ++calls; };
  TestServer server(settings);
  HttpClient client = server.connect();
  client.send(http_get("/hold"));
  const auto answer = server.held();
  (*server).stop();
  EXPECT_FALSE(server.join());
  EXPECT_EQ(calls, 1);
}

TEST(HttpServer, FailuresCanHaveABodyOfTheirOwn) {
  HttpSettings settings;
  settings.keys = {"k"};
  settings.error_body = [](std::string_view path, const HttpFailure& failure) {
    return std::string(path) + " " + failure.code;
  };
  TestServer server(settings);
  HttpClient client = server.connect();
  EXPECT_EQ(client.ask(http_post("/echo", "a", "")).body, "/echo missing_api_key");
  HttpClient other = server.connect();
  EXPECT_EQ(other.ask("nonsense\r\n\r\n").body.substr(0, 1), " ") << "no path";
}

TEST(HttpServer, TellsClientsApartByTheirKeys) {
  EXPECT_EQ(TestServer().ask(http_get("/client")).body, "") << "a program of this machine";
  HttpSettings settings;
  settings.keys = {"one", "two"};
  TestServer server(settings);
  const auto client = [&](const std::string& key) {
    return server.ask(http_get("/client", "Authorization: Bearer " + key + "\r\n")).body;
  };
  EXPECT_EQ(client("one"), client("one"));
  EXPECT_NE(client("one"), client("two"));
  EXPECT_NE(client("one"), "");
}

TEST(HttpServer, TellsClientsOfOtherMachinesApartByTheirAddresses) {
  const auto network = [](const char* text) {
    sockaddr_storage address{};
    auto& four = reinterpret_cast<sockaddr_in&>(address);
    auto& six = reinterpret_cast<sockaddr_in6&>(address);
    const bool is_four = inet_pton(AF_INET, text, &four.sin_addr) == 1;
    EXPECT_TRUE(is_four || inet_pton(AF_INET6, text, &six.sin6_addr) == 1) << text;
    address.ss_family = is_four ? AF_INET : AF_INET6;
    return network_of(address);
  };
  for (const char* const own : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"}) EXPECT_EQ(network(own), "");
  EXPECT_NE(network("10.0.0.1"), network("10.0.0.2"));
  EXPECT_NE(network("::ffff:10.0.0.1"), network("::ffff:10.0.0.2"));
  EXPECT_EQ(network("2001:db8:0:1::1"), network("2001:db8:0:1:ffff::2")) << "a machine chooses among these";
  EXPECT_NE(network("2001:db8:0:1::1"), network("2001:db8:0:2::1"));
  sockaddr_storage of_socket{};
  of_socket.ss_family = AF_UNIX;
  EXPECT_EQ(network_of(of_socket), "");
}

TEST(HttpServer, ReturnsTheIdOfARequest) {
  TestServer server;
  const auto id_of = [&](const std::string& fields) {
    HttpClient client = server.connect();
    return client.ask(http_post("/echo", "a", fields)).headers["X-Request-Id"];
  };
  EXPECT_EQ(id_of("X-Request-Id: abc-1/2\r\n"), "abc-1/2");
  const std::string first = id_of(""), second = id_of("");
  EXPECT_TRUE(first.starts_with("req-")) << first;
  EXPECT_NE(first, second);
  for (const std::string& unsuitable :
       {std::string("a b"), std::string(129, 'a'), std::string("\xC3\xA4"), std::string()}) {
    EXPECT_TRUE(id_of("X-Request-Id: " + unsuitable + "\r\n").starts_with("req-")) << unsuitable;
  }
  EXPECT_NE(id_of("X-Request-Id: " + std::string(128, 'a') + "\r\n").size(), 0u);
  HttpClient client = server.connect();
  HttpReply refused = client.ask("GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: abc\r\nExpect: nothing\r\n\r\n");
  EXPECT_EQ(refused.status, 417);
  EXPECT_EQ(refused.headers["X-Request-Id"], "abc");
}

TEST(HttpServer, LogsJsonIfThatIsAskedFor) {
  HttpSettings settings;
  settings.log_is_json = true;
  TestServer server(settings);
  server.ask(http_get("/echo"));
  ASSERT_TRUE(becomes_true([&] { return server.log().size() == 1; }));
  EXPECT_NE(server.log()[0].find(R"("method": "GET", "path": "/echo", "status": 200)"), std::string::npos);
  server.ask("GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: abc\r\nExpect: nothing\r\n\r\n");
  ASSERT_TRUE(becomes_true([&] { return server.log().size() == 2; }));
  EXPECT_NE(server.log()[1].find(R"("request_id": "abc")"), std::string::npos) << server.log()[1];
}

TEST(HttpServer, AnswersMayOutliveTheServer) {
  TestServer server;
  HttpClient client = server.connect();
  client.send(http_get("/hold") + http_get("/hold"));
  const auto answer = server.held();
  (*server).stop_now();
  EXPECT_FALSE(server.join());
  server.destroy();
  EXPECT_TRUE(answer->gone());
  answer->start("text/plain");
  answer->write("x");
  answer->finish();
}

TEST(HttpServer, LogsWithoutContents) {
  TestServer server;
  HttpClient client = server.connect();
  client.ask(http_post("/echo?key=secret", "secret", "Authorization: Bearer secret\r\nX: secret\r\n"));
  client.send(http_get("/hold"));
  const auto answer = server.held();
  client.close();
  EXPECT_TRUE(becomes_true([&] { return answer->gone().load(); }));
  server.ask("nonsense\r\n\r\n");
  ASSERT_TRUE(becomes_true([&] { return server.log().size() == 3; }));
  const std::vector<std::string> log = server.log();
  EXPECT_NE(log[0].find(" POST /echo 200 "), std::string::npos) << log[0];
  EXPECT_TRUE(std::any_of(log.begin(), log.end(), [](const auto& line) {
    return line.find(" GET /hold - 0 ") != std::string::npos && line.ends_with(" disconnected");
  }));
  EXPECT_TRUE(std::any_of(log.begin(), log.end(),
                          [](const auto& line) { return line.find(" - - 400 ") != std::string::npos; }));
  for (const std::string& line : log) EXPECT_EQ(line.find("secret"), std::string::npos) << line;
}

TEST(HttpServer, APortInUseIsNamed) {
  TestServer first;
  HttpSettings settings;
  settings.port = (*first).port();
  const std::string error = error_of([&] { HttpServer second(settings, {}); });
  EXPECT_NE(error.find("127.0.0.1:" + std::to_string(settings.port) + " is in use"), std::string::npos) << error;
  EXPECT_NE(error.find("--port"), std::string::npos) << error;
}

TEST(HttpServer, APortCanBeUsedAgainAtOnce) {
  std::uint16_t port = 0;
  for (int round = 0; round < 3; ++round) {
    HttpSettings settings;
    settings.port = port;
    HttpServer server(settings, [](const HttpRequest&, const std::shared_ptr<HttpAnswer>& answer) {
      answer->send(200, "text/plain", "");
    });
    port = server.port();
    std::thread thread([&] { server.run(); });
    HttpClient client(port);
    EXPECT_EQ(client.ask(http_get("/")).status, 200);
    server.stop();
    thread.join();
  }
}

TEST(HttpServer, OtherMachinesNeedAKey) {
  HttpSettings settings;
  settings.port = 0;
  settings.host = "0.0.0.0";
  const std::string error = error_of([&] { HttpServer server(settings, {}); });
  EXPECT_NE(error.find("--api-key-file"), std::string::npos) << error;
  settings.allow_no_key = true;
  EXPECT_EQ(error_of([&] { HttpServer server(settings, {}); }), "");
  settings.allow_no_key = false;
  settings.keys = {"key"};
  EXPECT_EQ(error_of([&] { HttpServer server(settings, {}); }), "");
  settings.host = "no-such-name.invalid";
  EXPECT_NE(error_of([&] { HttpServer server(settings, {}); }).find("no-such-name.invalid"), std::string::npos);
}

TEST(HttpServer, ListensOnAUnixSocket) {
  const TemporaryFolder folder;
  HttpSettings settings;
  settings.host = "";
  settings.socket = folder.path() + "/socket";
  {
    TestServer server(settings);
    EXPECT_EQ((*server).addresses(), std::vector<std::string>{"unix:" + settings.socket});
    HttpClient client(settings.socket);
    EXPECT_EQ(client.ask("GET /echo HTTP/1.1\r\nHost: anything\r\n\r\n").status, 200);
    struct stat file {};
    ASSERT_EQ(::stat(settings.socket.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600u);
    const std::string error = error_of([&] { HttpServer second(settings, {}); });
    EXPECT_NE(error.find("in use by another server"), std::string::npos) << error;
    EXPECT_EQ(HttpClient(settings.socket).ask(http_get("/echo")).status, 200);
  }
  EXPECT_FALSE(std::filesystem::exists(settings.socket));
}

TEST(HttpServer, ReplacesAStaleUnixSocketAndNothingElse) {
  const TemporaryFolder folder;
  HttpSettings settings;
  settings.host = "";
  settings.socket = folder.path() + "/socket";
  const int stale = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, settings.socket.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(stale, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(stale);
  {
    TestServer server(settings);
    EXPECT_EQ(HttpClient(settings.socket).ask(http_get("/echo")).status, 200);
  }
  settings.socket = folder.write("file", "content");
  EXPECT_NE(error_of([&] { HttpServer server(settings, {}); }).find("is not a socket"), std::string::npos);
  EXPECT_EQ(read_whole_file(settings.socket), "content");
  settings.socket = folder.path() + "/" + std::string(200, 'a');
  EXPECT_NE(error_of([&] { HttpServer server(settings, {}); }).find("--socket"), std::string::npos);
}

// Runs a server in another process, which handles signals; returns its exit status after `act`.
template <class Act>
int status_of_server(const std::string& socket, Act act) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ready[0]);
    std::signal(SIGHUP, SIG_DFL);  // a parent such as nohup may ignore it, which the server respects
    HttpSettings settings;
    settings.port = 0;
    settings.socket = socket;
    settings.handle_signals = true;
    int status = 2;
    {
      std::vector<std::shared_ptr<HttpAnswer>> held;
      HttpServer server(settings, [&](const HttpRequest& request, std::shared_ptr<HttpAnswer> answer) {
        if (request.path == "/hold") return held.push_back(std::move(answer));
        answer->send(200, "text/plain", "");
      });
      const std::uint16_t port = server.port();
      std::thread([&ready, port] { [[maybe_unused]] const auto n = ::write(ready[1], &port, sizeof(port)); }).join();
      status = server.run() ? 0 : 1;
    }
    end_child(status);
  }
  ::close(ready[1]);
  std::uint16_t port = 0;
  EXPECT_EQ(::read(ready[0], &port, sizeof(port)), static_cast<ssize_t>(sizeof(port)));
  ::close(ready[0]);
  act(child, port);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(HttpServer, ASignalThatComesBeforeItRunsStopsIt) {
  const pid_t child = ::fork();
  if (child == 0) {
    HttpSettings settings;
    settings.port = 0;
    settings.handle_signals = true;
    int status = 2;
    {
      HttpServer server(settings, [](const HttpRequest&, const std::shared_ptr<HttpAnswer>&) {});
      std::raise(SIGINT);
      status = server.run() ? 0 : 1;
    }
    end_child(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(HttpServer, ASignalStopsItAndASecondOneEndsItAtOnce) {
  if (is_emulated()) GTEST_SKIP() << "the emulator crashes if a forked child starts threads";
  const TemporaryFolder folder;
  const std::string socket = folder.path() + "/socket";
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    EXPECT_EQ(status_of_server(socket,
                               [&](pid_t child, std::uint16_t port) {
                                 HttpClient client(port);
                                 EXPECT_EQ(client.ask(http_get("/")).status, 200);
                                 ::kill(child, SIGPIPE);
                                 EXPECT_EQ(client.ask(http_get("/")).status, 200);
                                 ::kill(child, signal);
                                 EXPECT_TRUE(client.is_closed());
                               }),
              0);
    EXPECT_FALSE(std::filesystem::exists(socket));
  }
  EXPECT_EQ(status_of_server(socket,
                             [&](pid_t child, std::uint16_t port) {
                               HttpClient client(port), other(port);
                               client.send(http_get("/hold"));
                               EXPECT_EQ(other.ask(http_get("/")).status, 200);
                               ::kill(child, SIGTERM);
                               EXPECT_TRUE(other.is_closed());
                               EXPECT_FALSE(client.is_closed(100ms));
                               ::kill(child, SIGTERM);
                               EXPECT_TRUE(client.is_closed());
                             }),
            1);
  EXPECT_FALSE(std::filesystem::exists(socket));
}

TEST(HttpServer, StartsAgainAfterKill) {
  if (is_emulated()) GTEST_SKIP() << "the emulator crashes if a forked child starts threads";
  const TemporaryFolder folder;
  const std::string socket = folder.path() + "/socket";
  EXPECT_EQ(status_of_server(socket, [&](pid_t child, std::uint16_t) { ::kill(child, SIGKILL); }), 128 + SIGKILL);
  EXPECT_TRUE(std::filesystem::exists(socket));
  EXPECT_EQ(status_of_server(socket,
                             [&](pid_t child, std::uint16_t) {
                               EXPECT_EQ(HttpClient(socket).ask(http_get("/")).status, 200);
                               ::kill(child, SIGTERM);
                             }),
            0);
}

// Random bytes, cut anywhere: each connection ends with an answer or a close, and the server goes on.
TEST(HttpServer, SurvivesMalformedRequests) {
  HttpSettings settings;
  settings.head_timeout = settings.body_timeout = settings.idle_timeout = 500ms;
  TestServer server(settings);
  const std::vector<std::string> seeds = {
      http_get("/echo", "Connection: close\r\n"),
      http_post("/echo", "{\"a\": 1}", "Expect: 100-continue\r\n"),
      "POST /pieces HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: u\r\n\r\n",
  };
  std::mt19937 random(2);
  const auto below = [&](std::size_t count) { return random() % count; };
  for (unsigned i = 0; i < cases(2000); ++i) {
    std::string bytes = seeds[below(seeds.size())] + seeds[below(seeds.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
      const std::size_t at = below(bytes.size());
      if (below(2) == 0) {
        bytes[at] = static_cast<char>(below(256));
      } else {
        bytes.erase(at, below(10));
      }
      if (bytes.empty()) bytes = "x";
    }
    HttpClient client = server.connect();
    const std::size_t cut = below(bytes.size());
    client.send(std::string_view(bytes).substr(0, cut));
    client.send(std::string_view(bytes).substr(cut));
    if (below(8) == 0) continue;  // disconnects
    client.end_sending();
    ASSERT_TRUE(client.is_closed()) << bytes;
  }
  EXPECT_EQ(server.ask(http_get("/echo")).status, 200);
  EXPECT_TRUE(becomes_true([&] { return (*server).connections() == 0; }));
}

}  // namespace
}  // namespace minimind
