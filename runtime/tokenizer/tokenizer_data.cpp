#include "runtime/tokenizer/tokenizer_data.h"

#include <algorithm>
#include <utility>

#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

namespace minimind {
namespace {

bool stands_alone(std::string_view before, std::string_view after) {
  return (before.empty() || !is_word_character(last_utf8(before).code_point)) &&
         (after.empty() || !is_word_character(first_utf8(after).code_point));
}

std::size_t leading_space(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size()) {
    const Utf8Char next = first_utf8(text.substr(size));
    if (!is_white_space(next.code_point)) break;
    size += next.size;
  }
  return size;
}

std::string_view without_trailing_space(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char last = last_utf8(text);
    if (!is_white_space(last.code_point)) break;
    text.remove_suffix(last.size);
  }
  return text;
}

}  // namespace

AddedTokenSplitter::AddedTokenSplitter(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  for (const AddedToken& token : tokens_) begins_a_token_[static_cast<unsigned char>(token.content[0])] = true;
}

// The sorted contents are a trie: each further byte of text narrows the range of contents that match.
const AddedToken* AddedTokenSplitter::longest_at(std::string_view text) const {
  const AddedToken* longest = nullptr;
  auto begin = tokens_.begin();
  auto end = tokens_.end();
  for (std::size_t depth = 0; begin != end; ++depth) {
    if (begin->content.size() == depth) longest = &*begin++;
    if (depth == text.size()) break;
    const auto byte_at_depth = [depth](const AddedToken& token) {
      return static_cast<unsigned char>(token.content[depth]);
    };
    const auto wanted = static_cast<unsigned char>(text[depth]);
    begin = std::partition_point(begin, end, [&](const AddedToken& token) { return byte_at_depth(token) < wanted; });
    end = std::partition_point(begin, end, [&](const AddedToken& token) { return byte_at_depth(token) == wanted; });
  }
  return longest;
}

// As in Hugging Face tokenizers, the search continues at the end of the content, even if rstrip took more. Tokens of
// whitespace can then match inside the whitespace that rstrip took. A token of which lstrip leaves nothing is dropped,
// and the text resumes after the last match.
void AddedTokenSplitter::split(std::string_view text, std::vector<TextPiece>& pieces, const TextMarks& marks,
                               std::size_t offset) const {
  std::size_t resume = 0;  // start of the text that belongs to no token
  for (std::size_t begin = 0; begin < text.size();) {
    const bool possible = begins_a_token_[static_cast<unsigned char>(text[begin])];
    const std::size_t unmarked = possible ? marks.first_from(offset + begin) - offset - begin : 0;
    const AddedToken* const token = possible ? longest_at(text.substr(begin, unmarked)) : nullptr;
    if (token == nullptr) {
      ++begin;
      continue;
    }
    const std::string_view before = text.substr(0, begin);
    begin += token->content.size();
    const std::string_view after = text.substr(begin);
    if (token->single_word && !stands_alone(before, after)) continue;
    const std::size_t first = token->lstrip ? std::max(without_trailing_space(before).size(), resume) : before.size();
    const std::size_t last = begin + (token->rstrip ? leading_space(after) : 0);
    if (resume < first) pieces.push_back({std::nullopt, text.substr(resume, first - resume)});
    if (first < last) pieces.push_back({token->id, {}});
    resume = last;
  }
  if (resume < text.size()) pieces.push_back({std::nullopt, text.substr(resume)});
}

}  // namespace minimind
