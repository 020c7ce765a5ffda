#include "tools/chat/conversation_file.h"

#include <fmt/core.h>

#include <cstddef>
#include <span>

#include "runtime/chat/message_json.h"
#include "runtime/chat/session_file.h"
#include "weights/base/error.h"
#include "weights/io/output_file.h"
#include "weights/io/text_file.h"

namespace minimind {

ConversationState read_conversation(const std::string& path) {
  const std::string text = read_text_or_pipe(path);
  if (is_session(text)) {
    throw Error(fmt::format("{}: is a session, expected a conversation in JSON; continue it with --session", path));
  }
  SavedConversation saved = parse_conversation(text, path);
  ConversationState state;
  state.messages = std::move(saved.messages);
  state.tools = std::move(saved.tools);
  return state;
}

void write_conversation(const std::string& path, const ConversationState& state) {
  const std::string json = conversation_json({state.messages, state.tools});
  OutputFile file(path);
  file.write(std::as_bytes(std::span(json)));
  file.commit();
}

}  // namespace minimind
