#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/temporary_file.h"

namespace minimind {

// A checkpoint written by MiniMind's own code or by transformers, with PyTorch's logits
// (tools/reference/write_golden.py).
struct GoldenCase {
  std::string name;
  std::string folder;
  std::string model_path;                // model.pth, or the folder of a Hugging Face export
  std::optional<std::string> lora_path;  // the logits are those of the model with this LoRA
  bool yarn = false;                     // the logits require --rope-scaling yarn
  std::string family;
  nlohmann::json config;             // with the names of the code that wrote it
  std::vector<std::int32_t> tokens;  // the prompt and its greedy continuation
  std::size_t prompt_len = 0;
  std::vector<std::int32_t> greedy;
  std::vector<float> logits;  // [tokens.size(), vocab]
  std::size_t vocab = 0;
};

inline std::filesystem::path golden_root() {
  return MINIMIND_SOURCE_DIR "/tests/golden";
}

// Returns the names of all cases, sorted.
inline std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_root())) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the name of a case as the name of a test, which may have no '-'.
inline std::string test_name(const testing::TestParamInfo<std::string>& golden) {
  std::string name = golden.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Reads float32 [rows, cols] as numpy.save writes it, without the project's own reader, which has its own tests.
inline std::vector<float> read_golden_logits(const std::filesystem::path& path, std::size_t rows, std::size_t cols) {
  const std::string file = read_whole_file(path);
  const std::size_t size = rows * cols * sizeof(float);
  const std::string shape = "'shape': (" + std::to_string(rows) + ", " + std::to_string(cols) + ")";
  if (file.find("'<f4', 'fortran_order': False, " + shape) == std::string::npos || file.size() < size) {
    throw std::runtime_error(path.string() + ": expected float32 with " + shape);
  }
  std::vector<float> logits(rows * cols);
  std::memcpy(logits.data(), file.data() + file.size() - size, size);
  return logits;
}

inline GoldenCase load_golden(const std::string& name) {
  const std::filesystem::path folder = golden_root() / name;
  const auto json = nlohmann::json::parse(read_whole_file(folder / "case.json"));
  GoldenCase golden;
  golden.name = name;
  golden.folder = folder.string();
  const bool single_file = std::filesystem::exists(folder / "model.pth");
  golden.model_path = single_file ? (folder / "model.pth").string() : folder.string();
  if (json.contains("lora")) golden.lora_path = (folder / json["lora"].get<std::string>()).string();
  golden.yarn = name.ends_with("-yarn");
  golden.family = json.at("family");
  golden.config = json.at("config");
  golden.tokens = json.at("tokens").get<std::vector<std::int32_t>>();
  golden.prompt_len = json.at("prompt_len");
  golden.greedy = json.at("greedy").get<std::vector<std::int32_t>>();
  golden.vocab = golden.config.at("vocab_size");
  golden.logits = read_golden_logits(folder / "logits.npy", golden.tokens.size(), golden.vocab);
  return golden;
}

}  // namespace minimind
