#include <fmt/core.h>

#include "tools/chat_actions.h"

namespace minimind {
namespace {

std::string speed(std::size_t tokens, double seconds) {
  return seconds > 0 ? fmt::format("{:.0f}/s", static_cast<double>(tokens) / seconds) : "-";
}

std::string lines_of(std::string_view label, const AnswerStats& stats) {
  std::string lines =
      fmt::format("{:<13} prompt of {} tokens: {} reused, {} computed at {}\n{:<13} {} tokens generated at {}", label,
                  stats.prompt_tokens, stats.reused_tokens, stats.computed_tokens,
                  speed(stats.computed_tokens, stats.prompt_seconds), "", stats.generated_tokens,
                  speed(stats.decoded_tokens, stats.decode_seconds));
  if (stats.drafted_tokens > 0) {
    lines += fmt::format(", {} of {} drafts accepted", stats.accepted_tokens, stats.drafted_tokens);
  }
  return lines + '\n';
}

std::string turns_of(const Conversation& conversation) {
  const std::size_t dropped = conversation.dropped_turns();
  return fmt::format("conversation  {} turn{}{}\n", conversation.turns(), conversation.turns() == 1 ? "" : "s",
                     dropped > 0 ? fmt::format(", of which the oldest {} left out of the prompt",
                                               dropped == 1 ? "is" : fmt::format("{} are", dropped))
                                 : "");
}

}  // namespace

std::string chat_stats(const Conversation& conversation) {
  const Context& context = conversation.context();
  return fmt::format("context       {} of {} tokens, {} kept free for answers\n", context.size(), context.capacity(),
                     conversation.reserve()) +
         turns_of(conversation) + lines_of("last answer", conversation.last_stats()) +
         lines_of("all answers", conversation.total_stats());
}

}  // namespace minimind
