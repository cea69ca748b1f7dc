/* A game at 60 frames a second in which somebody talks: each frame renders, then gives the rest of its time to the
 * model, and hands the words out as they come. The same loop without the model follows; both show their frame times.
 *   game_loop [--model T.aerie] [--drafter D.aerie] [--seconds N] [--threads N] [--render-ms X] */
#define _POSIX_C_SOURCE 200809L
#include <aerie/aerie.h>
#include <aerie/text.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifndef _WIN32
#include <sys/resource.h>
#endif

#include "frame_times.h"

#define FRAME_NS (1000000000 / 60)
/* Kept free of every frame: a step ends at most half a millisecond late, and the frame itself has work left to do. */
#define MARGIN_NS 1500000
#define LEAST_BUDGET_NS 200000 /* less is not worth a call */

typedef struct {
  const char *model, *drafter;
  double seconds, render_ms;
  int threads;
} arguments;

/* Somebody who speaks. */
typedef struct {
  aerie_runtime *runtime;
  aerie_model *model;
  aerie_drafter_handle *drafter;
  aerie_session *session;
  aerie_tokenizer *tokenizer;
  aerie_decoder *decoder;
  aerie_sampling sampling;
  long tokens;
} npc;

static const char *const kPrompt = "The old man looked up from the fire, and said:";

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_until(int64_t ns) {
  struct timespec t;
  t.tv_sec = (time_t)(ns / 1000000000);
  t.tv_nsec = (long)(ns % 1000000000);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
  }
}

static void render(double ms) {
  const int64_t end = now_ns() + (int64_t)(ms * 1e6);
  while (now_ns() < end) {
  }
}

static int failed(const char *what, const aerie_error *err) {
  fprintf(stderr, "%s: %s\n", what, err->message);
  return 0;
}

static int say(npc *n, const char *text, aerie_error *err) {
  int32_t ids[64];
  size_t count;
  return !aerie_tokenizer_encode(n->tokenizer, text, strlen(text), 0, ids, 64, &count, err) &&
         !aerie_session_append(n->session, ids, count, err);
}

static int npc_create(npc *n, const arguments *a) {
  aerie_runtime_options options;
  aerie_drafter_options drafting;
  aerie_session_options session;
  aerie_error err;
  const void *blob;
  size_t size;
  AERIE_INIT(err);
  AERIE_INIT(options);
  AERIE_INIT(drafting);
  AERIE_INIT(session);
  AERIE_INIT(n->sampling);
  options.threads = a->threads;
  if (aerie_runtime_create(&options, &n->runtime, &err)) return failed("runtime", &err);
  if (aerie_model_open(n->runtime, a->model, NULL, &n->model, &err)) return failed("model", &err);
  if (aerie_model_blob(n->model, "tokenizer", &blob, &size, &err) ||
      aerie_tokenizer_create(blob, size, &n->tokenizer, &err) ||
      aerie_decoder_create(n->tokenizer, &n->decoder, &err))
    return failed("tokenizer", &err);
  if (*a->drafter) {
    drafting.package = a->drafter;
    if (aerie_runtime_load_plugin_directory(n->runtime, NULL, &err) ||
        aerie_drafter_open(n->model, &drafting, &n->drafter, &err))
      return failed("drafter", &err);
  }
  session.drafter = n->drafter;
  n->sampling.temperature = 0.7f;
  n->sampling.seed = 1;
  session.sampling = &n->sampling;
  session.ignore_eos = 1;
  if (aerie_session_create(n->model, &session, &n->session, &err) || !say(n, kPrompt, &err))
    return failed("session", &err);
  return 1;
}

static void npc_release(npc *n) {
  aerie_session_release(n->session);
  aerie_drafter_release(n->drafter);
  aerie_decoder_release(n->decoder);
  aerie_tokenizer_release(n->tokenizer);
  aerie_model_release(n->model);
  aerie_runtime_release(n->runtime);
}

/* Go on for `ns`, or until there are words; they are printed. What the call took beyond its budget is noted. */
static int npc_think(npc *n, int64_t ns, frame_times *overruns) {
  aerie_step_options step;
  aerie_step_result result;
  aerie_error err;
  const char *text;
  size_t size;
  const int64_t start = now_ns();
  int64_t late;
  int32_t i;
  AERIE_INIT(err);
  AERIE_INIT(step);
  AERIE_INIT(result);
  step.budget_us = ns / 1000;
  if (aerie_session_step(n->session, &step, &result, &err)) return failed("step", &err);
  late = now_ns() - start - step.budget_us * 1000;
  frame_times_add(overruns, late > 0 ? (double)late / 1e6 : 0);
  for (i = 0; i < result.n_tokens; ++i) {
    if (aerie_decoder_push(n->decoder, result.tokens[i].id, &text, &size, &err)) return failed("text", &err);
    fwrite(text, 1, size, stdout);
  }
  n->tokens += result.n_tokens;
  if (result.state == AERIE_STEP_DONE) { /* its memory is full: another story */
    ++n->sampling.seed;
    printf("\n\n%s", kPrompt);
    if (aerie_session_rewind(n->session, 0, &err) || aerie_session_set_sampling(n->session, &n->sampling, &err) ||
        !say(n, kPrompt, &err))
      return failed("session", &err);
  }
  return 1;
}

/* How often the system has taken a core from this process for something else; Windows does not say. */
static long preemptions(void) {
#ifdef _WIN32
  return 0;
#else
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
#endif
}

typedef struct {
  long all, preempted; /* preempted: other programs wanted the core, with or without us */
} late_frames;

/* n NULL: without the model. 0: it failed. */
static int play(const arguments *a, npc *n, frame_times *frames, frame_times *overruns, late_frames *late) {
  const long total = (long)(a->seconds * 60 + 0.5);
  long i;
  int64_t start = now_ns();
  for (i = 0; i < total; ++i) {
    const long before = preemptions();
    int64_t left, end;
    render(a->render_ms);
    /* A step gives its words at once, so several may fit into a frame. */
    while (n && (left = start + FRAME_NS - MARGIN_NS - now_ns()) >= LEAST_BUDGET_NS)
      if (!npc_think(n, left, overruns)) return 0;
    if (n) fflush(stdout);
    end = now_ns();
    frame_times_add(frames, (double)(end - start) / 1e6);
    start += FRAME_NS;
    if (end > start) {
      ++late->all;
      if (preemptions() != before) ++late->preempted;
      start = end; /* the next one has its full time */
    } else {
      sleep_until(start);
    }
  }
  return 1;
}

static void report(const char *name, frame_times *frames, const late_frames *late) {
  printf("\n%s: %zu frames, work in a frame p50 %.2f p99 %.2f max %.2f ms\n"
         "  late frames: %ld, of these interrupted by other programs: %ld\n", name, frames->n,
         frame_times_percentile(frames, 50), frame_times_percentile(frames, 99), frame_times_percentile(frames, 100),
         late->all, late->preempted);
  frame_times_print(frames, 0.5);
}

static int parse(int argc, char **argv, arguments *a) {
  int i;
  for (i = 1; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!value) return 0;
    if (!strcmp(argv[i], "--model")) a->model = value;
    else if (!strcmp(argv[i], "--drafter")) a->drafter = value;
    else if (!strcmp(argv[i], "--seconds")) a->seconds = atof(value);
    else if (!strcmp(argv[i], "--threads")) a->threads = atoi(value);
    else if (!strcmp(argv[i], "--render-ms")) a->render_ms = atof(value);
    else return 0;
  }
  return a->seconds > 0 && a->seconds <= 3600 && a->render_ms >= 0;
}

int main(int argc, char **argv) {
  arguments a = {"samples/models/demo.aerie", "samples/models/demo-eagle3.aerie", 10, 10, 0};
  npc speaker = {0};
  frame_times with = {0}, without = {0}, overruns = {0};
  late_frames late_with = {0, 0}, late_without = {0, 0};
  size_t frames;
  int status = 1;
  if (!parse(argc, argv, &a)) {
    fprintf(stderr, "usage: %s [--model T.aerie] [--drafter D.aerie or \"\"] [--seconds N] [--threads N] [--render-ms X]\n",
            argv[0]);
    return 2;
  }
  frames = (size_t)(a.seconds * 60) + 1;
  if (!frame_times_create(&with, frames) || !frame_times_create(&without, frames) ||
      !frame_times_create(&overruns, frames * 64)) {
    fprintf(stderr, "out of memory\n");
    goto done;
  }
  if (!npc_create(&speaker, &a)) goto done;
  printf("%s", kPrompt);
  if (!play(&a, &speaker, &with, &overruns, &late_with) || !play(&a, NULL, &without, NULL, &late_without)) goto done;
  report("\nwith Aerie", &with, &late_with);
  printf("  %.1f tokens spoken per second; %zu steps, over their budget by p50 %.3f p99 %.3f max %.3f ms\n",
         (double)speaker.tokens / a.seconds, overruns.n, frame_times_percentile(&overruns, 50),
         frame_times_percentile(&overruns, 99), frame_times_percentile(&overruns, 100));
  report("without Aerie", &without, &late_without);
  status = 0;

done:
  npc_release(&speaker);
  frame_times_release(&overruns);
  frame_times_release(&without);
  frame_times_release(&with);
  return status;
}
