/* Streams text from a package, several tokens a step with a drafter.
 *   quickstart MODEL.aerie [DRAFTER.aerie [PROMPT]] */
#include <aerie/aerie.h>
#include <aerie/text.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *what, const aerie_error *err) {
  fprintf(stderr, "%s: %s\n", what, err->message);
  return 1;
}

int main(int argc, char **argv) {
  const char *prompt = argc > 3 ? argv[3] : "It was a bright morning, and";
  aerie_error err;
  aerie_runtime *runtime = NULL;
  aerie_model *model = NULL;
  aerie_drafter_handle *drafter = NULL;
  aerie_session *session = NULL;
  aerie_tokenizer *tokenizer = NULL;
  aerie_decoder *decoder = NULL;
  aerie_sampling sampling;
  aerie_session_options options;
  const void *blob;
  const char *text;
  size_t size, n, i;
  int32_t ids[256];
  int emitted = 0, status = 1;

  AERIE_INIT(err);
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL.aerie [DRAFTER.aerie [PROMPT]]\n", argv[0]);
    return 2;
  }
  if (aerie_runtime_create(NULL, &runtime, &err)) return failed("runtime", &err);
  if (aerie_model_open(runtime, argv[1], NULL, &model, &err)) {
    failed("model", &err);
    goto done;
  }
  if (aerie_model_blob(model, "tokenizer", &blob, &size, &err) ||
      aerie_tokenizer_create(blob, size, &tokenizer, &err) || aerie_decoder_create(tokenizer, &decoder, &err)) {
    failed("tokenizer", &err);
    goto done;
  }
  AERIE_INIT(options);
  AERIE_INIT(sampling);
  sampling.temperature = 0.7f;
  sampling.seed = 1;
  options.sampling = &sampling;
  if (argc > 2) {
    aerie_drafter_options drafting;
    AERIE_INIT(drafting);
    drafting.package = argv[2];
    if (aerie_runtime_load_plugin_directory(runtime, NULL, &err) ||
        aerie_drafter_open(model, &drafting, &drafter, &err)) {
      failed("drafter", &err);
      goto done;
    }
    options.drafter = drafter;
  }
  if (aerie_session_create(model, &options, &session, &err)) {
    failed("session", &err);
    goto done;
  }
  if (aerie_tokenizer_encode(tokenizer, prompt, strlen(prompt), 0, ids, 256, &n, &err) ||
      aerie_session_append(session, ids, n, &err)) {
    failed("prompt", &err);
    goto done;
  }
  printf("%s", prompt);
  while (emitted < 100) {
    aerie_step_options step;
    aerie_step_result result;
    AERIE_INIT(step);
    AERIE_INIT(result);
    step.max_tokens = 100 - emitted;
    if (aerie_session_step(session, &step, &result, &err)) {
      failed("step", &err);
      goto done;
    }
    for (i = 0; i < (size_t)result.n_tokens; ++i) {
      if (aerie_decoder_push(decoder, result.tokens[i].id, &text, &size, &err)) {
        failed("text", &err);
        goto done;
      }
      printf("%.*s", (int)size, text);
    }
    fflush(stdout);
    emitted += result.n_tokens;
    if (result.state == AERIE_STEP_DONE) break;
  }
  printf("\n");
  status = 0;

done: /* any order: every object holds what it stands on */
  aerie_session_release(session);
  aerie_drafter_release(drafter);
  aerie_decoder_release(decoder);
  aerie_tokenizer_release(tokenizer);
  aerie_model_release(model);
  aerie_runtime_release(runtime);
  return status;
}
