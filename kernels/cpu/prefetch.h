#pragma once

// A macro: GCC 12 takes a function that only prefetches for one without effects, and drops its calls.
#define AERIE_PREFETCH(p) __builtin_prefetch(p)
