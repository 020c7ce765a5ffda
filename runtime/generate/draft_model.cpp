#include "runtime/generate/draft_model.h"

#include <algorithm>

namespace minimind {

DraftModel::DraftModel(const Model& model, const kernels::Table& kernels, std::size_t threads, std::size_t batch_tokens,
                       std::size_t capacity, KvType kv_type)
    : forward_(model, kernels, threads, std::min(batch_tokens, capacity), capacity),
      context_(model.config, capacity, kv_type),
      logits_(model.config.vocab_size) {}

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
    context_.run(forward_, {&drafts_.back(), 1}, {logits_.data(), 1, logits_.size()});
  }
  return drafts_;
}

}  // namespace minimind
