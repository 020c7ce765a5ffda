#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/chat/conversation.h"
#include "runtime/chat/session_file.h"
#include "tools/chat/chat_options.h"
#include "tools/chat/output.h"
#include "tools/options/load_llm.h"
#include "weights/checkpoint/list_checkpoints.h"
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

  // The files that the model was read from.
  const std::set<std::string>& model_files() const { return model_files_; }

  // After a new answer, writes the session without its KV cache, which is fast, so that a program that is killed later
  // loses little. If that fails, says so and tries again after the next answer.
  void keep_turn(const ChatNotices& notices);

  // Says once if the model's file was written anew since it was loaded.
  void look_at_file(const ChatNotices& notices);

  // Loads the model's file again. The conversation continues with the new weights. If the file cannot be read, or its
  // model has another shape, throws Error and keeps the old ones.
  void reload(const ChatNotices& notices);

  // Writes the files of --session and --save at the end. If the KV cache does not fit on the disk, writes the session
  // without it.
  void keep();

 private:
  void begin();
  void note_checkpoint(const Checkpoint& checkpoint);
  void keep_session();
  ConversationOptions conversation_options() const;
  void print_assumptions() const;

  const ChatOptions& options_;
  // Locked from the start, so that no other process overwrites what this conversation has read or will write.
  std::optional<FileLock> session_lock_;
  std::optional<FileLock> save_lock_;
  const GenerationParameters parameters_;
  const std::shared_ptr<const Grammar> grammar_;  // of the answers; null: none
  std::optional<ModelIdentity> identity_;         // of the model, if there is a session
  const std::string model_path_;
  std::set<std::string> model_files_;
  std::vector<WrittenFile> files_;  // of the model when it was loaded, or since the user was told that they changed
  LLM llm_;
  Context context_;
  Speculation speculation_;
  Forward forward_;
  Conversation conversation_;
  std::uint64_t kept_answers_ = 0;  // of the conversation when the session was last written
  bool unsaved_ = false;            // the last attempt to do so failed
};

}  // namespace minimind
