using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.InteropServices;
using Aerie.Native;
using static Aerie.Tests.Support;

namespace Aerie.Tests
{
    /// <summary>The cases that need the C declarations.</summary>
    public static unsafe partial class Conformance
    {
        public static void layout()
        {
            Dictionary<string, string> want = File.ReadAllLines(Source("tests", "abi", "layout.txt"))
                .Select(line => line.Split(' ')).Where(f => f.Length == 2).ToDictionary(f => f[0], f => f[1]);
            int seen = 0;
            foreach (Type type in typeof(aerie_error).Assembly.GetTypes().Where(t => t.Namespace == "Aerie.Native" && t.IsValueType && !t.IsNested))
            {
                Is(Marshal.SizeOf(type).ToString(), want[type.Name], type.Name);
                foreach (FieldInfo field in type.GetFields(BindingFlags.Instance | BindingFlags.NonPublic | BindingFlags.Public))
                {
                    Is(Marshal.OffsetOf(type, field.Name).ToInt64().ToString(), want[type.Name + "." + field.Name], type.Name + "." + field.Name);
                    ++seen;
                }
            }
            That(seen > 80, seen + " fields");
        }

        /// <summary>Bytes the library may use, and others behind them that it must not.</summary>
        private static byte[] Framed(int size, int all, byte beyond)
        {
            byte[] bytes = Enumerable.Repeat(beyond, all).ToArray();
            Array.Clear(bytes, 0, size);
            BitConverter.GetBytes(size).CopyTo(bytes, 0);
            return bytes;
        }

        public static void older_struct_size()
        {
            using (Model model = OpenDemo())
            using (var m = model.Handle.Use())
            using (Session plain = model.CreateSession())
            {
                plain.Append(Prompt);
                IntPtr p = IntPtr.Zero;
                fixed (byte* options = Framed(16, sizeof(aerie_session_options), 0xAB))
                    Is(Methods.aerie_session_create(m.Pointer, (aerie_session_options*)options, &p, null), 0);
                using (Session session = new Session(new SessionHandle(p, new Hooks(null, null))))
                {
                    session.Append(Prompt);
                    byte[] result = Framed(16, sizeof(aerie_step_result), 0xAB);
                    fixed (byte* r = result) Is(Methods.aerie_session_step(p, null, (aerie_step_result*)r, null), 0);
                    That(result.Skip(16).All(b => b == 0xAB), "what lies behind the result was written");
                    That(BitConverter.ToInt64(result, 8) != 0, "no tokens");
                    int first = session.Tokens.Length - Prompt.Length;
                    IsText(session.Tokens.Skip(Prompt.Length), Take(plain, first));
                }
            }
        }

        public static void newer_struct_size()
        {
            int size = sizeof(aerie_session_options);
            using (Model model = OpenDemo())
            using (var m = model.Handle.Use())
            {
                IntPtr p = IntPtr.Zero;
                byte[] options = Framed(size + 64, size + 64, 0);
                fixed (byte* o = options) Is(Methods.aerie_session_create(m.Pointer, (aerie_session_options*)o, &p, null), 0);
                using (Session session = new Session(new SessionHandle(p, new Hooks(null, null))))
                {
                    session.Append(Prompt);
                    byte[] result = Framed(4, sizeof(aerie_step_result) + 64, 0xAB);
                    BitConverter.GetBytes(result.Length).CopyTo(result, 0);
                    fixed (byte* r = result) Is(Methods.aerie_session_step(p, null, (aerie_step_result*)r, null), 0);
                    That(result.Skip(sizeof(aerie_step_result)).All(b => b == 0), "the result's tail is not zero");
                }
                options[size + 63] = 1;
                fixed (byte* o = options)
                    Is(Methods.aerie_session_create(m.Pointer, (aerie_session_options*)o, &p, null), Constants.AERIE_E_UNSUPPORTED);
            }
        }
    }
}
