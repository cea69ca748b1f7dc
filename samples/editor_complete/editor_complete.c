/* An editor that completes Python while somebody types. One session holds the text up to the cursor; every keystroke
 * keeps what has not changed of it, and a fork of it guesses on in a thread of its own, until the next keystroke
 * cancels it. Types a line by itself, and prints for each key what was reused and how soon the first word was there.
 *   editor_complete [--model T.aerie] [--drafter D.aerie | --drafter ngram] [--key-ms N] [--tokens N] [--type TEXT]
 * In TEXT, < is a backspace. */
#define _POSIX_C_SOURCE 200809L
#include <aerie/aerie.h>
#include <aerie/text.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_TEXT = 2048, MAX_TOKENS = 512, MAX_GUESS = 1024 };

static const char *const kFile =
    "def mean(values):\n"
    "    total = 0\n"
    "    for value in values:\n"
    "        total += value\n"
    "    return total / len(values)\n"
    "\n"
    "def variance(values):\n"
    "    m = mean(values)\n"
    "    total = 0\n";

typedef struct {
  const char *model, *drafter, *type;
  double key_ms;
  int tokens;
} arguments;

/* A guess at what comes next, made by a thread of its own. */
typedef struct {
  aerie_session *session;
  aerie_tokenizer *tokenizer;
  int most_tokens, tokens, cancelled;
  double begun_ms, first_ms, done_ms;
  char text[MAX_GUESS];
  aerie_error err;
  int32_t code;
} guess;

typedef struct {
  aerie_runtime *runtime;
  aerie_model *model;
  aerie_drafter_handle *drafter;
  aerie_session *session; /* the text up to the cursor */
  aerie_tokenizer *tokenizer;
  char text[MAX_TEXT];
  int32_t ids[MAX_TOKENS];
  size_t n_ids;
} editor;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void sleep_ms(double ms) {
  struct timespec t;
  t.tv_sec = (time_t)(ms / 1e3);
  t.tv_nsec = (long)((ms - (double)t.tv_sec * 1e3) * 1e6);
  nanosleep(&t, NULL);
}

static int failed(const char *what, const aerie_error *err) {
  fprintf(stderr, "%s: %s\n", what, err->message);
  return 0;
}

static int editor_open(editor *e, const arguments *a) {
  const char *const stop = "\n\n";
  aerie_drafter_options drafting;
  aerie_session_options session;
  aerie_token_source source;
  aerie_error err;
  const void *blob;
  size_t size;
  AERIE_INIT(err);
  AERIE_INIT(drafting);
  AERIE_INIT(session);
  AERIE_INIT(source);
  if (aerie_runtime_create(NULL, &e->runtime, &err)) return failed("runtime", &err);
  if (aerie_model_open(e->runtime, a->model, NULL, &e->model, &err)) return failed("model", &err);
  if (aerie_model_blob(e->model, "tokenizer", &blob, &size, &err) ||
      aerie_tokenizer_create(blob, size, &e->tokenizer, &err))
    return failed("tokenizer", &err);
  if (*a->drafter) {
    if (strstr(a->drafter, ".aerie")) drafting.package = a->drafter;
    else drafting.plugin = a->drafter;
    if (aerie_runtime_load_plugin_directory(e->runtime, NULL, &err) ||
        aerie_drafter_open(e->model, &drafting, &e->drafter, &err))
      return failed("drafter", &err);
  }
  session.drafter = e->drafter; /* temperature 0: what the model finds likeliest */
  if (aerie_session_create(e->model, &session, &e->session, &err) ||
      aerie_tokenizer_source(e->tokenizer, &source, &err) ||
      aerie_session_set_stop_strings(e->session, &stop, 1, &source, &err))
    return failed("session", &err);
  strcpy(e->text, kFile);
  return 1;
}

static void editor_close(editor *e) {
  aerie_session_release(e->session);
  aerie_drafter_release(e->drafter);
  aerie_tokenizer_release(e->tokenizer);
  aerie_model_release(e->model);
  aerie_runtime_release(e->runtime);
}

/* The session gets the text as it is now: tokens that have not changed stay, with their keys and values. Then it reads the
 * rest, so that forks need not. *reused: tokens that were not read again. */
static int editor_follow(editor *e, size_t *reused, aerie_error *err) {
  int32_t ids[MAX_TOKENS];
  size_t n, same = 0;
  aerie_step_options step;
  aerie_step_result result;
  aerie_statistics before, after;
  AERIE_INIT(step);
  AERIE_INIT(result);
  AERIE_INIT(before);
  AERIE_INIT(after);
  if (aerie_tokenizer_encode(e->tokenizer, e->text, strlen(e->text), 0, ids, MAX_TOKENS, &n, err)) return 0;
  while (same < n && same < e->n_ids && ids[same] == e->ids[same]) ++same;
  step.max_tokens = 1;
  if (aerie_session_statistics(e->session, &before, err) || aerie_session_rewind(e->session, same, err) ||
      aerie_session_append(e->session, ids + same, n - same, err) ||
      aerie_session_step(e->session, &step, &result, err) || aerie_session_rewind(e->session, n, err) ||
      aerie_session_statistics(e->session, &after, err))
    return 0;
  memcpy(e->ids, ids, n * sizeof *ids);
  e->n_ids = n;
  *reused = n - 1 - (size_t)(after.prefill_tokens - before.prefill_tokens);
  return 1;
}

static void *guess_on(void *user) {
  guess *g = user;
  aerie_decoder *decoder = NULL;
  size_t used = 0, size;
  const char *text;
  int32_t i, state = AERIE_STEP_TOKENS;
  g->code = aerie_decoder_create(g->tokenizer, &decoder, &g->err);
  while (!g->code && state != AERIE_STEP_DONE && g->tokens < g->most_tokens) {
    aerie_step_options step;
    aerie_step_result result;
    AERIE_INIT(step);
    AERIE_INIT(result);
    step.max_tokens = g->most_tokens - g->tokens;
    if ((g->code = aerie_session_step(g->session, &step, &result, &g->err))) break;
    if (g->tokens == 0) g->first_ms = now_ms();
    g->tokens += result.n_tokens;
    state = result.state;
    for (i = 0; i < result.n_tokens && !g->code; ++i) {
      g->code = aerie_decoder_push(decoder, result.tokens[i].id, &text, &size, &g->err);
      if (g->code || used + size >= sizeof g->text) break;
      memcpy(g->text + used, text, size);
      used += size;
    }
    if (result.finish == AERIE_FINISH_STOP_STRING && used >= (size_t)result.stop_bytes) used -= (size_t)result.stop_bytes;
  }
  g->text[used] = 0;
  g->done_ms = now_ms();
  aerie_decoder_release(decoder);
  if (g->code == AERIE_E_CANCELLED) {
    g->code = AERIE_OK;
    g->cancelled = 1;
  }
  return NULL;
}

static void print_escaped(const char *text) {
  for (; *text; ++text) {
    if (*text == '\n') fputs("\\n", stdout);
    else putchar(*text);
  }
}

/* One keystroke, and what was guessed until the next. */
static int press(editor *e, char key, int last, const arguments *a) {
  const double pressed = now_ms();
  guess g;
  pthread_t thread;
  size_t reused, length = strlen(e->text);
  memset(&g, 0, sizeof g);
  AERIE_INIT(g.err);
  if (key == '<') {
    if (length > 0) e->text[length - 1] = 0;
  } else if (length + 1 < MAX_TEXT) {
    e->text[length] = key;
    e->text[length + 1] = 0;
  }
  if (!editor_follow(e, &reused, &g.err)) return failed("text", &g.err);
  if (aerie_session_fork(e->session, NULL, &g.session, &g.err)) return failed("fork", &g.err);
  g.tokenizer = e->tokenizer;
  g.most_tokens = a->tokens;
  if (pthread_create(&thread, NULL, guess_on, &g)) {
    aerie_session_release(g.session);
    fprintf(stderr, "no thread\n");
    return 0;
  }
  if (!last) {
    const double left = pressed + a->key_ms - now_ms();
    if (left > 0) sleep_ms(left);
    aerie_session_cancel(g.session); /* the next key: this guess is of no use any more */
  }
  pthread_join(thread, NULL);
  aerie_session_release(g.session);
  if (g.code) return failed("completion", &g.err);
  printf("%c  %3d of %3d tokens reused  ", key, (int)reused, (int)e->n_ids);
  if (g.tokens > 0) printf("first after %5.1f ms, %2d in %6.1f ms  ", g.first_ms - pressed, g.tokens, g.done_ms - pressed);
  else printf("nothing yet%27s", "");
  printf("%s| ", g.cancelled ? "cancelled " : "          ");
  print_escaped(g.text);
  putchar('\n');
  return 1;
}

int main(int argc, char **argv) {
  arguments a = {"samples/models/demo.aerie", "samples/models/demo-eagle3.aerie", "    for vl<alue in values:", 60, 24};
  editor e;
  int i, ok;
  memset(&e, 0, sizeof e);
  for (i = 1; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (value && !strcmp(argv[i], "--model")) a.model = value;
    else if (value && !strcmp(argv[i], "--drafter")) a.drafter = value;
    else if (value && !strcmp(argv[i], "--type")) a.type = value;
    else if (value && !strcmp(argv[i], "--key-ms")) a.key_ms = atof(value);
    else if (value && !strcmp(argv[i], "--tokens") && atoi(value) > 0) a.tokens = atoi(value);
    else {
      fprintf(stderr, "usage: editor_complete [--model T.aerie] [--drafter D.aerie | --drafter ID] [--key-ms N] [--tokens N] [--type TEXT]\n");
      return 2;
    }
  }
  ok = editor_open(&e, &a);
  if (ok) fputs(e.text, stdout);
  for (i = 0; ok && a.type[i]; ++i) ok = press(&e, a.type[i], !a.type[i + 1], &a);
  editor_close(&e);
  return ok ? 0 : 1;
}
