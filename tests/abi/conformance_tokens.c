/* The C API's own tokens, for bindings/conformance.md: plain decode after its prompt, one line of ids.
 *   conformance_tokens MODEL.aerie TEMPERATURE SEED N */
#include <aerie/aerie.h>
#include <stdio.h>
#include <stdlib.h>

static const int32_t prompt[] = {260, 513, 1021, 88, 300, 47, 911, 1500, 12, 345};

int main(int argc, char **argv) {
  aerie_error err;
  aerie_runtime *runtime = NULL;
  aerie_model *model = NULL;
  aerie_session *session = NULL;
  aerie_sampling sampling;
  aerie_session_options options;
  int n, left = argc == 5 ? atoi(argv[4]) : 0, status = 1;

  AERIE_INIT(err);
  if (left < 1) return 2;
  AERIE_INIT(options);
  AERIE_INIT(sampling);
  sampling.temperature = (float)atof(argv[2]);
  sampling.seed = strtoull(argv[3], NULL, 10);
  options.sampling = &sampling;
  options.ignore_eos = 1;
  if (aerie_runtime_create(NULL, &runtime, &err) || aerie_model_open(runtime, argv[1], NULL, &model, &err) ||
      aerie_session_create(model, &options, &session, &err) ||
      aerie_session_append(session, prompt, sizeof prompt / sizeof prompt[0], &err))
    goto done;
  while (left > 0) {
    aerie_step_options step;
    aerie_step_result result;
    AERIE_INIT(step);
    AERIE_INIT(result);
    step.max_tokens = left;
    if (aerie_session_step(session, &step, &result, &err)) goto done;
    for (n = 0; n < result.n_tokens; ++n) printf("%d ", (int)result.tokens[n].id);
    left -= result.n_tokens;
  }
  printf("\n");
  status = 0;
done:
  if (status) fprintf(stderr, "%s\n", err.message);
  aerie_session_release(session);
  aerie_model_release(model);
  aerie_runtime_release(runtime);
  return status;
}
