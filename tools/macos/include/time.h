#pragma once
#include_next <time.h>

// On this system it counts the time of sleep, too.
#define CLOCK_BOOTTIME CLOCK_MONOTONIC
