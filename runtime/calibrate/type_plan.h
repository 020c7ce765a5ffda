#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "weights/tensor/dtype.h"

namespace minimind {

// A type that a tensor of a file can have.
struct TypeChoice {
  DType type;
  std::size_t bytes;  // of the tensor in the file
  double loss;        // by which it raises the mean KL divergence per token, about
};

// A tensor and the type chosen for it.
struct PlannedTensor {
  std::string name;  // in the file
  std::size_t weights = 0;
  std::vector<TypeChoice> choices;
  std::size_t chosen = 0;

  const TypeChoice& choice() const { return choices[chosen]; }
};

// Chooses types whose bytes are at most `budget` in sum, so that the sum of the losses is least, but for a few bytes.
// Returns false if even the smallest types have more. Drops choices that one of the same size or less beats.
bool choose_types(std::vector<PlannedTensor>& tensors, std::size_t budget);

// The plan as text: one line for each tensor with its name, type, bits per weight and loss, which parse_type_plan
// reads.
std::string type_plan_text(const std::vector<PlannedTensor>& tensors);

// Reads lines of a tensor's name and its type. Ignores further columns, empty lines and what follows '#'. Throws Error
// starting with `name`, the file's, for a type that is unknown or not a block or float type of weights, for a tensor
// named twice and for lines without a type.
std::map<std::string, DType> parse_type_plan(const std::string& text, const std::string& name);

}  // namespace minimind
