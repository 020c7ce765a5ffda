#include "tools/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cwchar>
#include <utility>

#include "runtime/utf8.h"
#include "tools/terminal.h"
#include "tools/wide_text.h"
#include "weights/error.h"

namespace minimind {
namespace {

constexpr wchar_t cancel_key = 0x03;        // Ctrl-C never arrives as a character: the terminal makes a signal of it
constexpr wchar_t escape_marks = L'\1';     // around what of a prompt takes no room
constexpr std::size_t most_entries = 1000;  // that the arrows find

// Signals that wait() lets through, so that none comes between looking at its flag and waiting.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP}) sigaddset(&set, signal);
  return set;
}

}  // namespace

Completions completions(const std::vector<std::string>& words, const std::string& typed) {
  Completions found{{}, typed};
  for (const std::string& word : words) {
    if (!word.starts_with(typed)) continue;
    if (found.words.empty()) {
      found.common = word;
    } else {
      const auto [end, ignored] = std::mismatch(found.common.begin(), found.common.end(), word.begin(), word.end());
      found.common.erase(end, found.common.end());
    }
    found.words.push_back(word);
  }
  return found;
}

class LineEditor::Editor {
 public:
  Editor(std::FILE* screen, std::vector<std::string> words, TerminalSignals& signals);
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;
  ~Editor();

  void remember(const std::string& entry);
  EditedLine read(const std::string& prompt, bool styles);

 private:
  static Editor& of(EditLine* line);
  static wchar_t* prompt_of(EditLine* line) { return of(line).prompt_.data(); }
  static int next_character(EditLine* line, wchar_t* character) { return of(line).next_character(character); }
  static unsigned char cancel(EditLine* line, wint_t);
  static unsigned char paste(EditLine* line, wint_t);
  static unsigned char insert_newline(EditLine* line, wint_t);
  static unsigned char complete(EditLine* line, wint_t);

  void rewrite_lines();
  void bind_keys();
  int next_character(wchar_t* character);
  bool fill();
  bool react_to_signals();
  void suspend();
  void set_bracketed_paste(bool on);

  std::FILE* screen_;
  std::vector<std::string> words_;
  TerminalSignals& signals_;
  bool takes_paste_;
  EditLine* line_ = nullptr;
  HistoryW* history_ = nullptr;
  std::wstring prompt_;
  std::string bytes_;       // read and not yet handed on
  bool cancelled_ = false;  // the line that is being read
  std::string cancelled_text_;
};

LineEditor::Editor::Editor(std::FILE* screen, std::vector<std::string> words, TerminalSignals& signals)
    : screen_(screen), words_(std::move(words)), signals_(signals), takes_paste_(takes_escape_sequences(screen)) {
  line_ = el_init("minimind", stdin, screen, stderr);
  history_ = history_winit();
  if (!line_ || !history_) throw Error("the line editor cannot be set up: libedit gave no reason");
  HistEventW event{};
  history_w(history_, &event, H_SETSIZE, static_cast<int>(most_entries));
  history_w(history_, &event, H_SETUNIQUE, 1);
  el_wset(line_, EL_CLIENTDATA, this);
  el_wset(line_, EL_HIST, history_w, history_);
  el_wset(line_, EL_GETCFN, static_cast<el_rfunc_t>(&Editor::next_character));
  el_wset(line_, EL_PROMPT_ESC, &Editor::prompt_of, escape_marks);
  el_wset(line_, EL_SIGNAL, 0);
  el_wset(line_, EL_EDITOR, L"emacs");
  rewrite_lines();
  bind_keys();
  el_source(line_, nullptr);
}

LineEditor::Editor::~Editor() {
  if (history_) history_wend(history_);
  if (line_) el_end(line_);
}

LineEditor::Editor& LineEditor::Editor::of(EditLine* line) {
  void* editor = nullptr;
  el_wget(line, EL_CLIENTDATA, &editor);
  return *static_cast<Editor*>(editor);
}

// Without the terminal's means of moving the rest of a line, libedit writes it anew: where wide characters wrap, it
// moves it wrongly.
void LineEditor::Editor::rewrite_lines() {
  for (const wchar_t* const capability : {L"ic", L"IC", L"im", L"ip", L"dc", L"DC", L"dm"}) {
    el_wset(line_, EL_SETTC, capability, L"", nullptr);
  }
}

void LineEditor::Editor::bind_keys() {
  using Function = unsigned char (*)(EditLine*, wint_t);
  const auto add = [&](const wchar_t* name, const wchar_t* help, Function function) {
    el_wset(line_, EL_ADDFN, name, help, function);
  };
  add(L"minimind-cancel", L"Cancel the line", &Editor::cancel);
  add(L"minimind-paste", L"Insert pasted text", &Editor::paste);
  add(L"minimind-newline", L"Insert a newline", &Editor::insert_newline);
  add(L"minimind-complete", L"Complete a word", &Editor::complete);
  constexpr std::array<std::array<const wchar_t*, 2>, 20> keys = {{
      {L"^C", L"minimind-cancel"},         {L"\\e[200~", L"minimind-paste"}, {L"\\e\\r", L"minimind-newline"},
      {L"\\e\\n", L"minimind-newline"},    {L"\\t", L"minimind-complete"},   {L"^R", L"em-inc-search-prev"},
      {L"^W", L"ed-delete-prev-word"},     {L"\\e[1~", L"ed-move-to-beg"},   {L"\\e[7~", L"ed-move-to-beg"},
      {L"\\e[H", L"ed-move-to-beg"},       {L"\\eOH", L"ed-move-to-beg"},    {L"\\e[4~", L"ed-move-to-end"},
      {L"\\e[8~", L"ed-move-to-end"},      {L"\\e[F", L"ed-move-to-end"},    {L"\\eOF", L"ed-move-to-end"},
      {L"\\e[3~", L"ed-delete-next-char"}, {L"\\e[1;5C", L"em-next-word"},   {L"\\e[1;5D", L"ed-prev-word"},
      {L"\\e[1;3C", L"em-next-word"},      {L"\\e[1;3D", L"ed-prev-word"},
  }};
  for (const auto& [key, function] : keys) el_wset(line_, EL_BIND, key, function, nullptr);
}

void LineEditor::Editor::remember(const std::string& entry) {
  HistEventW event{};
  history_w(history_, &event, H_ENTER, to_wide(entry).c_str());
}

EditedLine LineEditor::Editor::read(const std::string& prompt, bool styles) {
  // libedit leaves out marked text that nothing follows.
  prompt_ = (styles ? L"\1\x1b[1m\1" + to_wide(prompt) + L"\1\x1b[0m\1" : to_wide(prompt)) + L' ';
  cancelled_ = false;
  const sigset_t watched = watched_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &watched, &before);
  catch_suspend();
  el_wset(line_, EL_PREP_TERM, 1);  // before the prompt is shown, so that the terminal echoes nothing behind it
  set_bracketed_paste(true);
  int count = 0;
  const wchar_t* const line = el_wgets(line_, &count);
  set_bracketed_paste(false);
  release_suspend();
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (line && count > 0) {
    std::string text = from_wide({line, static_cast<std::size_t>(count)});
    if (text.ends_with('\n')) text.pop_back();
    return {LineEnd::entered, std::move(text)};
  }
  const bool cancelled = cancelled_ && !signals_.ended;
  std::fputs(cancelled ? "^C\n" : "\n", screen_);
  std::fflush(screen_);
  return {cancelled ? LineEnd::cancelled : LineEnd::end_of_input, std::exchange(cancelled_text_, "")};
}

// One character of UTF-8, as libedit's own reading gives it: 1, 0 at the end, -1 when the line is given up.
int LineEditor::Editor::next_character(wchar_t* character) {
  while (true) {
    if (cancelled_) return -1;
    if (signals_.interrupted && !signals_.ended) {
      signals_.interrupted = false;
      bytes_.clear();
      *character = cancel_key;
      return 1;
    }
    if (!bytes_.empty()) {
      const Utf8Char next = first_utf8(bytes_);
      if (next.state != Utf8State::truncated) {
        bytes_.erase(0, next.size);
        *character = static_cast<wchar_t>(next.code_point);
        return 1;
      }
    }
    if (!fill()) return 0;
  }
}

// Waits for more bytes, or for a signal; false at the end of the input.
bool LineEditor::Editor::fill() {
  if (react_to_signals()) return !signals_.ended;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  sigset_t none;
  sigemptyset(&none);
  if (ppoll(&input, 1, nullptr, &none) < 0) return errno == EINTR;
  std::array<char, 4096> buffer;
  const ssize_t size = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (size > 0) bytes_.append(buffer.data(), static_cast<std::size_t>(size));
  return size > 0 || (size < 0 && (errno == EINTR || errno == EAGAIN));
}

// Whether there was one.
bool LineEditor::Editor::react_to_signals() {
  if (signals_.resized.exchange(false)) el_resize(line_);
  if (signals_.suspended.exchange(false)) suspend();
  return signals_.interrupted;
}

void LineEditor::Editor::suspend() {
  set_bracketed_paste(false);
  el_wset(line_, EL_PREP_TERM, 0);
  release_suspend();
  sigset_t suspending, before;
  sigemptyset(&suspending);
  sigaddset(&suspending, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &suspending, &before);  // stops here until the program goes on
  sigprocmask(SIG_SETMASK, &before, nullptr);
  catch_suspend();
  el_wset(line_, EL_PREP_TERM, 1);
  set_bracketed_paste(true);
  el_wset(line_, EL_REFRESH);
}

// https://invisible-island.net/xterm/ctlseqs/ctlseqs.html, "Bracketed Paste Mode".
void LineEditor::Editor::set_bracketed_paste(bool on) {
  if (!takes_paste_) return;
  std::fputs(on ? "\x1b[?2004h" : "\x1b[?2004l", screen_);
  std::fflush(screen_);
}

// The cursor goes to the end, so that what is printed next does not overwrite the line.
unsigned char LineEditor::Editor::cancel(EditLine* line, wint_t) {
  const LineInfoW* const info = el_wline(line);
  of(line).cancelled_text_ = from_wide({info->buffer, static_cast<std::size_t>(info->lastchar - info->buffer)});
  el_cursor(line, static_cast<int>(info->lastchar - info->cursor));
  of(line).cancelled_ = true;
  return CC_REFRESH;
}

// Everything up to the mark that the terminal puts behind pasted text.
unsigned char LineEditor::Editor::paste(EditLine* line, wint_t) {
  constexpr std::wstring_view end_mark = L"\x1b[201~";
  std::wstring text;
  while (!text.ends_with(end_mark)) {
    wchar_t character = 0;
    if (el_wgetc(line, &character) != 1) return CC_EOF;
    if (character == cancel_key) return cancel(line, cancel_key);
    text += character == L'\r' ? L'\n' : character;
  }
  text.erase(text.size() - end_mark.size());
  std::erase(text, L'\0');
  while (text.ends_with(L'\n')) text.pop_back();
  return text.empty() || el_winsertstr(line, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

unsigned char LineEditor::Editor::insert_newline(EditLine* line, wint_t) {
  return el_winsertstr(line, L"\n") == 0 ? CC_REFRESH : CC_ERROR;
}

unsigned char LineEditor::Editor::complete(EditLine* line, wint_t) {
  Editor& editor = of(line);
  const LineInfoW* const info = el_wline(line);
  const std::string typed = from_wide({info->buffer, static_cast<std::size_t>(info->cursor - info->buffer)});
  const Completions found = completions(editor.words_, typed);
  if (typed.empty() || found.words.empty()) return CC_ERROR;
  const std::string rest = found.common.substr(typed.size()) + (found.words.size() == 1 ? " " : "");
  if (!rest.empty()) return el_winsertstr(line, to_wide(rest).c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  std::string list = "\n";
  for (const std::string& word : found.words) list += word + "  ";
  std::fputs((list + "\n").c_str(), editor.screen_);
  return CC_REDISPLAY;
}

LineEditor::LineEditor(std::FILE* screen, std::vector<std::string> words, TerminalSignals& signals)
    : editor_(std::make_unique<Editor>(screen, std::move(words), signals)) {}

LineEditor::~LineEditor() = default;

void LineEditor::remember(const std::string& entry) {
  editor_->remember(entry);
}

EditedLine LineEditor::read(const std::string& prompt, bool styles) {
  return editor_->read(prompt, styles);
}

}  // namespace minimind
