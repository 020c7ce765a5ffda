#include "weights/tensor/weight_types.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/temporary_file.h"
#include "weights/io/error.h"

namespace minimind {
namespace {

TEST(WeightTypes, AreFloatsAndTheBlockTypesThatCanBeWritten) {
  const std::vector<std::string> expected{"f32", "f16", "bf16", "q8_0", "q4_0", "iq4_nl"};
  EXPECT_EQ(weight_type_names(), expected);
}

TEST(WeightTypes, AreParsedByName) {
  for (const std::string& name : weight_type_names()) EXPECT_EQ(name_of(parse_weight_type(name)), name);
  for (const char* other : {"q4_k", "q4_1", "i8", "F16", ""}) EXPECT_THROW(parse_weight_type(other), UsageError);
  EXPECT_EQ(error_of([] { parse_weight_type("q4_1"); }),
            "the weight type is 'q4_1', expected f32, f16, bf16, q8_0, q4_0 or iq4_nl");
}

}  // namespace
}  // namespace minimind
