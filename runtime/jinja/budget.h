#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>

#include "weights/base/cancel.h"

namespace minimind::jinja {

// An error in a template or its input, without the position: the caller that runs the template adds it and throws
// Error.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The limits of one rendering. Chat templates of models in use stay below a thousandth of each.
struct Limits {
  std::size_t steps = 5'000'000;               // nodes evaluated, items visited, 16 bytes read, 256 bytes scanned
  std::size_t depth = 1000;                    // nodes, macros and iterators inside one another
  std::size_t bytes = std::size_t{256} << 20;  // of all texts and containers made, freed or not
  std::size_t output = std::size_t{64} << 20;  // of the rendered text
};

// The rest of the limits. Every operation whose cost depends on its input pays here before it starts. If the rest is
// too small, throws Failure naming the limit. Throws Cancelled, too.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  void spend(std::size_t steps) {
    check_cancelled();
    if (steps > limits_.steps - spent_) exceeded("steps", limits_.steps);
    spent_ += steps;
  }
  // Pays for comparing, counting or copying `bytes` of text.
  void scan(std::size_t bytes) { spend(bytes / 256); }
  // Pays for reading `bytes` of text character by character.
  void read(std::size_t bytes) { spend(bytes / 16); }
  // Pays for a search of `wanted` bytes, which memmem compares at each place if they are few, in `bytes` of text.
  void search(std::size_t bytes, std::size_t wanted) {
    spend(bytes / 256 * (1 + std::min(wanted, std::size_t{256}) / 16));
  }
  // Pays for making strings or containers of this size.
  void make(std::size_t bytes, std::size_t times = 1) {
    if (times > 0 && bytes > (limits_.bytes - made_) / times) exceeded("bytes of texts and lists", limits_.bytes);
    made_ += bytes * times;
  }
  void check_output(std::size_t bytes) const {
    if (bytes > limits_.output) exceeded("bytes of output", limits_.output);
  }

  // One level deeper for its lifetime.
  class Level {
   public:
    explicit Level(Budget& budget) : budget_(budget) {
      if (++budget_.depth_ > budget_.limits_.depth) {
        --budget_.depth_;
        exceeded("levels of nesting", budget_.limits_.depth);
      }
    }
    ~Level() { --budget_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Budget& budget_;
  };

 private:
  [[noreturn]] static void exceeded(const char* what, std::size_t limit) {
    throw Failure("takes more than the limit of " + std::to_string(limit) + " " + what);
  }

  Limits limits_;
  std::size_t spent_ = 0;
  std::size_t made_ = 0;
  std::size_t depth_ = 0;
};

}  // namespace minimind::jinja
