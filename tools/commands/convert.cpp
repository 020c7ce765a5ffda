#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer_json_writer.h"
#include "tools/commands/chosen_types.h"
#include "tools/commands/output_folder.h"
#include "tools/options/choose_tokenizer.h"
#include "tools/options/command_line.h"
#include "tools/options/config_fields.h"
#include "tools/options/help.h"
#include "tools/options/load_llm.h"
#include "tools/options/option_checks.h"
#include "tools/options/options.h"
#include "tools/options/tokenized_gguf.h"
#include "tools/terminal/interrupt.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "tools/terminal/progress.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/export/gguf.h"
#include "weights/export/hugging_face.h"
#include "weights/export/state_dict.h"
#include "weights/gguf/writer.h"
#include "weights/huggingface/safetensors_writer.h"
#include "weights/io/json_fields.h"
#include "weights/io/path.h"
#include "weights/io/text_file.h"
#include "weights/model/infer_config.h"
#include "weights/tensor/weight_types.h"
#include "weights/torch/pth_writer.h"

namespace minimind {
namespace {

namespace fs = std::filesystem;

struct ConvertOptions {
  std::string in, out;
  CheckpointOptions checkpoint;
  std::string type, embedding_type, tokenizer;
  TypeChoosing choosing;
  std::optional<std::size_t> threads;
  bool force = false, quiet = false;

  // Whether types are chosen by more than --type, or matrices quantised with a text.
  bool chooses() const { return !choosing.text.empty() || choosing.size || choosing.bits || !choosing.plan.empty(); }
};

enum class OutputKind { gguf, pth, folder };

// Returns "a/b" for "a/b//", and "/" for "/".
std::string without_last_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// A folder is an existing one or a name that ends with a slash; the suffix of a file determines its format.
OutputKind output_kind(const std::string& out) {
  const std::string name = fs::path(out).filename().string();
  if (out.empty() || out == "-" || name == ".gguf" || name == ".pth") {
    throw UsageError(fmt::format("{} cannot be written to; name a .gguf, a .pth, or a folder", quote(out)));
  }
  if (out.ends_with('/')) return OutputKind::folder;
  const std::string suffix = fs::path(out).extension().string();
  const std::string extension = lower_case(suffix);
  if (extension == ".gguf") return OutputKind::gguf;
  if (extension == ".pth" || extension == ".pt") return OutputKind::pth;
  if (is_folder(out)) return OutputKind::folder;
  throw UsageError(fmt::format("{}: its suffix is {}, expected .gguf or .pth; to write a Hugging Face folder, type {}/",
                               out, suffix.empty() ? "missing" : quote(suffix), out));
}

std::optional<DType> parse_type(const char* option, const std::string& name, OutputKind kind) {
  if (name.empty()) return std::nullopt;
  const DType type = parse_weight_type(name);
  if (is_block_type(type) && kind != OutputKind::gguf) {
    throw UsageError(fmt::format("{} is {}, which only a .gguf supports, expected f32, f16 or bf16", option, name));
  }
  return type;
}

void check_output(const ConvertOptions& options, OutputKind kind) {
  std::error_code failed;
  if (kind == OutputKind::folder || !fs::exists(fs::symlink_status(options.out, failed))) return;
  if (fs::is_directory(options.out, failed)) {
    throw Error(fmt::format("{}: is a folder, expected a file; to write a Hugging Face folder there, type {}/",
                            options.out, options.out));
  }
  if (!options.force) throw Error(fmt::format("{}: already exists; --force replaces it", options.out));
}

struct Conversion {
  const ConvertOptions& options;
  const Checkpoint& checkpoint;
  WantedTypes types;
  std::optional<TokenizerData> tokenizer;
  std::vector<std::string> read;  // files that are never overwritten, even with --force
  std::size_t threads;

  void say(std::string_view about, const std::vector<Fact>& facts) const {
    if (options.quiet) return;
    for (const Fact& fact : facts) note("{} {}", translated(about), localized(fact));
  }
};

// Draws a progress bar unless --quiet.
class WatchedWriting {
 public:
  WatchedWriting(const Conversion& conversion, const std::vector<OutputTensor>& tensors) : total_(byte_count(tensors)) {
    if (!conversion.options.quiet) bar_.emplace(std::string(translated("convert")), total_, ProgressUnit::bytes);
  }

  OutputFile::Watch watch() {
    return [this](std::uint64_t written) {
      if (bar_) bar_->show(std::min<std::uint64_t>(written, total_));  // headers are not counted
    };
  }

 private:
  std::size_t total_;
  std::optional<Progress> bar_;
};

struct Written {
  std::string description;
  std::vector<std::string> files;  // their paths
};

// Each of the functions below writes one kind of output.

// In `differences`, what other programs will read differently.
GgufExport gguf_of(const Conversion& conversion, const Checkpoint& checkpoint, const WantedTypes& types,
                   std::vector<Fact>& differences) {
  const std::string name = fs::path(conversion.options.out).stem().string();
  return export_with_tokenizer(checkpoint, types, conversion.tokenizer, name, conversion.threads, differences);
}

ChosenTypes chosen_types(const Conversion& conversion) {
  const ConvertOptions& options = conversion.options;
  constexpr std::size_t steps = 1000;
  std::optional<Progress> bar;
  if (!options.quiet) bar.emplace(std::string(translated("calibrate")), steps, ProgressUnit::share);
  const ChoosingWork work{.checkpoint = conversion.checkpoint,
                          .types = conversion.types,
                          .tokenizer = conversion.tokenizer ? conversion.tokenizer->source : "",
                          .threads = conversion.threads,
                          .quiet = options.quiet,
                          .exported =
                              [&](const Checkpoint& checkpoint, const WantedTypes& types) {
                                std::vector<Fact> differences;
                                return gguf_of(conversion, checkpoint, types, differences);
                              },
                          .progress =
                              [&](std::size_t done, std::size_t total) {
                                if (bar) bar->show(std::min(steps, done * steps / total));
                              }};
  return choose_types(options.choosing, work);
}

Written write_gguf_file(const Conversion& conversion) {
  const std::string& out = conversion.options.out;
  check_not_read(out, conversion.read);
  const ChosenTypes chosen =
      conversion.options.chooses() ? chosen_types(conversion) : ChosenTypes{conversion.checkpoint, conversion.types};
  std::vector<Fact> differences;
  const GgufExport model = gguf_of(conversion, chosen.checkpoint, chosen.types, differences);
  conversion.say("other programs will differ:", differences);
  if (!conversion.tokenizer) {
    conversion.say("the model has no tokenizer, so the file has none;", {Fact("name one with --tokenizer")});
  }
  if (model.only_ours_because) conversion.say("only minimind can read this file:", {*model.only_ours_because});
  conversion.say("written", model.exceptions);
  WatchedWriting writing(conversion, model.tensors);
  OutputFile file(out, writing.watch());
  write_gguf(file, model.metadata, model.tensors, conversion.threads);
  file.commit();
  return {localized("GGUF, architecture {}", model.architecture), {out}};
}

// Returns the config with which the checkpoint would be read back.
Checkpoint read_back(const Checkpoint& checkpoint) {
  CanonicalTensors canonical{
      .tensors = checkpoint.tensors, .style = NamingStyle::hugging_face, .skipped = {}, .other_modalities = {}};
  if (rope_layout(checkpoint.config.family) == RopeLayout::adjacent_pairs) canonical.style = NamingStyle::v1;
  InferredConfig inferred = infer_config(canonical, std::nullopt, {}, "it");
  Checkpoint result;
  result.config = std::move(inferred.config);
  result.sources = std::move(inferred.sources);
  return result;
}

// Returns the settings that a .pth, which has only tensors, loses: each hyper-parameter with another value when the
// file is read without options, such as "num_experts_per_tok is 2, not 1". Returns the reason alone if the file could
// not be read at all. The end of text is omitted if a tokenizer defines it.
std::vector<Fact> lost_settings(const Checkpoint& checkpoint) {
  std::vector<Fact> lost;
  try {
    const auto kept = config_fields(read_back(checkpoint));
    const auto meant = config_fields(checkpoint);
    for (std::size_t i = 0; i < meant.size(); ++i) {
      if (meant[i].name == "family" || meant[i].value == kept[i].value) continue;
      lost.push_back(Fact("{} is {}, not {}", meant[i].name, dump_json(meant[i].value), dump_json(kept[i].value)));
    }
  } catch (const Error& error) {
    lost.push_back(Fact("{}", error.what()));
  }
  return lost;
}

Written write_pth_file(const Conversion& conversion) {
  const StateDictExport state = export_minimind(conversion.checkpoint, conversion.types, conversion.threads);
  conversion.say("written", state.exceptions);
  conversion.say("not stored in a .pth; pass with --config when loading:", lost_settings(conversion.checkpoint));
  check_not_read(conversion.options.out, conversion.read);
  WatchedWriting writing(conversion, state.tensors);
  OutputFile file(conversion.options.out, writing.watch());
  write_pth(file, state.tensors, state.tied, conversion.threads);
  file.commit();
  return {localized("torch.save, state dict of MiniMind {}", name_of(conversion.checkpoint.config.family)),
          {conversion.options.out}};
}

// Returns name and text of the tokenizer's files: copies if there is a tokenizer.json, otherwise made from the GGUF's
// metadata.
std::vector<std::pair<std::string, std::string>> tokenizer_files(const TokenizerData& data) {
  const fs::path json = data.source;
  if (json.extension() != ".json") {
    return {{"tokenizer.json", tokenizer_json(data)}, {"tokenizer_config.json", tokenizer_config_json(data)}};
  }
  std::vector<std::pair<std::string, std::string>> files{{"tokenizer.json", read_text_file(json.string())}};
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"}) {
    if (const auto beside = file_beside(data.source, name)) {
      files.emplace_back(name, read_text_file(*beside));
    } else if (std::string_view(name) == "tokenizer_config.json") {
      files.emplace_back(name, tokenizer_config_json(data));
    }
  }
  return files;
}

Written write_folder(const Conversion& conversion) {
  const Checkpoint& checkpoint = conversion.checkpoint;
  const StateDictExport state = export_hugging_face(checkpoint, conversion.types, conversion.threads);
  const HfModelType model_type = hf_model_type(checkpoint.config, checkpoint.tensors);
  if (model_type.why_not_transformers) {
    conversion.say("only minimind and MiniMind's own code can read this folder:", {*model_type.why_not_transformers});
  }
  std::vector<std::pair<std::string, std::string>> texts;
  if (conversion.tokenizer) texts = tokenizer_files(*conversion.tokenizer);
  if (!conversion.tokenizer) {
    conversion.say("the model has no tokenizer, so the folder has none;", {Fact("name one with --tokenizer")});
  }
  texts.emplace_back("config.json", hf_config_json(checkpoint.config, checkpoint.tensors, model_type.model_type,
                                                   most_common_type(state.tensors)));
  conversion.say("written", state.exceptions);
  const std::string out = without_last_slashes(conversion.options.out);
  std::vector<std::string> names{"model.safetensors"}, files;
  for (const auto& [name, text] : texts) names.push_back(name);
  for (const std::string& name : names) {
    files.push_back((fs::path(out) / name).string());
    check_not_read(files.back(), conversion.read);
  }
  WatchedWriting writing(conversion, state.tensors);
  OutputFolder folder(out, names, conversion.options.force);
  write_safetensors(folder.add("model.safetensors", writing.watch()), state.tensors, conversion.threads);
  for (const auto& [name, text] : texts) folder.add_text(name, text);
  folder.commit();
  return {localized("Hugging Face folder, model_type {}", model_type.model_type), std::move(files)};
}

Written write_as(OutputKind kind, const Conversion& conversion) {
  switch (kind) {
    case OutputKind::gguf:
      return write_gguf_file(conversion);
    case OutputKind::pth:
      return write_pth_file(conversion);
    case OutputKind::folder:
      return write_folder(conversion);
  }
  return {};
}

std::uintmax_t total_size(const std::vector<std::string>& files) {
  std::uintmax_t size = 0;
  for (const std::string& file : files) size += fs::file_size(file);
  return size;
}

// Checks the options that choose types before anything is read.
void check_choosing(const ConvertOptions& options, OutputKind kind) {
  if (!options.chooses()) return;
  const TypeChoosing& choosing = options.choosing;
  const bool chosen = choosing.size || choosing.bits || !choosing.plan.empty();
  if (kind != OutputKind::gguf) {
    throw UsageError(
        fmt::format("{}: --calibrate, --size, --bits and --plan are for a .gguf; name one as output", options.out));
  }
  if (int(choosing.size.has_value()) + int(choosing.bits.has_value()) + int(!choosing.plan.empty()) > 1) {
    throw UsageError("--size, --bits and --plan each choose all types; give one of them");
  }
  if (choosing.bits && !(*choosing.bits >= 1 && *choosing.bits <= 16)) {
    throw UsageError(fmt::format("--bits is {}, expected 1 to 16 bits per weight", *choosing.bits));
  }
  if (chosen && !(options.type.empty() && options.embedding_type.empty())) {
    throw UsageError(
        "--type and --embedding-type are given with --size, --bits or --plan, which choose types; omit one");
  }
  if ((choosing.size || choosing.bits) && choosing.text.empty()) {
    throw UsageError("--size and --bits choose types by what a text shows; name the text with --calibrate");
  }
  if (!choosing.text.empty() && !chosen && options.type.empty()) {
    throw UsageError("--calibrate quantises, but no type is given; add --type iq4_nl, --size, --bits or --plan");
  }
}

int run_convert(const ConvertOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const OutputKind kind = output_kind(options.out);
  const WantedTypes types{.matrices = parse_type("--type", options.type, kind),
                          .embedding = parse_type("--embedding-type", options.embedding_type, kind)};
  check_choosing(options, kind);
  check_output(options, kind);
  InterruptMessage message(localized("interrupted; {} was not written", options.out));
  const std::string in = model_path(options.in);
  const Checkpoint checkpoint = open_checkpoint(in, options.checkpoint.open_options());
  if (!options.quiet) print_notes(checkpoint, options.in);
  const auto tokenizer_path = options.tokenizer.empty() ? find_tokenizer(in) : std::optional(options.tokenizer);
  const auto tokenizer = tokenizer_path ? std::optional(read_tokenizer(*tokenizer_path)) : std::nullopt;
  if (tokenizer && !options.quiet) note(tokenizer_facts(Tokenizer(*tokenizer), checkpoint.config));
  const Conversion conversion{.options = options,
                              .checkpoint = checkpoint,
                              .types = types,
                              .tokenizer = tokenizer,
                              .read = files_read(in, options.checkpoint, checkpoint, tokenizer_path),
                              .threads = options.threads.value_or(default_threads())};
  const Written written = write_as(kind, conversion);
  message.set(localized("interrupted; {} is written", options.out));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!options.quiet) {
    note("{} {}", localized("{}:", options.out),
         localized("{}, {:.1f} MB, in {:.2f} s", written.description,
                   1e-6 * static_cast<double>(total_size(written.files)), seconds.count()));
  }
  return 0;
}

void add_choosing(CommandOptions& command, TypeChoosing& choosing) {
  command.add_option(
      "--calibrate", choosing.text, speed_group, "FILE",
      bilingual("quantise with knowledge of the inputs on this text: MiniMind's data (.jsonl) or plain text",
                "按此文本上的输入校准量化：MiniMind 的数据（.jsonl）或纯文本"));
  command.add_option_function<std::string>(
      "--size", [&choosing](const std::string& size) { choosing.size = parse_size(size); }, speed_group, "SIZE",
      bilingual("choose the types of matrices so that the file has at most this size, e.g. 3.2MB; needs --calibrate",
                "选择各矩阵的类型，使文件不超过此大小，如 3.2MB；需要 --calibrate"));
  command
      .add_option(
          "--bits", choosing.bits, speed_group, "N",
          bilingual("choose the types of matrices so that they have this many bits per weight; needs --calibrate",
                    "选择各矩阵的类型，使每个权重平均不超过此位数；需要 --calibrate"))
      ->check(a_number);
  command.add_option("--plan", choosing.plan, speed_group, "FILE",
                     bilingual("take the types of matrices from this file, as --size and --bits print them",
                               "从此文件读取各矩阵的类型，格式同 --size 和 --bits 的输出"));
}

}  // namespace

Command add_convert(CommandOptions& command) {
  auto options = std::make_shared<ConvertOptions>();
  command
      .add_positional("IN", options->in,
                      bilingual("a .pth, .pt, .bin, .safetensors or .gguf file, or a folder",
                                ".pth、.pt、.bin、.safetensors、.gguf 文件或文件夹"))
      ->required();
  command
      .add_positional("OUT", options->out,
                      bilingual("output: a .gguf, a .pth in MiniMind's naming, or a folder, whose name ends with /",
                                ".gguf、按 MiniMind 命名的 .pth，或文件夹（名称以 / 结尾）"))
      ->required();
  command
      .add_option("--type", options->type, speed_group, "TYPE",
                  bilingual("type of the matrices: {float types}; for a .gguf also {block types} (default: as stored)",
                            "矩阵的类型：{float types}；.gguf 还可用 {block types}（默认：与文件相同）"))
      ->transform(type_name(weight_type_names()));
  command
      .add_option("--embedding-type", options->embedding_type, speed_group, "TYPE",
                  bilingual("type of the token embedding and the output matrix (default: as --type)",
                            "词嵌入和输出矩阵的类型（默认：同 --type）"))
      ->transform(type_name(weight_type_names()));
  add_choosing(command, options->choosing);
  add_tokenizer(command, options->tokenizer);
  command.add_flag("--force", options->force, common_group, bilingual("replace existing files", "覆盖已有文件"));
  options->checkpoint.add_reading_options(command);
  command
      .add_option("-t,--threads", options->threads, speed_group, "N",
                  bilingual("number of threads (default: the physical cores available to this process)",
                            "线程数（默认：本进程可用的物理核数）"))
      ->transform(whole_number(1, 1024));
  add_quiet(command, options->quiet);
  return [options] { return run_convert(*options); };
}

}  // namespace minimind
