#pragma once
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <stdlib.h>
#include <sys/types.h>
#include_next <unistd.h>

#include <cstddef>

#ifndef STDIN_FILENO
#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2
#endif
#define _SC_CLK_TCK 2

using uid_t = unsigned;

ssize_t pread(int descriptor, void* bytes, std::size_t size, long long offset);
ssize_t pwrite(int descriptor, const void* bytes, std::size_t size, long long offset);
int fsync(int descriptor);
int fdatasync(int descriptor);
uid_t geteuid();
int getppid();
long sysconf(int name);
// Leaves the console as it was.
[[noreturn]] void exit_at_once(int status);
#define _exit exit_at_once
// Of "/proc/self/exe" alone.
ssize_t readlink(const char* path, char* text, std::size_t size);
#define gethostname posix_gethostname
int gethostname(char* name, std::size_t size);
