#include "frame_times.h"

#include <stdio.h>
#include <stdlib.h>

int frame_times_create(frame_times *t, size_t capacity) {
  t->ms = malloc((capacity ? capacity : 1) * sizeof *t->ms);
  t->n = 0;
  t->capacity = capacity;
  return t->ms != NULL;
}

void frame_times_release(frame_times *t) {
  free(t->ms);
  t->ms = NULL;
}

void frame_times_add(frame_times *t, double ms) {
  if (t->n < t->capacity) t->ms[t->n++] = ms;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double frame_times_percentile(frame_times *t, double p) {
  if (t->n == 0) return 0;
  qsort(t->ms, t->n, sizeof *t->ms, ascending);
  return t->ms[(size_t)(p / 100 * (double)(t->n - 1) + 0.5)];
}

void frame_times_print(frame_times *t, double bin) {
  size_t i = 0;
  frame_times_percentile(t, 0); /* sorts */
  while (i < t->n) {
    const long at = (long)(t->ms[i] / bin);
    const size_t first = i;
    int bar;
    while (i < t->n && (long)(t->ms[i] / bin) == at) ++i;
    bar = (int)(60 * (i - first) / t->n);
    printf("  %6.2f - %6.2f ms %6zu %.*s\n", (double)at * bin, (double)(at + 1) * bin, i - first, bar ? bar : 1,
           "############################################################");
  }
}
