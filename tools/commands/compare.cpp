#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "tools/commands/compare_trace.h"
#include "tools/commands/npy.h"
#include "tools/commands/statistics.h"
#include "tools/options/command_line.h"
#include "tools/options/help.h"
#include "tools/options/load_llm.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/error.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

struct CompareOptions {
  CheckpointOptions checkpoint;
  RunOptions run;
  TokenOptions tokens;
  std::string reference, trace;
  std::optional<double> tolerance;
  bool json = false;
};

constexpr double largest_difference = 2e-4;           // of logits
constexpr double largest_relative_difference = 1e-4;  // of the points of a trace

struct Comparison {
  double max_difference = 0;  // largest absolute difference; infinite if a logit is NaN
  std::size_t max_token = 0, max_entry = 0;
  double kl_sum = 0;  // of KL(reference || model), in nats
  std::size_t agreeing = 0, tokens = 0;
};

class Comparer {
 public:
  explicit Comparer(const NpyReader& reference) : reference_(reference), reference_logits_(reference.cols()) {}

  void compare_row(std::size_t token, std::span<const float> logits) {
    reference_.read_row(token, reference_logits_);
    for (std::size_t i = 0; i < reference_logits_.size(); ++i) {
      const double difference = std::fabs(static_cast<double>(logits[i]) - reference_logits_[i]);
      if (!std::isinf(result_.max_difference) && !(difference <= result_.max_difference)) {
        result_.max_difference = std::isnan(difference) ? INFINITY : difference;
        result_.max_token = token;
        result_.max_entry = i;
      }
    }
    reference_distribution_.assign(reference_logits_);
    model_distribution_.assign(logits);
    result_.kl_sum += reference_distribution_.kl_divergence_to(model_distribution_);
    result_.agreeing += reference_distribution_.top1() == model_distribution_.top1();
    ++result_.tokens;
  }

  const Comparison& result() const { return result_; }

 private:
  const NpyReader& reference_;
  std::vector<float> reference_logits_;
  Distribution reference_distribution_, model_distribution_;
  Comparison result_;
};

void print_comparison(const Comparison& result, double tolerance, bool as_json) {
  const double mean_kl = result.kl_sum / static_cast<double>(result.tokens);
  const double agreement = static_cast<double>(result.agreeing) / static_cast<double>(result.tokens);
  const bool passed = result.max_difference <= tolerance;
  if (as_json) {
    const nlohmann::ordered_json json{{"tokens", result.tokens},
                                      {"worst_difference", result.max_difference},
                                      {"worst_token", result.max_token},
                                      {"worst_entry", result.max_entry},
                                      {"mean_kl", mean_kl},
                                      {"top1_agreement", agreement},
                                      {"tolerance", tolerance},
                                      {"passed", passed}};
    print_output("{}\n", dump_json(json));
    return;
  }
  print_output("max difference {:.3g}, at token {} and vocabulary entry {}\n", result.max_difference, result.max_token,
               result.max_entry);
  print_output("mean KL divergence {:.3g} nats\ntop-1 agreement {}/{}\n", mean_kl, result.agreeing, result.tokens);
  print_output("{} the tolerance of {:g}\n", passed ? "within" : "over", tolerance);
}

int run_compare(const CompareOptions& options) {
  if (options.reference.empty() == options.trace.empty()) {
    throw UsageError(options.trace.empty() ? "there is nothing to compare with, expected --reference or --trace"
                                           : "--reference and --trace are given; omit one of them");
  }
  if (!options.trace.empty()) {
    return compare_trace(options.trace, options.checkpoint, options.run, options.tokens,
                         options.tolerance.value_or(largest_relative_difference), options.json)
               ? 0
               : 1;
  }
  const double tolerance = options.tolerance.value_or(largest_difference);
  const std::vector<std::int32_t> tokens = options.tokens.read();
  const NpyReader reference(options.reference);
  const LLM llm = load_llm(options.checkpoint, options.run);
  if (reference.rows() != tokens.size() || reference.cols() != llm.config.vocab_size) {
    throw Error(fmt::format("{}: has {} x {} logits, expected {} tokens x {} vocabulary entries", options.reference,
                            reference.rows(), reference.cols(), tokens.size(), llm.config.vocab_size));
  }
  Comparer comparer(reference);
  const Comparison& result = comparer.result();
  const auto interrupted_now = [&] {
    return localized("interrupted after {} of {} tokens", result.tokens, tokens.size());
  };
  InterruptMessage message(interrupted_now());
  for_each_logits(llm, tokens, "compare", [&](std::size_t first, Matrix<const float> logits) {
    for (std::size_t t = 0; t < logits.rows; ++t) comparer.compare_row(first + t, {logits.row(t), logits.cols});
    message.set(interrupted_now());
  });
  print_comparison(result, tolerance, options.json);
  return result.max_difference <= tolerance ? 0 : 1;
}

}  // namespace

Command add_compare(CommandOptions& command) {
  auto options = std::make_shared<CompareOptions>();
  options->checkpoint.add_to(command);
  options->tokens.add_to(command);
  command.add_option("--reference", options->reference, common_group, "FILE",
                     bilingual(".npy file with the reference: float32 [tokens, vocabulary]",
                               "参考值的 .npy 文件：float32 [词元数, 词表大小]"));
  command.add_option("--trace", options->trace, common_group, "FILE",
                     bilingual("instead, a trace: compare each of its points, and name the first that differs",
                               "改为与追踪文件比较：逐个观察点比较，并指出第一个不同之处"));
  const auto with_defaults = [](fmt::string_view help) {
    return fmt::format(fmt::runtime(help), largest_difference, largest_relative_difference);
  };
  command
      .add_option(
          "--tolerance", options->tolerance, constraint_group, "X",
          with_defaults(bilingual("exit with 1 if the max difference is larger (default: {0}; of a trace: {1}, "
                                  "relative to the norm of a token's values)",
                                  "最大差值超过此值时退出码为 1（默认：{0}；追踪文件：{1}，相对于词元数值的范数）")))
      ->check(not_negative);
  add_json(command, options->json);
  options->run.add_to(command);
  return [options] { return run_compare(*options); };
}

}  // namespace minimind
