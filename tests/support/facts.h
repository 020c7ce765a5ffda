#pragma once

#include <string>
#include <vector>

#include "weights/base/fact.h"

namespace minimind {

inline std::vector<std::string> english(const std::vector<Fact>& facts) {
  std::vector<std::string> sentences;
  for (const Fact& fact : facts) sentences.push_back(fact.english());
  return sentences;
}

}  // namespace minimind
