#pragma once
#include <cstddef>

#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_PRIVATE 2
#define MAP_ANONYMOUS 32
#define MAP_FAILED reinterpret_cast<void*>(-1)
#define MADV_HUGEPAGE 14

// Only memory that belongs to no file.
void* mmap(void* address, std::size_t size, int protection, int flags, int descriptor, long long offset);
int munmap(void* address, std::size_t size);
int madvise(void* address, std::size_t size, int advice);
