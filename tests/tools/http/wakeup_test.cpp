#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "tools/http/loop.h"

namespace minimind {
namespace {

struct Noted : HttpAnswered {
  void on_answer() override { is_noted = true; }
  std::atomic<bool> is_noted = false;
};

void stay_on_first_processor() {
  cpu_set_t allowed, first;
  CPU_ZERO(&first);
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  int processor = 0;
  while (!CPU_ISSET(processor, &allowed)) ++processor;
  CPU_SET(processor, &first);
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(first), &first), 0);
}

// The other thread runs at once where both share a processor. If it then has to wait for a lock of post(), the poster
// may be kept from going on by every thread with a higher priority.
TEST(HttpWakeup, HoldsNoLockWhileItWakesUpTheThreadOfTheConnections) {
  constexpr int posts = 200;
  HttpLoop loop;
  const auto wakeup = std::make_shared<HttpWakeup>(loop);
  rusage usage{};
  std::thread connections([&] {
    stay_on_first_processor();
    const auto work = boost::asio::make_work_guard(loop);
    loop.run();
    wakeup->close();
    getrusage(RUSAGE_THREAD, &usage);
  });
  std::thread([&] {
    stay_on_first_processor();
    for (int i = 0; i < posts; ++i) {
      const auto noted = std::make_shared<Noted>();
      wakeup->post(noted, true);
      while (!noted->is_noted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }).join();
  loop.stop();
  connections.join();
  EXPECT_LT(usage.ru_nvcsw, posts + posts / 2);  // it sleeps once for each, and with a lock two or three times
}

}  // namespace
}  // namespace minimind
