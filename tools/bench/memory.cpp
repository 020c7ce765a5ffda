#include "tools/bench/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "weights/base/error.h"

namespace minimind {
namespace {

constexpr const char* status_file = "/proc/self/status";

// Returns a field of the file in bytes.
std::size_t status_bytes(std::string_view name) {
  std::ifstream file(status_file);
  for (std::string line; std::getline(file, line);) {
    std::size_t kilobytes = 0;
    if (line.starts_with(name) && std::sscanf(line.c_str() + name.size(), ": %zu kB", &kilobytes) == 1)
      return kilobytes * 1024;
  }
  throw Error(fmt::format("{}: has no {}, expected it as on Linux: the memory is not known here", status_file, name));
}

}  // namespace

MemoryParts::MemoryParts() {
  add("program");
}

std::size_t MemoryParts::together() const {
  std::size_t sum = 0;
  for (const Part& part : parts_) sum += part.bytes;
  return sum;
}

void MemoryParts::add(const std::string& name) {
  const std::size_t now = status_bytes("VmRSS");
  parts_.push_back({name, now - std::min(now, together())});
}

void MemoryParts::add(const std::string& name, std::size_t bytes, const std::string& rest) {
  add(rest);
  const std::size_t known = std::min(bytes, parts_.back().bytes);
  parts_.back().bytes -= known;
  parts_.insert(parts_.end() - 1, {name, known});
}

std::string MemoryParts::to_text() const {
  std::string text;
  const auto add_line = [&](const std::string& name, std::size_t bytes) {
    text += fmt::format("{:<18} {:>9.1f} MB\n", name, 1e-6 * static_cast<double>(bytes));
  };
  for (const Part& part : parts_) add_line(part.name, part.bytes);
  add_line("together", together());
  add_line("most at one time", status_bytes("VmHWM"));
  return text;
}

nlohmann::ordered_json MemoryParts::to_json() const {
  nlohmann::ordered_json json;
  for (const Part& part : parts_) json[part.name] = part.bytes;
  json["together"] = together();
  json["most at one time"] = status_bytes("VmHWM");
  return json;
}

}  // namespace minimind
