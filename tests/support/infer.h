#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/stored.h"
#include "tests/support/temporary_file.h"
#include "weights/model/infer_config.h"

namespace minimind {

// Infers the config of tensors with a file's own names and an optional config.json of that text.
inline InferredConfig infer(const StoredTensors& tensors, const std::string& json = "",
                            const ConfigOverrides& overrides = {}) {
  std::optional<StatedConfig> stated;
  if (!json.empty()) stated = parse_config_json(json, "config.json");
  return infer_config(to_canonical_names(tensors, "test.pth"), stated, overrides, "test.pth");
}

// Expects inference to fail with a message that contains all `parts`.
inline void expect_error(const std::vector<std::string>& parts, const StoredTensors& tensors,
                         const std::string& json = "", const ConfigOverrides& overrides = {}) {
  const std::string error = error_of([&] { infer(tensors, json, overrides); });
  EXPECT_TRUE(error.starts_with("test.pth: ")) << json << " gives: " << error;
  for (const std::string& part : parts) EXPECT_NE(error.find(part), std::string::npos) << json << " gives: " << error;
}

}  // namespace minimind
