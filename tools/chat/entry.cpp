#include "tools/chat/entry.h"

#include <utility>

namespace minimind {
namespace {

constexpr std::string_view mark = "\"\"\"";

// Whether a block starts after this line.
bool begins_block(std::string_view first_line) {
  if (first_line == mark) return true;
  return first_line.starts_with('/') && !first_line.starts_with("//") && first_line.ends_with(" \"\"\"");
}

}  // namespace

void ChatEntryLines::clear() {
  *this = ChatEntryLines();
}

std::optional<std::string> ChatEntryLines::push(std::string_view line) {
  if (!open_) block_ = begins_block(line.substr(0, line.find('\n')));
  text_ += line;
  open_ = true;
  if (block_) {
    const std::size_t content = text_.find(mark);
    if (text_.find('\n') == std::string::npos || !text_.ends_with("\n\"\"\"")) {
      text_ += '\n';
      return std::nullopt;
    }
    const std::size_t from = content + mark.size() + 1;
    const std::size_t to = text_.size() - mark.size() - 1;
    std::string text = text_.substr(0, content) + (to > from ? text_.substr(from, to - from) : "");
    if (content == 0 && text.starts_with('/')) text.insert(0, "/");
    clear();
    return text;
  }
  if (text_.ends_with('\\')) {
    text_.back() = '\n';
    return std::nullopt;
  }
  return std::exchange(*this, ChatEntryLines()).text_;
}

}  // namespace minimind
