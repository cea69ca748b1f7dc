/* Durations in milliseconds: collected without allocation, then shown as a histogram. */
#ifndef FRAME_TIMES_H
#define FRAME_TIMES_H

#include <stddef.h>

typedef struct {
  double *ms;
  size_t n, capacity;
} frame_times;

/* 0: out of memory. */
int frame_times_create(frame_times *t, size_t capacity);
void frame_times_release(frame_times *t);
/* Ignored once it is full. */
void frame_times_add(frame_times *t, double ms);
/* Sorts; the p-th percentile, 0 of none. */
double frame_times_percentile(frame_times *t, double p);
/* One line for every bin of `bin` ms that is not empty, between the first and the last. */
void frame_times_print(frame_times *t, double bin);

#endif
