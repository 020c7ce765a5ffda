#include "tools/serve/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

// Listens for datagrams as a service manager does, and sets NOTIFY_SOCKET while it lives.
class Manager {
 public:
  // `name` is a path, or an abstract name after an @.
  explicit Manager(const std::string& name) : socket_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    if (name.starts_with('@')) address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager() {
    unsetenv("NOTIFY_SOCKET");
    ::close(socket_);
  }

  std::string received() const {
    std::array<char, 100> bytes{};
    const ssize_t size = ::recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    return size < 0 ? "nothing" : std::string(bytes.data(), static_cast<std::size_t>(size));
  }

 private:
  const int socket_;
};

TEST(ServiceManager, GetsTheState) {
  const TemporaryFolder own;
  for (const std::string& name : {own.path() + "/notify", "@minimind-test-" + std::to_string(::getpid())}) {
    const Manager manager(name);
    EXPECT_EQ(notify_service_manager("READY=1"), "");
    EXPECT_EQ(manager.received(), "READY=1");
    EXPECT_EQ(notify_service_manager("STOPPING=1"), "");
    EXPECT_EQ(manager.received(), "STOPPING=1");
  }
}

TEST(ServiceManager, SaysWhyItGetsNothing) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_EQ(notify_service_manager("READY=1"), "") << "there is none";
  for (const std::string& name :
       {std::string("relative"), "/" + std::string(200, 'a'), std::string("/nonexistent/x")}) {
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
    EXPECT_TRUE(notify_service_manager("READY=1").starts_with("NOTIFY_SOCKET is '" + name.substr(0, 9))) << name;
  }
  unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace minimind
