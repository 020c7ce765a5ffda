#include "tools/options/checkpoint_choice.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "tools/terminal/language.h"
#include "tools/terminal/terminal_text.h"
#include "weights/base/text.h"
#include "weights/checkpoint/list_checkpoints.h"
#include "weights/huggingface/folder.h"
#include "weights/io/path.h"

namespace minimind {
namespace {

bool is_model(const ListedCheckpoint& checkpoint) {
  return !checkpoint.is_lora;
}

std::string line_of(const ListedCheckpoint& checkpoint) {
  std::string kind(translated("cannot be read as a model"));
  if (checkpoint.is_model)
    kind = localized("{}, {:.2f} M parameters", name_of(checkpoint.family), 1e-6 * checkpoint.parameters);
  if (checkpoint.is_lora) kind = translated("LoRA, to be added to a model with --lora");
  if (checkpoint.path.ends_with("_resume.pth")) kind = localized("{}, saved to resume training", kind);
  return fmt::format("{}  {:>9.1f} MB  {}  {}", local_time(checkpoint.written, "%Y-%m-%d %H:%M"),
                     1e-6 * static_cast<double>(checkpoint.bytes), checkpoint.path, kind);
}

std::vector<std::string> lines_of(const std::vector<ListedCheckpoint>& checkpoints) {
  std::vector<std::string> lines;
  for (const ListedCheckpoint& checkpoint : checkpoints) lines.push_back(line_of(checkpoint));
  return lines;
}

[[noreturn]] void fail_without_model(const std::string& folder) {
  const std::vector<std::string> others = folders_with_checkpoints(folder);
  std::string advice = others.empty() ? "name a .pth, .pt, .bin, .safetensors or .gguf file, or a Hugging Face folder"
                                      : "checkpoints are in " + others.front();
  for (std::size_t i = 1; i < others.size() && i < 3; ++i) advice += ", " + others[i];
  throw Error(fmt::format("{}: is a folder without a checkpoint; {}", folder, advice));
}

bool means_many(const std::string& path) {
  return is_folder(path) && !is_hf_folder(path);
}

// Reads a line from the terminal and returns it without surrounding whitespace; std::nullopt after Ctrl-D. Reads
// nothing after the line.
std::optional<std::string> read_line() {
  std::string line;
  std::array<char, 256> part{};
  while (!line.ends_with('\n')) {
    const ssize_t size = ::read(STDIN_FILENO, part.data(), part.size());
    if (size <= 0) return std::nullopt;
    line.append(part.data(), static_cast<std::size_t>(size));
  }
  return std::string(trimmed(line));
}

// Returns the index of the model whose number, counted from 1, was typed; the first for an empty line.
std::optional<std::size_t> parse_choice(const std::string& text, std::size_t count) {
  if (text.empty()) return 0;
  const std::size_t number = number_in<std::size_t>(text).value_or(0);
  return 1 <= number && number <= count ? std::optional(number - 1) : std::nullopt;
}

}  // namespace

std::string local_time(std::int64_t nanoseconds, const char* format) {
  const std::time_t time = nanoseconds / 1'000'000'000;
  std::tm local{};
  std::array<char, 32> text{};
  localtime_r(&time, &local);
  return {text.data(), std::strftime(text.data(), text.size(), format, &local)};
}

std::string the_checkpoint_in(const std::string& path) {
  if (!means_many(path)) return path;
  const std::vector<ListedCheckpoint> found = list_checkpoints(path);
  const auto models = std::count_if(found.begin(), found.end(), is_model);
  const auto newest = std::find_if(found.begin(), found.end(), is_model);
  if (found.empty()) fail_without_model(path);
  if (models == 1) return newest->path;
  if (models == 0) {
    throw ManyCheckpoints(
        fmt::format("{}: has only LoRA files, expected a model; name the model that they were trained "
                    "for, and one of them with --lora",
                    path),
        lines_of(found));
  }
  if (std::none_of(found.begin(), found.end(), [](const ListedCheckpoint& file) { return file.is_model; })) {
    throw Error(fmt::format("{}: has {} files, none of which can be read as a model; name one, such as {}, to see why",
                            path, models, newest->path));
  }
  throw ManyCheckpoints(fmt::format("{}: has {} checkpoints, expected one; name one of these, newest first, as in {}",
                                    path, models, newest->path),
                        lines_of(found));
}

std::optional<int> choose_checkpoint(std::string& model, std::FILE* screen) {
  const bool offers_demo = model.empty();
  const std::string folder = offers_demo ? "out" : model;
  if (!means_many(folder)) return std::nullopt;
  std::vector<ListedCheckpoint> models = list_checkpoints(folder);
  models.erase(std::remove_if(models.begin(), models.end(), std::not_fn(is_model)), models.end());
  if (models.empty() || (models.size() == 1 && !offers_demo)) return std::nullopt;
  const std::string count = counted(models.size(), "{} checkpoint", "{} checkpoints");
  fmt::print(screen, "{}\n", terminal_line(localized("{} has {}, newest first:", folder, count)));
  for (std::size_t i = 0; i < models.size(); ++i) {
    fmt::print(screen, "{:>4}  {}\n", i + 1, terminal_line(line_of(models[i])));
  }
  if (offers_demo) fmt::print(screen, "{:>4}  {}\n", models.size() + 1, translated("the bundled poet"));
  const std::size_t choices = models.size() + (offers_demo ? 1 : 0);
  while (true) {
    fmt::print(screen, "{} ", translated("number of the one to load (Enter: 1)>"));
    std::fflush(screen);
    const auto line = read_line();
    if (!line) {
      std::fputs("\n", screen);
      return 0;
    }
    if (const auto choice = parse_choice(*line, choices)) {
      if (*choice < models.size()) model = models[*choice].path;
      return std::nullopt;
    }
    fmt::print(screen, "{}\n", localized("type a number from 1 to {}; Ctrl-D to exit", choices));
  }
}

}  // namespace minimind
