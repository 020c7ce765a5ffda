#include "tools/windows/signals.h"

#include <sys/time.h>
#include <unistd.h>
#include <windows.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

namespace minimind::windows {
namespace {

constexpr int most_signals = 32;
std::atomic<void (*)(int)> handlers[most_signals];

std::mutex mutex;  // guards `mask`, that of the main thread
std::condition_variable unmasked;
sigset_t mask = 0;
const DWORD main_thread = GetCurrentThreadId();

BOOL WINAPI on_event(DWORD event) {
  const int signal = event == CTRL_C_EVENT ? SIGINT : event == CTRL_BREAK_EVENT ? SIGTERM : SIGHUP;
  if (handlers[signal] == SIG_DFL) return FALSE;
  deliver(signal);
  constexpr DWORD longest_end = 5000;  // the system ends the program once this returns
  if (signal == SIGHUP) Sleep(longest_end);
  return TRUE;
}

void (*set_handler(int signal, void (*handler)(int)))(int) {
  static const BOOL installed = SetConsoleCtrlHandler(on_event, TRUE);
  if (!installed || signal < 0 || signal >= most_signals) return SIG_ERR;
  return handlers[signal].exchange(handler);
}

}  // namespace

void deliver(int signal) {
  {
    std::unique_lock lock(mutex);
    unmasked.wait(lock, [signal] { return GetCurrentThreadId() == main_thread || !(mask >> signal & 1); });
  }
  if (void (*const handler)(int) = handlers[signal]; handler != SIG_DFL && handler != SIG_IGN) handler(signal);
  SetEvent(signal_event());
}

void* signal_event() {
  static const HANDLE event = CreateEventW(nullptr, FALSE, FALSE, nullptr);
  return event;
}

}  // namespace minimind::windows

using namespace minimind::windows;

extern "C" void (*signal(int number, void (*handler)(int)))(int) {
  return set_handler(number, handler);
}

int sigaction(int signal, const struct sigaction* action, struct sigaction* old) {
  if (old) *old = {handlers[signal], 0, 0};
  return action && set_handler(signal, action->sa_handler) == SIG_ERR ? -1 : 0;
}

int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
  const std::lock_guard lock(mutex);
  if (old) *old = mask;
  if (!set || GetCurrentThreadId() != main_thread) return 0;
  mask = how == SIG_BLOCK ? mask | *set : how == SIG_UNBLOCK ? mask & ~*set : *set;
  unmasked.notify_all();
  return 0;
}

int kill(pid_t process, int) {
  const HANDLE handle = OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(process));
  const bool runs = handle ? WaitForSingleObject(handle, 0) == WAIT_TIMEOUT : GetLastError() == ERROR_ACCESS_DENIED;
  if (handle) CloseHandle(handle);
  return runs ? 0 : (errno = ESRCH, -1);
}

int setitimer(int, const itimerval* value, itimerval*) {
  static const HANDLE main = OpenThread(THREAD_TERMINATE, FALSE, main_thread);
  std::thread([every = value->it_interval.tv_usec / 1000] {
    while (true) {
      Sleep(static_cast<DWORD>(every));
      CancelSynchronousIo(main);
    }
  }).detach();
  return 0;
}
