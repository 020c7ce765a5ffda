#include "weights/io/sha256.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include "weights/base/error.h"

namespace minimind {
namespace {

void check(bool done) {
  if (!done) throw Error("SHA-256: OpenSSL's libcrypto cannot compute it; its configuration may forbid it");
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  check(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::update(std::span<const std::byte> bytes) {
  check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::array<std::byte, 32> Sha256::digest() {
  std::array<std::byte, 32> digest{};
  check(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1);
  return digest;
}

std::string Sha256::hex_digest() {
  std::string text;
  for (const std::byte byte : digest()) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

std::string sha256_of(std::string_view text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.hex_digest();
}

}  // namespace minimind
