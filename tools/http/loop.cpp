#include "tools/http/loop.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace minimind {

void when_ready(HttpDescriptor& descriptor, HttpDescriptor::wait_type what, std::function<void()> ready) {
  descriptor.async_wait(what, [ready = std::move(ready)](const boost::system::error_code& error) {
    if (error != boost::asio::error::operation_aborted) ready();
  });
}

void post_to(HttpLoop& loop, std::function<void()> action) {
  boost::asio::post(loop, std::move(action));
}

}  // namespace minimind
