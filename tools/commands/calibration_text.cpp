#include "tools/commands/calibration_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
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
#include "weights/base/error.h"
#include "weights/base/text.h"
#include "weights/io/input_file.h"
#include "weights/io/text_file.h"

namespace minimind {
namespace {

constexpr std::size_t window_tokens = 512;   // a longer text is read in windows of this length
constexpr std::size_t passage_bytes = 1536;  // of plain text: about a window
constexpr std::size_t longest_line = std::size_t{64} << 20;

// The content of a file, which is read in pieces, or of a pipe.
class TextBytes {
 public:
  explicit TextBytes(const std::string& path) {
    std::error_code failed;
    if (std::filesystem::is_regular_file(path, failed) && std::filesystem::file_size(path, failed) > 0) {
      file_ = open_input(path);
    } else {
      text_ = read_text_or_pipe(path);
      check_not_mistaken(text_, text_.size(), path);
    }
  }

  std::size_t size() const { return file_ ? file_->size() : text_.size(); }

  std::string read(std::size_t begin, std::size_t length) const {
    if (!file_) return text_.substr(begin, length);
    std::string part(length, '\0');
    file_->read(begin, std::as_writable_bytes(std::span(part)));
    return part;
  }

 private:
  std::shared_ptr<const InputFile> file_;
  std::string text_;
};

// The lines that are not empty. Where they are is kept of one in `bytes_between` bytes: a file may have more lines than
// memory has room for.
class Lines {
 public:
  struct Line {
    std::string text;
    std::size_t number;  // in the file, from 1
  };

  Lines(const TextBytes& bytes, const std::string& path);

  std::size_t size() const { return size_; }
  Line read(std::size_t index) const;

 private:
  static constexpr std::size_t bytes_between = 512;
  // Lines that start within so many bytes.
  struct Group {
    std::size_t begin, end;     // bytes
    std::size_t index, number;  // of the first
  };

  const TextBytes& bytes_;
  std::vector<Group> groups_;
  std::size_t size_ = 0;
};

Lines::Lines(const TextBytes& bytes, const std::string& path) : bytes_(bytes) {
  constexpr std::size_t piece = std::size_t{1} << 20;
  std::size_t number = 1, line_begin = 0;
  char last = '\0';  // before the line feed
  const auto end_line = [&](std::size_t end) {
    const std::size_t length = end - line_begin;
    if (length > longest_line) {
      throw Error(
          fmt::format("{}: has over {} bytes, expected a record of fewer", place_of_line(path, number), longest_line));
    }
    if (length == 0 || (length == 1 && last == '\r')) return;
    if (groups_.empty() || line_begin - groups_.back().begin >= bytes_between) {
      groups_.push_back({.begin = line_begin, .end = 0, .index = size_, .number = number});
    }
    groups_.back().end = end;
    ++size_;
  };
  for (std::size_t begin = 0; begin < bytes.size(); begin += piece) {
    const std::string part = bytes.read(begin, std::min(piece, bytes.size() - begin));
    for (std::size_t at = 0; at < part.size();) {
      const std::size_t end = std::min(part.find('\n', at), part.size());
      if (end > at) last = part[end - 1];
      if (end == part.size()) break;
      end_line(begin + end);
      ++number;
      at = end + 1;
      line_begin = begin + at;
    }
    if (begin + part.size() - line_begin > longest_line) end_line(begin + part.size());
  }
  end_line(bytes.size());
}

Lines::Line Lines::read(std::size_t index) const {
  const Group& group = *std::prev(std::ranges::upper_bound(groups_, index, {}, &Group::index));
  const std::string text = bytes_.read(group.begin, group.end - group.begin);
  std::size_t number = group.number, before = index - group.index, at = 0;
  for (;; ++number) {
    std::string line = text.substr(at, std::min(text.find('\n', at), text.size()) - at);
    if (!is_empty_line(line) && before-- == 0) return {std::move(line), number};
    at += line.size() + 1;
  }
}

// Returns the first character that starts at this byte or later.
std::size_t next_character(std::string_view text, std::size_t at) {
  while (at < text.size() && !starts_character(text[at])) ++at;
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
      read_plain(bytes);
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

  void read_plain(const TextBytes& bytes) {
    constexpr std::size_t rest_of_character = 3;
    spread((bytes.size() + passage_bytes - 1) / passage_bytes, [&](std::size_t i) {
      const std::size_t at = i * passage_bytes;
      const std::string text = bytes.read(at, std::min(passage_bytes + rest_of_character, bytes.size() - at));
      const std::size_t begin = next_character(text, 0), end = next_character(text, passage_bytes);
      add(tokenizer_.encode(std::string_view(text).substr(begin, end - begin)), {});
    });
  }

  void read_lines(const TextBytes& bytes) {
    std::optional<FoundTemplate> found;
    const TrainingTextOptions training{config_.family, false, [&]() -> const ChatTemplate& {
                                         if (!found) found.emplace(template_or_family("", data_, config_.family));
                                         return found->chat_template;
                                       }};
    const Lines lines(bytes, path_);
    spread(lines.size(), [&](std::size_t i) {
      const Lines::Line line = lines.read(i);
      ScoredTexts read;
      add_line(read, line.text, place_of_line(path_, line.number), tokenizer_, training);
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
