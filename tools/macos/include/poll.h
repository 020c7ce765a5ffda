#pragma once
#include_next <poll.h>

#include <csignal>
#include <ctime>

// The other side writes no more.
#define POLLRDHUP POLLHUP

// Of one descriptor that is read.
int ppoll(pollfd* descriptor, unsigned long count, const timespec* time, const sigset_t* mask);
