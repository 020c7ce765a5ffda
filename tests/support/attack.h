#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/support/cases.h"
#include "tests/support/temporary_file.h"
#include "weights/checkpoint/open_checkpoint.h"

namespace minimind {

// What an attack may cost at most; a template may make 256 MB of texts, of which the last is copied while it grows. The
// sanitizers' builds and emulators take several times as much.
inline const double most_attack_seconds = 3 * slowness;
inline const std::size_t most_attack_memory = std::size_t{slowness == 1 ? 768u : 4096u} << 20;

// Measures the CPU time and the memory that the process takes from here on.
class Cost {
 public:
  Cost() : seconds_(cpu_seconds()) {
    std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
    memory_ = of_process("VmRSS:");
  }

  void expect_small() const {
    EXPECT_LT(cpu_seconds() - seconds_, most_attack_seconds);
    EXPECT_LT(of_process("VmHWM:") - std::min(memory_, of_process("VmHWM:")), most_attack_memory);
  }

 private:
  static double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  }

  static std::size_t of_process(std::string_view field) {
    std::ifstream status("/proc/self/status");
    for (std::string name; status >> name;) {
      std::size_t kilobytes = 0;
      if (name == field && status >> kilobytes) return kilobytes << 10;
      std::getline(status, name);
    }
    return 0;
  }

  double seconds_;
  std::size_t memory_ = 0;
};

// Runs an attack and expects an Error of one line with `reason` in it, and little time and memory until then.
template <class Attack>
void expect_refused(const Attack& attack, std::string_view reason) {
  const Cost cost;
  const std::string message = error_of(attack);
  cost.expect_small();
  EXPECT_NE(message, "") << "was accepted";
  EXPECT_NE(message.find(reason), std::string::npos) << message << "\nexpected: " << reason;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 2000u) << message;
}

// The same for opening a file of these bytes as a checkpoint.
inline void expect_file_refused(const std::string& bytes, std::string_view reason) {
  const TemporaryFile file(bytes);
  expect_refused([&] { open_checkpoint(file.path(), {}); }, reason);
}

// Runs an attack that is harmless here, and expects little time and memory.
template <class Attack>
void expect_harmless(const Attack& attack) {
  const Cost cost;
  error_of(attack);
  cost.expect_small();
}

inline std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

}  // namespace minimind
