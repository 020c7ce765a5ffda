#include "runtime/tokenizer/tokenizer_data.h"

#include <algorithm>
#include <iterator>

#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"
#include "runtime/tokenizer/bpe.h"
#include "weights/base/cancel.h"

namespace minimind {
namespace {

bool stands_alone(std::string_view before, std::string_view after) {
  return (before.empty() || !is_word_character(last_utf8(before).code_point)) &&
         (after.empty() || !is_word_character(first_utf8(after).code_point));
}

}  // namespace

AddedTokenSplitter::AddedTokenSplitter(const std::vector<AddedToken>& tokens, bool normalized) {
  std::ranges::copy_if(
      tokens, std::back_inserter(tokens_), [=](bool its) { return its == normalized; }, &AddedToken::normalized);
  std::ranges::sort(tokens_, [](const AddedToken& a, const AddedToken& b) {
    return std::lexicographical_compare(a.content.rbegin(), a.content.rend(), b.content.rbegin(), b.content.rend());
  });
  for (const AddedToken& token : tokens_) ends_a_token_[static_cast<unsigned char>(token.content.back())] = true;
  nodes_.push_back({.end = static_cast<std::uint32_t>(tokens_.size())});
  for (std::uint32_t at = 0; at < nodes_.size(); ++at) {
    auto [byte, depth, shorter, begin, end, token] = nodes_[at];
    const bool is_content = begin < end && tokens_[begin].content.size() == depth;
    nodes_[at].token = is_content ? ++begin : nodes_[shorter].token;
    nodes_[at].begin = nodes_[at].end = static_cast<std::uint32_t>(nodes_.size());
    for (std::uint32_t i = begin; i < end; ++i) {
      byte = *(tokens_[i].content.rbegin() + depth);
      if (i == begin || byte != nodes_.back().byte) {
        const std::uint32_t without_first = at == 0 ? 0 : step(shorter, byte);
        nodes_.push_back({.byte = byte, .depth = depth + 1, .shorter = without_first, .begin = i, .end = i});
        ++nodes_[at].end;
      }
      ++nodes_.back().end;
    }
  }
}

// Returns the node of the longest path that `node`'s path and `byte` behind it end with.
std::uint32_t AddedTokenSplitter::step(std::uint32_t node, char byte) const {
  for (;; node = nodes_[node].shorter) {
    const auto begin = nodes_.begin() + nodes_[node].begin, end = nodes_.begin() + nodes_[node].end;
    const auto child = std::ranges::lower_bound(begin, end, byte, {}, &Node::byte);
    if (child != end && child->byte == byte) return static_cast<std::uint32_t>(child - nodes_.begin());
    if (node == 0) return 0;
  }
}

// Read backwards, a text shows the longest token that starts at each byte (Aho and Corasick 1975). As in Hugging Face
// tokenizers, the search continues at the end of the content, even if rstrip took more. Tokens of whitespace can then
// match inside the whitespace that rstrip took. A token of which lstrip leaves nothing is dropped, and the text resumes
// after the last match.
void AddedTokenSplitter::split(std::string_view text, const TextMarks& marks, std::size_t offset,
                               const std::function<void(const TextPiece&)>& use) const {
  std::vector<std::pair<std::size_t, std::uint32_t>> matches;  // bytes and numbers of tokens, the last byte first
  std::uint32_t node = 0;
  for (std::size_t at = text.size(); at-- > 0;) {
    if (at % 65536 == 0) check_cancelled();
    if (node == 0 && !ends_a_token_[static_cast<unsigned char>(text[at])]) continue;
    node = marks.first_from(offset + at) == offset + at ? 0 : step(node, text[at]);
    if (nodes_[node].token != 0) matches.emplace_back(at, nodes_[node].token);
  }
  std::size_t resume = 0;         // start of the text that belongs to no token
  std::size_t end = 0;            // of the last match
  std::size_t end_of_spaces = 0;  // that rstrip took last
  for (auto match = matches.rbegin(); match != matches.rend(); ++match) {
    const auto& [begin, number] = *match;
    if (begin < end) continue;
    const AddedToken& token = tokens_[number - 1];
    end = begin + token.content.size();
    if (token.single_word && !stands_alone(text.substr(0, begin), text.substr(end))) continue;
    if (token.rstrip && end > end_of_spaces) end_of_spaces = end_of_run(text, end, CharClass::space);
    const std::string_view before = text.substr(resume, std::max(begin, resume) - resume);
    const std::size_t first = token.lstrip ? resume + without_end(before, is_white_space).size() : begin;
    const std::size_t last = token.rstrip ? end_of_spaces : end;
    if (resume < first) use({std::nullopt, text.substr(resume, first - resume)});
    if (first < last) use({token.id, {}});
    resume = last;
  }
  if (resume < text.size()) use({std::nullopt, text.substr(resume)});
}

}  // namespace minimind
