#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace minimind {

// A token that is cut out of the text before it is split and merged, such as "<|im_start|>".
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false;  // matches only where no word character stands beside it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // is looked for after those that are not, in what they leave
  bool special = false;      // is left out when decoding with skip_special

  bool operator==(const AddedToken&) const = default;
};

// A part of a text: an added token, or text between added tokens.
struct TextPiece {
  std::optional<std::int32_t> id;
  std::string_view text;  // not empty; meaningless where there is an id
};

// Cuts texts at added tokens: at the leftmost match, the longest there.
class AddedTokenSplitter {
 public:
  // The contents are distinct and not empty.
  explicit AddedTokenSplitter(std::vector<AddedToken> tokens);

  // Appends the pieces of `text`, which is valid UTF-8, to `pieces`.
  void split(std::string_view text, std::vector<TextPiece>& pieces) const;

 private:
  const AddedToken* longest_at(std::string_view text) const;

  std::vector<AddedToken> tokens_;          // by content
  std::array<bool, 256> begins_a_token_{};  // by first byte
};

}  // namespace minimind
