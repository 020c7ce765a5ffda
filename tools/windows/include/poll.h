#pragma once
#include <winsock2.h>

#include <csignal>
#include <ctime>

#define POLLRDHUP 0x2000
#define PIPE_BUF 4096

#define pollfd posix_pollfd
#define poll posix_poll
struct pollfd {
  int fd;
  short events, revents;
};

int poll(pollfd* descriptors, unsigned long count, int milliseconds);
int ppoll(pollfd* descriptors, unsigned long count, const timespec* time, const sigset_t* mask);
