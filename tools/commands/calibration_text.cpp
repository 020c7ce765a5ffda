#include "tools/commands/calibration_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/chat/chat_template.h"
#include "runtime/text/utf8.h"
#include "runtime/tokenizer/files.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tools/commands/scored_texts.h"
#include "tools/options/lines.h"
#include "weights/io/error.h"
#include "weights/io/mapped_file.h"
#include "weights/io/mistaken_file.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

constexpr std::size_t window_tokens = 512;   // a longer text is read in windows of this length
constexpr std::size_t passage_bytes = 1536;  // of plain text: about a window

// The content of a file: mapped, so that what has been read can be released again, unless it is a pipe or empty.
class TextBytes {
 public:
  explicit TextBytes(const std::string& path) {
    std::error_code failed;
    if (std::filesystem::is_regular_file(path, failed) && std::filesystem::file_size(path, failed) > 0) {
      file_ = open_input(path);
    } else {
      read_ = read_text_file(path);
      check_not_mistaken(read_, path);
    }
  }

  std::string_view all() const {
    return file_ ? std::string_view(reinterpret_cast<const char*>(file_->bytes().data()), file_->bytes().size())
                 : read_;
  }

  // Advises the kernel that `part` is not needed for now.
  void release(std::string_view part) const {
    if (file_) file_->release(std::as_bytes(std::span(part)));
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::string read_;
};

struct Line {
  std::size_t begin, length;
  std::size_t number;
};

std::vector<Line> lines_of(const TextBytes& bytes) {
  constexpr std::size_t released_bytes = std::size_t{1} << 26;
  const std::string_view text = bytes.all();
  std::vector<Line> lines;
  std::size_t number = 0, released = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    ++number;
    if (!is_empty_line(text.substr(at, end - at))) lines.push_back({at, end - at, number});
    at = end + 1;
    if (at - released < released_bytes) continue;
    bytes.release(text.substr(released, at - released));
    released = at;
  }
  return lines;
}

// Returns the first character that starts at this byte or later.
std::size_t next_character(std::string_view text, std::size_t at) {
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0u) == 0x80u) ++at;
  return std::min(at, text.size());
}

class CalibrationTextReader {
 public:
  CalibrationTextReader(const std::string& path, const Config& config, const std::string& tokenizer_path,
                        std::size_t most_tokens)
      : path_(path),
        config_(config),
        data_(read_tokenizer(tokenizer_path)),
        tokenizer_(data_),
        window_(std::min(window_tokens, config.max_position_embeddings)),
        most_tokens_(most_tokens) {}

  ReadCalibrationText read() {
    const TextBytes bytes(path_);
    if (path_.ends_with(".jsonl")) {
      read_lines(bytes);
    } else {
      read_plain(bytes.all());
    }
    check();
    return std::move(result_);
  }

 private:
  bool full() const { return result_.text.tokens.size() >= most_tokens_; }

  void check() const {
    const CalibrationText& text = result_.text;
    if (std::none_of(text.predicted.begin(), text.predicted.end(), [](bool predicted) { return predicted; })) {
      throw Error(
          fmt::format("{}: has no token to predict, expected a text of {} tokens or more", path_, most_tokens_));
    }
    for (const std::int32_t token : text.tokens) {
      if (static_cast<std::size_t>(token) < config_.vocab_size) continue;
      throw Error(
          fmt::format("{}: has token {}, expected ids below the model's {}; the tokenizer {} is of another model",
                      path_, token, config_.vocab_size, data_.source));
    }
  }

  // Adds a text in windows. `uses` is empty if every token is predicted.
  void add(std::span<const std::int32_t> tokens, std::span<const TokenUse> uses) {
    CalibrationText& text = result_.text;
    for (std::size_t begin = 0; begin + 1 < tokens.size() && !full(); begin += window_) {
      const std::size_t end = std::min(tokens.size(), begin + window_);
      for (std::size_t i = begin; i < end; ++i) {
        text.tokens.push_back(tokens[i]);
        text.predicted.push_back(i > begin && (uses.empty() || uses[i] != TokenUse::read));
        result_.split_characters += !is_utf8(tokenizer_.token_bytes(tokens[i]));
      }
      text.ends.push_back(text.tokens.size());
    }
  }

  // Multiples of the golden ratio, modulo 1, are spread evenly for any number of them (Weyl 1916).
  template <class Use>
  void spread(std::size_t count, const Use& use) {
    std::vector<bool> used(count, false);
    double at = 0.5;
    for (std::size_t i = 0; i < 4 * count && !full(); ++i) {
      const std::size_t index = std::min(count - 1, static_cast<std::size_t>(at * static_cast<double>(count)));
      at += 0.6180339887498949;
      at -= std::floor(at);
      if (used[index]) continue;
      used[index] = true;
      use(index);
    }
  }

  void read_plain(std::string_view text) {
    spread((text.size() + passage_bytes - 1) / passage_bytes, [&](std::size_t i) {
      const std::size_t begin = next_character(text, i * passage_bytes);
      add(tokenizer_.encode(text.substr(begin, next_character(text, (i + 1) * passage_bytes) - begin)), {});
    });
  }

  void read_lines(const TextBytes& bytes) {
    std::optional<ChatTemplate> chat_template;
    const TrainingTextOptions training{
        config_.family, false, [&]() -> const ChatTemplate& {
          if (!chat_template) chat_template = ChatTemplate::of_tokenizer(data_);
          if (!chat_template) {
            chat_template.emplace(ChatTemplate::of_family(config_.family, special_tokens_of(data_)));
          }
          return *chat_template;
        }};
    const std::vector<Line> lines = lines_of(bytes);
    spread(lines.size(), [&](std::size_t i) {
      const Line& line = lines[i];
      ScoredTexts read;
      add_line(read, std::string(bytes.all().substr(line.begin, line.length)), place_of_line(path_, line.number),
               tokenizer_, training);
      std::size_t begin = 0;
      for (const std::size_t end : read.ends) {
        add(std::span(read.tokens).subspan(begin, end - begin), std::span(read.uses).subspan(begin, end - begin));
        begin = end;
      }
    });
  }

  const std::string& path_;
  const Config& config_;
  TokenizerData data_;
  Tokenizer tokenizer_;
  std::size_t window_, most_tokens_;
  ReadCalibrationText result_;
};

}  // namespace

ReadCalibrationText read_calibration_text(const std::string& path, const Config& config,
                                          const std::string& tokenizer_path, std::size_t most_tokens) {
  return CalibrationTextReader(path, config, tokenizer_path, most_tokens).read();
}

}  // namespace minimind
