/* The library of a wheel shall load on each Linux with glibc 2.17, of 2012, or later. Linked on Debian, it would ask for the newest
   version of what it calls. These call the oldest instead, or the kernel. The C++ library is linked into it, and calls them too.
   tests/wheels.py has auditwheel look for names that are missing here. */

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define OLDEST "GLIBC_2.2.5"
#else
#define OLDEST "GLIBC_2.17"
#endif

#define OLD(result, name, parameters, arguments)             \
  extern result old_##name parameters;                       \
  __asm__(".symver old_" #name ", " #name "@" OLDEST "\n");  \
  result name parameters { return old_##name arguments; }

OLD(double, exp, (double x), (x))
OLD(double, log, (double x), (x))
OLD(double, pow, (double x, double y), (x, y))
OLD(double, hypot, (double x, double y), (x, y))
OLD(float, expf, (float x), (x))
OLD(float, logf, (float x), (x))
OLD(int, pthread_create, (pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument),
    (thread, attributes, run, argument))
OLD(int, pthread_join, (pthread_t thread, void** result), (thread, result))
OLD(int, pthread_once, (pthread_once_t* once, void (*run)(void)), (once, run))
OLD(int, pthread_sigmask, (int how, const sigset_t* set, sigset_t* old), (how, set, old))

int stat(const char* path, struct stat* facts) { return (int)syscall(SYS_newfstatat, AT_FDCWD, path, facts, 0); }
int lstat(const char* path, struct stat* facts) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, facts, AT_SYMLINK_NOFOLLOW);
}
int fstat(int file, struct stat* facts) { return (int)syscall(SYS_fstat, file, facts); }
int fstat64(int file, struct stat64* facts) { return (int)syscall(SYS_fstat, file, facts); }

/* As if there were always other threads. */
char __libc_single_threaded = 0;
