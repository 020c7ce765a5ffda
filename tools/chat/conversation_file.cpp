#include "tools/chat/conversation_file.h"

#include <cstddef>
#include <span>

#include "runtime/chat/message_json.h"
#include "weights/io/output_file.h"
#include "weights/io/text_file.h"

namespace minimind {

ConversationState read_conversation(const std::string& path) {
  SavedConversation saved = parse_conversation(read_text_file(path), path);
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
