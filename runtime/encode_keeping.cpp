#include "runtime/encode_keeping.h"

#include <cstddef>
#include <string>

#include "runtime/utf8.h"

namespace minimind {

std::vector<std::int32_t> encode_keeping(const Tokenizer& tokenizer, std::string_view text,
                                         std::span<const std::int32_t> known) {
  std::size_t spelled = 0;                      // bytes of the text
  std::size_t kept_tokens = 0, kept_bytes = 0;  // up to the last place where encode() may take over
  Utf8Stream stream;
  bool same = true;
  for (std::size_t i = 0; same && i < known.size(); ++i) {
    const std::string piece = stream.push(tokenizer.token_bytes(known[i]));
    same = text.substr(spelled).starts_with(piece);
    if (same) spelled += piece.size();
    if (!same || !tokenizer.is_special(known[i])) continue;
    kept_tokens = i + 1;
    kept_bytes = spelled;
  }
  if (same) {
    const std::string piece = stream.finish();
    if (text.substr(spelled).starts_with(piece)) spelled += piece.size();
    kept_tokens = known.size();
    kept_bytes = spelled;
  }
  std::vector<std::int32_t> tokens(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(kept_tokens));
  const std::vector<std::int32_t> rest = tokenizer.encode(text.substr(kept_bytes));
  tokens.insert(tokens.end(), rest.begin(), rest.end());
  return tokens;
}

}  // namespace minimind
