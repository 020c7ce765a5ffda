#include "tools/bench/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>
#include <span>

#include "runtime/engine/context.h"
#include "runtime/engine/forward.h"
#include "runtime/engine/huge_page_arena.h"
#include "runtime/engine/prefill.h"
#include "tools/bench/roofline.h"
#include "tools/options/load_llm.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/progress.h"
#include "weights/base/cancel.h"

namespace minimind {
namespace {

using Clock = std::chrono::steady_clock;

// The longest context of any test.
std::size_t longest_context(const std::vector<BenchTest>& tests) {
  std::size_t positions = 0;
  for (const BenchTest& test : tests) positions = std::max(positions, test.depth + test.tokens);
  return positions;
}

std::size_t largest_batch(const std::vector<BenchTest>& tests) {
  std::size_t tokens = 1;
  for (const BenchTest& test : tests) {
    tokens = std::max({tokens, test.kind == BenchKind::prompt ? test.tokens : test.depth, test.texts});
  }
  return std::min(tokens, batch_tokens);
}

std::size_t most_texts(const std::vector<BenchTest>& tests) {
  return std::ranges::max(tests, {}, &BenchTest::texts).texts;
}

// Random tokens, the same in each run.
std::vector<std::int32_t> random_tokens(std::size_t count, std::size_t vocab_size) {
  std::mt19937 random(1);
  std::vector<std::int32_t> tokens(count);
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random() % vocab_size);
  return tokens;
}

// One model on one number of threads, with the indices of its results and limits.
struct Setup {
  Forward forward;
  KvType kv_type;
  std::size_t first_result;
  std::vector<std::size_t> limits;
};

class Bench {
 public:
  Bench(const std::vector<BenchModel>& models, const BenchPlan& plan)
      : kernels_(models.front().llm.kernels),
        plan_(plan),
        positions_(longest_context(plan.tests)),
        vocab_size_(models.front().llm.config.vocab_size),
        tokens_(random_tokens(positions_ + most_texts(plan.tests), vocab_size_)),
        logits_(most_texts(plan.tests) * vocab_size_),
        progress_(std::string(translated("bench")), total_tokens(models.size()), ProgressUnit::tokens) {
    setups_.reserve(models.size() * plan.threads.size());
    std::size_t buffer_bytes = last_level_cache_bytes() / 2;
    for (const BenchModel& model : models) {
      buffer_bytes = std::max(buffer_bytes, weight_bytes(*model.llm.model));
      for (const std::size_t threads : plan.threads) add_setup(model.type, model.llm, threads);
    }
    buffer_memory_ = HugePageArena().take(buffer_bytes);
    buffer_ = {reinterpret_cast<float*>(buffer_memory_.get()), buffer_bytes / sizeof(float)};
    std::ranges::fill(buffer_, 1.0f);
  }

  BenchMeasurements run() {
    const WatchedInterrupts interrupts;
    const Cancellation cancellation(interrupts.flag());
    try {
      fill_contexts();
      for (std::size_t repetition = 0; repetition < plan_.repetitions; ++repetition) measure_all(repetition);
      measured_.complete = true;
    } catch (const Cancelled&) {
      // The measurements so far are the result.
    }
    std::ranges::stable_sort(measured_.limits, {}, &BenchLimit::kind);
    return std::move(measured_);
  }

 private:
  std::size_t total_tokens(std::size_t models) const {
    const std::size_t times = models * plan_.threads.size() * plan_.repetitions;
    std::size_t tokens = 0;
    for (const BenchTest& test : plan_.tests) tokens += test.depth + (times + 1) * test.texts * test.tokens;
    return tokens;
  }

  void add_setup(const std::string& type, const LLM& llm, std::size_t threads) {
    const Model& model = *llm.model;
    const KvType kv_type = llm.kv_type;
    Setup setup{Forward(model, kernels_, threads, largest_batch(plan_.tests), positions_),
                kv_type,
                measured_.results.size(),
                {}};
    const std::size_t bytes = weight_bytes(model);
    setup.limits.push_back(limit_index(LimitKind::reading_weights, threads, bytes));
    if (const std::size_t cache = last_level_cache_bytes()) {
      setup.limits.push_back(limit_index(LimitKind::reading_cache, threads, cache / 2));
    }
    setup.limits.push_back(limit_index(LimitKind::multiply_add, threads, 0));
    const LimitKind arithmetic = kernels_.bf16            ? LimitKind::multiply_add_bf16
                                 : multiplies_int8(model) ? LimitKind::multiply_add_int8
                                                          : LimitKind::multiply_add;
    if (arithmetic != LimitKind::multiply_add) setup.limits.push_back(limit_index(arithmetic, threads, 0));
    for (std::size_t i = 0; i < plan_.tests.size(); ++i) {
      const BenchTest& test = plan_.tests[i];
      std::vector<Context>& contexts = contexts_[{kv_type, i}];
      contexts.reserve(test.texts);
      // fill_contexts() adds the others.
      using Cuts = std::initializer_list<std::size_t>;
      if (contexts.empty()) {
        contexts.emplace_back(model.config, test.depth + test.tokens, kv_type,
                              test.shared_prompt ? Cuts{test.depth} : Cuts{});
      }
      const bool prompt = test.kind == BenchKind::prompt;
      measured_.results.push_back(
          {.type = type,
           .threads = threads,
           .test = test,
           .kv_type = kv_type,
           .weight_bytes = bytes,
           .weight_bytes_per_token = static_cast<double>(weight_bytes_per_token(model)),
           .cache_bytes_per_token = prompt ? 0 : cache_bytes_per_token(model.config, kv_type, test.depth, test.tokens),
           .flops = prompt ? prompt_flops(model, test.tokens) : 0,
           .arithmetic = arithmetic,
           .tokens_per_second = {}});
      if (!plan_.profile) continue;
      measured_.profiles.push_back({describe(measured_.results.back()), Profile(threads)});
    }
    setups_.push_back(std::move(setup));
  }

  // Limits that several setups share are measured once.
  std::size_t limit_index(LimitKind kind, std::size_t threads, std::size_t bytes) {
    const auto same = [&](const BenchLimit& limit) {
      return limit.kind == kind && limit.threads == threads && limit.bytes == bytes;
    };
    const auto found = std::find_if(measured_.limits.begin(), measured_.limits.end(), same);
    const auto index = static_cast<std::size_t>(found - measured_.limits.begin());
    if (found == measured_.limits.end()) measured_.limits.push_back({kind, threads, bytes, {}});
    return index;
  }

  static std::string describe(const BenchResult& result) {
    return fmt::format("{}, {} thread{}, {}", result.type, result.threads, result.threads == 1 ? "" : "s",
                       name_of(result.test));
  }

  void measure_all(std::size_t repetition) {
    for (Setup& setup : setups_) {
      for (const std::size_t index : setup.limits) {
        BenchLimit& limit = measured_.limits[index];
        if (limit.per_second.size() == repetition) limit.per_second.push_back(measure(limit));
      }
      for (std::size_t i = 0; i < plan_.tests.size(); ++i) measure(setup, i);
    }
  }

  // Fills every position, so that no measurement is the first to touch the memory. The speed of later tokens does not
  // depend on which tokens these are.
  void fill_contexts() {
    Forward& forward = setups_.front().forward;
    for (auto& [key, contexts] : contexts_) {
      const BenchTest& test = plan_.tests[key.second];
      fill(forward, contexts.front());
      for (std::size_t i = 1; i < test.texts; ++i) {
        contexts.emplace_back(contexts.front(), test.depth, contexts.front().capacity());
        fill(forward, contexts.back());
      }
    }
  }

  void fill(Forward& forward, Context& context) {
    while (context.size() < context.capacity()) {
      const std::size_t count = std::min(forward.max_tokens(), context.capacity() - context.size());
      forward.run(context, std::span(tokens_).subspan(context.size(), count), {});
      done_ += count;
      progress_.show(done_, "filling contexts");
    }
  }

  double measure(const BenchLimit& limit) {
    if (limit.kind == LimitKind::multiply_add) return measure_multiply_add(kernels_, limit.threads);
    if (limit.kind == LimitKind::multiply_add_int8) return measure_multiply_add_int8(kernels_, limit.threads);
    if (limit.kind == LimitKind::multiply_add_bf16) return measure_multiply_add_bf16(*kernels_.bf16, limit.threads);
    return measure_reading(kernels_, buffer_.first(limit.bytes / sizeof(float)), limit.threads);
  }

  void measure(Setup& setup, std::size_t test_index) {
    const std::size_t index = setup.first_result + test_index;
    BenchResult& result = measured_.results[index];
    const BenchTest& test = result.test;
    std::vector<Context>& contexts = contexts_.at({setup.kv_type, test_index});
    progress_.show(done_, describe(result));
    BenchTest warm_up = test;
    warm_up.tokens = std::min(test.tokens, warm_up_tokens(test.kind));
    run_tokens(setup.forward, contexts, warm_up);
    setup.forward.set_profile(plan_.profile ? &measured_.profiles[index].profile : nullptr);
    const Clock::time_point start = Clock::now();
    run_tokens(setup.forward, contexts, test);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    setup.forward.set_profile(nullptr);
    result.tokens_per_second.push_back(static_cast<double>(test.texts * test.tokens) / seconds);
    done_ += test.texts * test.tokens;
  }

  static std::size_t warm_up_tokens(BenchKind kind) { return kind == BenchKind::prompt ? 32 : 2; }

  void run_tokens(Forward& forward, std::vector<Context>& contexts, const BenchTest& test) {
    for (Context& context : contexts) context.rewind(test.depth);
    const std::span<const std::int32_t> tokens(tokens_);
    if (test.kind == BenchKind::prompt) {
      return prefill(forward, contexts.front(), tokens.subspan(test.depth, test.tokens), {logits_.data(), vocab_size_});
    }
    std::vector<Piece> pieces(test.texts);
    for (std::size_t i = 0; i < test.tokens; ++i) {
      // Other tokens for each text, which other experts process.
      for (std::size_t t = 0; t < test.texts; ++t) pieces[t] = {&contexts[t], tokens.subspan(test.depth + i + t, 1), 1};
      forward.run(pieces, {logits_.data(), test.texts, vocab_size_});
    }
  }

  const kernels::Table& kernels_;
  const BenchPlan& plan_;
  std::size_t positions_;  // of the longest context
  std::size_t vocab_size_;
  std::vector<std::int32_t> tokens_;                                         // [positions + most texts]
  std::vector<float> logits_;                                                // [most texts, vocab]
  std::map<std::pair<KvType, std::size_t>, std::vector<Context>> contexts_;  // for each test and type, one per text
  Progress progress_;
  std::shared_ptr<std::byte> buffer_memory_;  // in huge pages, as the weights, which are also freed fast
  std::span<float> buffer_;                   // for measuring how fast memory is read
  std::vector<Setup> setups_;
  BenchMeasurements measured_;
  std::size_t done_ = 0;  // tokens
};

}  // namespace

BenchMeasurements run_bench(const std::vector<BenchModel>& models, const BenchPlan& plan) {
  return Bench(models, plan).run();
}

}  // namespace minimind
