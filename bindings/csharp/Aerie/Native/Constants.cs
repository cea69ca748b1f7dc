// Generated from capi/include/aerie/*.h by bindings/generate.py: do not edit.
namespace Aerie.Native
{
    internal static class Constants
    {
        internal const uint AERIE_VERSION_MAJOR = 0;
        internal const uint AERIE_VERSION_MINOR = 1;
        internal const uint AERIE_VERSION_PATCH = 0;
        internal const int AERIE_OK = 0;
        internal const int AERIE_E_INVALID_ARGUMENT = 1;
        internal const int AERIE_E_NOT_FOUND = 2;
        internal const int AERIE_E_IO = 3;
        /// <summary>damaged or hostile file</summary>
        internal const int AERIE_E_BAD_FORMAT = 4;
        /// <summary>things that do not belong together</summary>
        internal const int AERIE_E_MISMATCH = 5;
        internal const int AERIE_E_UNSUPPORTED = 6;
        internal const int AERIE_E_OUT_OF_MEMORY = 7;
        internal const int AERIE_E_CANCELLED = 8;
        /// <summary>a stated limit is reached</summary>
        internal const int AERIE_E_LIMIT = 9;
        internal const int AERIE_E_PLUGIN = 10;
        internal const int AERIE_E_DEVICE = 11;
        /// <summary>the session or batch is in use by another thread or a hook's caller, or the session by a batch</summary>
        internal const int AERIE_E_BUSY = 12;
        internal const int AERIE_E_INTERNAL = 13;
        /// <summary>the same kernels for every row: same seed, same text, bit for bit</summary>
        internal const int AERIE_PREFILL_EXACT = 0;
        /// <summary>
        /// cuda, with cuBLASLt installed: prompts are read 512 tokens at a time by its products. Not
        /// bit-exact: another cutting of the prompt, or company in a batch, may give another text.
        /// Verification and decoding stay as they are. Rows of such prompts are shared among this
        /// model's sessions alone; a saved session goes back only to a model opened like this
        /// </summary>
        internal const int AERIE_PREFILL_FAST = 1;
        internal const int AERIE_TREE_DEFAULT = 0;
        internal const int AERIE_TREE_CHAIN = 1;
        internal const int AERIE_TREE_STATIC = 2;
        internal const int AERIE_TREE_EAGLE2 = 3;
        internal const int AERIE_TREE_BACKBONE = 4;
        internal const int AERIE_TREE_CAST = 5;
        internal const int AERIE_TREE_AUTO = 6;
        internal const int AERIE_NOISE_SHARED = 0;
        internal const int AERIE_NOISE_NONE = 1;
        /// <summary>same seed, same text, bit for bit (docs/exactness.md)</summary>
        internal const int AERIE_VERIFY_EXACT = 0;
        /// <summary>the papers' sampled-draft rule: exact in distribution only; chain and static trees</summary>
        internal const int AERIE_VERIFY_SAMPLED = 1;
        /// <summary>the budget is spent; step again</summary>
        internal const int AERIE_STEP_PENDING = 0;
        /// <summary>tokens came out; step again for more</summary>
        internal const int AERIE_STEP_TOKENS = 1;
        /// <summary>tokens may have come out; the text has ended (finish)</summary>
        internal const int AERIE_STEP_DONE = 2;
        internal const int AERIE_FINISH_NONE = 0;
        internal const int AERIE_FINISH_EOS = 1;
        internal const int AERIE_FINISH_STOP_TOKEN = 2;
        internal const int AERIE_FINISH_STOP_STRING = 3;
        internal const int AERIE_FINISH_CONTEXT = 4;
        internal const int AERIE_FINISH_CONSTRAINT = 5;
        internal const uint AERIE_ENCODE_NO_BOS = 1;
        internal const uint AERIE_ENCODE_SPECIAL = 2;
        /// <summary>as the model likes: a space or a line break with its indentation, or nothing, between tokens of JSON</summary>
        internal const int AERIE_JSON_FREE = 0;
        /// <summary>a space behind : and behind , as Python's json.dumps writes it</summary>
        internal const int AERIE_JSON_ONE_LINE = 1;
        /// <summary>no white space</summary>
        internal const int AERIE_JSON_COMPACT = 2;
        internal const int AERIE_WEIGHTS_DEFAULT = 0;
        internal const int AERIE_WEIGHTS_F32 = 1;
        internal const int AERIE_WEIGHTS_BF16 = 2;
        internal const int AERIE_WEIGHTS_INT8 = 3;
        internal const int AERIE_WEIGHTS_INT4 = 4;
        internal const int AERIE_WEIGHTS_FP8 = 5;
        internal const int AERIE_WEIGHTS_Q4_1 = 6;
        /// <summary>each matrix in that of these which is nearest to what the source has it in</summary>
        internal const int AERIE_WEIGHTS_STORED = 7;
        /// <summary>E2M1, a power of two for 32. A source's MXFP4 stays that, whatever is asked for, but f32 or bf16</summary>
        internal const int AERIE_WEIGHTS_MXFP4 = 8;
        internal const int AERIE_INSPECT_TEXT = 0;
        internal const int AERIE_INSPECT_JSON = 1;
        internal const uint AERIE_DRAFTER_ABI_MAJOR = 1;
        internal const uint AERIE_DRAFTER_ABI_MINOR = 0;
        internal const string AERIE_SERVICE_LOG = "aerie.log/1";
        internal const string AERIE_SERVICE_ALLOC = "aerie.alloc/1";
        internal const string AERIE_SERVICE_PACKAGE = "aerie.package/1";
        /// <summary>
        /// Recording functions return AERIE_D_OK or a code; the first failure also sticks to the plan, so a
        /// plugin may ignore the codes inside observe and propose. Shapes are checked. R = rows; what stands as (R, N) is f32
        /// row-major. An out may have more rows than are written, and is no input of its op unless that is said.
        /// </summary>
        internal const string AERIE_SERVICE_COMPUTE = "aerie.compute/1";
        /// <summary>Run any packaged target as a draft model.</summary>
        internal const string AERIE_SERVICE_MODEL = "aerie.model/1";
        /// <summary>
        /// The decoder layers of a package that describes them as a target's are (docs/package-format.md), of any family that targets have.
        /// Some read the target's keys and values in place of their own, of the text before a sequence's newest token, and take its position for
        /// all nodes of a tree. Such layers are given each sequence's newest row alone when rows are observed.
        /// </summary>
        internal const string AERIE_SERVICE_LAYERS = "aerie.layers/1";
        /// <summary>
        /// The same layers over a block of rows that see each other, those behind as well as those before (DFlash's block diffusion): what the drafter
        /// knows of the text is keys and values made of what it is shown, and every cycle a block of a sequence's newest token and fillers behind it
        /// goes through the layers once. A block leaves nothing behind.
        /// </summary>
        internal const string AERIE_SERVICE_BLOCK = "aerie.block/1";
        /// <summary>
        /// An extension a HOST_TOKENS drafter may offer: rows that the target reads beside the tree in the same pass. They
        /// are never accepted and leave nothing behind; what the target would say after each is handed back (Lookahead's
        /// Jacobi window).
        /// </summary>
        internal const string AERIE_EXTENSION_EXTRA_ROWS = "aerie.extra_rows/1";
        /// <summary>
        /// An extension for drafters that keep state of their own in a sequence, beyond host-managed KV and what the newest row
        /// left: a forked session's sequence goes on where the other is. Without it, a drafter that has `rollback` is shown the
        /// text of a fork from its beginning, and one that has not is taken to keep no such state: its KV is shared, and its
        /// newest row shown again. The same holds where a text's beginning is found in KV memory: only drafters with neither
        /// are spared it.
        /// </summary>
        internal const string AERIE_EXTENSION_FORK = "aerie.fork/1";
        internal const int AERIE_D_OK = 0;
        /// <summary>an argument or the package is wrong</summary>
        internal const int AERIE_D_INVALID = 1;
        /// <summary>valid, but this drafter does not do it</summary>
        internal const int AERIE_D_UNSUPPORTED = 2;
        internal const int AERIE_D_NO_MEMORY = 3;
        internal const int AERIE_D_FAILED = 4;
        internal const int AERIE_DTYPE_F32 = 0;
        internal const int AERIE_DTYPE_BF16 = 1;
        internal const int AERIE_DTYPE_INT8 = 2;
        internal const int AERIE_DTYPE_INT4 = 3;
        internal const int AERIE_DTYPE_I32 = 4;
        internal const int AERIE_DTYPE_FP8 = 5;
        internal const int AERIE_DTYPE_Q4_1 = 6;
        internal const int AERIE_DTYPE_MXFP4 = 7;
        internal const int AERIE_ACT_SILU = 0;
        internal const int AERIE_ACT_GELU_TANH = 1;
        internal const int AERIE_ACT_RELU = 2;
        /// <summary>observe carries target features</summary>
        internal const uint AERIE_DRAFTER_FEATURES = 1;
        /// <summary>propose_host instead of observe/propose</summary>
        internal const uint AERIE_DRAFTER_HOST_TOKENS = 2;
        /// <summary>opens packages of kind target (external draft model)</summary>
        internal const uint AERIE_DRAFTER_TAKES_TARGET = 4;
        /// <summary>opens without a package</summary>
        internal const uint AERIE_DRAFTER_NO_PACKAGE = 8;
        /// <summary>one call at a time over all drafters with this flag of this library</summary>
        internal const uint AERIE_DRAFTER_SERIAL = 16;
        /// <summary>rows of one sequence a call (n_seqs = 1), at a price in batches</summary>
        internal const uint AERIE_DRAFTER_ONE_SEQUENCE = 32;
        /// <summary>hidden state after the final norm (EAGLE-1/2)</summary>
        internal const int AERIE_FEATURE_FINAL = -1;
    }
}
