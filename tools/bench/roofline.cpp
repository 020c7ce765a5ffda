#include "tools/bench/roofline.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "runtime/engine/thread_team.h"
#include "runtime/kernels/blocks.h"
#include "weights/base/cancel.h"

namespace minimind {
namespace {

// Returns how many passes per second a team does. pass(worker) does one worker's share. Throws Cancelled.
template <class Pass>
double passes_per_second(std::size_t threads, Pass pass) {
  using Clock = std::chrono::steady_clock;
  constexpr double long_enough = 0.05;  // seconds; much longer than starting a team
  std::atomic<bool> cancelled = false;
  for (std::size_t passes = 1;; passes *= 2) {
    Clock::time_point start;
    run_team(threads, [&](Worker& worker) {
      pass(worker);
      worker.barrier();
      if (worker.index() == 0) start = Clock::now();
      for (std::size_t i = 0; i < passes && !cancelled; ++i) {
        if (worker.index() == 0) cancelled = Cancellation::requested();
        pass(worker);
      }
    });
    check_cancelled();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds >= long_enough) return static_cast<double>(passes) / seconds;
  }
}

// The work of one token with some weights.
struct Work {
  double bytes = 0;
  double flops = 0;

  Work& operator+=(const Work& other) {
    bytes += other.bytes;
    flops += other.flops;
    return *this;
  }
};

Work operator*(double times, const Work& work) {
  return {times * work.bytes, times * work.flops};
}

Work work_of(const WeightMatrix& matrix) {
  return {static_cast<double>(matrix.byte_size()), 2.0 * static_cast<double>(matrix.rows() * matrix.cols())};
}

Work work_of(const std::vector<float>& vector) {
  return {static_cast<double>(vector.size() * sizeof(float)), 0};
}

Work work_of(const FeedForward& ffn) {
  Work work;
  for (const WeightMatrix* matrix : {&ffn.up_proj, &ffn.down_proj}) work += work_of(*matrix);
  if (ffn.gate_proj) work += work_of(*ffn.gate_proj);
  for (const auto* bias : {&ffn.gate_bias, &ffn.up_bias, &ffn.down_bias}) work += work_of(*bias);
  return work;
}

// The work with `routed` of the routed experts, which have equal sizes, and the shared ones.
Work work_of(const MixtureOfExperts& moe, std::size_t routed) {
  const WeightMatrix& router = moe.router;
  Work work{static_cast<double>(router.byte_size()), 2.0 * static_cast<double>(router.rows() * router.cols())};
  work += static_cast<double>(routed) * work_of(moe.experts.front());
  for (std::size_t e = moe.routed_experts; e < moe.experts.size(); ++e) work += work_of(moe.experts[e]);
  return work;
}

enum class Experts { all, of_a_token };

Work work_of(const Layer& layer, Experts experts) {
  const Attention& attention = layer.attention;
  Work work;
  for (const auto* norm :
       {&layer.input_layernorm, &layer.post_attention_layernorm, &attention.q_norm, &attention.k_norm}) {
    work += work_of(*norm);
  }
  for (const auto* matrix : {&attention.q_proj, &attention.k_proj, &attention.v_proj, &attention.o_proj}) {
    work += work_of(*matrix);
  }
  if (const auto* ffn = std::get_if<FeedForward>(&layer.mlp)) return work += work_of(*ffn);
  const auto& moe = std::get<MixtureOfExperts>(layer.mlp);
  return work += work_of(moe, experts == Experts::all ? moe.routed_experts : moe.experts_per_token);
}

Work work_of_layers(const Model& model, Experts experts) {
  Work work;
  for (const Layer& layer : model.layers) work += work_of(layer, experts);
  return work += work_of(model.norm);
}

}  // namespace

double measure_reading(const kernels::Table& kernels, std::span<const float> buffer, std::size_t threads) {
  constexpr std::size_t part = std::size_t{1} << 20;  // floats, which are read in less than a millisecond
  std::atomic<bool> cancelled = false;
  return static_cast<double>(buffer.size_bytes()) * passes_per_second(threads, [&](const Worker& worker) {
           const Range share = worker.share(buffer.size());
           for (std::size_t at = share.begin; at < share.end && !cancelled; at += part) {
             if (worker.index() == 0) cancelled = Cancellation::requested();
             kernels.read(buffer.data() + at, std::min(part, share.end - at));
           }
         });
}

double measure_multiply_add(const kernels::Table& kernels, std::size_t threads) {
  constexpr std::size_t rounds = 100'000;
  // x = x / 2 + 1 stays near 2.
  const double passes = passes_per_second(threads, [&](const Worker&) { kernels.multiply_add(0.5f, 1.0f, rounds); });
  return 2 * passes * static_cast<double>(threads * rounds * kernels.multiply_adds_per_round);
}

double measure_multiply_add_int8(const kernels::Table& kernels, std::size_t threads) {
  constexpr std::size_t rounds = 1000;
  const double passes = passes_per_second(threads, [&](const Worker&) { kernels.blocks->multiply_add(1, rounds); });
  return 2 * passes * static_cast<double>(threads * rounds * kernels.blocks->multiply_adds_per_round);
}

double measure_multiply_add_bf16(const kernels::Bf16Products& products, std::size_t threads) {
  constexpr std::size_t rounds = 10'000;
  const double passes = passes_per_second(threads, [&](const Worker&) { products.multiply_add(rounds); });
  return 2 * passes * static_cast<double>(threads * rounds * products.multiply_adds_per_round);
}

// On a virtual machine sysconf(_SC_LEVEL3_CACHE_SIZE) returns the cache of the whole processor.
std::size_t last_level_cache_bytes() {
  std::size_t most = 0;
  for (int index = 0;; ++index) {
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    std::size_t kilobytes = 0;
    char unit = 0;
    if (!(file >> kilobytes >> unit) || unit != 'K') return most;
    most = std::max(most, kilobytes * 1024);
  }
}

std::size_t weight_bytes(const Model& model) {
  const std::size_t embedding = model.lm_head ? model.embed_tokens.byte_size() : 0;
  return static_cast<std::size_t>(work_of_layers(model, Experts::all).bytes) + model.output().byte_size() + embedding;
}

std::size_t weight_bytes_per_token(const Model& model) {
  const std::size_t row = model.lm_head ? model.embed_tokens.byte_size() / model.embed_tokens.rows() : 0;
  return static_cast<std::size_t>(work_of_layers(model, Experts::of_a_token).bytes) + model.output().byte_size() + row;
}

double cache_bytes_per_token(const Config& config, KvType type, std::size_t depth, std::size_t tokens) {
  // The i-th token, from 1 on, writes one position and attends to depth + i.
  const double positions = static_cast<double>(depth) + 0.5 * static_cast<double>(tokens + 1) + 1;
  return positions * static_cast<double>(KvCache::bytes_per_position(config, type));
}

bool multiplies_int8(const Model& model) {
  return model.rounding && model.rounding->to_int8;
}

double prompt_flops(const Model& model, std::size_t tokens) {
  const Config& config = model.config;
  const double count = static_cast<double>(tokens);
  const Layer& last = model.layers.back();
  const double keys_and_values = (work_of(last.attention.k_proj) += work_of(last.attention.v_proj)).flops;
  const double last_layer = work_of(last, Experts::of_a_token).flops;
  const double weights = count * (work_of_layers(model, Experts::of_a_token).flops - last_layer + keys_and_values) +
                         last_layer - keys_and_values + work_of(model.output()).flops;
  const double pairs = 0.5 * count * (count + 1);  // of a token and a position that it attends to
  const double width = static_cast<double>(config.num_attention_heads * config.head_dim);
  const double attention = 4 * width * (pairs * static_cast<double>(config.num_hidden_layers - 1) + count);
  return weights + attention;
}

}  // namespace minimind
