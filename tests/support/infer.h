#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "weights/model/infer_config.h"

namespace minimind {

// The config of tensors as a file names them, beside a config.json of that text, if any.
inline InferredConfig infer(const StoredTensors& tensors, const std::string& json = "",
                            const ConfigOverrides& overrides = {}) {
  std::optional<StatedConfig> stated;
  if (!json.empty()) stated = parse_config_json(json, "config.json");
  return infer_config(to_canonical_names(tensors, "test.pth"), stated, overrides, "test.pth");
}

// That it is refused in words that hold all `parts`.
inline void expect_error(const std::vector<std::string>& parts, const StoredTensors& tensors,
                         const std::string& json = "", const ConfigOverrides& overrides = {}) {
  const std::string error = error_of([&] { infer(tensors, json, overrides); });
  EXPECT_TRUE(error.starts_with("test.pth: ")) << json << " gives: " << error;
  for (const std::string& part : parts) EXPECT_NE(error.find(part), std::string::npos) << json << " gives: " << error;
}

}  // namespace minimind
