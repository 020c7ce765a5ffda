#pragma once

#include_next <pthread.h>

// Gives a thread of this program, those of std::thread included, as much stack as Linux does: macOS gives 512 KB, which
// templates and schemas within their limits overflow.
static inline int create_thread(pthread_t* thread, const pthread_attr_t* given, void* (*run)(void*), void* argument) {
  if (given != nullptr) return pthread_create(thread, given, run, argument);
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes)) return error;
  pthread_attr_setstacksize(&attributes, 8 << 20);
  const int error = pthread_create(thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  return error;
}
#define pthread_create create_thread
