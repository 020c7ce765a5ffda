#pragma once
#include_next <sys/stat.h>
#include <sys/types.h>

#include <ctime>

#undef stat
#undef fstat
#undef lstat
#define stat posix_stat
#define fstat posix_fstat

using nlink_t = unsigned;
#define ino_t posix_ino_t
using ino_t = unsigned long long;

struct stat {
  unsigned st_dev;
  ino_t st_ino;
  mode_t st_mode;
  nlink_t st_nlink;
  unsigned st_uid;
  long long st_size, st_blocks;
  timespec st_mtim;
};
#define st_mtime st_mtim.tv_sec

#define S_IFLNK 0xA000
#define S_IFSOCK 0xC000
#define S_ISLNK(mode) (((mode)&S_IFMT) == S_IFLNK)
#define S_ISSOCK(mode) (((mode)&S_IFMT) == S_IFSOCK)

int stat(const char* path, struct stat* status);
int lstat(const char* path, struct stat* status);
int fstat(int descriptor, struct stat* status);
int fchmod(int descriptor, unsigned mode);
