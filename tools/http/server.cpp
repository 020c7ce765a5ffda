#include "tools/http/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/basic_signal_set.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <unordered_map>
#include <utility>

#include "tools/http/access.h"
#include "tools/http/connection.h"
#include "tools/http/listener.h"
#include "tools/http/loop.h"
#include "weights/base/error.h"
#include "weights/base/text.h"

namespace minimind {
namespace {

using namespace std::chrono_literals;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr auto usual_tick = 100ms;
constexpr auto short_tick = 20ms;              // while a client that disconnects is found only by asking
constexpr std::size_t refused_at_once = 64;    // connections over the limit that get the reason
constexpr std::size_t spare_descriptors = 64;  // for everything else that the program opens
constexpr int accepted_at_once = 64;
constexpr int send_buffer = 128 << 10;  // bytes in the kernel for one client, which doubles them
// Those of a unix socket, where nothing else limits how much of a running stream is in the kernel.
constexpr int unix_send_buffer = 32 << 10;

std::vector<HttpListener> listen_as(const HttpSettings& settings) {
  std::vector<HttpListener> listeners;
  if (!settings.host.empty()) listeners = HttpListener::on_host(settings.host, settings.port);
  const bool is_open = !std::all_of(listeners.begin(), listeners.end(), [](const auto& one) { return one.is_local(); });
  if (is_open && settings.keys.empty() && !settings.allow_no_key) {
    throw UsageError(
        fmt::format("--host: {} can be reached by other machines, expected --api-key-file FILE, or "
                    "--no-api-key to let everybody use the server",
                    quote(settings.host)));
  }
  if (!settings.socket.empty()) listeners.push_back(HttpListener::on_socket(settings.socket));
  return listeners;
}

// Raises the number of descriptors that the program may open; returns how many connections are possible.
std::size_t possible_connections(std::size_t wanted) {
  rlimit limit{};
  const rlim_t needed = wanted + refused_at_once + spare_descriptors;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur < needed) {
    limit.rlim_cur = std::min(needed, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur >= needed) return wanted;
  return limit.rlim_cur > 2 * (refused_at_once + spare_descriptors)
             ? limit.rlim_cur - refused_at_once - spare_descriptors
             : limit.rlim_cur / 2;
}

void set_options(int descriptor, bool is_tcp) {
  const int on = 1, bytes = is_tcp ? send_buffer : unix_send_buffer;
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
  if (!is_tcp) return;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

// A signal that the program was started to ignore, as by nohup, stays ignored.
bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

class HttpServer::Server {
 public:
  Server(HttpSettings settings, HttpHandler handler)
      : settings_(std::move(settings)),
        handler_(std::move(handler)),
        access_(settings_),
        listeners_(listen_as(settings_)),
        most_connections_(possible_connections(settings_.connections)),
        signals_(loop_),
        tick_(loop_),
        shared_{settings_, access_, handler_, loop_, std::make_shared<HttpWakeup>(loop_), {}, {}, {}, {}} {
    shared_.on_close = [this](HttpConnection& connection) { remove(connection); };
    shared_.on_full = [this] { tick_within(short_tick); };
    shared_.on_crowded = [this](const HttpConnection& newest) { make_room_beside(newest); };
    shared_.on_bodies = [this] { make_room_for_bodies(); };
    for (const HttpListener& listener : listeners_) {
      addresses_.push_back(listener.address());
      port_ = std::max(port_, listener.port());
      // Duplicated, because the listener closes its own descriptor.
      acceptors_.push_back(http_descriptor(loop_, ::fcntl(listener.descriptor(), F_DUPFD_CLOEXEC, 0)));
    }
    if (settings_.handle_signals) handle_signals();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    shared_.wakeup->close();
    drop_all("stopped");
  }

  bool run() {
    for (std::size_t i = 0; i < acceptors_.size(); ++i) wait_to_accept(i);
    loop_.run();
    signals_.clear();
    return !was_cut_off_;
  }

  void post_stop() {
    post_to(loop_, [this] { stop(); });
  }
  void post_stop_now() {
    post_to(loop_, [this] { stop_now(); });
  }

  const std::vector<std::string>& addresses() const { return addresses_; }
  std::uint16_t port() const { return port_; }
  std::size_t connections() const { return open_; }

 private:
  void handle_signals() {
    std::signal(SIGPIPE, SIG_IGN);  // if standard error is closed, the server continues
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      if (signal != SIGHUP || !is_ignored(signal)) signals_.add(signal);
    }
    wait_for_signal();
  }

  void wait_for_signal() {
    signals_.async_wait([this](const error_code& error, int) {
      if (error) return;
      if (shared_.stopping) return stop_now();
      stop();
      wait_for_signal();
    });
  }

  void wait_to_accept(std::size_t i) {
    when_ready(acceptors_[i], HttpDescriptor::wait_read, [this, i] {
      if (accept(i)) return wait_to_accept(i);
      // There are no descriptors left: the next tick tries again.
      paused_.push_back(i);
      tick_within(usual_tick);
    });
  }

  // Accepts what is waiting; returns false if the program can open no more descriptors.
  bool accept(std::size_t i) {
    for (int count = 0; count < accepted_at_once; ++count) {
      sockaddr_storage address{};
      socklen_t size = sizeof(address);
      const int descriptor = ::accept4(listeners_[i].descriptor(), reinterpret_cast<sockaddr*>(&address), &size,
                                       SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (descriptor >= 0) {
        add(descriptor, address, listeners_[i].is_local());
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return false;
      } else if (errno != EINTR && errno != ECONNABORTED) {
        return true;
      }
    }
    return true;
  }

  void add(int descriptor, const sockaddr_storage& address, bool is_local) {
    if (places() >= most_connections_) make_places();
    const bool is_refused = places() >= most_connections_;
    if (is_refused && refused_ >= refused_at_once) {
      ::close(descriptor);
      return;
    }
    const bool is_tcp = address.ss_family != AF_UNIX;
    set_options(descriptor, is_tcp);
    const bool checks_host = is_tcp && is_loopback(local_address(descriptor)) && (is_local || settings_.keys.empty());
    const auto connection =
        std::make_shared<HttpConnection>(shared_, descriptor, address_text(address), network_of(address), checks_host);
    connections_.emplace(connection.get(), connection);
    open_ = connections_.size();
    tick_within(usual_tick);
    if (is_refused) {
      ++refused_;
      connection->refuse();
    } else {
      connection->start();
    }
  }

  void remove(HttpConnection& connection) {
    if (connection.is_refused()) --refused_;
    connections_.erase(&connection);
    open_ = connections_.size();
    if (shared_.stopping && connections_.empty()) loop_.stop();
  }

  // Connections that may ask, all but those that are told that there are too many.
  std::size_t places() const { return connections_.size() - refused_; }

  // Closes connections that wait for their clients: several at once, and not again soon if there is none, because all
  // are looked at.
  void make_places() {
    if (Clock::now() < no_place_until_) return;
    std::vector<std::pair<HttpConnection::Wait, std::shared_ptr<HttpConnection>>> waiting;
    for (const auto& [key, connection] : connections_) {
      if (const auto wait = connection->wait()) waiting.emplace_back(*wait, connection);
    }
    std::ranges::sort(waiting, {}, [](const auto& one) { return one.first; });
    for (const auto& [wait, connection] : waiting) {
      if (places() + most_connections_ / 64 < most_connections_) return;
      connection->make_way();
    }
    if (places() >= most_connections_) no_place_until_ = Clock::now() + most_connections_ * 5us;
  }

  // Rejects the bodies that take the most memory for the longest time, until the rest fits. Small ones stay: clients
  // that send large ones slowly must not keep all others from asking.
  void make_room_for_bodies() {
    const auto now = Clock::now();
    while (shared_.body_bytes > settings_.body_memory) {
      std::shared_ptr<HttpConnection> dearest;
      double most = 0;
      for (const auto& [key, connection] : connections_) {
        const double cost = connection->body_cost(now);
        if (cost <= most) continue;
        most = cost;
        dearest = connection;
      }
      if (!dearest) return;
      dearest->reject_body();
    }
  }

  // Drops the clients that have not taken from their answers for the longest time, until the rest fits. Those of small
  // answers stay: together they take no more memory than that.
  void make_room_beside(const HttpConnection& newest) {
    for (;;) {
      std::size_t largest = 0;
      std::shared_ptr<HttpConnection> slowest;
      for (const auto& [key, connection] : connections_) {
        largest = std::max(largest, connection->memory());
        if (key == &newest || connection->unread() == 0 || connection->memory() <= settings_.little()) continue;
        if (!slowest || connection->progress() < slowest->progress()) slowest = connection;
      }
      if (!slowest || shared_.answer_bytes - largest <= settings_.answer_memory) return;
      slowest->drop("too slow");
    }
  }

  std::vector<std::shared_ptr<HttpConnection>> all_connections() const {
    std::vector<std::shared_ptr<HttpConnection>> all;
    for (const auto& [key, connection] : connections_) all.push_back(connection);
    return all;
  }

  void tick_within(Clock::duration time) {
    const auto when = Clock::now() + time;
    if (is_ticking_ && tick_.expiry() <= when) return;
    is_ticking_ = true;
    tick_.expires_at(when);
    tick_.async_wait([this](const error_code& error) {
      if (!error) tick();
    });
  }

  void tick() {
    is_ticking_ = false;
    const auto now = Clock::now();
    bool is_any_full = false;
    for (const auto& connection : all_connections()) {
      connection->check_time(now);
      is_any_full = is_any_full || connection->is_full();
    }
    for (const std::size_t i : std::exchange(paused_, {})) wait_to_accept(i);
    if (shared_.stopping && now >= stop_by_ && !takes_last_words()) return stop_now();
    if (!connections_.empty()) tick_within(is_any_full ? short_tick : usual_tick);
  }

  void stop() {
    if (std::exchange(shared_.stopping, true)) return;
    acceptors_.clear();
    paused_.clear();
    listeners_.clear();
    stop_by_ = Clock::now() + settings_.drain;
    for (const auto& connection : all_connections()) connection->stop();
    if (settings_.on_stop) settings_.on_stop();
    if (connections_.empty()) return loop_.stop();
    tick_within(std::min<Clock::duration>(usual_tick, settings_.drain));
  }

  // Lets the handler end the answers under way, once. Returns false if it had its time.
  bool takes_last_words() {
    if (!settings_.on_drained || std::exchange(is_drained_, true)) return false;
    for (const auto& connection : all_connections()) was_cut_off_ = was_cut_off_ || connection->is_answering();
    stop_by_ = Clock::now() + settings_.last_words;
    settings_.on_drained();
    return true;
  }

  void stop_now() {
    shared_.stopping = true;
    acceptors_.clear();
    listeners_.clear();
    for (const auto& connection : all_connections()) was_cut_off_ = was_cut_off_ || connection->is_answering();
    drop_all("stopped");
    loop_.stop();
  }

  void drop_all(std::string_view remark) {
    for (const auto& connection : all_connections()) connection->drop(remark);
  }

  const HttpSettings settings_;
  const HttpHandler handler_;
  const HttpAccess access_;
  std::vector<HttpListener> listeners_;
  const std::size_t most_connections_;
  std::vector<std::string> addresses_;
  std::uint16_t port_ = 0;

  HttpLoop loop_{1};
  std::deque<HttpDescriptor> acceptors_;  // of the listeners
  std::vector<std::size_t> paused_;       // acceptors that wait for a descriptor
  boost::asio::basic_signal_set<HttpLoop::executor_type> signals_;
  HttpTimer tick_;
  bool is_ticking_ = false;

  HttpShared shared_;
  std::unordered_map<HttpConnection*, std::shared_ptr<HttpConnection>> connections_;
  std::size_t refused_ = 0;  // of them
  std::atomic<std::size_t> open_{0};
  Clock::time_point no_place_until_;  // as far as is known
  Clock::time_point stop_by_;
  bool is_drained_ = false;
  bool was_cut_off_ = false;
};

HttpServer::HttpServer(HttpSettings settings, HttpHandler handler)
    : server_(std::make_unique<Server>(std::move(settings), std::move(handler))) {}

HttpServer::~HttpServer() = default;

std::vector<std::string> HttpServer::addresses() const {
  return server_->addresses();
}

std::uint16_t HttpServer::port() const {
  return server_->port();
}

bool HttpServer::run() {
  return server_->run();
}

void HttpServer::stop() {
  server_->post_stop();
}

void HttpServer::stop_now() {
  server_->post_stop_now();
}

std::size_t HttpServer::connections() const {
  return server_->connections();
}

}  // namespace minimind
