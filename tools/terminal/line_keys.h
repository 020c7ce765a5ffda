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
  std::u32string text;  // of LineKey::text: one code point, or all that was pasted
};

// Makes keys of the bytes that a terminal sends for them.
class LineKeys {
 public:
  void push(std::string_view bytes) { bytes_ += bytes; }

  // Forgets the bytes of which no key was made yet.
  void clear() { bytes_.clear(); }

  // The next key; std::nullopt if more bytes have to come first.
  std::optional<PressedKey> next();

  // Whether all that waits for more bytes is an escape, which may be a key of its own or begin a sequence.
  bool escape_waits() const { return bytes_ == "\x1b"; }

  // The escape that waits is a key of its own.
  PressedKey take_escape();

 private:
  PressedKey take(LineKey key, std::size_t size);
  std::optional<PressedKey> next_text();
  std::optional<PressedKey> next_sequence();
  std::optional<PressedKey> next_paste();

  std::string bytes_;
};

}  // namespace minimind
