#include "tools/options/options.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <span>
#include <system_error>

#include "runtime/llm/llm.h"
#include "runtime/text/utf8.h"
#include "tools/options/checkpoint_choice.h"
#include "tools/options/help.h"
#include "tools/terminal/language.h"
#include "tools/terminal/note.h"
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/mistaken_path.h"
#include "weights/io/path.h"
#include "weights/io/text_file.h"
#include "weights/tensor/weight_types.h"

// In tools/embedded_files.S.
extern "C" {
extern const std::byte bundled_model[], bundled_model_end[];
}

namespace minimind {

namespace fs = std::filesystem;

void CheckpointOptions::add_to(CommandOptions& command) {
  add_checkpoint(command, model);
  add_reading_options(command);
}

void CheckpointOptions::add_reading_options(CommandOptions& command) {
  command.add_option("--config", config, model_group, "FILE",
                     bilingual("config.json to use instead of the one next to the weights",
                               "指定 config.json，代替权重同目录下的文件"));
  command
      .add_option("--lora", loras, model_group, "PATH[:SCALE]",
                  bilingual("MiniMind LoRA .pth to merge, with an optional scale; may be repeated",
                            "合并 MiniMind 的 LoRA（.pth），可加系数；可多次指定"))
      ->allow_extra_args(false);
  command
      .add_option("--rope-scaling", rope_scaling, model_group, "KIND",
                  bilingual("none, or yarn for MiniMind's inference_rope_scaling",
                            "none 或 yarn（即 MiniMind 的 inference_rope_scaling）"))
      ->transform(one_of(rope_scaling_names()));
  const OptionCheck count = whole_number(1, 1 << 24);
  command
      .add_option("--heads", heads, model_group, "N",
                  bilingual("number of attention heads, if the checkpoint does not show it",
                            "注意力头数，无法从检查点推断时指定"))
      ->transform(count);
  command
      .add_option(
          "--kv-heads", kv_heads, model_group, "N",
          bilingual("number of key-value heads, if the checkpoint does not show it", "KV 头数，无法从检查点推断时指定"))
      ->transform(count);
  command
      .add_option("--experts-per-token", experts_per_token, model_group, "N",
                  bilingual("number of experts per token", "每个词元使用的专家数"))
      ->transform(count);
}

OpenOptions CheckpointOptions::open_options() const {
  OpenOptions options;
  options.overrides = {.heads = heads, .kv_heads = kv_heads, .experts_per_token = experts_per_token, .yarn = {}};
  if (!rope_scaling.empty()) options.overrides.yarn = is_yarn(rope_scaling);
  if (!config.empty()) options.config_path = config;
  for (const std::string& lora : loras) options.loras.push_back(parse_lora_argument(lora));
  return options;
}

void add_model(CommandOptions& command, std::string& model, const std::string& description) {
  const auto set = [&model](const std::string& given) {
    if (!model.empty() && model != given) {
      throw UsageError(
          fmt::format("the model is given twice, as {} and as {}; give it once", quote(model), quote(given)));
    }
    model = given;
  };
  command.add_option_function<std::string>("-m,--model", set, common_group, "MODEL", description);
  command.add_positional("MODEL", set,
                         bilingual("model file or folder, as with --model", "模型文件或文件夹，同 --model"));
}

void add_checkpoint(CommandOptions& command, std::string& model) {
  add_model(command, model,
            bilingual("a .pth, .pt, .bin, .safetensors or .gguf file, or a folder (default: the demo)",
                      ".pth、.pt、.bin、.safetensors、.gguf 文件或文件夹（默认：自带的演示模型）"));
}

Option* add_json(CommandOptions& command, bool& json) {
  return command.add_flag("--json", json, output_group, bilingual("print one JSON object", "输出一个 JSON 对象"));
}

void add_quiet(CommandOptions& command, bool& quiet) {
  command.add_flag("-q,--quiet", quiet, output_group, bilingual("print only errors to stderr", "标准错误只输出错误"));
}

void add_kv_type(CommandOptions& command, std::optional<KvType>& type) {
  command
      .add_option_function<std::string>(
          "--kv-type", [&type](const std::string& name) { type = parse_kv_type(name); }, speed_group, "TYPE",
          bilingual("type of the KV cache: f32, f16 or q8_0 (default: f16 if the weights are quantised, otherwise f32)",
                    "KV 缓存的类型：f32、f16 或 q8_0（默认：权重已量化则为 f16，否则为 f32）"))
      ->transform(type_name(kv_type_names()));
}

void add_compute(CommandOptions& command, Compute& compute) {
  command
      .add_option_function<std::string>(
          "--compute", [&compute](const std::string& name) { compute = parse_compute(name); }, speed_group, "TYPE",
          bilingual("arithmetic of f16 and bf16 weights: f32, or bf16, which rounds activations and f16 weights to "
                    "bf16 for faster prompts, if the processor has AVX512_BF16 or AMX-BF16 (default: f32)",
                    "f16 和 bf16 权重的运算：f32；或 bf16，即把激活值和 f16 权重舍入为 bf16，预填充更快，需处理器支持 "
                    "AVX512_BF16 或 AMX-BF16（默认：f32）"))
      ->transform(type_name(compute_names()));
}

void add_template(CommandOptions& command, std::string& path) {
  command.add_option("--template", path, model_group, "FILE",
                     bilingual("Jinja file with the chat template (default: the checkpoint's)",
                               "Jinja 对话模板文件（默认：检查点自带的模板）"));
}

void add_plain_content(CommandOptions& command, bool& plain_content) {
  command.add_flag("--plain-content", plain_content, prompt_group,
                   bilingual("messages and tools are ordinary text, also where they spell control tokens",
                             "消息和工具一律作为普通文本，即使其中写有控制词元"));
}

void RunOptions::add_to(CommandOptions& command) {
  command
      .add_option(
          "--type", type, speed_group, "TYPE",
          bilingual("type of the weights in memory: {weight types} (default: as stored); q8_r, 8 bits with one scale "
                    "for a row, is the fastest for prompts and many texts, but not for files",
                    "内存中权重的类型：{weight types}（默认：与文件相同）；q8_r 为 8 "
                    "位、每行一个缩放系数，读提示词和同时生成多段文本时最快，但不能存为文件"))
      ->transform(type_name(weight_type_names(WeightsAre::in_memory)));
  add_compute(command, compute);
  add_kv_type(command, kv_type);
  command
      .add_option(
          "-t,--threads", threads, speed_group, "N",
          bilingual("most threads to use; fewer run while other programs take the cores (default: the physical cores "
                    "available to this process; fewer for a tiny model)",
                    "最多使用的线程数；其他程序占用处理器时会减少（默认：本进程可用的物理核数；小模型更少）"))
      ->transform(whole_number(1, 1024));
  add_quiet(command, quiet);
}

RunOptions RunOptions::as_stored() const {
  RunOptions run = *this;
  run.type.clear();
  run.compute = Compute::f32;
  return run;
}

WeightType RunOptions::weight_type() const {
  return type.empty() ? WeightType() : parse_weight_type(type, WeightsAre::in_memory);
}

void TokenOptions::add_to(CommandOptions& command) {
  const auto set = [this](std::string& value) {
    return [this, &value](const std::string& text) {
      value = text;
      given = true;
    };
  };
  command.add_option_function<std::string>("--tokens", set(tokens), prompt_group, "IDS",
                                           bilingual("token ids, e.g. 1,2,3", "词元 id，如 1,2,3"));
  command.add_option_function<std::string>(
      "--tokens-file", set(tokens_file), prompt_group, "FILE",
      bilingual("file of token ids, separated by commas, spaces or newlines", "词元 id 文件，以逗号、空格或换行分隔"));
}

std::vector<std::int32_t> TokenOptions::read() const {
  if (tokens.empty() == tokens_file.empty()) throw UsageError("give token ids with either --tokens or --tokens-file");
  const bool in_file = tokens.empty();
  const auto ids =
      parse_token_ids(in_file ? read_text_or_pipe(tokens_file) : tokens, in_file ? tokens_file : "--tokens");
  if (ids.empty())
    throw UsageError(
        fmt::format("{}: has no token ids, expected some, e.g. 1,2,3", in_file ? tokens_file : "--tokens"));
  return ids;
}

std::string text_file_help() {
  return bilingual("file with the text (default: standard input)", "文本文件（默认：标准输入）");
}

void TextOptions::add_to(CommandOptions& command) {
  auto* prompt_option = command.add_option_function<std::string>(
      "-p,--prompt",
      [this](const std::string& text) {
        prompt = text;
        has_prompt = true;
      },
      common_group, "TEXT", bilingual("the text", "文本"));
  auto* file_option = command.add_option("-f,--file", file, common_group, "FILE", text_file_help());
  prompt_option->excludes(file_option);
}

std::string TextOptions::read() const {
  const std::string source = has_prompt ? "--prompt" : file.empty() ? "standard input" : file;
  const std::string text = has_prompt ? prompt : file.empty() ? read_standard_input() : read_text_or_pipe(file);
  if (const auto at = first_not_utf8(text)) {
    throw Error(fmt::format("{}: is not UTF-8: byte {:#04x} at offset {}; convert it, as with iconv -f GBK -t UTF-8",
                            source, static_cast<unsigned char>(text[*at]), *at));
  }
  return text;
}

std::vector<std::int32_t> parse_token_ids(const std::string& text, const std::string& source) {
  constexpr const char* separators = ", \t\r\n[]";
  std::vector<std::int32_t> ids;
  for (std::size_t at = text.find_first_not_of(separators); at != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    const std::string word = text.substr(at, end - at);
    const auto id = number_in<std::int32_t>(word);
    if (!id) throw UsageError(fmt::format("{}: {} is not a token id", source, quote(word)));
    ids.push_back(*id);
    at = text.find_first_not_of(separators, end);
  }
  return ids;
}

namespace {

// Its name alone where there is no /proc.
fs::path executable() {
  std::array<char, 4096> path;
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  return size > 0 ? fs::path(std::string_view(path.data(), static_cast<std::size_t>(size))) : fs::path("minimind");
}

// The name of the model within the program, as if the program were a folder: no other file can be taken for one that
// belongs to the model. Empty if there is none.
const std::string& bundled_path() {
  static const std::string path = [] {
    const std::span<const std::byte> bytes(bundled_model, bundled_model_end);
    if (bytes.empty()) return std::string();
    const std::string name = (executable() / "minimind-poet.gguf").generic_string();
    provide_file(name, bytes);
    return name;
  }();
  return path;
}

}  // namespace

std::string model_path(const std::string& given) {
  if (!given.empty() && given != bundled_path()) {
    check_path(given);
    return the_checkpoint_in(given);
  }
  if (!bundled_path().empty()) return bundled_path();
  std::error_code failed;
  const fs::path program = executable().parent_path();
  for (const fs::path& folder : {program / "weights" / "demo", program / ".." / "share" / "minimind" / "demo"}) {
    const fs::path model = folder / "model.pth";
    if (fs::is_regular_file(model, failed)) return model.lexically_normal().generic_string();
  }
  throw Error(
      fmt::format("the demo model is neither next to {} nor in ../share/minimind; name a "
                  "checkpoint with --model",
                  program.string()));
}

std::string read_standard_input() {
  if (isatty(STDIN_FILENO)) note("reading from the terminal; end with Ctrl-D");
  std::string text;
  std::vector<char> part(std::size_t{1} << 16);
  std::size_t count = part.size();
  while (count == part.size()) {
    count = static_cast<std::size_t>(std::cin.rdbuf()->sgetn(part.data(), static_cast<std::streamsize>(part.size())));
    text.append(part.data(), count);
    if (text.size() > largest_text) {
      throw Error(fmt::format("standard input: is too long, expected at most {} bytes", largest_text));
    }
  }
  check_standard_input();
  return text;
}

void check_standard_input() {
  if (std::ferror(stdin)) throw Error(fmt::format("standard input: cannot be read: {}", std::strerror(errno)));
}

}  // namespace minimind
