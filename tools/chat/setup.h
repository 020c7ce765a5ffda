#pragma once

#include <optional>
#include <string>

#include "runtime/chat/conversation.h"
#include "runtime/chat/session_file.h"
#include "tools/chat/chat_options.h"
#include "tools/options/load_engine.h"
#include "weights/io/file_lock.h"

namespace minimind {

// A model ready for a conversation, with everything it requires.
class ChatSetup {
 public:
  // Loads everything that the options name and prints notes on stderr unless they say quiet. Throws Error and
  // UsageError.
  explicit ChatSetup(const ChatOptions& options);
  ChatSetup(const ChatSetup&) = delete;
  ChatSetup& operator=(const ChatSetup&) = delete;

  Conversation& conversation() { return conversation_; }

  // Writes the files of --session and --save.
  void keep();

 private:
  void begin();
  ConversationOptions conversation_options() const;
  void print_assumptions() const;

  const ChatOptions& options_;
  // Locked from the start, so that no other process overwrites what this conversation has read or will write.
  std::optional<FileLock> session_lock_;
  std::optional<FileLock> save_lock_;
  GenerateOptions generate_;
  std::optional<ModelIdentity> identity_;  // of the model, if there is a session
  Engine engine_;
  TokenizerData tokenizer_data_;
  Tokenizer tokenizer_;
  ChatTemplate chat_template_;
  Context context_;
  Speculation speculation_;
  Forward forward_;
  Conversation conversation_;
};

}  // namespace minimind
