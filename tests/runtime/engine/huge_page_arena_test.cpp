#include "runtime/engine/huge_page_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace minimind {
namespace {

TEST(HugePageArena, GivesAlignedDisjointPiecesThatOutliveIt) {
  std::vector<std::shared_ptr<std::byte>> pieces;
  const std::vector<std::size_t> sizes{1, 64, 65, 1000, std::size_t{20} << 20, std::size_t{20} << 20, 3};
  {
    HugePageArena memory;
    for (const std::size_t size : sizes) pieces.push_back(memory.take(size));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) std::memset(pieces[i].get(), static_cast<int>(i + 1), sizes[i]);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pieces[i].get()) % 64, 0u);
    EXPECT_EQ(pieces[i].get()[0], std::byte(i + 1));
    EXPECT_EQ(pieces[i].get()[sizes[i] - 1], std::byte(i + 1));
  }
}

TEST(HugePageArena, ThrowsIfNoMachineHasTheMemory) {
  HugePageArena memory;
  EXPECT_THROW(memory.take(std::size_t{1} << 60), std::bad_alloc);
  EXPECT_THROW(memory.take(SIZE_MAX), std::bad_alloc);
  EXPECT_NE(memory.take(16), nullptr) << "and can be used again";
}

TEST(HugePageArena, AgainGivesTheSameMemoryAndMoreIfThatIsTooSmall) {
  HugePageArena memory;
  const std::shared_ptr<std::byte> first = memory.take(1000), second = memory.take(std::size_t{40} << 20);
  HugePageArena again = memory.again();
  EXPECT_EQ(again.take(1000), first);
  EXPECT_EQ(again.take(std::size_t{40} << 20), second);
  const std::shared_ptr<std::byte> third = again.take(std::size_t{40} << 20);
  EXPECT_NE(third, first);
  EXPECT_NE(third, second);
}

TEST(HugePageArena, FreesMemoryOfThePreviousOneThatIsNotTaken) {
  HugePageArena memory;
  const std::weak_ptr<std::byte> first = memory.take(1000), second = memory.take(std::size_t{40} << 20);
  HugePageArena again = memory.again();
  memory = {};
  const std::shared_ptr<std::byte> piece = again.take(1000);
  EXPECT_FALSE(second.expired());
  again.free_unused();
  EXPECT_FALSE(first.expired());
  EXPECT_TRUE(second.expired());
}

}  // namespace
}  // namespace minimind
