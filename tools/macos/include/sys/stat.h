#pragma once
#include_next <sys/stat.h>

#define st_mtim st_mtimespec
