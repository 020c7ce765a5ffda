#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runtime/chat/conversation.h"
#include "tools/chat/entry.h"
#include "tools/chat/output.h"

namespace minimind {

// Reads the format of conversation_json(). Throws Error naming the file.
ConversationState read_conversation(const std::string& path);
void write_conversation(const std::string& path, const ConversationState& state);

// Throws UsageError if the file is one of the model's, under any name.
void check_not_of_model(const std::string& path, const std::set<std::string>& model_files);

// Applies user input to a conversation. Tool calls are never executed.
class ChatActions {
 public:
  enum class Next { proceed, exit };

  // All arguments must outlive this. `reload` loads the model's file again. Nothing is saved in `model_files`.
  ChatActions(Conversation& conversation, AnswerOutput& output, const ChatNotices& notices,
              const std::atomic<bool>& interrupted, std::function<void()> reload,
              const std::set<std::string>& model_files);

  // Throws UsageError and Error as Conversation does; the conversation is then unchanged.
  Next perform(const ChatEntry& entry);

  void ask(const std::string& text);
  // Adds the result of one call. When all waiting calls have results, the model continues.
  void give_result(const std::string& result);
  void load(const std::string& path);
  void save(const std::string& path) const;

  // How the last answer ended; std::nullopt if there was none yet.
  std::optional<FinishReason> last_finish() const { return last_finish_; }

 private:
  using Generate = std::function<Answer(const AnswerListener&)>;

  void answer(const Generate& generate);
  void report(const Answer& answer) const;
  Next perform(const ChatCommand& command);
  // Does work that may throw Cancelled. Returns false, and says so, if it was interrupted.
  bool finishes(const std::function<void()>& work);
  void reset();
  void undo();
  void regenerate();
  void system(const std::string& text);
  void think(const std::string& text);
  void tool(const std::string& result);

  Conversation& conversation_;
  AnswerOutput& output_;
  const ChatNotices& notices_;
  const std::atomic<bool>& interrupted_;
  const std::function<void()> reload_;
  const std::set<std::string>& model_files_;
  std::vector<std::string> results_;  // of the first waiting calls
  std::optional<FinishReason> last_finish_;
};

}  // namespace minimind
