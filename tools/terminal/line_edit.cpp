#include "tools/terminal/line_edit.h"

#include <algorithm>
#include <utility>

#include "tools/terminal/language.h"

namespace minimind {

void LineHistory::add(std::u32string entry) {
  if (entries_.empty() || entries_.back() != entry) entries_.push_back(std::move(entry));
  if (entries_.size() > most_entries) entries_.pop_front();
  leave();
}

void LineHistory::leave() {
  at_ = entries_.size();
  typed_.clear();
}

std::optional<std::u32string> LineHistory::older(const std::u32string& line) {
  if (at_ == 0) return std::nullopt;
  return go_to(at_ - 1, line);
}

std::optional<std::u32string> LineHistory::newer() {
  if (at_ == entries_.size()) return std::nullopt;
  return ++at_ == entries_.size() ? typed_ : entries_[at_];
}

std::optional<std::size_t> LineHistory::find(std::u32string_view part, std::size_t end) const {
  while (end-- > 0) {
    if (entries_[end].find(part) != std::u32string::npos) return end;
  }
  return std::nullopt;
}

const std::u32string& LineHistory::go_to(std::size_t number, const std::u32string& line) {
  if (at_ == entries_.size()) typed_ = line;
  at_ = number;
  return entries_[at_];
}

Completions completions(const std::vector<std::string>& words, const std::string& typed) {
  Completions found{{}, typed};
  for (const std::string& word : words) {
    if (!word.starts_with(typed)) continue;
    if (found.words.empty()) {
      found.common = word;
    } else {
      const auto [end, ignored] = std::mismatch(found.common.begin(), found.common.end(), word.begin(), word.end());
      found.common.erase(end, found.common.end());
    }
    found.words.push_back(word);
  }
  return found;
}

void LineEdit::begin(std::string_view prompt, bool bold) {
  prompt_ = code_points_of(prompt);
  bold_ = bold;
  text_.clear();
  cursor_ = 0;
  killing_ = said_too_long_ = false;
  search_.reset();
  history_.leave();
}

LineView LineEdit::view() const {
  if (!search_) return {prompt_, bold_, text_, cursor_};
  const std::u32string_view found = search_->failed ? U"(not found: " : U"(search: ";
  return {std::u32string(found) + search_->part + U") ", bold_, text_, cursor_};
}

void LineEdit::move_to_end() {
  search_.reset();
  cursor_ = text_.size();
}

LineAction LineEdit::press(const PressedKey& key) {
  if (search_) {
    if (const auto action = press_in_search(key)) return *action;
  }
  const bool was_killing = std::exchange(killing_, false);
  switch (key.key) {
    case LineKey::enter:
      return LineAction::enter;
    case LineKey::end_of_input:
      if (text_.empty()) return LineAction::end_of_input;
      break;
    case LineKey::kill_to_begin:
    case LineKey::kill_to_end:
    case LineKey::kill_word_left:
    case LineKey::kill_word_right:
      if (!was_killing) killed_.clear();
      killing_ = true;
      return kill(key.key);
    default:
      break;
  }
  return edit(key);
}

LineAction LineEdit::edit(const PressedKey& key) {
  switch (key.key) {
    case LineKey::text:
      return insert(key.text);
    case LineKey::newline:
      return insert(U"\n");
    case LineKey::yank:
      return insert(killed_);
    case LineKey::tab:
      return complete();
    case LineKey::backspace:
      return cursor_ == 0 ? LineAction::reject : erase(character_begin(text_, cursor_), cursor_);
    case LineKey::delete_next:
    case LineKey::end_of_input:
      return cursor_ == text_.size() ? LineAction::reject : erase(cursor_, character_end(text_, cursor_));
    case LineKey::transpose:
      return transpose();
    case LineKey::up:
      return replace(history_.older(text_));
    case LineKey::down:
      return replace(history_.newer());
    case LineKey::search:
      search_ = Search{{}, history_.size(), false, text_, cursor_};
      return LineAction::edit;
    case LineKey::clear_screen:
      return LineAction::clear_screen;
    default:
      return move(key.key);
  }
}

LineAction LineEdit::move(LineKey key) {
  switch (key) {
    case LineKey::left:
      return cursor_ == 0 ? LineAction::reject : move_to(character_begin(text_, cursor_));
    case LineKey::right:
      return cursor_ == text_.size() ? LineAction::reject : move_to(character_end(text_, cursor_));
    case LineKey::word_left:
      return move_to(word_begin(text_, cursor_));
    case LineKey::word_right:
      return move_to(word_end(text_, cursor_));
    case LineKey::home:
      return move_to(0);
    case LineKey::end:
      return move_to(text_.size());
    default:
      return LineAction::reject;
  }
}

LineAction LineEdit::move_to(std::size_t position) {
  cursor_ = position;
  return LineAction::edit;
}

LineAction LineEdit::insert(std::u32string_view text) {
  if (text_.size() + text.size() > longest_text) {
    if (std::exchange(said_too_long_, true)) return LineAction::reject;
    listed_ = {localized("not inserted: a message typed here has at most {} characters; use --file", longest_text)};
    return LineAction::list_words;
  }
  text_.insert(cursor_, text);
  cursor_ += text.size();
  return LineAction::edit;
}

LineAction LineEdit::erase(std::size_t begin, std::size_t end) {
  text_.erase(begin, end - begin);
  return move_to(begin);
}

LineAction LineEdit::replace(std::optional<std::u32string> text) {
  if (!text) return LineAction::reject;
  text_ = std::move(*text);
  return move_to(text_.size());
}

LineAction LineEdit::kill(LineKey key) {
  std::size_t begin = cursor_, end = cursor_;
  if (key == LineKey::kill_to_begin) begin = 0;
  if (key == LineKey::kill_to_end) end = text_.size();
  if (key == LineKey::kill_word_left) begin = word_begin(text_, cursor_);
  if (key == LineKey::kill_word_right) end = word_end(text_, cursor_);
  killed_.insert(begin < cursor_ ? 0 : killed_.size(), text_, begin, end - begin);
  return erase(begin, end);
}

// Moves the character before the cursor after the next one; at the end of the text, swaps the last two.
LineAction LineEdit::transpose() {
  if (cursor_ == 0) return LineAction::reject;
  const std::size_t middle = cursor_ < text_.size() ? cursor_ : character_begin(text_, cursor_);
  if (middle == 0) return LineAction::reject;
  const std::size_t begin = character_begin(text_, middle), end = character_end(text_, middle);
  const auto at = [&](std::size_t position) { return text_.begin() + static_cast<std::ptrdiff_t>(position); };
  std::rotate(at(begin), at(middle), at(end));
  return move_to(end);
}

LineAction LineEdit::complete() {
  const std::string typed = to_utf8(std::u32string_view(text_).substr(0, cursor_));
  const Completions found = completions(words_, typed);
  if (typed.empty() || found.words.empty()) return LineAction::reject;
  const std::string rest = found.common.substr(typed.size()) + (found.words.size() == 1 ? " " : "");
  if (!rest.empty()) return insert(code_points_of(rest));
  listed_ = found.words;
  return LineAction::list_words;
}

// Returns std::nullopt if the key ends the search and then has its usual effect.
std::optional<LineAction> LineEdit::press_in_search(const PressedKey& key) {
  switch (key.key) {
    case LineKey::text:
      search_->part += key.text;
      search_before(std::min(search_->entry + 1, history_.size()));
      return LineAction::edit;
    case LineKey::backspace:
      if (search_->part.empty()) return LineAction::reject;
      search_->part.erase(character_begin(search_->part, search_->part.size()));
      search_before(history_.size());
      return LineAction::edit;
    case LineKey::search:
      if (search_->part.empty()) return LineAction::reject;
      search_before(search_->entry);
      return search_->failed ? LineAction::reject : LineAction::edit;
    case LineKey::abort:
    case LineKey::escape:
      text_ = search_->text_before;
      cursor_ = search_->cursor_before;
      search_.reset();
      return LineAction::edit;
    default:
      if (search_->entry < history_.size()) history_.go_to(search_->entry, search_->text_before);
      search_.reset();
      return std::nullopt;
  }
}

// Shows the last entry before number `end` that contains the searched text.
void LineEdit::search_before(std::size_t end) {
  const auto found = history_.find(search_->part, end);
  search_->failed = !found;
  if (!found) return;
  search_->entry = *found;
  text_ = history_.entry(*found);
  cursor_ = text_.find(search_->part);
}

}  // namespace minimind
