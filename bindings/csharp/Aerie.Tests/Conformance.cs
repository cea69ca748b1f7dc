using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using static Aerie.Tests.Support;

namespace Aerie.Tests
{
    /// <summary>The cases of bindings/conformance.md. Those it calls raw are in Raw.cs.</summary>
    public static partial class Conformance
    {
        public static void tokens_equal_c_api()
        {
            using (Model model = OpenDemo())
            using (Drafter eagle = OpenEagle(model), ngram = model.OpenDrafter(plugin: "ngram"))
                foreach (float temperature in new[] { 0f, 0.8f })
                {
                    int[] want = TheText(temperature, 5, 64);
                    foreach (Drafter drafter in new[] { null, eagle, ngram })
                        using (Session session = Start(model, drafter, temperature, 5))
                        {
                            IsText(Take(session, 64), want);
                            That(drafter != eagle || session.Statistics.Accepted > 0, "nothing was accepted");
                        }
                }
        }

        public static void injected_failure()
        {
            List<string> said = new List<string>();
            using (Runtime runtime = OpenRuntime((level, message) => { lock (said) said.Add(message); }, "hostile"))
            using (Model model = Model.Open(runtime, ModelPath("demo.aerie")))
            using (Drafter drafter = model.OpenDrafter(plugin: "throw"))
            using (Session session = Start(model, drafter, 0.8f, 5))
            {
                IsText(Take(session, 64), TheText(0.8f, 5, 64));
                Is(session.Statistics.DrafterFailures, 3L);
                That(session.Statistics.Quarantined, "quarantined");
                That(said.Count > 0, "the log was not told");
            }
        }

        public static void foreign_thread_callback()
        {
            int heard = 0;
            Action<LogLevel, string> log = (level, message) =>
            {
                if (message.Contains("from a foreign thread")) heard = Thread.CurrentThread.ManagedThreadId;
            };
            using (Runtime runtime = OpenRuntime(log, "foreign_log"))
            using (Model model = Model.Open(runtime, ModelPath("demo.aerie")))
            {
                for (int i = 0; i < 20; ++i)
                {
                    heard = 0;
                    GC.Collect(); // the delegates must live
                    GC.WaitForPendingFinalizers();
                    model.OpenDrafter(plugin: "foreign_log").Dispose();
                    That(heard != 0 && heard != Thread.CurrentThread.ManagedThreadId, "heard on " + heard);
                }
            }
        }

        public static void callback_that_fails()
        {
            using (Runtime runtime = OpenRuntime((level, message) => { throw new Exception("in the log"); }, "foreign_log"))
            {
                Exception inner = Fails(ErrorCode.Cancelled, () => Model.Open(runtime, ModelPath("demo.aerie"),
                    new ModelOptions { Progress = (done, total) => { throw new FormatException("in the progress"); } })).InnerException;
                That(inner is FormatException, "the inner exception: " + inner);
                using (Model model = Model.Open(runtime, ModelPath("demo.aerie")))
                using (Drafter drafter = model.OpenDrafter(plugin: "foreign_log")) // logs
                using (Session session = Start(model, drafter, 0, 0))
                    Take(session, 4);
            }
        }

        public static void load_progress()
        {
            long last = 0, of = 0;
            using (Runtime runtime = OpenRuntime())
            using (Model model = Model.Open(runtime, ModelPath("demo.aerie"), new ModelOptions
            {
                CheckData = true,
                Progress = (done, total) => { That(done >= last, "fell"); last = done; of = total; },
            }))
                That(last > 0 && last == of, "ended at " + last + " of " + of);
        }

        public static void drafter_progress()
        {
            long last = 0, of = 0;
            string head = ModelPath("demo-eagle.aerie");
            using (Model model = OpenDemo())
            using (Drafter drafter = model.OpenDrafter(head, progress: (done, total) => { That(done >= last, "fell"); last = done; of = total; }))
            {
                That(last > 0 && last == of, "ended at " + last + " of " + of);
                Throws<OperationCanceledException>(() => model.OpenDrafter(head, cancel: new CancellationToken(true)));
                Exception inner = Fails(ErrorCode.Cancelled, () => model.OpenDrafter(head, progress: (done, total) => { throw new FormatException(); })).InnerException;
                That(inner is FormatException, "the inner exception: " + inner);
                using (Session session = Start(model, drafter, 0, 5)) IsText(Take(session, 16), TheText(0, 5, 16));
            }
        }

        public static void load_cancel()
        {
            using (Runtime runtime = OpenRuntime())
            using (CancellationTokenSource source = new CancellationTokenSource())
            {
                source.Cancel();
                OperationCanceledException e = Throws<OperationCanceledException>(() => Model.Open(runtime, ModelPath("demo.aerie"), null, source.Token));
                Is(e.CancellationToken, source.Token);
                Model.Open(runtime, ModelPath("demo.aerie")).Dispose();
            }
        }

        public static void emoji_by_bytes()
        {
            const string text = "a\U0001F600é✓b";
            using (Model model = OpenDemo())
            using (Tokenizer tokenizer = model.OpenTokenizer())
            using (TextDecoder decoder = tokenizer.CreateDecoder())
            {
                int[] ids = tokenizer.Encode(text, bos: false);
                That(ids.Length > 5, "the demo tokenizer is expected to spell these characters in bytes");
                List<string> pieces = ids.Select(decoder.Push).ToList();
                Is(string.Concat(pieces) + decoder.Finish(), text);
                That(!pieces.Any(p => p.Contains('\uFFFD') || p.Length == 1 && char.IsSurrogate(p[0])), string.Join("|", pieces));
                int[] emoji = tokenizer.Encode("\U0001F600", bos: false);
                foreach (int id in emoji.Take(emoji.Length - 1)) decoder.Push(id);
                Is(decoder.Finish(), "\uFFFD", "a cut emoji");
            }
        }

        private static readonly int[] Long = Enumerable.Range(0, 400).Select(i => 1 + i * 7 % 1000).ToArray();

        public static void longest_budget()
        {
            using (Model model = OpenDemo())
            using (Session session = Start(model, null, 0, 0, Long))
                Is(session.Step(new StepOptions { Budget = TimeSpan.MaxValue }).State, StepState.Tokens);
        }

        public static void cancel_in_prefill()
        {
            using (Model model = OpenDemo())
            using (Session whole = Start(model, null, 0, 0, Long), session = Start(model, null, 0, 0, Long))
            {
                int[] want = Take(whole, 8);
                Is(session.Step(new StepOptions { Budget = TimeSpan.FromTicks(1) }).State, StepState.Pending);
                Thread other = new Thread(session.Cancel);
                other.Start();
                other.Join();
                Fails(ErrorCode.Cancelled, () => session.Step());
                IsText(Take(session, 8), want);
            }
        }

        public static void cancel_while_stepping()
        {
            using (Model model = OpenDemo())
                for (int i = 0; i < 10; ++i)
                    using (Session session = Start(model, null, 0, 0, Long))
                    {
                        bool told = false;
                        Thread other = new Thread(() => { Thread.Sleep(2); session.Cancel(); Volatile.Write(ref told, true); });
                        other.Start();
                        Fails(ErrorCode.Cancelled, () =>
                        {
                            for (;;)
                            {
                                bool before = Volatile.Read(ref told);
                                session.Step(new StepOptions { MaxTokens = 1 });
                                That(!before, "a step that began after the cancel went through");
                                if (session.Tokens.Length > 450) session.Rewind(400);
                            }
                        });
                        other.Join();
                    }
        }

        public static void late_cancel()
        {
            StepOptions one = new StepOptions { MaxTokens = 1 };
            using (Model model = OpenDemo())
            using (Session session = Start(model, null, 0.8f, 5))
            using (Batch batch = model.CreateBatch())
            {
                session.Cancel();
                session.ClearCancel();
                session.Step(one);
                session.Cancel();
                Fails(ErrorCode.Cancelled, () => session.Step(one));
                batch.Add(session); // the same of a batch
                batch.Cancel();
                batch.ClearCancel();
                Is(batch.Step(one).Failed, 0);
                batch.Cancel();
                Fails(ErrorCode.Cancelled, () => batch.Step(one));
                batch.Remove(session);
                int[] said = session.Tokens.Skip(Prompt.Length).ToArray();
                IsText(said.Concat(Take(session, 16 - said.Length)), TheText(0.8f, 5, 16));
            }
        }

        public static void double_close()
        {
            Runtime runtime = OpenRuntime();
            Model model = Model.Open(runtime, ModelPath("demo.aerie"));
            Drafter drafter = OpenEagle(model);
            Session session = Start(model, drafter, 0, 0);
            Batch batch = model.CreateBatch();
            Tokenizer tokenizer = model.OpenTokenizer();
            TextDecoder decoder = tokenizer.CreateDecoder();
            for (int i = 0; i < 2; ++i)
                foreach (IDisposable d in new IDisposable[] { session, batch, drafter, decoder, tokenizer, model, runtime }) d.Dispose();
            foreach (Action call in new Action[]
            {
                () => session.Step(), () => session.Append(1), () => session.Cancel(), () => { var s = session.Statistics; }, () => batch.Step(),
                () => model.CreateSession(), () => tokenizer.Encode("a"), () => decoder.Push(1), () => runtime.LoadPlugins(),
                () => Model.Open(runtime, "x"),
            })
                Throws<ObjectDisposedException>(call);
        }

        public static void parent_closed_first()
        {
            Runtime runtime = OpenRuntime((level, message) => { });
            Model model = Model.Open(runtime, ModelPath("demo.aerie"));
            Drafter drafter = OpenEagle(model);
            Tokenizer tokenizer = model.OpenTokenizer();
            Session session = Start(model, drafter, 0.8f, 5);
            session.SetStopStrings(tokenizer, "never to be seen");
            Batch batch = model.CreateBatch();
            foreach (IDisposable parent in new IDisposable[] { runtime, model, drafter, tokenizer }) parent.Dispose();
            batch.Add(session);
            batch.Dispose();
            GC.Collect();
            GC.WaitForPendingFinalizers();
            IsText(Take(session, 64), TheText(0.8f, 5, 64));
            session.Dispose();
        }

        public static void two_sessions()
        {
            using (Model model = OpenDemo())
            using (Drafter drafter = OpenEagle(model))
            {
                int[][] got = new int[2][];
                Thread[] threads = Enumerable.Range(0, 2).Select(i => new Thread(() =>
                {
                    using (Session session = Start(model, drafter, 0.8f, (ulong)(5 + i))) got[i] = Take(session, 64);
                })).ToArray();
                foreach (Thread t in threads) t.Start();
                foreach (Thread t in threads) t.Join();
                for (int i = 0; i < 2; ++i) IsText(got[i], TheText(0.8f, (ulong)(5 + i), 64));
            }
        }

        public static void batch()
        {
            using (Model model = OpenDemo())
            using (Drafter drafter = OpenEagle(model))
            using (Batch batch = model.CreateBatch())
            {
                Session[] sessions = Enumerable.Range(0, 3).Select(i => Start(model, i == 1 ? drafter : null, 0.8f, (ulong)(5 + i))).ToArray();
                List<int>[] got = sessions.Select(s => new List<int>()).ToArray();
                foreach (Session s in sessions) batch.Add(s);
                for (int inside = 3; got[0].Count < 64 || got[1].Count < 64;)
                {
                    batch.Step();
                    for (int i = 0; i < inside; ++i) got[i].AddRange(sessions[i].Result.Tokens.Select(t => t.Id));
                    if (inside == 2 || got[2].Count < 32) continue;
                    batch.Remove(sessions[2]);
                    inside = 2;
                }
                got[2].AddRange(Take(sessions[2], 64 - got[2].Count));
                for (int i = 0; i < 3; ++i) IsText(got[i].Take(64), TheText(0.8f, (ulong)(5 + i), 64), "session " + i);
                foreach (Session s in sessions) s.Dispose();
            }
        }

        public static void bad_plugin()
        {
            string text = Path.GetTempFileName();
            File.WriteAllText(text, "not a library");
            using (Runtime runtime = OpenRuntime())
            {
                foreach (string path in new[] { "hostile.so", "/no/such.so", text, PluginPath("no_entry"), PluginPath("wrong_major"), PluginPath("too_new") })
                {
                    string message = Throws<AerieException>(() => runtime.LoadPlugin(path), path).Message;
                    That(message.Contains(Path.GetFileName(path)), message);
                }
                Throws<ArgumentException>(() => runtime.LoadPlugin("/a\0b"));
                runtime.LoadPlugin(PluginPath("hostile"));
                That(runtime.Plugins.Any(p => p.Id == "throw"), "the plugin is not listed");
                using (Model model = Model.Open(runtime, ModelPath("demo.aerie")))
                {
                    That(Throws<AerieException>(() => model.OpenDrafter(plugin: "open_fails")).Message.Contains("open_fails"), "no name");
                    using (Drafter drafter = OpenEagle(model))
                    using (Session session = Start(model, drafter, 0, 0))
                        Take(session, 4);
                }
            }
            File.Delete(text);
        }

        public static void errors()
        {
            string cut = Path.GetTempFileName();
            byte[] whole = File.ReadAllBytes(ModelPath("demo.aerie"));
            File.WriteAllBytes(cut, whole.Take(whole.Length / 2).ToArray());
            using (Runtime runtime = OpenRuntime())
            {
                foreach (var c in new Dictionary<string, ErrorCode>
                    { { "/no/such/file.aerie", ErrorCode.NotFound }, { cut, ErrorCode.BadFormat }, { ModelPath("demo-eagle.aerie"), ErrorCode.Mismatch } })
                    That(Fails(c.Value, () => Model.Open(runtime, c.Key), c.Key).Message.Contains(c.Key), "no file name");
                Fails(ErrorCode.Unsupported, () => new Runtime(new RuntimeOptions { Device = "abacus" }));
                Throws<AerieException>(() => new Tokenizer(new byte[] { 1, 2, 3 }));
                using (Model model = Model.Open(runtime, ModelPath("demo.aerie")))
                using (Session session = model.CreateSession())
                {
                    Throws<AerieException>(() => session.Step(), "a step without a prompt");
                    Fails(ErrorCode.InvalidArgument, () => session.SetSampling(new Sampling { TopP = -1 }));
                }
            }
            File.Delete(cut);
        }

        public static void stop_string()
        {
            using (Model model = OpenDemo())
            using (Tokenizer tokenizer = model.OpenTokenizer())
            {
                Func<string[], string> read = stops =>
                {
                    using (Session session = Start(model, null, 0.8f, 5))
                    {
                        session.SetStopStrings(tokenizer, stops);
                        string all = string.Concat(session.GenerateText(tokenizer, 64));
                        Is(session.Result.Finish, stops.Length > 0 ? FinishReason.StopString : FinishReason.None);
                        That(stops.Length == 0 || session.Result.StopBytes >= stops.Last().Length, "stop_bytes");
                        return all;
                    }
                };
                string text = read(new string[0]);
                That(text.Length > 60, text);
                for (int from = 3; from < 50; from += 4)
                {
                    string stop = text.Substring(from, 7);
                    Is(read(new[] { "not in the text", stop }), text.Substring(0, text.IndexOf(stop, StringComparison.Ordinal)), "stop " + stop);
                }
                using (Session session = Start(model, null, 0, 0))
                    Fails(ErrorCode.InvalidArgument, () => session.SetStopStrings(tokenizer, ""));
            }
        }

        public static void rewind()
        {
            int[] want = TheText(0.8f, 5, 64);
            using (Model model = OpenDemo())
            using (Drafter drafter = OpenEagle(model))
            using (Session session = Start(model, drafter, 0.8f, 5))
            {
                IsText(Take(session, 32), want.Take(32));
                session.Rewind(Prompt.Length + 22);
                session.SetTree(new Tree { Policy = TreePolicy.Static, Paths = new[] { new[] { 0 }, new[] { 1 }, new[] { 0, 0 } } });
                IsText(Take(session, 32), want.Skip(22).Take(32));
                IsText(session.Tokens, Prompt.Concat(want.Take(54)));
            }
        }

        public static void statistics()
        {
            using (Model model = OpenDemo())
            using (Drafter drafter = OpenEagle(model))
            using (Session session = Start(model, drafter, 0, 0))
            {
                Take(session, 64);
                Statistics s = session.Statistics;
                Is(s.Emitted, 64L);
                That(s.Cycles <= s.Emitted && s.Tau >= 1 && s.Proposed > 0 && s.Tried[0] > 0 && s.Verify > TimeSpan.Zero, "statistics");
            }
        }

        public static void fork()
        {
            int[] want = TheText(0, 5, 64);
            using (Model model = OpenDemo())
            using (Drafter drafter = OpenEagle(model))
            using (Session session = Start(model, drafter, 0, 5), drawn = Start(model, null, 1, 5))
            {
                using (Tokenizer tokenizer = model.OpenTokenizer()) session.SetStopStrings(tokenizer, "never to be seen");
                IsText(Take(session, 20), want.Take(20));
                using (Session fork = session.Fork())
                {
                    session.SetStopStrings(null);
                    GC.Collect();
                    IsText(Take(fork, 44), want.Skip(20), "the fork");
                }
                IsText(Take(session, 44), want.Skip(20), "the first");
                int[][] texts = new uint[] { 0, 7, 7 }.Select(stream =>
                {
                    using (Session fork = drawn.Fork(stream)) return Take(fork, 20);
                }).ToArray();
                IsText(texts[1], texts[2], "equal streams");
                That(!texts[0].SequenceEqual(texts[1]), "different streams, one text");
            }
        }

        public static void save_restore()
        {
            int[] want = TheText(0.8f, 5, 64);
            string path = Path.GetTempFileName();
            using (Model model = OpenDemo())
            using (Drafter drafter = OpenEagle(model))
            {
                byte[] data;
                using (Session session = Start(model, drafter, 0.8f, 5))
                {
                    IsText(Take(session, 20), want.Take(20));
                    data = session.Save();
                    session.SaveFile(path);
                }
                foreach (Func<Session> restore in new Func<Session>[]
                {
                    () => model.RestoreSession(data, Settings(drafter, 0.8f, 5)), () => model.RestoreSessionFile(path, Settings(drafter, 0.8f, 5)),
                    () => model.RestoreSession(data, Settings(null, 0.8f, 5)),
                })
                    using (Session session = restore()) IsText(Take(session, 44), want.Skip(20));
                data[data.Length / 2] ^= 1;
                Fails(ErrorCode.BadFormat, () => model.RestoreSession(data));
                Fails(ErrorCode.BadFormat, () => model.RestoreSession(new byte[0]));
                Fails(ErrorCode.NotFound, () => model.RestoreSessionFile("/no/such/file"));
            }
            File.Delete(path);
        }

        public static void stream()
        {
            int[] want = TheText(0.8f, 5, 64);
            using (Model model = OpenDemo())
            using (Drafter drafter = OpenEagle(model))
            using (Session session = Start(model, drafter, 0.8f, 5))
            {
                List<int> got = new List<int>();
                foreach (Token token in session.Generate(64))
                {
                    got.Add(token.Id);
                    if (got.Count == 20) break;
                }
                IsText(got, want.Take(20));
                int committed = session.Tokens.Length - Prompt.Length;
                IsText(Take(session, 64 - committed), want.Skip(committed));
            }
        }

        public static void load_cycles()
        {
            Func<long> resident = () =>
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
                return long.Parse(File.ReadAllText("/proc/self/statm").Split(' ')[1]) * 4096;
            };
            long before = 0;
            for (int i = 0; i < 1000; ++i)
            {
                if (i == 200) before = resident();
                using (Runtime runtime = new Runtime(new RuntimeOptions { Threads = 1 }))
                using (Model model = Model.Open(runtime, ModelPath("demo.aerie")))
                using (Session session = Start(model, null, 0, 0))
                    session.Step();
            }
            long grown = resident() - before;
            That(grown <= 4 << 20, "800 loads grew the process by " + grown + " bytes");
        }
    }
}
