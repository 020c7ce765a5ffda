#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "runtime/inside/points.h"
#include "runtime/inside/recording.h"
#include "runtime/inside/trace_file.h"
#include "runtime/text/utf8.h"
#include "runtime/tokenizer/files.h"
#include "tools/commands/output_folder.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/command_line.h"
#include "tools/options/help.h"
#include "tools/options/load_llm.h"
#include "tools/options/prompt_options.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/progress.h"
#include "tools/terminal/standard_output.h"
#include "weights/base/error.h"
#include "weights/checkpoint/weights_hash.h"
#include "weights/io/json_fields.h"

namespace minimind {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct TraceOptions {
  CheckpointOptions checkpoint;
  RunOptions run;
  std::string tokenizer;
  PromptOptions prompt;
  std::vector<std::string> points;
  std::string layers;
  std::string output;
  bool list = false, json = false;
};

void check_options(const TraceOptions& options) {
  options.prompt.check();
  if (options.list && !options.output.empty()) throw UsageError("--list computes no values for -o; omit one of them");
}

std::vector<Point> chosen_points(const Model& model, const TraceOptions& options) {
  std::vector<std::size_t> layers;
  if (!options.layers.empty()) layers = parse_counts(options.layers, "--layers", 0, model.layers.size() - 1);
  return chosen_points(model, options.points, layers);
}

std::string axes_text(const Point& point) {
  std::vector<std::string> texts;
  for (const Axis& axis : point.axes) {
    texts.push_back(axis.size == 0 ? std::string(axis.name) : fmt::format("{} {}", axis.size, axis.name));
  }
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

OrderedJson describe(const Config& config, const Point& point) {
  OrderedJson axes = OrderedJson::array();
  for (const Axis& axis : point.axes) axes.push_back(axis.name);
  return {{"name", own_name(config, point.name)}, {"axes", axes}, {"formula", point.formula}};
}

void list(const Config& config, std::span<const Point> points, bool as_json) {
  if (as_json) {
    OrderedJson all = OrderedJson::array();
    for (const Point& point : points) {
      OrderedJson described = describe(config, point);
      OrderedJson sizes = OrderedJson::array();
      for (const Axis& axis : point.axes)
        sizes.push_back(axis.size == 0 ? OrderedJson(nullptr) : OrderedJson(axis.size));
      described["sizes"] = sizes;
      all.push_back(std::move(described));
    }
    print_output("{}\n", dump_json(OrderedJson{{"points", all}}));
    return;
  }
  for (const Point& point : points) {
    print_output("{} {}\n    {}\n", own_name(config, point.name), axes_text(point), point.formula);
  }
}

// Statistics of the finite values. Without any, only the counts have a meaning.
struct Summary {
  double norm = 0, least = INFINITY, most = -INFINITY, mean = 0, zeros = 0;  // zeros: their share
  std::size_t nan = 0, infinite = 0;
  bool any = false;

  explicit Summary(std::span<const float> values) {
    for (const float value : values) {
      nan += std::isnan(value);
      infinite += std::isinf(value);
      if (!std::isfinite(value)) continue;
      zeros += value == 0;
      norm += static_cast<double>(value) * value;
      mean += value;
      least = std::min<double>(least, value);
      most = std::max<double>(most, value);
    }
    const std::size_t finite = values.size() - nan - infinite;
    any = finite > 0;
    norm = std::sqrt(norm);
    mean /= static_cast<double>(std::max<std::size_t>(finite, 1));
    zeros /= static_cast<double>(std::max<std::size_t>(finite, 1));
  }
};

OrderedJson as_json(const Summary& summary) {
  const auto if_any = [&](double number) { return summary.any ? OrderedJson(number) : OrderedJson(nullptr); };
  return {{"norm", if_any(summary.norm)}, {"min", if_any(summary.least)},   {"max", if_any(summary.most)},
          {"mean", if_any(summary.mean)}, {"zeros", if_any(summary.zeros)}, {"nan", summary.nan},
          {"infinite", summary.infinite}};
}

void print_json(const Recording& recording, const Config& config, const std::string& model,
                std::span<const std::int32_t> tokens) {
  OrderedJson points = OrderedJson::array();
  for (std::size_t i = 0; i < recording.points().size(); ++i) {
    OrderedJson point = describe(config, recording.points()[i]);
    point["shape"] = recording.shape(i);
    point.update(as_json(Summary(recording.values(i))));
    points.push_back(std::move(point));
  }
  print_output("{}\n", dump_json(OrderedJson{{"model", model},
                                             {"family", name_of(config.family)},
                                             {"tokens", std::vector<std::int32_t>(tokens.begin(), tokens.end())},
                                             {"points", points}}));
}

void print_table(const Recording& recording, const Config& config) {
  print_output("{:>9} {:>9} {:>9} {:>9} {:>6}\n", "norm", "min", "max", "mean", "zeros");
  for (std::size_t i = 0; i < recording.points().size(); ++i) {
    const Summary summary(recording.values(i));
    std::string unusual;
    if (summary.nan > 0) unusual += fmt::format(", {} NaN", summary.nan);
    if (summary.infinite > 0) unusual += fmt::format(", {} infinite", summary.infinite);
    const std::string name = own_name(config, recording.points()[i].name) + unusual;
    if (summary.any) {
      print_output("{:9.3g} {:9.3g} {:9.3g} {:9.3g} {:5.1f}%  {}\n", summary.norm, summary.least, summary.most,
                   summary.mean, 100 * summary.zeros, name);
    } else {
      print_output("{:>45}  {}\n", "no values", name);
    }
  }
}

int run_trace(const TraceOptions& options) {
  check_options(options);
  std::optional<std::string> tokenizer_path;
  std::string name, sha256;
  const LLM llm = load_llm(options.checkpoint, options.run, [&](const Checkpoint& checkpoint, LLM&) {
    name = to_utf8_lossy(std::filesystem::path(checkpoint.path).filename().string());  // for JSON
    if (!options.prompt.tokens && !options.list) {
      tokenizer_path = require_tokenizer_path(options.tokenizer, options.checkpoint.model);
    }
    if (options.output.empty()) return;
    check_not_read(options.output, files_read(checkpoint.path, options.checkpoint, checkpoint, tokenizer_path));
    sha256 = weights_sha256(checkpoint.tensors);
  });
  const std::vector<Point> points = chosen_points(*llm.model, options);
  if (options.list) {
    list(llm.config, points, options.json);
    return 0;
  }
  const InterruptMessage message(options.output.empty() ? std::string(translated("interrupted before the end"))
                                                        : localized("interrupted; {} was not written", options.output));
  std::optional<Tokenizer> tokenizer;
  if (tokenizer_path) tokenizer = load_tokenizer(*tokenizer_path);
  const std::vector<std::int32_t> tokens = options.prompt.read(tokenizer ? &*tokenizer : nullptr, options.run.quiet);
  std::optional<OutputFile> file;
  if (!options.output.empty()) file.emplace(options.output);
  if (!options.run.quiet) {
    note("{} points, {} tokens, at most {:.1f} MB of values", points.size(), tokens.size(),
         4e-6 * static_cast<double>(most_values(points, tokens.size()).value_or(SIZE_MAX)));
  }
  Progress progress(std::string(translated("trace")), tokens.size(), ProgressUnit::tokens);
  const Recording recording =
      record(*llm.model, llm.kernels, llm.kv_type, points, tokens, [&](std::size_t done) { progress.show(done); });
  if (file) {
    write_trace(*file, recording, llm.config, name, sha256, tokens);
    file->commit();
  }
  if (options.json) {
    print_json(recording, llm.config, name, tokens);
  } else if (!file) {
    print_table(recording, llm.config);
  }
  return 0;
}

}  // namespace

Command add_trace(CommandOptions& command) {
  auto options = std::make_shared<TraceOptions>();
  options->checkpoint.add_to(command);
  add_tokenizer(command, options->tokenizer);
  options->prompt.add_to(command);
  command.add_option("-o,--output", options->output, common_group, "FILE",
                     bilingual(".safetensors file to write: f32 values of each point, what its dimensions count, and "
                               "the token ids (default: print a table of norms and ranges)",
                               "要写入的 .safetensors 文件：各观察点的 f32 数值、各维度的含义和词元 id"
                               "（默认：打印范数和取值范围的表格）"));
  command
      .add_option("--points", options->points, common_group, "PATTERN",
                  bilingual("points to look at, e.g. 'layers.*.mlp.*'; may be repeated (default: all)",
                            "要查看的观察点，如 'layers.*.mlp.*'；可重复（默认：全部）"))
      ->allow_extra_args(false);
  command
      .add_option("--layers", options->layers, common_group, "N,...",
                  bilingual("only points in these layers, e.g. 0,3", "只看这些层的观察点，如 0,3"))
      ->check(not_empty);
  command.add_flag("--list", options->list, output_group,
                   bilingual("list the points with their shapes and formulas, and compute nothing",
                             "列出观察点及其形状和公式，不做计算"));
  add_json(command, options->json);
  options->run.add_to(command);
  return [options] { return run_trace(*options); };
}

}  // namespace minimind
