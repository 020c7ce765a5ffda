#pragma once
#include <fcntl.h>

#define LOCK_EX 2
#define LOCK_NB 4

int flock(int descriptor, int operation);
