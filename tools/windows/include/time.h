#include_next <time.h>

// The system does not tell when a process of a given number started, for which this is needed.
#define CLOCK_BOOTTIME CLOCK_REALTIME
