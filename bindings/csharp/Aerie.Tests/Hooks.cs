using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using System.Threading;
using Aerie.Native;
using static Aerie.Tests.Support;

namespace Aerie.Tests
{
    /// <summary>What the library calls back into: how long it lives, and where its exceptions go.</summary>
    public static unsafe partial class More
    {
        private static readonly ModelOptions Hooked = new ModelOptions { KVFull = positions => false };

        private static Runtime OpenHooked() { return OpenRuntime((level, message) => { }); }

        private static int places = 10000; // more than are free: twice those that the last search has added

        /// <summary>Let a handle of the program's take the place of this one, which works if it was freed; then act. Says whether it did.</summary>
        private static bool TakesThePlace(IntPtr of, Action act)
        {
            List<GCHandle> handles = new List<GCHandle>();
            object target = new object();
            do handles.Add(GCHandle.Alloc(target));
            while (GCHandle.ToIntPtr(handles.Last()) != of && handles.Count < places);
            places *= 2;
            bool taken = GCHandle.ToIntPtr(handles.Last()) == of;
            act();
            foreach (GCHandle handle in handles)
            {
                Is(handle.Target, target, "a handle of the program's");
                handle.Free();
            }
            return taken;
        }

        public static void ADisposedRuntimeIsRefusedAndNothingElse()
        {
            Runtime dead = OpenHooked();
            dead.Dispose();
            That(TakesThePlace(dead.Handle.Hooks.User, // a second free of the log's handle would hit it there
                               () => Throws<ObjectDisposedException>(() => Model.Open(dead, ModelPath("demo.aerie"), Hooked))), "the log is still held");
        }

        /// <summary>Make something of a model whose Dispose comes in the middle of it: the hooks must live as long as what was made.</summary>
        private static void DisposedMeanwhile(string what, Func<Model, NativeHandle> make)
        {
            using (Runtime runtime = OpenHooked())
            using (Model model = Model.Open(runtime, ModelPath("demo.aerie"), Hooked))
            using (NativeHandle made = make(model))
            {
                Throws<ObjectDisposedException>(() => model.CreateBatch(), what + ": the model was not disposed of");
                That(!TakesThePlace(made.Hooks.User, () => { }), what + ": KVFull is let go of too early");
            }
        }

        public static void DisposedWhileSomethingIsMadeOfIt()
        {
            string eagle = ModelPath("demo-eagle.aerie");
            DisposedMeanwhile("OpenDrafter", m => m.OpenDrafter(eagle, progress: (done, total) => m.Dispose()).Handle);
            // As another thread's Dispose at the worst moment.
            DisposedMeanwhile("CreateSession", m => Session.Make(m, null, (model, options, made, e) =>
            {
                m.Dispose();
                return Methods.aerie_session_create(model, options, made, e);
            }).Handle);
        }

        public static void ARuntimeThatIsNotMadeKeepsNoLog()
        {
            WeakReference[] logs = null;
            Thread maker = new Thread(() => logs = Enumerable.Range(0, 50).Select(i => NotMade()).ToArray());
            maker.Start(); // a stack of its own
            maker.Join();
            for (int i = 0; logs.All(log => log.IsAlive); ++i) // some may seem to be in use: Mono's collector guesses from stacks
            {
                That(i < 100, "the log functions are still held");
                GC.Collect();
                Thread.Sleep(5);
            }
        }

        private static WeakReference NotMade()
        {
            List<string> said = new List<string>();
            RuntimeOptions options = new RuntimeOptions { Device = "c\0pu", Log = (level, message) => said.Add(message) };
            Throws<ArgumentException>(() => new Runtime(options));
            return new WeakReference(said);
        }

        public static void WhatKVFullThrowsIsTheInnerOneOfThatStep()
        {
            Func<int, bool> full = null;
            ModelOptions options = new ModelOptions { KVPositions = 640, ForgetPrefixes = true, KVFull = n => full(n) };
            using (Model roomy = OpenDemo())
            using (Runtime runtime = OpenRuntime())
            using (Model model = Model.Open(runtime, ModelPath("demo.aerie"), options))
            using (Session holds = Start(model, null, 0, 0, Long), aside = Start(roomy, null, 0, 0))
            using (Session first = Start(model, null, 0, 0, Long), second = Start(model, null, 0, 0, Long))
            {
                Take(holds, 1);
                FormatException thrown = new FormatException();
                Func<Session, Exception> why = session => Fails(ErrorCode.Limit, () => { var r = session.Result; }).InnerException;
                using (Batch batch = model.CreateBatch())
                {
                    batch.Add(first);
                    batch.Add(second);
                    int asked = 0;
                    full = n =>
                    {
                        if (++asked == 1) throw thrown;
                        aside.Step(); // another step within this one, which nothing is thrown in
                        return false;
                    };
                    Is(batch.Step().Failed, 2);
                    Is(asked, 2);
                    Exception elsewhere = null;
                    Thread other = new Thread(() => elsewhere = why(first));
                    other.Start();
                    other.Join();
                    Is(elsewhere, thrown, "on another thread");
                    Is(why(first), thrown, "asked again");
                    Is(Fails(ErrorCode.Limit, () => aside.Append(new int[100000])).InnerException, null, "Append's inner one");
                    full = n => false;
                    Is(batch.Step().Failed, 2);
                    Is(why(first), null, "the next step's inner one");
                    full = n => { throw thrown; };
                    batch.Step(); // nobody asks for its results
                }
                full = n => false;
                Is(Fails(ErrorCode.Limit, () => first.Step()).InnerException, null, "a step after the batch's");
                full = n => { throw thrown; };
                Is(Fails(ErrorCode.Limit, () => first.Step()).InnerException, thrown, "a session's own step");
                Is(why(first), thrown, "its result");
                holds.Dispose();
                Is(first.Step().State, StepState.Tokens);
            }
        }
    }
}
