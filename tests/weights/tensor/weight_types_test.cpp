#include "weights/tensor/weight_types.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/temporary_file.h"
#include "weights/base/error.h"

namespace minimind {
namespace {

TEST(WeightTypes, AreFloatsAndTheBlockTypesThatCanBeWritten) {
  const std::vector<std::string> expected{"f32",  "f16",  "bf16", "q8_0", "q4_0", "q4_1",
                                          "q5_0", "q5_1", "q4_k", "q5_k", "q6_k", "iq4_nl"};
  EXPECT_EQ(weight_type_names(), expected);
}

TEST(WeightTypes, OfMemoryAreThoseOfFilesAndQ8R) {
  std::vector<std::string> expected = weight_type_names();
  expected.push_back("q8_r");
  EXPECT_EQ(weight_type_names(WeightsAre::in_memory), expected);
  EXPECT_EQ(parse_weight_type("q8_r", WeightsAre::in_memory), DType::q8_r);
  EXPECT_THROW(parse_weight_type("q8_r"), UsageError);
}

TEST(WeightTypes, AreParsedByName) {
  for (const std::string& name : weight_type_names()) EXPECT_EQ(name_of(parse_weight_type(name)), name);
  for (const char* other : {"q3_k", "iq4_xs", "i8", "F16", ""}) EXPECT_THROW(parse_weight_type(other), UsageError);
  EXPECT_EQ(error_of([] { parse_weight_type("q4_3"); }),
            "the weight type is 'q4_3', expected f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k or "
            "iq4_nl");
}

}  // namespace
}  // namespace minimind
