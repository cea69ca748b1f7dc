#if !UNITY_5_3_OR_NEWER
// What Npc.cs uses of Unity, and a loop of frames, so that the sample runs on Mono without it (Aerie.dll: docs/csharp.md):
//   mcs -r:Aerie.dll -out:Npc.exe samples/unity_npc/*.cs && mono Npc.exe MODEL.aerie [DRAFTER.aerie]
using System;
using System.Diagnostics;
using System.Reflection;
using System.Threading;

namespace UnityEngine
{
    public class MonoBehaviour
    {
        /// <summary>Unity finds its messages by name.</summary>
        internal void Send(string message)
        {
            MethodInfo method = GetType().GetMethod(message, BindingFlags.Instance | BindingFlags.NonPublic | BindingFlags.Public);
            if (method != null) method.Invoke(this, null);
        }
    }

    public static class Debug
    {
        public static void Log(object message) { Console.Error.WriteLine(message); }
    }
}

internal static class StandIn
{
    private static int Main(string[] args)
    {
        Npc npc = new Npc { modelPath = args[0], drafterPath = args.Length > 1 ? args[1] : null };
        int frames = 0, speaking = 0;
        double worst = 0;
        npc.Spoke += piece => { ++speaking; Console.Write(piece); };
        npc.Send("OnEnable");
        npc.Say("It was a bright morning, and the old man said:");
        for (Stopwatch frame = new Stopwatch(); npc.Talking; ++frames)
        {
            frame.Restart();
            npc.Send("Update");
            worst = Math.Max(worst, frame.Elapsed.TotalMilliseconds);
            Thread.Sleep(1); // the rest of the frame
        }
        npc.Send("OnDisable");
        npc.Send("OnEnable"); // as after a reload of scripts
        npc.Send("OnDisable");
        Console.WriteLine("\n{0} frames, {1} with text, the longest Update {2:F1} ms", frames, speaking, worst);
        return speaking > 0 ? 0 : 1;
    }
}
#endif
