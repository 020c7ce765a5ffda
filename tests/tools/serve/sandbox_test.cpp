#include "tools/serve/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "tests/support/temporary_folder.h"

namespace minimind {
namespace {

// What a process in the sandbox is refused.
enum Refusal : int {
  new_rights = 1,
  reading_inside = 2,
  reading_outside = 4,
  writing = 8,
  running = 16,
  reading_in_a_thread = 32,
  making_a_socket = 64,
};
constexpr int not_confined = 128;

bool is_refused(const std::string& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (descriptor >= 0) ::close(descriptor);
  return descriptor < 0 && errno == EACCES;
}

bool is_socket_refused(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const bool bound = ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  const int error = errno;
  ::close(descriptor);
  return !bound && error == EACCES;
}

// Returns what another process is refused after it has entered the sandbox; it cannot leave it.
int refusals(const Sandbox& sandbox, const std::string& inside, const std::string& outside, const std::string& socket) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!enter_sandbox(sandbox).confined) ::_exit(not_confined);
    int refused = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? new_rights : 0;
    if (is_refused(inside, O_RDONLY)) refused |= reading_inside;
    if (is_refused(outside, O_RDONLY)) refused |= reading_outside;
    if (is_refused(inside, O_WRONLY) && is_refused(inside + ".new", O_WRONLY | O_CREAT)) refused |= writing;
    if (is_socket_refused(socket)) refused |= making_a_socket;
    std::thread([&] {
      if (is_refused(outside, O_RDONLY)) refused |= reading_in_a_thread;
    }).join();
    ::execl("/bin/true", "true", nullptr);
    if (errno == EACCES) refused |= running;
    ::_exit(refused);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Sandbox, ReadsOnlyWhatIsListed) {
  const TemporaryFolder files;
  const std::string inside = files.write("models/model.pth", "a"), outside = files.write("secret", "b");
  const Sandbox sandbox{.readable = {files.path() + "/models", files.path() + "/none"}, .socket_folders = {}};
  const int refused = refusals(sandbox, inside, outside, files.path() + "/models/socket");
  if (refused == not_confined) GTEST_SKIP() << "the system has no Landlock: the sandbox is not tested";
  EXPECT_EQ(refused, new_rights | reading_outside | writing | running | reading_in_a_thread | making_a_socket);
}

TEST(Sandbox, AllowsSingleFilesAndSockets) {
  const TemporaryFolder files;
  const std::string inside = files.write("models/model.pth", "a"), outside = files.write("models/secret", "b");
  const Sandbox sandbox{.readable = {inside}, .socket_folders = {files.path()}};
  const int refused = refusals(sandbox, inside, outside, files.path() + "/socket");
  if (refused == not_confined) GTEST_SKIP() << "the system has no Landlock: the sandbox is not tested";
  EXPECT_EQ(refused, new_rights | reading_outside | writing | running | reading_in_a_thread);
}

}  // namespace
}  // namespace minimind
