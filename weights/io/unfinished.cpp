#include "weights/io/unfinished.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

namespace minimind {
namespace {

// Fixed places, because a handler of signals can neither lock nor use the heap. A path that does not fit, or has no
// place, is left as if the process had been killed.
struct Slot {
  enum State { free, taken, known };
  std::atomic<State> state{free};
  char path[1024];
};
static_assert(std::atomic<Slot::State>::is_always_lock_free);

std::array<Slot, 32> slots;

std::size_t take_slot(const std::string& path) {
  if (path.size() >= sizeof(Slot::path)) return slots.size();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Slot::State expected = Slot::free;
    if (!slots[i].state.compare_exchange_strong(expected, Slot::taken)) continue;
    std::memcpy(slots[i].path, path.c_str(), path.size() + 1);
    slots[i].state = Slot::known;
    return i;
  }
  return slots.size();
}

}  // namespace

Unfinished::Unfinished(const std::string& path) : slot_(take_slot(path)) {}

Unfinished::~Unfinished() {
  if (slot_ < slots.size()) slots[slot_].state = Slot::free;
}

void remove_unfinished() noexcept {
  for (int (*const remove)(const char*) : {::unlink, ::rmdir}) {
    for (const Slot& slot : slots) {
      if (slot.state == Slot::known) remove(slot.path);
    }
  }
}

}  // namespace minimind
