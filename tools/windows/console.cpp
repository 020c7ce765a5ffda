// Consoles, as POSIX has terminals.

#include "tools/windows/console.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <windows.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

#include "tools/windows/signals.h"
#include "tools/windows/sockets.h"
#include "tools/windows/system.h"

#ifndef ENABLE_VIRTUAL_TERMINAL_INPUT
#define ENABLE_VIRTUAL_TERMINAL_INPUT 0x0200
#endif

namespace minimind::windows {
namespace {

std::wstring typed;  // not yet read
bool keys_are_delivered = false;

// Moves what was typed into `typed`.
void take_keys(HANDLE console) {
  DWORD count = 0;
  while (GetNumberOfConsoleInputEvents(console, &count) && count > 0) {
    INPUT_RECORD event;
    if (!ReadConsoleInputW(console, &event, 1, &count)) return;
    if (event.EventType == WINDOW_BUFFER_SIZE_EVENT) deliver(SIGWINCH);
    if (event.EventType != KEY_EVENT) continue;
    const KEY_EVENT_RECORD& key = event.Event.KeyEvent;
    if (!key.bKeyDown && key.wVirtualKeyCode != VK_MENU)
      continue;  // Alt and digits, or what no key has: when Alt rises
    const wchar_t unit = key.uChar.UnicodeChar;
    if (unit) typed.append(key.wRepeatCount, unit == L'\x1a' ? L'\x04' : unit);  // Ctrl-Z is the Ctrl-D of this system
  }
}

// Returns false at the end of the input, which Ctrl-Z and Ctrl-D show at the start of a line.
bool take_line(HANDLE console) {
  wchar_t line[1024];
  DWORD count = 0;
  if (!ReadConsoleW(console, line, std::size(line), &count, nullptr)) return false;
  if (count == 0) return GetLastError() == ERROR_OPERATION_ABORTED;
  if (line[0] == L'\x1a' || line[0] == L'\x04') return false;
  typed.append(line, count);
  std::erase(typed, L'\r');
  return true;
}

// Takes as many whole characters as `size` bytes hold.
std::string take_typed(std::size_t size) {
  std::size_t units = std::min(typed.size(), size / 3);
  if (units > 0 && IS_HIGH_SURROGATE(typed[units - 1])) --units;
  const std::string bytes = narrow(typed.substr(0, units));
  typed.erase(0, units);
  return bytes;
}

short ready(const pollfd& one) {
  if (is_socket(one.fd)) return poll_socket(one.fd, one.events);
  const HANDLE handle = handle_of(one.fd);
  const DWORD type = GetFileType(handle);
  if (type == FILE_TYPE_UNKNOWN) return POLLNVAL;
  if (!(one.events & POLLIN)) return POLLOUT;
  if (is_console(handle)) return console_has_input(handle) ? POLLIN : 0;
  DWORD bytes = 0;
  if (type != FILE_TYPE_PIPE) return POLLIN;
  if (!PeekNamedPipe(handle, nullptr, 0, nullptr, &bytes, nullptr)) return POLLHUP;
  return bytes > 0 ? POLLIN : 0;
}

}  // namespace

bool is_console(void* handle) {
  DWORD mode = 0;
  return GetConsoleMode(handle, &mode);
}

int read_console(void* handle, char* bytes, std::size_t size) {
  if (keys_are_delivered) {
    take_keys(handle);
  } else if (typed.empty() && !take_line(handle)) {
    return 0;
  }
  return static_cast<int>(take_typed(size).copy(bytes, size));
}

bool console_has_input(void* handle) {
  DWORD count = 0;
  return !typed.empty() || (GetNumberOfConsoleInputEvents(handle, &count) && count > 0);
}

}  // namespace minimind::windows

using namespace minimind::windows;

extern "C" {

int isatty(int descriptor) {
  return is_console(handle_of(descriptor));
}

// The C library of wine gives a console the bytes of one character one by one, which it shows as three characters. Its
// console shows its cells after each call: what is drawn over them takes another one.
int fputs(const char* text, FILE* file) {
  std::string_view rest = text;
  if (!isatty(fileno(file))) return std::fwrite(text, 1, rest.size(), file) == rest.size() ? 0 : EOF;
  if (std::fflush(file) != 0) return EOF;
  while (!rest.empty()) {
    const std::string_view piece = rest.substr(0, rest.find('\r', 1));
    if (write(fileno(file), piece.data(), static_cast<unsigned>(piece.size())) < 0) return EOF;
    rest.remove_prefix(piece.size());
  }
  return 0;
}
}

int poll(pollfd* descriptors, unsigned long count, int milliseconds) {
  for (int waited = 0;; ++waited) {
    int number = 0;
    for (unsigned long i = 0; i < count; ++i) number += (descriptors[i].revents = ready(descriptors[i])) != 0;
    if (number > 0 || (milliseconds >= 0 && waited >= milliseconds)) return number;
    Sleep(1);
  }
}

// Of one console.
int ppoll(pollfd* descriptors, unsigned long, const timespec* time, const sigset_t* mask) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, mask, &before);
  const HANDLE events[] = {signal_event(), handle_of(descriptors->fd)};
  const DWORD milliseconds = time ? static_cast<DWORD>(time->tv_sec * 1000 + time->tv_nsec / 1'000'000) : INFINITE;
  const DWORD found = typed.empty() ? WaitForMultipleObjects(2, events, FALSE, milliseconds) : WAIT_OBJECT_0 + 1;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (found == WAIT_OBJECT_0) return errno = EINTR, -1;
  descriptors->revents = found == WAIT_OBJECT_0 + 1 ? POLLIN : 0;
  return descriptors->revents != 0;
}

int ioctl(int descriptor, int, winsize* size) {
  CONSOLE_SCREEN_BUFFER_INFO screen;
  if (!GetConsoleScreenBufferInfo(handle_of(descriptor), &screen)) return fail();
  size->ws_col = static_cast<unsigned short>(screen.srWindow.Right - screen.srWindow.Left + 1);
  size->ws_row = static_cast<unsigned short>(screen.srWindow.Bottom - screen.srWindow.Top + 1);
  return 0;
}

int tcgetattr(int descriptor, termios* state) {
  DWORD mode = 0;
  if (!GetConsoleMode(handle_of(descriptor), &mode)) return fail();
  *state = {};
  state->c_lflag = (mode & ENABLE_LINE_INPUT ? ICANON : 0) | (mode & ENABLE_ECHO_INPUT ? ECHO : 0) | ISIG;
  return 0;
}

int tcsetattr(int descriptor, int, const termios* state) {
  const HANDLE handle = handle_of(descriptor);
  DWORD mode = 0;
  if (!GetConsoleMode(handle, &mode)) return fail();
  constexpr DWORD lines = ENABLE_LINE_INPUT | ENABLE_ECHO_INPUT;
  keys_are_delivered = !(state->c_lflag & ICANON);
  mode |= ENABLE_PROCESSED_INPUT;
  mode = keys_are_delivered ? (mode & ~lines) | ENABLE_WINDOW_INPUT | ENABLE_VIRTUAL_TERMINAL_INPUT
                            : (mode & ~(ENABLE_WINDOW_INPUT | ENABLE_VIRTUAL_TERMINAL_INPUT)) | lines;
  // A console without escape sequences delivers at least characters.
  return SetConsoleMode(handle, mode) || SetConsoleMode(handle, mode & ~ENABLE_VIRTUAL_TERMINAL_INPUT) ? 0 : fail();
}
