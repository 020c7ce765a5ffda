#pragma once

#define NAME_MAX 255

struct dirent {
  char d_name[1024];
};
struct DIR;

DIR* opendir(const char* path);
dirent* readdir(DIR* folder);
int closedir(DIR* folder);
