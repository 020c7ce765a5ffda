#pragma once

#define PRIO_PROCESS 0
#define RLIMIT_NOFILE 7

using rlim_t = unsigned long long;
struct rlimit {
  rlim_t rlim_cur, rlim_max;
};

// Of this thread.
int setpriority(int which, int who, int priority);
inline int getpriority(int, int) {
  return 0;
}
int getrlimit(int resource, rlimit* limit);
int setrlimit(int resource, const rlimit* limit);
