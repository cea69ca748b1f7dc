using System;
using System.Runtime.InteropServices;
using System.Threading;
using Aerie.Native;

namespace Aerie
{
    /// <summary>How keys and values are kept. Each keeps the promise of one text, its own.</summary>
    public enum KVType { Float32 = 0, BFloat16 = 1, Int8 = 2 }

    /// <summary>How a model is opened; the defaults are fine.</summary>
    public sealed class ModelOptions
    {
        /// <summary>Tokens of keys and values that all sessions share; 0: 4 x the context, from 4096 to 32768.</summary>
        public int KVPositions { get; set; }
        public KVType KVType { get; set; }
        /// <summary>Checksum raw tensors too, which reads the whole file.</summary>
        public bool CheckData { get; set; }
        /// <summary>(done, total) in bytes, on the loading thread.</summary>
        public Action<long, long> Progress { get; set; }
        /// <summary>Texts' keys and values do not stay for later sessions that begin alike.</summary>
        public bool ForgetPrefixes { get; set; }
        /// <summary>On cuda, long prompts are read by cuBLASLt, faster and not bit for bit (docs/cuda.md).</summary>
        public bool FastPrefill { get; set; }
        /// <summary>
        /// Asked for room (in tokens) when the KV budget is spent, on the thread that steps: it may dispose of other sessions
        /// of the model, or rewind them, and return true to try again. Without it, or at false, the step fails with
        /// ErrorCode.Limit; nothing is lost. What it throws is that exception's inner one, in a batch of every session that
        /// finds no room in that step.
        /// </summary>
        public Func<int, bool> KVFull { get; set; }
    }

    /// <summary>What a model says about itself.</summary>
    public sealed class ModelInfo
    {
        public int VocabSize { get; internal set; }
        public int HiddenSize { get; internal set; }
        public int Layers { get; internal set; }
        public int Heads { get; internal set; }
        public int KVHeads { get; internal set; }
        public int HeadDim { get; internal set; }
        public int FeedForward { get; internal set; }
        public int MaxContext { get; internal set; }
        /// <summary>-1: none.</summary>
        public int Bos { get; internal set; }
        public int[] Eos { get; internal set; }
        public string Name { get; internal set; }
        /// <summary>Equal for requantised copies.</summary>
        public string Fingerprint { get; internal set; }
        public long WeightBytes { get; internal set; }
        public long KVBytesPerToken { get; internal set; }
        /// <summary>It was opened with ModelOptions.FastPrefill.</summary>
        public bool FastPrefill { get; internal set; }
    }

    /// <summary>A target: immutable, and shared by any number of sessions on any threads.</summary>
    public sealed unsafe class Model : IDisposable
    {
        internal readonly ModelHandle Handle;

        private Model(ModelHandle handle)
        {
            Handle = handle;
        }

        /// <summary>
        /// Open a target package. OperationCanceledException when the token is cancelled meanwhile; an exception of
        /// Progress ends the load and is the inner one of an AerieException.
        /// </summary>
        public static Model Open(Runtime runtime, string path, ModelOptions options = null, CancellationToken cancel = default(CancellationToken))
        {
            if (path == null) throw new ArgumentNullException("path");
            options = options ?? new ModelOptions();
            using (var on = runtime.Handle.Use())
            {
                IntPtr r = on.Pointer;
                IntPtr p = IntPtr.Zero;
                Hooks hooks = new Hooks(options.KVFull, runtime.Handle.Hooks);
                try
                {
                    new Callbacks.Loading { Progress = options.Progress, Cancel = cancel }.Run((user, e) =>
                    {
                        var o = new aerie_model_options { struct_size = (uint)sizeof(aerie_model_options) };
                        o.kv_positions = options.KVPositions;
                        o.kv_dtype = (int)options.KVType;
                        o.check_data = options.CheckData ? 1 : 0;
                        o.keep_prefixes = options.ForgetPrefixes ? -1 : 0;
                        o.prefill = options.FastPrefill ? Constants.AERIE_PREFILL_FAST : Constants.AERIE_PREFILL_EXACT;
                        o.progress = Callbacks.Progress;
                        o.progress_user = user;
                        if (options.KVFull != null)
                        {
                            o.kv_full = Callbacks.KVFull;
                            o.kv_full_user = hooks.User;
                        }
                        IntPtr opened = IntPtr.Zero;
                        int code;
                        fixed (byte* file = Utf8.ToNative(path, "path")) code = Methods.aerie_model_open(r, file, &o, &opened, e);
                        p = opened;
                        return code;
                    });
                    return new Model(new ModelHandle(p, hooks.Keep()));
                }
                finally
                {
                    hooks.Drop();
                }
            }
        }

        public ModelInfo Info
        {
            get
            {
                var i = new aerie_model_info { struct_size = (uint)sizeof(aerie_model_info) };
                aerie_error e = AerieException.NewError();
                using (var model = Handle.Use())
                {
                    AerieException.Check(Methods.aerie_model_info_get(model.Pointer, &i, &e), ref e);
                    return new ModelInfo
                    {
                        VocabSize = i.vocab_size, HiddenSize = i.hidden_size, Layers = i.layers, Heads = i.heads, KVHeads = i.kv_heads,
                        HeadDim = i.head_dim, FeedForward = i.ffn, MaxContext = i.max_context, Bos = i.bos_id,
                        Eos = Copy.Ints(i.eos_ids, i.n_eos), Name = Utf8.FromNative(i.name), Fingerprint = Utf8.FromNative(i.fingerprint),
                        WeightBytes = (long)i.weight_bytes, KVBytesPerToken = (long)i.kv_bytes_per_token,
                        FastPrefill = i.prefill == Constants.AERIE_PREFILL_FAST,
                    };
                }
            }
        }

        /// <summary>A byte blob of the package ("tokenizer", "chat_template"); null when it has none.</summary>
        public byte[] Blob(string name)
        {
            if (name == null) throw new ArgumentNullException("name");
            IntPtr data = IntPtr.Zero;
            UIntPtr size = UIntPtr.Zero;
            aerie_error e = AerieException.NewError();
            using (var model = Handle.Use())
            {
                fixed (byte* which = Utf8.ToNative(name, "name"))
                    AerieException.Check(Methods.aerie_model_blob(model.Pointer, which, &data, &size, &e), ref e);
                if (size == UIntPtr.Zero) return null;
                byte[] blob = new byte[checked((int)size)];
                Marshal.Copy(data, blob, 0, blob.Length);
                return blob;
            }
        }

        /// <summary>Run the target over a text from its beginning, for training and analysis; takes KV memory while it runs.</summary>
        public Evaluation Evaluate(int[] tokens, int[] taps, bool logits = false, CancellationToken cancel = default(CancellationToken))
        {
            if (tokens == null) throw new ArgumentNullException("tokens");
            ModelInfo info = Info;
            int n = taps == null ? 0 : taps.Length;
            var evaluation = new Evaluation(new float[checked(tokens.Length * n * info.HiddenSize)],
                                      logits ? new float[checked(tokens.Length * info.VocabSize)] : null);
            using (var model = Handle.Use())
            {
                IntPtr m = model.Pointer;
                new Callbacks.Loading { Cancel = cancel }.Run((user, e) =>
                {
                    fixed (int* t = tokens, wanted = taps)
                    fixed (float* f = evaluation.Features, l = evaluation.Logits)
                    {
                        var o = new aerie_evaluate_options
                        {
                            struct_size = (uint)sizeof(aerie_evaluate_options), n_taps = n, taps = wanted, features = f, logits = l,
                            progress = Callbacks.Progress, progress_user = user,
                        };
                        return Methods.aerie_model_evaluate(m, t, (UIntPtr)tokens.Length, &o, e);
                    }
                });
            }
            return evaluation;
        }

        /// <summary>
        /// A drafter for this model: a package, the id of a loaded plugin, or both. progress: (done, total) in bytes of the
        /// package; it and cancel are as in Open.
        /// </summary>
        public Drafter OpenDrafter(string package = null, string plugin = null, int maxSessions = 0, Action<long, long> progress = null,
                                   CancellationToken cancel = default(CancellationToken))
        {
            IntPtr p = IntPtr.Zero;
            using (var model = Handle.Use())
            {
                IntPtr m = model.Pointer;
                new Callbacks.Loading { Progress = progress, Cancel = cancel }.Run((user, e) =>
                {
                    IntPtr opened = IntPtr.Zero;
                    int code;
                    fixed (byte* file = Utf8.ToNative(package, "package"), id = Utf8.ToNative(plugin, "plugin"))
                    {
                        var o = new aerie_drafter_options
                        {
                            struct_size = (uint)sizeof(aerie_drafter_options), max_sessions = maxSessions, package = file, plugin = id,
                            progress = Callbacks.Progress, progress_user = user,
                        };
                        code = Methods.aerie_drafter_open(m, &o, &opened, e);
                    }
                    p = opened;
                    return code;
                });
                return new Drafter(new DrafterHandle(p, Handle.Hooks.Keep()));
            }
        }

        /// <summary>The package's tokenizer.</summary>
        public Tokenizer OpenTokenizer()
        {
            byte[] blob = Blob("tokenizer");
            if (blob == null) throw new AerieException(ErrorCode.NotFound, "the model has no tokenizer");
            return new Tokenizer(blob);
        }

        /// <summary>The package's chat template.</summary>
        public ChatTemplate OpenChatTemplate()
        {
            byte[] text = Blob("chat_template");
            if (text == null) throw new AerieException(ErrorCode.NotFound, "the model has no chat template");
            return new ChatTemplate(Utf8.FromBytes(text), this);
        }

        public Session CreateSession(SessionOptions options = null)
        {
            return Session.Make(this, options, Methods.aerie_session_create);
        }

        /// <summary>
        /// A session from what Session.Save gave. Settings are those of options, stop strings are to be set again. BadFormat:
        /// damaged; Mismatch: of another model, device or build.
        /// </summary>
        public Session RestoreSession(byte[] data, SessionOptions options = null)
        {
            if (data == null) throw new ArgumentNullException("data");
            return Session.Make(this, options, (model, o, made, e) =>
            {
                byte* none = stackalloc byte[1];
                fixed (byte* d = data)
                    return Methods.aerie_session_restore(model, o, (IntPtr)(data.Length == 0 ? none : d), (UIntPtr)data.Length, made, e);
            });
        }

        /// <summary>The same from a file.</summary>
        public Session RestoreSessionFile(string path, SessionOptions options = null)
        {
            if (path == null) throw new ArgumentNullException("path");
            return Session.Make(this, options, (model, o, made, e) =>
            {
                fixed (byte* file = Utf8.ToNative(path, "path")) return Methods.aerie_session_restore_file(model, o, file, made, e);
            });
        }

        /// <summary>maxRows: rows of one target pass; 0: no limit.</summary>
        public Batch CreateBatch(int maxRows = 0)
        {
            return Batch.Create(this, maxRows);
        }

        public void Dispose()
        {
            Handle.Dispose();
        }
    }

    /// <summary>A plugin, with its weights, bound to one model.</summary>
    public sealed class Drafter : IDisposable
    {
        internal readonly DrafterHandle Handle;

        internal Drafter(DrafterHandle handle)
        {
            Handle = handle;
        }

        public void Dispose()
        {
            Handle.Dispose();
        }
    }

    internal static unsafe class Copy
    {
        internal static int[] Ints(int* from, int n)
        {
            int[] to = new int[n];
            for (int i = 0; i < n; ++i) to[i] = from[i];
            return to;
        }
    }
}
