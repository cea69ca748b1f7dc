using System;
using System.Collections.Concurrent;
using System.Linq;
using System.Runtime.InteropServices;
using System.Threading;
using Aerie.Native;
using static Aerie.Tests.Support;

namespace Aerie.Tests
{
    /// <summary>The cases in which native code calls what the program hands it by address.</summary>
    public static unsafe partial class Conformance
    {
        [DllImport("libc")]
        private static extern int posix_memalign(IntPtr* memory, UIntPtr alignment, UIntPtr bytes);
        [DllImport("libc")]
        private static extern void free(IntPtr memory);
        [DllImport("libc")]
        private static extern IntPtr dlopen(string path, int flags);
        [DllImport("libc")]
        private static extern IntPtr dlsym(IntPtr library, string name);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate void Task(IntPtr context, int i);

        /// <summary>A host's allocator and job system, which count.</summary>
        private sealed class Host
        {
            internal int Gives, Pieces, Rounds;
            private readonly aerie_alloc_fn alloc;
            private readonly aerie_free_fn release;
            private readonly aerie_parallel_for_fn run;
            private readonly ConcurrentDictionary<IntPtr, Task> tasks = new ConcurrentDictionary<IntPtr, Task>();

            internal Host()
            {
                alloc = (user, bytes, alignment) =>
                {
                    IntPtr p = IntPtr.Zero;
                    if (Interlocked.Decrement(ref Gives) < 0 || posix_memalign(&p, alignment, bytes) != 0) return IntPtr.Zero;
                    Interlocked.Increment(ref Pieces);
                    return p;
                };
                release = (user, memory) =>
                {
                    if (memory != IntPtr.Zero) Interlocked.Decrement(ref Pieces);
                    free(memory);
                };
                run = (user, fn, context, n) =>
                {
                    Interlocked.Increment(ref Rounds);
                    Task task = tasks.GetOrAdd(fn, Marshal.GetDelegateForFunctionPointer<Task>);
                    while (n-- > 0) task(context, n);
                };
            }

            internal RuntimeOptions Options(bool jobs)
            {
                return new RuntimeOptions
                {
                    Threads = jobs ? 2 : 1, // with one there are no jobs to share
                    Native = new NativeHooks
                    {
                        Alloc = Marshal.GetFunctionPointerForDelegate(alloc), Free = Marshal.GetFunctionPointerForDelegate(release),
                        ParallelFor = jobs ? Marshal.GetFunctionPointerForDelegate(run) : IntPtr.Zero,
                    },
                };
            }
        }

        public static void no_memory()
        {
            Host host = new Host();
            for (int gives = 0; ; ++gives)
            {
                host.Gives = gives;
                AerieException failed = null;
                try
                {
                    using (Runtime runtime = new Runtime(host.Options(false)))
                    using (Model model = Model.Open(runtime, ModelPath("demo.aerie")))
                    using (Session session = Start(model, null, 0, 0))
                        session.Step();
                }
                catch (AerieException e)
                {
                    failed = e;
                }
                Is(host.Pieces, 0, "pieces kept after " + gives + " allocations");
                if (failed == null)
                {
                    That(gives > 0, "the allocator was not asked");
                    return;
                }
                Is(failed.Code, ErrorCode.OutOfMemory, "after " + gives + " allocations");
            }
        }

        public static void own_allocator_and_jobs()
        {
            Host host = new Host { Gives = int.MaxValue };
            Session session;
            using (Runtime runtime = new Runtime(host.Options(true)))
            using (Model model = Model.Open(runtime, ModelPath("demo.aerie")))
                session = Start(model, null, 0.8f, 5);
            GC.Collect();
            using (session) // also when the test fails: what frees its memory goes with `host`
            {
                IsText(Take(session, 32), TheText(0.8f, 5, 32));
                That(host.Pieces > 0 && host.Rounds >= 32, host.Pieces + " pieces, " + host.Rounds + " rounds");
            }
            int rounds = host.Rounds;
            Is(host.Pieces, 0, "pieces kept");
            using (Model other = OpenDemo())
            using (Session plain = Start(other, null, 0, 0))
                Take(plain, 4);
            Is(host.Rounds, rounds, "calls after the last object had gone");
            Fails(ErrorCode.InvalidArgument, () => new Runtime(new RuntimeOptions { Native = new NativeHooks { Alloc = (IntPtr)1 } }));
            GC.KeepAlive(host);
        }

        private static IntPtr Entry(string plugin)
        {
            return dlsym(dlopen(PluginPath(plugin), 2), "aerie_drafter_plugin_entry");
        }

        public static void linked_plugin()
        {
            using (Runtime runtime = new Runtime(new RuntimeOptions { Threads = 1 }))
            {
                runtime.AddPlugin("linked", Entry("foreign_log"));
                PluginInfo info = runtime.Plugins.Single();
                Is(info.Id + " of " + info.Path, "foreign_log of linked");
                Is(info.Flags, PluginFlags.HostTokens | PluginFlags.NoPackage);
                using (Model model = Model.Open(runtime, ModelPath("demo.aerie")))
                using (Drafter drafter = model.OpenDrafter(plugin: "foreign_log"))
                using (Session session = Start(model, drafter, 0.8f, 5))
                    IsText(Take(session, 16), TheText(0.8f, 5, 16));
                That(Throws<AerieException>(() => runtime.AddPlugin("old one", Entry("wrong_major"))).Message.Contains("old one"), "no name");
                Fails(ErrorCode.InvalidArgument, () => runtime.AddPlugin("nothing", IntPtr.Zero));
            }
        }
    }
}
