#pragma once
#include_next <sys/mman.h>

#define MADV_HUGEPAGE MADV_NORMAL
