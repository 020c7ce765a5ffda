#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/cli.h"

namespace minimind {

// A running program whose output goes to files.
class Running {
 public:
  Running(const std::string& arguments, const std::string& out, const std::string& err) {
    const std::string command = "exec " + program() + " " + arguments;
    child_ = fork();
    if (child_ != 0) return;
    const int input = open("/dev/null", O_RDONLY), output = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666),
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

  // Sends the signal. Returns the exit status, and the seconds until the program ended.
  std::pair<int, double> interrupt(int signal) {
    const auto start = std::chrono::steady_clock::now();
    kill(child_, signal);
    int status = 0;
    waitpid(std::exchange(child_, -1), &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status),
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  }

  // man 5 proc: fields 14 and 15 are the ticks in user and in kernel mode; the name in field 2 may have spaces.
  double used() const {
    std::ifstream file("/proc/" + std::to_string(child_) + "/stat");
    std::string line;
    std::getline(file, line);
    if (line.find("(minimind)") == std::string::npos) return 0;  // still the shell
    std::istringstream fields(line.substr(line.rfind(')') + 2));
    std::string field;
    double ticks = 0;
    for (int number = 3; number <= 15 && fields >> field; ++number) {
      if (number >= 14) ticks += std::stod(field);
    }
    return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

 private:
  pid_t child_ = -1;
};

}  // namespace minimind
