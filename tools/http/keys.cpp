#include "tools/http/keys.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <span>

#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/sha256.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

std::array<std::byte, 32> hash_of(std::string_view text) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text)));
  return sha.digest();
}

}  // namespace

HttpKeys::HttpKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) hashes_.push_back(hash_of(key));
}

bool HttpKeys::contains(std::string_view given) const {
  const auto hash = hash_of(given);
  bool found = false;
  for (const auto& one : hashes_) found |= CRYPTO_memcmp(one.data(), hash.data(), hash.size()) == 0;
  return found;
}

std::vector<std::string> read_http_keys(const std::string& path) {
  const std::string text = read_text_or_pipe(path, std::size_t{1} << 20);
  std::vector<std::string> keys;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view key = trimmed(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (key.empty()) continue;
    if (!std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; })) {
      throw Error(
          fmt::format("{}: the key in line {} has a byte that is not visible ASCII, expected letters, digits "
                      "and punctuation without spaces",
                      path, number + 1));
    }
    keys.emplace_back(key);
  }
  if (keys.empty()) throw Error(fmt::format("{}: has no key, expected one per line", path));
  return keys;
}

}  // namespace minimind
