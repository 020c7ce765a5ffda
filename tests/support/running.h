#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/cases.h"
#include "tests/support/cli.h"

namespace minimind {

// A running program whose output goes to files, with no input, or with one to which nobody writes.
class Running {
 public:
  enum class Input { none, silent };

  Running(const std::string& arguments, const std::string& out, const std::string& err, Input given = Input::none) {
    const std::string command = "exec " + program() + " " + arguments;
    int silent[2] = {-1, -1};
    if (given == Input::silent && pipe2(silent, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    silent_ = silent[1];
    child_ = fork();
    if (child_ != 0) {
      if (given == Input::silent) close(silent[0]);
      return;
    }
    std::signal(SIGHUP, SIG_DFL);  // nohup ignores it
    const int input = given == Input::silent ? silent[0] : open("/dev/null", O_RDONLY),
              output = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666),
              errors = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (silent_ >= 0) close(silent_);
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

  // Waits until the program has used so much time of processors, or meets another condition. Returns false if it ends
  // before, or after two minutes.
  bool reach(double seconds) const {
    return reach([&] { return used() >= seconds; });
  }
  bool reach(const std::function<bool()>& condition) const {
    const auto last = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > last) return false;
      siginfo_t ended{};
      if (waitid(P_PID, static_cast<id_t>(child_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != 0) {
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  // Sends the signal. Returns the exit status, and the seconds until the program ended: it is killed after a minute.
  std::pair<int, double> interrupt(int signal) {
    const auto start = std::chrono::steady_clock::now();
    kill(child_, signal);
    reach([&] { return std::chrono::steady_clock::now() - start > std::chrono::minutes(1); });
    kill(child_, SIGKILL);
    int status = 0;
    waitpid(std::exchange(child_, -1), &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status),
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  }

  // The seconds of processors that the program has used: fields 14 and 15 are the ticks in user and in kernel mode.
  double used() const {
    const std::vector<std::string> fields = status();
    if (fields.empty()) return 0;
    return (std::stod(fields[14 - 3]) + std::stod(fields[15 - 3])) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

  // Whether the signal does not end the program by itself any more. What is emulated has come so far after some
  // hundredths of a second.
  bool catches(int signal) const {
    if (is_emulated()) return used() >= 0.03;
    std::ifstream file("/proc/" + std::to_string(child_) + "/status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
    }
    return false;
  }

  // Whether the program waits for an event: field 3 is its state.
  bool waits() const {
    const std::vector<std::string> fields = status();
    return !fields.empty() && fields[0] == "S";
  }

 private:
  // The fields of /proc/PID/stat from the third on, as man 5 proc numbers them; empty while it is still the shell, and
  // not the program or its emulator. The name in the second may have spaces.
  std::vector<std::string> status() const {
    std::ifstream file("/proc/" + std::to_string(child_) + "/stat");
    std::string line;
    std::getline(file, line);
    if (line.find("(minimind)") == std::string::npos && line.find("(qemu-") == std::string::npos) return {};
    std::istringstream fields(line.substr(line.rfind(')') + 2));
    return {std::istream_iterator<std::string>(fields), {}};
  }

  pid_t child_ = -1;
  int silent_ = -1;  // the writing end of the input
};

}  // namespace minimind
