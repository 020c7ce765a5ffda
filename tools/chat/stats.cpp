#include "tools/chat/stats.h"

#include <fmt/core.h>

#include "tools/terminal/language.h"
#include "tools/terminal/text_columns.h"

namespace minimind {
namespace {

constexpr std::size_t label_columns = 14;

std::string speed(std::size_t tokens, double seconds) {
  return seconds > 0 ? fmt::format("{:.0f}/s", static_cast<double>(tokens) / seconds) : "-";
}

std::string counted_tokens(std::size_t count) {
  return counted(count, "{} token", "{} tokens");
}

std::string labelled(std::string_view label, const std::string& text) {
  return padded(label, label_columns) + text + '\n';
}

std::string lines_of(std::string_view label, const AnswerStats& stats) {
  const std::string prompt =
      localized("prompt of {}: {} reused, {} computed at {}", counted_tokens(stats.prompt_tokens), stats.reused_tokens,
                stats.computed_tokens, speed(stats.computed_tokens, stats.prompt_seconds));
  std::string generated = localized("{} generated at {}", counted_tokens(stats.generated_tokens),
                                    speed(stats.decoded_tokens, stats.decode_seconds));
  if (stats.drafted_tokens > 0) {
    generated += localized(", {} of {} drafts accepted", stats.accepted_tokens, stats.drafted_tokens);
  }
  return labelled(label, prompt) + labelled("", generated);
}

std::string turns_of(const Conversation& conversation) {
  const std::size_t dropped = conversation.dropped_turns();
  std::string turns = counted(conversation.turns(), "{} turn", "{} turns");
  if (dropped > 0) turns += counted(dropped, ", the oldest dropped", ", the oldest {} dropped");
  return labelled(translated("conversation"), turns);
}

}  // namespace

std::string chat_stats(const Conversation& conversation) {
  const Context& context = conversation.context();
  return labelled(translated("context"), localized("{} of {} tokens, {} reserved for answers", context.size(),
                                                   context.capacity(), conversation.reserve())) +
         turns_of(conversation) + lines_of(translated("last answer"), conversation.last_stats()) +
         lines_of(translated("all answers"), conversation.total_stats());
}

}  // namespace minimind
