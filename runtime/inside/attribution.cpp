#include "runtime/inside/attribution.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "runtime/inside/vector_math.h"
#include "weights/base/cancel.h"

namespace minimind {
namespace {

// The likeliest token of a row of logits that come one after the other.
class Lens {
 public:
  void add(std::int32_t token, float logit) {
    if (token == 0 || logit > most_) {
      sum_ *= token == 0 ? 0 : std::exp(most_ - static_cast<double>(logit));
      most_ = logit;
      token_ = token;
    }
    sum_ += std::exp(static_cast<double>(logit) - most_);
  }
  LikelyToken top1() const { return {token_, 1 / sum_}; }

 private:
  double most_ = 0, sum_ = 0;
  std::int32_t token_ = 0;
};

class Accounts {
 public:
  Accounts(const Model& model, const Recording& recording, std::span<const std::int32_t> tokens, std::size_t most)
      : model_(model), recording_(recording), tokens_(tokens), most_(most), d_(model.config.hidden_size) {}

  std::vector<TokenAccount> all(std::size_t first) {
    std::vector<TokenAccount> accounts;
    for (std::size_t position = first; position < tokens_.size(); ++position) {
      check_cancelled();
      accounts.push_back(account(position));
    }
    look_through_lens(accounts);
    return accounts;
  }

 private:
  TokenAccount account(std::size_t position) const {
    const std::size_t from = position - 1;  // whose logits are those of the token
    const std::span<const float> logits = recording_.row("lm_head", from);
    const auto token = static_cast<std::size_t>(tokens_[position]);
    const std::vector<double> probabilities = softmax(logits);

    TokenAccount account{position, tokens_[position], logits[token], probabilities[token]};
    for (const std::size_t id : largest(logits, most_)) {
      account.candidates.push_back({static_cast<std::int32_t>(id), probabilities[id]});
    }
    add_shares(account, from);
    return account;
  }

  void add_shares(TokenAccount& account, std::size_t from) const {
    std::vector<float> direction(d_);  // in the residual stream
    read_row(model_.output(), static_cast<std::size_t>(account.token), direction.data());
    const double scale = norm_scale(recording_.row(model_.layers.size() - 1, "", from), model_.config.rms_norm_eps);
    const auto share_of = [&](std::span<const float> added) {
      double sum = 0;
      for (std::size_t i = 0; i < d_; ++i) sum += static_cast<double>(direction[i]) * model_.norm[i] * added[i];
      return sum * scale;
    };
    account.embedding = share_of(recording_.row("model.embed_tokens", from));
    account.rest = account.logit - account.embedding;
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      LayerShare share;
      share.attention = share_of(recording_.row(i, "self_attn.o_proj", from));
      const auto* const moe = std::get_if<MixtureOfExperts>(&model_.layers[i].mlp);
      share.feed_forward = share_of(recording_.row(i, moe ? "mlp" : "mlp.down_proj", from));
      account.rest -= share.attention + share.feed_forward;
      share.heads = heads(i, from);
      for (std::size_t rank = 0; moe && rank < moe->experts_per_token; ++rank) {
        share.experts.emplace_back(static_cast<std::size_t>(recording_.row(i, "mlp.experts.chosen", from)[rank]),
                                   recording_.row(i, "mlp.experts.weights", from)[rank]);
      }
      account.layers.push_back(std::move(share));
    }
  }

  std::vector<std::vector<std::pair<std::size_t, float>>> heads(std::size_t layer, std::size_t from) const {
    std::vector<std::vector<std::pair<std::size_t, float>>> all;
    const std::span<const float> weights = recording_.row(layer, "self_attn.weights", from);
    const std::size_t count = model_.config.num_attention_heads, positions = weights.size() / count;
    for (std::size_t head = 0; head < count; ++head) {
      const std::span<const float> seen = weights.subspan(head * positions, from + 1);
      auto& strongest = all.emplace_back();
      for (const std::size_t position : largest(seen, most_)) strongest.emplace_back(position, seen[position]);
    }
    return all;
  }

  // Multiplies each row of the output matrix with the normalized residuals of all tokens and layers.
  void look_through_lens(std::vector<TokenAccount>& accounts) const {
    const std::size_t layers = model_.layers.size();
    std::vector<float> normed(accounts.size() * layers * d_);
    for (std::size_t i = 0; i < accounts.size() * layers; ++i) {
      const std::span<const float> x = recording_.row(i % layers, "", accounts[i / layers].position - 1);
      const double scale = norm_scale(x, model_.config.rms_norm_eps);
      for (std::size_t j = 0; j < d_; ++j) normed[i * d_ + j] = static_cast<float>(x[j] * scale * model_.norm[j]);
    }
    std::vector<Lens> lenses(accounts.size() * layers);
    multiply_output(model_, normed, [&](std::size_t token, std::span<const float> logits) {
      for (std::size_t i = 0; i < lenses.size(); ++i) lenses[i].add(static_cast<std::int32_t>(token), logits[i]);
    });
    for (std::size_t i = 0; i < lenses.size(); ++i) accounts[i / layers].layers[i % layers].lens = lenses[i].top1();
  }

  const Model& model_;
  const Recording& recording_;
  std::span<const std::int32_t> tokens_;
  std::size_t most_, d_;
};

}  // namespace

std::vector<Point> points_of_accounts(const Model& model) {
  std::vector<Point> points = points_of(model);
  std::erase_if(points, [&](const Point& point) {
    static constexpr std::string_view required[] = {".self_attn.weights", ".self_attn.o_proj", ".mlp.down_proj", ".mlp",
                                                    ".experts.chosen",    ".experts.weights"};
    const bool is_output = point.shown == "output" || point.shown == "embed_tokens" || point.shown == "lm_head";
    return point.expert || (!is_output && std::none_of(std::begin(required), std::end(required),
                                                       [&](auto end) { return point.name.ends_with(end); }));
  });
  return points;
}

std::vector<TokenAccount> account_for(const Model& model, const Recording& recording,
                                      std::span<const std::int32_t> tokens, std::size_t first, std::size_t most) {
  assert(first > 0);
  return Accounts(model, recording, tokens, most).all(first);
}

}  // namespace minimind
