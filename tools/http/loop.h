#pragma once

#include <array>
#include <boost/asio/basic_datagram_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/generic/datagram_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace minimind {

// The event loop of an HTTP server. Callbacks are std::function, so that Asio's templates are compiled once for all.
using HttpLoop = boost::asio::io_context;
// A socket of any kind, which is only waited for: of datagrams Asio expects nothing else, on Windows too.
using HttpDescriptor =
    boost::asio::basic_datagram_socket<boost::asio::generic::datagram_protocol, HttpLoop::executor_type>;
using HttpTimer =
    boost::asio::basic_waitable_timer<std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>,
                                      HttpLoop::executor_type>;

// Takes a socket.
HttpDescriptor http_descriptor(HttpLoop& loop, int descriptor);

// Calls `ready` once the descriptor can be read or written, or once it has failed. Does not call it if the descriptor
// is closed first.
void when_ready(HttpDescriptor& descriptor, HttpDescriptor::wait_type what, std::function<void()> ready);

// Calls `action` on the thread of the loop. Any thread may call it.
void post_to(HttpLoop& loop, std::function<void()> action);

// What is looked at on the thread of the connections.
class HttpAnswered {
 public:
  virtual ~HttpAnswered() = default;
  // Looks at what the handler has given.
  virtual void on_answer() = 0;
};

// The way from the threads of handlers to that of the connections; does nothing once the server has ended. Pieces of
// streams wait until earlier ones were sent 4 ms ago, so that the thread wakes up once for all streams, and takes
// little of the processors from the threads that write them.
//
// No lock is held while the thread of the connections is woken up, unlike in Asio's post(): on a busy core it would run
// at once, wait for the lock, and so for everything that comes before a thread of low priority that holds it.
class HttpWakeup : public std::enable_shared_from_this<HttpWakeup> {
 public:
  // Throws Error if the system has no descriptors left.
  explicit HttpWakeup(HttpLoop& loop);
  HttpWakeup(const HttpWakeup&) = delete;
  HttpWakeup& operator=(const HttpWakeup&) = delete;
  ~HttpWakeup();

  // Makes the thread of the connections look at the answer of the connection, at once or together with others.
  void post(std::weak_ptr<HttpAnswered> connection, bool at_once);
  // On the thread of the connections, or after its end.
  void close();

 private:
  void wait();
  void look();
  void rest();
  void end_rest();

  std::array<int, 2> sockets_;  // a byte that is sent by the second wakes up the thread, which receives it by the first

  // Of the thread of the connections; null after close().
  std::unique_ptr<HttpDescriptor> called_;  // the first socket
  std::unique_ptr<HttpTimer> rest_;

  std::mutex mutex_;  // guards all below
  bool is_closed_ = false;
  std::vector<std::weak_ptr<HttpAnswered>> waiting_;
  bool has_pieces_ = false;  // the connections that wait include some that were not posted at once
  bool is_called_ = false;   // the thread is about to look
  bool is_resting_ = false;
};

}  // namespace minimind
