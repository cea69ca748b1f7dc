using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using static Aerie.Tests.Support;

namespace Aerie.Tests
{
    /// <summary>What is this binding's own.</summary>
    public static partial class More
    {
        public static void ATokenThatFiresAroundAStep()
        {
            int[] prompt = Enumerable.Range(0, 400).Select(i => 1 + i * 7 % 1000).ToArray();
            using (Model model = OpenDemo())
            {
                int[] want;
                using (Session session = Start(model, null, 0, 0, prompt)) want = Take(session, 8);
                int cancelled = 0;
                for (int spins = 0; spins < 20; ++spins)
                    using (Session session = Start(model, null, 0, 0, prompt))
                    using (CancellationTokenSource source = new CancellationTokenSource())
                    {
                        Thread other = new Thread(() => { Thread.SpinWait(spins * 5000); source.Cancel(); });
                        other.Start();
                        List<int> got = new List<int>();
                        try
                        {
                            got.AddRange(session.Step(default(StepOptions), source.Token).Tokens.Select(t => t.Id));
                        }
                        catch (OperationCanceledException)
                        {
                            ++cancelled;
                        }
                        other.Join();
                        IsText(got.Concat(Take(session, 8 - got.Count)), want); // nothing is lost, and no cancel is left over
                    }
                That(cancelled > 0, "no step was cancelled");
            }
        }

        public static void StepsOnThePool()
        {
            using (Model model = OpenDemo())
            using (Session session = Start(model, null, 0.8f, 5))
            using (CancellationTokenSource source = new CancellationTokenSource())
            {
                List<int> got = new List<int>();
                while (got.Count < 16) got.AddRange(session.StepAsync().Result.Tokens.Select(t => t.Id));
                IsText(got, TheText(0.8f, 5, got.Count));
                source.Cancel();
                Task<StepResult> step = session.StepAsync(default(StepOptions), source.Token);
                That(Throws<AggregateException>(() => step.Wait()).InnerException is OperationCanceledException, "not cancelled");
            }
        }

        public static void ASecondThreadIsRefused()
        {
            using (Model model = OpenDemo())
            {
                Session session = Start(model, null, 0, 0);
                int busy = 0;
                Exception wrong = null;
                Thread[] threads = Enumerable.Range(0, 3).Select(i => new Thread(() =>
                {
                    for (;;)
                        try
                        {
                            session.Step();
                            int n = session.Tokens.Length;
                            if (n > 900) session.Rewind(10);
                        }
                        catch (AerieException e) when (e.Code == ErrorCode.Busy)
                        {
                            Interlocked.Increment(ref busy);
                        }
                        catch (AerieException e) when (e.Code == ErrorCode.Cancelled) // the Dispose below
                        {
                        }
                        catch (ObjectDisposedException)
                        {
                            return;
                        }
                        catch (Exception e)
                        {
                            wrong = e;
                            return;
                        }
                })).ToArray();
                foreach (Thread t in threads) t.Start();
                for (int i = 0; i < 2000 && busy == 0; ++i) Thread.Sleep(10);
                session.Dispose(); // while they step
                foreach (Thread t in threads) t.Join();
                That(busy > 0 && wrong == null, busy + " times busy; " + wrong);
            }
        }

        public static void ABatchRefusesAndCancels()
        {
            using (Model model = OpenDemo())
            using (Batch batch = model.CreateBatch(maxRows: 8))
            using (CancellationTokenSource source = new CancellationTokenSource())
            using (Session first = Start(model, null, 0, 0), second = Start(model, null, 0, 0))
            {
                batch.Add(first);
                batch.Add(second);
                Fails(ErrorCode.Busy, () => batch.Add(first), "added twice");
                Fails(ErrorCode.Busy, () => first.Step(), "stepped alone");
                source.Cancel();
                Throws<OperationCanceledException>(() => batch.Step(default(StepOptions), source.Token));
                batch.Cancel();
                Fails(ErrorCode.Cancelled, () => batch.Step());
                batch.Remove(first);
                Throws<AerieException>(() => batch.Remove(first), "removed twice");
                Take(first, 4);
                Is(batch.Step().Sessions, 1);
                second.Dispose();
            }
        }

        public static void WhatIsForgottenIsFreed()
        {
            using (Model model = OpenDemo())
            using (Drafter drafter = model.OpenDrafter(ModelPath("demo-eagle.aerie"), maxSessions: 1))
            {
                Thread forgetter = new Thread(() => Forget(model, drafter)); // a stack of its own, which the collector reads
                forgetter.Start();
                forgetter.Join();
                for (int i = 0; ; ++i)
                {
                    GC.Collect();
                    GC.WaitForPendingFinalizers();
                    try
                    {
                        Start(model, drafter, 0, 0).Dispose();
                        return;
                    }
                    catch (AerieException e) when (e.Code == ErrorCode.Limit && i < 100)
                    {
                        Thread.Sleep(5);
                    }
                }
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Forget(Model model, Drafter drafter)
        {
            model.CreateBatch().Add(Start(model, drafter, 0, 0));
        }

        private static readonly int[] Long = Enumerable.Range(0, 400).Select(i => 1 + i * 7 % 1000).ToArray();

        public static void CostsAreReadFromAFile()
        {
            string path = System.IO.Path.GetTempFileName();
            Run("aerie", string.Format("profile --quick --threads 1 --model {0} --drafter {1} -o {2}", ModelPath("demo.aerie"), ModelPath("demo-eagle.aerie"), path));
            using (Model model = OpenDemo(), other = OpenDemo())
            using (Drafter eagle = OpenEagle(model), ngram = model.OpenDrafter(plugin: "ngram"))
            using (Profile profile = new Profile(path))
            {
                profile.Attach(model, eagle);
                Fails(ErrorCode.Mismatch, () => profile.Attach(other, ngram));
                SessionOptions options = Settings(eagle, 0.8f, 5);
                options.Tree = new Tree { Policy = TreePolicy.Auto };
                using (Session session = model.CreateSession(options))
                {
                    session.Append(Prompt);
                    IsText(Take(session, 64), TheText(0.8f, 5, 64));
                }
            }
            System.IO.File.WriteAllText(path, "rubbish");
            Fails(ErrorCode.BadFormat, () => new Profile(path));
            System.IO.File.Delete(path);
        }

        public static void AutoChoosesADrafter()
        {
            using (Model model = OpenDemo())
            using (Drafter eagle = OpenEagle(model), ngram = model.OpenDrafter(plugin: "ngram"))
            {
                SessionOptions options = Settings(eagle, 0.8f, 5);
                options.MoreDrafters = new[] { ngram };
                options.Tree = new Tree { Policy = TreePolicy.Auto };
                using (Session session = model.CreateSession(options))
                {
                    session.Append(Prompt);
                    ngram.Dispose();
                    IsText(Take(session, 64), TheText(0.8f, 5, 64));
                    Statistics s = session.Statistics;
                    Is(s.PlainCycles + s.ChosenCycles.Sum(), s.Cycles);
                    That(s.ChosenDrafter >= -1 && s.ChosenDrafter <= 1, "chosen " + s.ChosenDrafter);
                }
                Throws<ObjectDisposedException>(() => model.CreateSession(options));
            }
        }

        public static void PrefixesAreKept()
        {
            foreach (bool forget in new[] { false, true })
                using (Runtime runtime = OpenRuntime())
                using (Model model = Model.Open(runtime, ModelPath("demo.aerie"), new ModelOptions { ForgetPrefixes = forget }))
                {
                    int[] want;
                    using (Session first = Start(model, null, 0, 0, Long)) want = Take(first, 4);
                    using (Session second = Start(model, null, 0, 0, Long))
                    {
                        IsText(Take(second, 4), want);
                        Is(second.Statistics.ReusedTokens == 0, forget, "reused " + second.Statistics.ReusedTokens);
                    }
                }
        }

        public static void KVFullMakesRoom()
        {
            Session victim = null;
            int asked = 0;
            ModelOptions options = new ModelOptions { KVPositions = 896, ForgetPrefixes = true };
            options.KVFull = wanted =>
            {
                ++asked;
                victim.Dispose(); // NullReferenceException the second time
                victim = null;
                return true;
            };
            using (Runtime runtime = OpenRuntime())
            using (Model roomy = Model.Open(runtime, ModelPath("demo.aerie")), model = Model.Open(runtime, ModelPath("demo.aerie"), options))
            using (Session plain = Start(roomy, null, 0, 0, Long))
            {
                victim = Start(model, null, 0, 0, Long);
                Take(victim, 4);
                GC.Collect();
                using (Session session = Start(model, null, 0, 0, Long), third = Start(model, null, 0, 0, Long))
                {
                    IsText(Take(session, 8), Take(plain, 8));
                    Is(asked, 1);
                    AerieException e = Fails(ErrorCode.Limit, () => { for (;;) third.Step(); });
                    That(e.InnerException is NullReferenceException, "inner: " + e.InnerException);
                }
            }
        }

        public static void RowsOfATextAreTheSessions()
        {
            using (Model model = OpenDemo())
            using (Session session = Start(model, null, 0, 0))
            {
                ModelInfo info = model.Info;
                Evaluation e = model.Evaluate(Prompt, new[] { 0, Evaluation.FinalHidden }, logits: true);
                Is(e.Features.Length, Prompt.Length * 2 * info.HiddenSize);
                float[] last = e.Logits.Skip((Prompt.Length - 1) * info.VocabSize).ToArray();
                Is(Array.IndexOf(last, last.Max()), Take(session, 1)[0], "the largest logit");
                Throws<OperationCanceledException>(() => model.Evaluate(Prompt, null, true, new CancellationToken(true)));
            }
        }

        public static void AModelSaysWhatItIs()
        {
            using (Model model = OpenDemo())
            {
                ModelInfo i = model.Info;
                That(i.VocabSize > 0 && i.Name.Length > 0 && i.Fingerprint.Length > 0 && i.Eos.Length > 0 && i.MaxContext > 0 && i.WeightBytes > 0, "info");
                Is(i.FastPrefill, false, "FastPrefill");
                That(model.Blob("no such blob") == null && model.Blob("tokenizer").Length > 0, "blobs");
            }
        }
    }
}
