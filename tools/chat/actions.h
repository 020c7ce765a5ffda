#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "runtime/chat/conversation.h"
#include "tools/chat/answer_output.h"
#include "tools/chat/notices.h"
#include "tools/chat/slash_commands.h"

namespace minimind {

// Does to a conversation what somebody enters. Nothing that the model asks for is ever executed.
class ChatActions {
 public:
  enum class Next { go_on, leave };

  // All of them must outlive this.
  ChatActions(Conversation& conversation, AnswerOutput& output, const ChatNotices& notices,
              const std::atomic<bool>& interrupted);

  // Throws UsageError and Error as Conversation does, which then is as it was before.
  Next perform(const ChatEntry& entry);

  void ask(const std::string& text);
  // The result of one call; when all that wait have theirs, the model goes on.
  void give_result(const std::string& result);
  void load(const std::string& path);
  void save(const std::string& path) const;

  // How the last answer ended; nothing when there was none yet.
  std::optional<FinishReason> last_finish() const { return last_finish_; }

 private:
  using Generate = std::function<Answer(const AnswerListener&)>;

  void answer(const Generate& generate);
  void tell_of(const Answer& answer) const;
  Next perform(const ChatCommand& command);
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
  std::vector<std::string> results_;  // of the first of the calls that wait
  std::optional<FinishReason> last_finish_;
};

}  // namespace minimind
