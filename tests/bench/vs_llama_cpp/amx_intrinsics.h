// Included in front of llama.cpp's sources where GCC is older than 13: its _tile_loadconfig names 8 bytes of the 64 that the
// instruction reads, so that the compiler leaves out the writing of the others, and the first product of tiles is an illegal
// instruction.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13 && defined(__x86_64__)
#include <immintrin.h>
#define _tile_loadconfig(config) __asm__ volatile("ldtilecfg %0" : : "m"(*(const char(*)[64])(config)))
#endif
