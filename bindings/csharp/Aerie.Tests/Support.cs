using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;

namespace Aerie.Tests
{
    /// <summary>The surroundings of bindings/conformance.md, and what most tests begin with.</summary>
    internal static class Support
    {
        internal static readonly int[] Prompt = { 260, 513, 1021, 88, 300, 47, 911, 1500, 12, 345 };

        private static string Env(string name)
        {
            string value = Environment.GetEnvironmentVariable(name);
            if (string.IsNullOrEmpty(value)) throw new InvalidOperationException(name + " is not set (bindings/conformance.md)");
            return value;
        }

        internal static string ModelPath(string name) { return Path.Combine(Env("AERIE_MODELS"), name); }
        internal static string PluginPath(string name) { return Path.Combine(Env("AERIE_DIR"), "lib", "test-plugins", name + ".so"); }
        internal static string Source(params string[] path)
        {
            return Path.Combine(new[] { Env("AERIE_MODELS"), "..", ".." }.Concat(path).ToArray());
        }

        /// <summary>What the C API says for these settings.</summary>
        internal static int[] TheText(float temperature, ulong seed, int n)
        {
            string all = Run("conformance_tokens", string.Format(CultureInfo.InvariantCulture, "{0} {1} {2} {3}",
                ModelPath("demo.aerie"), temperature, seed, n));
            return all.Split(new[] { ' ', '\n' }, StringSplitOptions.RemoveEmptyEntries).Select(int.Parse).ToArray();
        }

        /// <summary>What a program of the build tree prints.</summary>
        internal static string Run(string program, string arguments)
        {
            ProcessStartInfo start = new ProcessStartInfo(Path.Combine(Env("AERIE_DIR"), "bin", program), arguments)
                { RedirectStandardOutput = true, UseShellExecute = false };
            using (Process process = Process.Start(start))
            {
                string all = process.StandardOutput.ReadToEnd();
                process.WaitForExit();
                Is(process.ExitCode, 0, program);
                return all;
            }
        }

        internal static Runtime OpenRuntime(Action<LogLevel, string> log = null, string plugin = null)
        {
            Runtime runtime = new Runtime(new RuntimeOptions { Threads = 1, Log = log });
            if (plugin == null) runtime.LoadPlugins();
            else runtime.LoadPlugin(PluginPath(plugin));
            return runtime;
        }

        /// <summary>The demo model; the runtime goes with it.</summary>
        internal static Model OpenDemo()
        {
            using (Runtime runtime = OpenRuntime()) return Model.Open(runtime, ModelPath("demo.aerie"));
        }

        internal static Drafter OpenEagle(Model model) { return model.OpenDrafter(ModelPath("demo-eagle.aerie")); }

        /// <summary>A chain, as auto drafts only where that pays.</summary>
        internal static SessionOptions Settings(Drafter drafter, float temperature, ulong seed)
        {
            return new SessionOptions
            {
                Drafter = drafter, IgnoreEos = true, Sampling = new Sampling { Temperature = temperature, Seed = seed },
                Tree = new Tree { Policy = TreePolicy.Chain, Nodes = 3 },
            };
        }

        internal static Session Start(Model model, Drafter drafter, float temperature, ulong seed, int[] prompt = null)
        {
            Session session = model.CreateSession(Settings(drafter, temperature, seed));
            session.Append(prompt ?? Prompt);
            return session;
        }

        internal static int[] Take(Session session, int n) { return session.Generate(n).Select(t => t.Id).ToArray(); }

        internal static void IsText(IEnumerable<int> got, IEnumerable<int> want, string what = "")
        {
            if (!got.Any() || !got.SequenceEqual(want))
                throw new Exception(what + ": " + string.Join(" ", got) + "\nwant " + string.Join(" ", want));
        }

        internal static void Is<T>(T got, T want, string what = "")
        {
            if (!Equals(got, want)) throw new Exception(what + ": " + got + ", want " + want);
        }

        internal static void That(bool holds, string what)
        {
            if (!holds) throw new Exception(what);
        }

        internal static T Throws<T>(Action action, string what = "") where T : Exception
        {
            try
            {
                action();
            }
            catch (T e)
            {
                return e;
            }
            throw new Exception(what + ": no " + typeof(T).Name);
        }

        internal static AerieException Fails(ErrorCode code, Action action, string what = "")
        {
            AerieException e = Throws<AerieException>(action, what);
            Is(e.Code, code, what + ": " + e.Message);
            return e;
        }
    }
}
