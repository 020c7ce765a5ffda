#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/http/http.h"
#include "tools/http/settings.h"

namespace minimind {

// An HTTP/1.1 server. One thread, that of run(), serves all connections.
class HttpServer {
 public:
  // Listens; clients can connect from then on and wait for run(). Throws Error if that is impossible, and UsageError if
  // other machines could use the server without a key and the settings do not allow that.
  HttpServer(HttpSettings settings, HttpHandler handler);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  // Answers that handlers still hold do nothing afterwards.
  ~HttpServer();

  // Where clients connect: "http://127.0.0.1:8998", "unix:/path".
  std::vector<std::string> addresses() const;
  // The port that was found free if the settings have port 0; 0 if there is only a unix socket.
  std::uint16_t port() const;

  // Serves until stop() and the end of all answers under way, or until stop_now(). Returns true if all of them ended,
  // false if some were truncated.
  bool run();

  // Stops listening, rejects requests that are not yet complete with status 503, and lets running answers end within
  // HttpSettings::drain. Any thread may call it, also before run().
  void stop();
  // Closes all connections.
  void stop_now();

  // Connections that are open now. Any thread may call it.
  std::size_t connections() const;

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace minimind
