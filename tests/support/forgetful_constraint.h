#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/generate/constraint.h"

namespace minimind {

// Allows everything, and counts how often it forgets.
class ForgetfulConstraint final : public Constraint {
 public:
  explicit ForgetfulConstraint(int& forgotten) : forgotten_(forgotten) {}
  bool prepare() override { return true; }
  std::span<const std::uint8_t> allowed() override { return {}; }
  void accept(std::int32_t, std::size_t) override {}
  void forget() override { ++forgotten_; }
  bool finished() override { return false; }
  bool conforms(std::string_view) override { return true; }

 private:
  int& forgotten_;
};

}  // namespace minimind
