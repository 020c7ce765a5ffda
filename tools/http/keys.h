#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace minimind {

// The keys that clients may send. Only their hashes are kept, and comparing takes the same time for every given key.
class HttpKeys {
 public:
  explicit HttpKeys(const std::vector<std::string>& keys);

  bool empty() const { return hashes_.empty(); }
  bool contains(std::string_view given) const;

 private:
  std::vector<std::array<std::byte, 32>> hashes_;
};

// Reads a file of keys, one per line; skips empty lines. Throws Error if the file cannot be read, has no key, or if a
// key has a byte that is not visible ASCII. Never shows a key.
std::vector<std::string> read_http_keys(const std::string& path);

}  // namespace minimind
