#pragma once

// Macros: GCC 12 takes a function that only prefetches for one without effects, and drops its calls.
#define AERIE_PREFETCH(p) __builtin_prefetch(p)
#define AERIE_PREFETCH_L2(p) __builtin_prefetch(p, 0, 2)
