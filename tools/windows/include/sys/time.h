#pragma once
#include_next <sys/time.h>

#define ITIMER_REAL 0

struct itimerval {
  timeval it_interval, it_value;
};

// From the first call on, calls of the main thread that wait end with EINTR again and again.
int setitimer(int which, const itimerval* value, itimerval* old);
