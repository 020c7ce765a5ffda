#pragma once
#include_next <fcntl.h>

#define O_CLOEXEC O_NOINHERIT
#define O_NONBLOCK 0
#define O_NOCTTY 0
#define O_NOFOLLOW 0x100000
#define F_GETFL 3
#define F_SETFL 4
#define F_DUPFD_CLOEXEC 1030

#define SYNC_FILE_RANGE_WAIT_BEFORE 1
#define SYNC_FILE_RANGE_WRITE 2
#define SYNC_FILE_RANGE_WAIT_AFTER 4

// F_DUPFD_CLOEXEC of sockets; does nothing else.
int fcntl(int descriptor, int command, int value = 0);
int sync_file_range(int descriptor, long long offset, long long size, unsigned flags);
