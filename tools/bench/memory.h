#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace minimind {

// The memory of this process by what it is for, in bytes that are in RAM: read from /proc/self, which only Linux has.
class MemoryParts {
 public:
  // Throws Error if the system does not state it.
  MemoryParts();

  // Adds a part: what has come since the last part, or since the start of the program. `bytes` of it, if they are
  // known, are a part of their own, and `rest` is the name of the others.
  void add(const std::string& name);
  void add(const std::string& name, std::size_t bytes, const std::string& rest);

  // The parts, their sum and the most that the process ever had, for people in MB, and for programs.
  std::string to_text() const;
  nlohmann::ordered_json to_json() const;

 private:
  struct Part {
    std::string name;
    std::size_t bytes;
  };
  std::size_t together() const;

  std::vector<Part> parts_;
};

}  // namespace minimind
