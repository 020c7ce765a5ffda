#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <chrono>
#include <functional>

namespace minimind {

// The event loop of an HTTP server. Callbacks are std::function, so that Asio's templates are compiled once for all.
using HttpLoop = boost::asio::io_context;
using HttpDescriptor = boost::asio::posix::basic_stream_descriptor<HttpLoop::executor_type>;
using HttpTimer =
    boost::asio::basic_waitable_timer<std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>,
                                      HttpLoop::executor_type>;

// Calls `ready` once the descriptor can be read or written, or once it has failed. Does not call it if the descriptor
// is closed first.
void when_ready(HttpDescriptor& descriptor, HttpDescriptor::wait_type what, std::function<void()> ready);

// Calls `action` on the thread of the loop. Any thread may call it.
void post_to(HttpLoop& loop, std::function<void()> action);

}  // namespace minimind
