#pragma once
#include_next <signal.h>
#include <sys/types.h>

#undef pthread_sigmask
#define SIGHUP 1
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTSTP 20
#define SIGXFSZ 25
#define SIGWINCH 28
#define SIG_BLOCK 0
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2
#define sigprocmask pthread_sigmask

using sigset_t = _sigset_t;
struct sigaction {
  void (*sa_handler)(int);
  sigset_t sa_mask;
  int sa_flags;
};

inline int sigemptyset(sigset_t* set) {
  *set = 0;
  return 0;
}
inline int sigfillset(sigset_t* set) {
  *set = ~sigset_t{0};
  return 0;
}
inline int sigaddset(sigset_t* set, int signal) {
  *set |= sigset_t{1} << signal;
  return 0;
}

// Signals are those of the console: Ctrl-C is SIGINT, Ctrl-Break SIGTERM, and the end of the console or of the session
// SIGHUP. The system calls handlers on a thread of its own; masks are those of the main thread, and other threads have
// none.
int sigaction(int signal, const struct sigaction* action, struct sigaction* old);
int pthread_sigmask(int how, const sigset_t* set, sigset_t* old);
int kill(pid_t process, int must_be_0);
