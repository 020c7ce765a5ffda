#include "runtime/generate/draft_model.h"

#include <algorithm>
#include <utility>

namespace minimind {

DraftModel::DraftModel(Forward forward, Context context)
    : forward_(std::move(forward)), context_(std::move(context)), logits_(forward_.model().config.vocab_size) {}

std::span<const std::int32_t> DraftModel::draft(std::span<const std::int32_t> tokens, std::size_t most,
                                                const std::atomic<bool>& interrupted) {
  drafts_.clear();
  if (most == 0 || tokens.size() > context_.capacity()) return drafts_;
  // What is drafted last is not run.
  most = std::min(most, context_.capacity() - tokens.size() + 1);
  prefill(forward_, context_, tokens.subspan(context_.keep_common(tokens)), logits_, interrupted);
  while (!interrupted) {
    const auto likeliest = std::max_element(logits_.begin(), logits_.end());
    drafts_.push_back(static_cast<std::int32_t>(likeliest - logits_.begin()));
    if (drafts_.size() == most) break;
    forward_.run(context_, {&drafts_.back(), 1}, {logits_.data(), 1, logits_.size()});
  }
  return drafts_;
}

}  // namespace minimind
