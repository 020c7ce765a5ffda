#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace minimind {

// Fields of an answer beyond those that the server writes itself.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// A whole request: its body has been read and is within the limits.
struct HttpRequest {
  std::string method;                          // "GET", "POST", ...; HEAD arrives as "GET"
  std::string path, query;                     // of the target; the path is percent-decoded, the query is not
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  // Who sends it, as HttpAccess tells clients apart; empty: unknown, as of a program of this machine, which may also
  // pass on what others send.
  std::string client{};

  // Returns a field of the header by its name in lower case; nullptr if there is none.
  const std::string* header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? nullptr : &found->second;
  }
};

// The answer to one request. Any thread may call its functions; they never block. If it is destroyed
// without an answer, the server sends status 500; if it is destroyed between start() and finish(), the server closes
// the connection, so that the client sees that the answer is incomplete.
class HttpAnswer {
 public:
  virtual ~HttpAnswer() = default;

  // Sends a whole answer. The first call of send() or start() wins; later ones do nothing.
  virtual void send(int status, std::string_view content_type, std::string body, const HttpHeaders& extra = {}) = 0;

  // Starts an answer of status 200 in pieces: chunked, or until the connection closes for HTTP/1.0.
  virtual void start(std::string_view content_type) = 0;
  // Sends a piece; drops it if the client is gone.
  virtual void write(std::string piece) = 0;
  // Ends the answer after its last piece.
  virtual void finish() = 0;

  // Becomes true if the client disconnected, or was dropped because it reads too slowly: computing the rest of the
  // answer is pointless. Valid as long as the answer.
  virtual const std::atomic<bool>& gone() const = 0;

  // True while so much of the answer is unread (HttpSettings::behind) that more of it should wait, until at most half
  // of that is left. Valid as long as the answer.
  virtual const std::atomic<bool>& behind() const = 0;
};

// Answers a request, now or later. Called on the thread of the connections, so it must return soon. If it throws, the
// server sends status 500.
using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<HttpAnswer>)>;

}  // namespace minimind
