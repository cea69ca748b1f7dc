using System;
using System.Collections.Generic;
using Aerie.Native;

namespace Aerie
{
    public enum LogLevel { Error = 0, Warning = 1, Info = 2, Debug = 3 }

    /// <summary>How a runtime is made; the defaults are fine.</summary>
    public sealed class RuntimeOptions
    {
        /// <summary>0: one for each physical core this process may use; 1: none but the caller's.</summary>
        public int Threads { get; set; }
        /// <summary>"cpu" (null: the same), "cpu:AVX2" or another instruction set, which is one text on all machines that
        /// have it, "cuda" or "cuda:N".</summary>
        public string Device { get; set; }
        /// <summary>Gets what the library has to say, on whatever thread noticed; must not call back into the library.</summary>
        public Action<LogLevel, string> Log { get; set; }
        /// <summary>Native functions to allocate and to compute with; null: the library's own.</summary>
        public NativeHooks Native { get; set; }
    }

    /// <summary>
    /// The program's own allocator and job system: native functions of the types in aerie.h (a plugin of the engine's,
    /// Burst's FunctionPointer.Value, or Marshal.GetFunctionPointerForDelegate of a delegate that you keep alive). They and
    /// what the users point at must live until the last object of the runtime is disposed of; no hook is called after that.
    /// </summary>
    public sealed class NativeHooks
    {
        /// <summary>aerie_alloc_fn, for keys and values and working memory; with Free.</summary>
        public IntPtr Alloc { get; set; }
        /// <summary>aerie_free_fn.</summary>
        public IntPtr Free { get; set; }
        public IntPtr AllocUser { get; set; }
        /// <summary>aerie_parallel_for_fn, in place of the library's threads; called for every op of a pass, not with Threads 1.</summary>
        public IntPtr ParallelFor { get; set; }
        public IntPtr ParallelUser { get; set; }
    }

    /// <summary>How a drafter plugin works.</summary>
    [Flags]
    public enum PluginFlags : uint
    {
        None = 0,
        /// <summary>It reads the target's features.</summary>
        Features = Constants.AERIE_DRAFTER_FEATURES,
        /// <summary>It proposes from the text alone, on the CPU.</summary>
        HostTokens = Constants.AERIE_DRAFTER_HOST_TOKENS,
        /// <summary>It opens packages of kind target (an external draft model).</summary>
        TakesTarget = Constants.AERIE_DRAFTER_TAKES_TARGET,
        /// <summary>It opens without a package.</summary>
        NoPackage = Constants.AERIE_DRAFTER_NO_PACKAGE,
        /// <summary>One call at a time over all its drafters.</summary>
        Serial = Constants.AERIE_DRAFTER_SERIAL,
        /// <summary>One sequence a call, at a price in batches.</summary>
        OneSequence = Constants.AERIE_DRAFTER_ONE_SEQUENCE,
    }

    /// <summary>What a loaded drafter plugin is.</summary>
    public sealed class PluginInfo
    {
        internal PluginInfo(string id, string title, string version, string path, PluginFlags flags)
        {
            Id = id; Title = title; Version = version; Path = path; Flags = flags;
        }

        public string Id { get; }
        public string Title { get; }
        public string Version { get; }
        public string Path { get; }
        public PluginFlags Flags { get; }
    }

    /// <summary>
    /// A device, its threads, and the drafter plugins that were loaded. Objects may be disposed in any order: each holds
    /// what it stands on. Any thread.
    /// </summary>
    public sealed unsafe class Runtime : IDisposable
    {
        internal readonly RuntimeHandle Handle;

        public Runtime(RuntimeOptions options = null)
        {
            options = options ?? new RuntimeOptions();
            aerie_runtime_options o = new aerie_runtime_options { struct_size = (uint)sizeof(aerie_runtime_options) };
            aerie_error e = AerieException.NewError();
            IntPtr p = IntPtr.Zero;
            Hooks hooks = new Hooks(options.Log, null);
            try
            {
                fixed (byte* device = Utf8.ToNative(options.Device, "Device"))
                {
                    o.threads = options.Threads;
                    o.device = device;
                    if (options.Native != null)
                    {
                        o.alloc = options.Native.Alloc;
                        o.free = options.Native.Free;
                        o.alloc_user = options.Native.AllocUser;
                        o.parallel_for = options.Native.ParallelFor;
                        o.parallel_user = options.Native.ParallelUser;
                    }
                    if (options.Log != null)
                    {
                        o.log = Callbacks.Log;
                        o.log_user = hooks.User;
                    }
                    AerieException.Check(Methods.aerie_runtime_create(&o, &p, &e), ref e);
                }
                Handle = new RuntimeHandle(p, hooks.Keep());
            }
            finally
            {
                hooks.Drop(); // the handle's stays
            }
        }

        /// <summary>The library's version, "0.1.0".</summary>
        public static string LibraryVersion
        {
            get
            {
                uint v = Methods.aerie_version();
                return (v >> 16) + "." + (v >> 8 & 0xff) + "." + (v & 0xff);
            }
        }

        /// <summary>"cpu AVX3_DL, 2 threads".</summary>
        public string Description
        {
            get
            {
                using (var runtime = Handle.Use()) return Utf8.FromNative(Methods.aerie_runtime_description(runtime.Pointer));
            }
        }

        /// <summary>Load one drafter plugin from an absolute path; it stays loaded until the process ends.</summary>
        public void LoadPlugin(string absolutePath)
        {
            if (absolutePath == null) throw new ArgumentNullException("absolutePath");
            aerie_error e = AerieException.NewError();
            using (var runtime = Handle.Use())
                fixed (byte* path = Utf8.ToNative(absolutePath, "absolutePath"))
                    AerieException.Check(Methods.aerie_runtime_load_plugin(runtime.Pointer, path, &e), ref e);
        }

        /// <summary>Load every plugin in an absolute directory; null: the drafters installed with the library.</summary>
        public void LoadPlugins(string absoluteDirectory = null)
        {
            aerie_error e = AerieException.NewError();
            using (var runtime = Handle.Use())
                fixed (byte* path = Utf8.ToNative(absoluteDirectory, "absoluteDirectory"))
                    AerieException.Check(Methods.aerie_runtime_load_plugin_directory(runtime.Pointer, path, &e), ref e);
        }

        /// <summary>
        /// Register a drafter plugin that is linked into the program (drafter.h, AERIE_DRAFTER_STATIC). entry: the address of
        /// its entry point; name is for errors.
        /// </summary>
        public void AddPlugin(string name, IntPtr entry)
        {
            if (name == null) throw new ArgumentNullException("name");
            aerie_error e = AerieException.NewError();
            using (var runtime = Handle.Use())
                fixed (byte* n = Utf8.ToNative(name, "name"))
                    AerieException.Check(Methods.aerie_runtime_add_plugin(runtime.Pointer, n, entry, &e), ref e);
        }

        public IReadOnlyList<PluginInfo> Plugins
        {
            get
            {
                List<PluginInfo> all = new List<PluginInfo>();
                aerie_plugin_info i = new aerie_plugin_info { struct_size = (uint)sizeof(aerie_plugin_info) };
                using (var runtime = Handle.Use())
                    while (Methods.aerie_runtime_plugin_info(runtime.Pointer, (uint)all.Count, &i, null) == Constants.AERIE_OK)
                        all.Add(new PluginInfo(Utf8.FromNative(i.id), Utf8.FromNative(i.title), Utf8.FromNative(i.version), Utf8.FromNative(i.path),
                                               (PluginFlags)i.flags));
                return all;
            }
        }

        public void Dispose()
        {
            Handle.Dispose();
        }
    }
}
