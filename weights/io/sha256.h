#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace minimind {

// OpenSSL's SHA-256, which uses the SHA instructions of most processors. Throws Error if OpenSSL does not provide it.
class Sha256 {
 public:
  Sha256();

  void update(std::span<const std::byte> bytes);

  // Returns the hash of all bytes added; nothing can be added afterwards.
  std::array<std::byte, 32> digest();
  // Returns the hash as 64 hexadecimal digits.
  std::string hex_digest();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// Returns the hash of a text as 64 hexadecimal digits.
std::string sha256_of(std::string_view text);

}  // namespace minimind
