#pragma once

#include <cstddef>
#include <string>

#include "runtime/calibrate/measure.h"
#include "weights/model/config.h"

namespace minimind {

struct ReadCalibrationText {
  CalibrationText text;
  std::size_t split_characters = 0;  // tokens that are parts of characters
};

// Reads texts at even distances in a file, as many as have about `most_tokens` tokens: lines of MiniMind's data from a
// .jsonl, else passages of plain text. A long file does not have to fit in memory. Throws Error for a file that cannot
// be read, has nothing to predict, or whose tokens are not in the model's vocabulary.
ReadCalibrationText read_calibration_text(const std::string& path, const Config& config,
                                          const std::string& tokenizer_path, std::size_t most_tokens);

}  // namespace minimind
