#include "tools/terminal/line_editor.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "weights/base/parallel.h"

namespace minimind {
namespace {

// The time after which an escape is a single key; the rest of a sequence arrives sooner.
constexpr timespec sequence_time{0, 100'000'000};

// During its lifetime, Ctrl-Z sets a flag.
class CaughtSuspend {
 public:
  CaughtSuspend() { catch_suspend(); }
  CaughtSuspend(const CaughtSuspend&) = delete;
  CaughtSuspend& operator=(const CaughtSuspend&) = delete;
  ~CaughtSuspend() { release_suspend(); }
};

// https://invisible-island.net/xterm/ctlseqs/ctlseqs.html, "Bracketed Paste Mode".
constexpr const char* paste_on = "\x1b[?2004h";
constexpr const char* paste_off = "\x1b[?2004l";

}  // namespace

LineEditor::LineEditor(std::FILE* screen, std::vector<std::string> words, TerminalSignals& signals)
    : screen_(screen),
      signals_(signals),
      escapes_(takes_escape_sequences(screen)),
      edit_(std::move(words)),
      line_(escapes_) {}

EditedLine LineEditor::read(const std::string& prompt, bool styles) {
  const HeldSignals held;
  let_in_ = held.before();
  const CaughtSuspend caught;
  edit_.begin(prompt + ' ', styles);
  line_.forget();
  raw_.emplace();
  if (escapes_) show(paste_on);
  EditedLine line = read_line();
  edit_.move_to_end();
  draw();
  show((line.end == LineEnd::cancelled ? "^C" : "") + line_.finish() + (escapes_ ? paste_off : ""));
  raw_.reset();
  return line;
}

EditedLine LineEditor::read_line() {
  shown_ = false;
  while (true) {
    if (react_to_signals()) {
      keys_.clear();
      return {signals_.ended ? LineEnd::end_of_input : LineEnd::cancelled, edit_.text()};
    }
    const auto key = keys_.next();
    if (!key) {
      if (!shown_) draw();
      if (!wait_for_input()) return {LineEnd::end_of_input, ""};
      continue;
    }
    const LineAction action = edit_.press(*key);
    if (action == LineAction::enter) return {LineEnd::entered, edit_.text()};
    if (action == LineAction::end_of_input) return {LineEnd::end_of_input, ""};
    perform(action);
  }
}

void LineEditor::perform(LineAction action) {
  if (action == LineAction::reject) return show("\a");
  shown_ = false;
  if (action == LineAction::clear_screen) show(line_.clear());
  if (action != LineAction::list_words) return;
  std::string list = line_.finish();
  for (const std::string& word : edit_.words_to_list()) list += word + "  ";
  show(list + "\n");
  shown_ = false;
}

// Returns whether the line is cancelled.
bool LineEditor::react_to_signals() {
  if (signals_.resized.exchange(false)) shown_ = false;
  if (signals_.suspended.exchange(false)) suspend();
  if (signals_.ended) return true;
  return signals_.interrupted.exchange(false);
}

// Returns when there may be more keys or after a signal; false at the end of the input.
bool LineEditor::wait_for_input() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const bool maybe_escape = edit_.searching() && keys_.escape_waits();
  const int ready = ppoll(&input, 1, maybe_escape ? &sequence_time : nullptr, &let_in_);
  if (ready < 0) return errno == EINTR;
  if (ready == 0) {
    perform(edit_.press(keys_.take_escape()));
    return true;
  }
  // If input and a signal arrive together, ppoll() may not deliver the signal. A cancelled line must end before later
  // input.
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, &let_in_, &mask);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  if (signals_.interrupted || signals_.suspended) return true;
  return read_input(input.revents);
}

bool LineEditor::read_input(short events) {
  std::array<char, 4096> buffer;
  const ssize_t size = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (size > 0) keys_.push({buffer.data(), static_cast<std::size_t>(size)});
  if (size > 0) return true;
  if (size == 0) return (events & (POLLHUP | POLLERR | POLLNVAL)) == 0;
  return errno == EINTR || errno == EAGAIN;
}

// Stops here until the program continues.
void LineEditor::suspend() {
  show(line_.finish() + (escapes_ ? paste_off : ""));
  raw_.reset();
  release_suspend();
  raise(SIGTSTP);
  sigset_t suspending, held;
  sigemptyset(&suspending);
  sigaddset(&suspending, SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &suspending, &held);
  pthread_sigmask(SIG_SETMASK, &held, nullptr);
  catch_suspend();
  raw_.emplace();
  if (escapes_) show(paste_on);
  shown_ = false;
}

void LineEditor::draw() {
  show(line_.draw(edit_.view(), screen_size(screen_)));
  shown_ = true;
}

void LineEditor::show(const std::string& bytes) {
  std::fputs(bytes.c_str(), screen_);
  std::fflush(screen_);
}

}  // namespace minimind
