using System;
using System.Diagnostics;
using System.Linq;
using System.Reflection;

namespace Aerie.Tests
{
    /// <summary>Runs every public method of Conformance and More whose name an argument is part of; all without arguments.</summary>
    internal static class Program
    {
        private static int Main(string[] args)
        {
            int passed = 0, failed = 0;
            foreach (MethodInfo test in new[] { typeof(Conformance), typeof(More) }.SelectMany(t => t.GetMethods(BindingFlags.Public | BindingFlags.Static)))
            {
                if (args.Length > 0 && !args.Any(a => test.Name.IndexOf(a, StringComparison.OrdinalIgnoreCase) >= 0)) continue;
                Stopwatch watch = Stopwatch.StartNew();
                try
                {
                    test.Invoke(null, null);
                    ++passed;
                    Console.WriteLine("ok     {0} ({1:F2} s)", test.Name, watch.Elapsed.TotalSeconds);
                }
                catch (TargetInvocationException e)
                {
                    ++failed;
                    Console.WriteLine("FAILED {0}\n{1}", test.Name, e.InnerException);
                }
            }
            Console.WriteLine("{0} passed, {1} failed", passed, failed);
            return failed == 0 && passed > 0 ? 0 : 1;
        }
    }
}
