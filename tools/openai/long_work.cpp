#include "tools/openai/long_work.h"

#include <utility>

namespace minimind {
namespace {

thread_local bool is_brief = false;

}  // namespace

BriefWork::BriefWork() : before_(std::exchange(is_brief, true)) {}

BriefWork::~BriefWork() {
  is_brief = before_;
}

bool BriefWork::expected() {
  return is_brief;
}

void begin_long_work() {
  if (is_brief) throw LongWork();
}

}  // namespace minimind
