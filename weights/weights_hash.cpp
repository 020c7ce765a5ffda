#include "weights/weights_hash.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weights/error.h"
#include "weights/shape.h"
#include "weights/stored_numbers.h"

namespace minimind {
namespace {

static_assert(std::endian::native == std::endian::little, "floats are hashed as they lie in memory");

// OpenSSL's, which uses the instructions that most processors have for it.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    check(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }

  void update(std::span<const std::byte> bytes) {
    check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }

  std::string hex_digest() {
    std::array<unsigned char, 32> digest{};
    check(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
    std::string text;
    for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
    return text;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };

  static void check(bool done) {
    if (!done) throw Error("SHA-256: OpenSSL's libcrypto cannot compute it; its configuration may forbid it");
  }

  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace

std::string weights_sha256(const StoredTensors& tensors) {
  // A multiple of every block, small enough to be hashed out of the cache.
  constexpr std::size_t chunk = 16384;
  std::vector<float> values(chunk);
  Sha256 hash;
  for (const auto& [name, tensor] : tensors) {
    const std::string line = name + " " + shape_text(tensor.shape) + "\n";
    hash.update(std::as_bytes(std::span(line)));
    const std::size_t numbers = element_count(tensor.shape).value();
    for (std::size_t first = 0; first < numbers; first += chunk) {
      const std::span part = std::span(values).first(std::min(chunk, numbers - first));
      read_floats(tensor, first, part.size(), part.data());
      hash.update(std::as_bytes(part));
    }
    if (tensor.mapping) tensor.mapping->release(tensor.data);
  }
  return hash.hex_digest();
}

}  // namespace minimind
