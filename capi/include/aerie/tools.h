/* aerie/tools.h: convert checkpoints to packages and look inside packages (libaerie-text).
 * Conventions as aerie.h; all functions are [any]. */
#ifndef AERIE_TOOLS_H
#define AERIE_TOOLS_H

#include "aerie/aerie.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AERIE_WEIGHTS_DEFAULT = 0 /* stored, but bf16 for f32 */, AERIE_WEIGHTS_F32 = 1, AERIE_WEIGHTS_BF16 = 2, AERIE_WEIGHTS_INT8 = 3,
       AERIE_WEIGHTS_INT4 = 4, AERIE_WEIGHTS_FP8 = 5 /* E4M3, one scale a row */, AERIE_WEIGHTS_Q4_1 = 6 /* 4 bits, and a minimum */,
       AERIE_WEIGHTS_STORED = 7 /* each matrix in that of these which is nearest to what the source has it in */,
       AERIE_WEIGHTS_MXFP4 = 8 /* E2M1, a power of two for 32. A source's MXFP4 stays that, whatever is asked for, but f32 or bf16 */ };

typedef struct aerie_convert_options {
  uint32_t struct_size;
  int32_t dtype;             /* AERIE_WEIGHTS_* */
  const char *source;        /* Hugging Face directory, GGUF, llama2.c .bin, head directory, or .aerie */
  const char *output;        /* written under a temporary name, renamed when whole */
  const char *drafter_for;   /* drafters: the target package */
  const char *tokenizer;     /* llama2.c's tokenizer.bin, a tokenizer.json or tokenizer.model, or "none"; NULL: the source's own */
  int32_t compress;          /* nonzero: zstd chunks (smaller file, unpacked at load) */
  int32_t context;           /* targets: the longest text they will read; 0: as long as they can (LongRoPE: the shorter of two) */
  aerie_progress_fn progress; /* NULL: none */
  void *progress_user;
  aerie_log_fn log;          /* what a user should know though it went well (level 1); NULL: silence */
  void *log_user;
  int32_t candidate_rank;    /* targets: rank of a candidate head to add; 0: as the source; -1: none */
  int32_t head_dtype;        /* AERIE_WEIGHTS_* of the embedding and the LM head; 0: dtype's */
} aerie_convert_options;
/* Reads all of the source and writes one package (docs/package-format.md). Hooks are called on this thread. AERIE_E_NOT_FOUND,
 * AERIE_E_IO: a file; AERIE_E_BAD_FORMAT; AERIE_E_UNSUPPORTED: no checkpoint that is known, or a setting that would be another
 * model; AERIE_E_MISMATCH: source and drafter_for do not go together; AERIE_E_CANCELLED. Nothing is left behind then. */
AERIE_API int32_t aerie_convert(const aerie_convert_options *options, aerie_error *err);

enum { AERIE_INSPECT_TEXT = 0, AERIE_INSPECT_JSON = 1 };
/* A description of a package. *text is malloc-owned by the library: free it with aerie_string_free. */
AERIE_API int32_t aerie_inspect(const char *path, int32_t format, char **text, aerie_error *err);
AERIE_API void aerie_string_free(char *text);

#ifdef __cplusplus
}
#endif
#endif /* AERIE_TOOLS_H */
