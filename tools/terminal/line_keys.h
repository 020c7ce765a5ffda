#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace minimind {

enum class LineKey {
  text,
  enter,
  newline,
  tab,
  left,
  right,
  up,
  down,
  home,
  end,
  word_left,
  word_right,
  backspace,
  delete_next,
  kill_to_end,
  kill_to_begin,
  kill_word_left,
  kill_word_right,
  yank,
  transpose,
  clear_screen,
  search,
  abort,
  escape,
  end_of_input,  // or deletes the next character
  unknown,
};

struct PressedKey {
  LineKey key;
  std::u32string text;  // of LineKey::text: one code point, or the whole pasted text
};

// Decodes the bytes of a terminal into keys.
class LineKeys {
 public:
  void push(std::string_view bytes) { bytes_ += bytes; }

  // Discards bytes that are not yet a key.
  void clear() {
    bytes_.clear();
    searched_ = 0;
  }

  // Returns the next key; std::nullopt if it is incomplete. Of a paste of over 2 MiB, more than a line takes, the rest
  // is dropped, and a sequence of over 64 bytes is an unknown key: a terminal may never end either.
  std::optional<PressedKey> next();

  // Whether the only pending byte is an escape, which may be a key or the start of a sequence.
  bool escape_waits() const { return bytes_ == "\x1b"; }

  // Returns the pending escape as a key.
  PressedKey take_escape();

 private:
  PressedKey take(LineKey key, std::size_t size);
  std::optional<PressedKey> next_text();
  std::optional<PressedKey> next_sequence();
  std::optional<PressedKey> next_paste();

  std::string bytes_;
  std::size_t searched_ = 0;  // bytes of a paste before which it does not end
};

}  // namespace minimind
