#pragma once
#include_next <sys/resource.h>

#include <pthread/qos.h>

// Of this thread. The system's is of the process, which could not take it back.
inline int set_thread_priority(int, int, int) {
  return pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0);
}
#define setpriority set_thread_priority
