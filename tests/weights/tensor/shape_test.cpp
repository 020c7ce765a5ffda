#include "weights/tensor/shape.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace minimind {
namespace {

using Shape = std::vector<std::size_t>;

TEST(Shape, CountsElementsAndBytes) {
  EXPECT_EQ(element_count(Shape{}), 1u);
  EXPECT_EQ(element_count(Shape{3, 4}), 12u);
  EXPECT_EQ(element_count(Shape{3, 0}), 0u);
  EXPECT_EQ(byte_count(Shape{3, 4}, DType::f16), 24u);
}

TEST(Shape, CountsThatOverflowAreNullopt) {
  EXPECT_EQ(checked_product(SIZE_MAX, 1), SIZE_MAX);
  EXPECT_EQ(checked_product(SIZE_MAX, 0), 0u);
  EXPECT_EQ(checked_product(SIZE_MAX / 2 + 1, 2), std::nullopt);
  EXPECT_EQ(element_count(Shape{std::size_t{1} << 33, std::size_t{1} << 33}), std::nullopt);
  EXPECT_EQ(element_count(Shape{std::size_t{1} << 62, 0, 8}), std::nullopt);
  EXPECT_EQ(byte_count(Shape{std::size_t{1} << 62}, DType::f32), std::nullopt);
}

}  // namespace
}  // namespace minimind
