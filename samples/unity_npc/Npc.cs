using System;
using System.Collections.Concurrent;
using Aerie;
using UnityEngine;

/// <summary>
/// Somebody who talks, a few milliseconds a frame. It polls: no thread of its own, nothing called back but the log, whose
/// messages wait in a queue for Update. Put Aerie.dll, libaerie, libaerie-text and the drafters into the project's Plugins
/// folder (never tried in Unity). StandIn.cs runs it on Mono.
/// </summary>
public class Npc : MonoBehaviour
{
    public string modelPath;
    public string drafterPath;
    public double budgetMilliseconds = 2;
    public int maxTokens = 60;

    /// <summary>A few characters more; called from Update.</summary>
    public event Action<string> Spoke;
    public bool Talking { get { return text != null; } }

    private readonly ConcurrentQueue<string> log = new ConcurrentQueue<string>();
    private Aerie.Runtime runtime;
    private Model model;
    private Drafter drafter;
    private Tokenizer tokenizer;
    private Session session;
    private TextStream text;
    private int left;

    /// <summary>Opening reads files and is not sliced: do it behind a loading screen.</summary>
    private void OnEnable()
    {
        runtime = new Aerie.Runtime(new RuntimeOptions { Threads = 1, Log = (level, message) => log.Enqueue(message) });
        model = Model.Open(runtime, modelPath);
        tokenizer = model.OpenTokenizer();
        if (!string.IsNullOrEmpty(drafterPath))
        {
            runtime.LoadPlugins();
            drafter = model.OpenDrafter(drafterPath);
        }
        session = model.CreateSession(new SessionOptions
        {
            Drafter = drafter,
            Sampling = new Sampling { Temperature = 0.8f, Seed = 1 },
            Tree = new Tree { Policy = TreePolicy.Chain, Nodes = 2 }, // auto would measure passes first
            IgnoreEos = true,
        });
    }

    /// <summary>Begin to answer. The prompt is read in slices too, by Update.</summary>
    public void Say(string prompt)
    {
        Hush();
        session.Rewind(0);
        session.Append(tokenizer.Encode(prompt));
        text = new TextStream(tokenizer, session);
        left = maxTokens;
    }

    public void Hush()
    {
        if (text != null) text.Dispose();
        text = null;
    }

    private void Update()
    {
        string message;
        while (log.TryDequeue(out message)) Debug.Log(message);
        if (text == null) return;
        StepResult step = session.Step(new StepOptions { MaxTokens = left, Budget = TimeSpan.FromMilliseconds(budgetMilliseconds) });
        left -= step.Tokens.Length;
        bool over = step.State == StepState.Done || left <= 0;
        string piece = text.Push(step) + (over ? text.Finish() : "");
        if (over) Hush();
        if (piece.Length > 0 && Spoke != null) Spoke(piece);
    }

    /// <summary>Also when the editor reloads scripts: native code must not call into what is gone.</summary>
    private void OnDisable()
    {
        Hush();
        foreach (IDisposable thing in new IDisposable[] { session, drafter, tokenizer, model, runtime })
            if (thing != null) thing.Dispose();
        drafter = null;
    }
}
