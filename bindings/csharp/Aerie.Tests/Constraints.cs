using System;
using System.Collections.Generic;
using System.Linq;
using System.Text.RegularExpressions;
using static Aerie.Tests.Support;

namespace Aerie.Tests
{
    /// <summary>What may come next: biases, penalties, grammars.</summary>
    public static partial class Conformance
    {
        private static Session Sampled(Model model, Drafter drafter, Sampling sampling)
        {
            SessionOptions options = Settings(drafter, 0, 0);
            options.Sampling = sampling;
            Session session = model.CreateSession(options);
            session.Append(Prompt);
            return session;
        }

        private static void Refused(string words, Action action)
        {
            AerieException e = Fails(ErrorCode.InvalidArgument, action, words);
            That(e.Message.Contains(words), e.Message);
        }

        public static void logit_bias()
        {
            int[] plain = TheText(0, 0, 64);
            int at = Enumerable.Range(3, 61).First(i => !plain.Take(i).Contains(plain[i]));
            var forbids = new Sampling { LogitBias = new Dictionary<int, float> { { plain[at], float.NegativeInfinity } } };
            using (Model model = OpenDemo())
            using (Drafter eagle = OpenEagle(model))
            using (Session session = Sampled(model, null, forbids), drafted = Sampled(model, eagle, forbids))
            {
                int[] text = Take(session, 64);
                That(!text.Contains(plain[at]), "it came");
                IsText(text.Take(at), plain.Take(at));
                IsText(Take(drafted, 64), text, "drafted");
                That(drafted.Statistics.Accepted > 0, "nothing was accepted");
                // From now on, and no longer.
                drafted.SetSampling(new Sampling { LogitBias = new SortedList<int, float> { { 77, 1000 }, { 78, 1 } } });
                IsText(Take(drafted, 4), new[] { 77, 77, 77, 77 });
                drafted.SetSampling(new Sampling());
                drafted.Rewind(Prompt.Length);
                IsText(Take(drafted, 64), plain, "without");
                foreach (Dictionary<int, float> wrong in new[]
                {
                    new Dictionary<int, float> { { -1, 1 } }, new Dictionary<int, float> { { 1 << 30, 1 } },
                    new Dictionary<int, float> { { 0, float.NaN } },
                })
                    Refused("logit_bias", () => session.SetSampling(new Sampling { LogitBias = wrong }));
            }
        }

        public static void penalties()
        {
            List<string> texts = new List<string> { string.Join(" ", TheText(0, 0, 64)) };
            using (Model model = OpenDemo())
            using (Drafter eagle = OpenEagle(model))
            {
                foreach (Sampling sampling in new[]
                {
                    new Sampling { RepetitionPenalty = 1.3f }, new Sampling { PresencePenalty = 2 },
                    new Sampling { FrequencyPenalty = 2 },
                    new Sampling { RepetitionPenalty = 1.3f, PenaltyWindow = 8 },
                })
                    using (Session session = Sampled(model, null, sampling), drafted = Sampled(model, eagle, sampling))
                    {
                        int[] text = Take(session, 64);
                        string said = string.Join(" ", text);
                        That(!texts.Contains(said), "number " + texts.Count + " changes nothing");
                        IsText(Take(drafted, 64), text, "drafted");
                        texts.Add(said);
                    }
                using (Session session = Sampled(model, null, null))
                {
                    Refused("repetition_penalty", () => session.SetSampling(new Sampling { RepetitionPenalty = -1 }));
                    Refused("presence_penalty", () => session.SetSampling(new Sampling { PresencePenalty = float.NaN }));
                    Refused("frequency_penalty", () => session.SetSampling(new Sampling { FrequencyPenalty = 1e9f }));
                    Refused("penalty_window", () => session.SetSampling(new Sampling { PenaltyWindow = -1 }));
                }
            }
        }

        private const string List = "root ::= \" \" [a-z]+ (\", \" [a-z]+) (\", \" [a-z]+) \".\"";

        private static void IsList(string text)
        {
            That(Regex.IsMatch(text, @"^ [a-z]+, [a-z]+, [a-z]+\.$"), "no list: " + text);
        }

        /// <summary>Words end soon, and so does a list of them.</summary>
        private static Sampling ShortWords(Tokenizer tokenizer)
        {
            return new Sampling
            {
                Temperature = 0.8f, Seed = 5,
                LogitBias = new[] { "a,", "a." }.ToDictionary(text => tokenizer.Encode(text, bos: false).Last(), text => 6f),
            };
        }

        /// <summary>All that comes until the text ends, which nothing but the grammar does.</summary>
        private static int[] ToItsEnd(Session session, FinishReason why = FinishReason.Constraint)
        {
            List<int> all = new List<int>();
            for (;;)
            {
                StepResult step = session.Step();
                all.AddRange(step.Tokens.Select(t => t.Id));
                if (step.State != StepState.Done && all.Count < 300) continue;
                Is(step.Finish, why);
                return all.ToArray();
            }
        }

        private static string Spell(Tokenizer tokenizer, IEnumerable<int> ids)
        {
            using (TextDecoder decoder = tokenizer.CreateDecoder()) return string.Concat(ids.Select(decoder.Push)) + decoder.Finish();
        }

        public static void grammar()
        {
            using (Model model = OpenDemo())
            using (Tokenizer tokenizer = model.OpenTokenizer())
            using (Drafter eagle = OpenEagle(model))
            using (Grammar list = tokenizer.CreateGrammar(List), ending = tokenizer.CreateGrammar(List, model.Info.Eos))
            {
                Sampling sampling = ShortWords(tokenizer);
                using (Session session = Sampled(model, null, sampling), drafted = Sampled(model, eagle, sampling))
                {
                    session.SetGrammar(list);
                    drafted.SetGrammar(list);
                    int[] text = ToItsEnd(session);
                    IsList(Spell(tokenizer, text));
                    IsText(ToItsEnd(drafted), text, "drafted");
                    // Back in the text, and in a fork of it.
                    int half = text.Length / 2;
                    session.Rewind(Prompt.Length + half);
                    using (Session twin = session.Fork())
                    {
                        IsText(ToItsEnd(session), text.Skip(half), "back");
                        IsList(Spell(tokenizer, text.Take(half).Concat(ToItsEnd(twin))));
                    }
                    // With the tokens that end the model's texts; then none.
                    session.Rewind(Prompt.Length);
                    session.SetGrammar(ending);
                    int[] ended = ToItsEnd(session);
                    IsText(ended.Take(text.Length), text, "with an end");
                    That(ended.Length == text.Length + 1 && model.Info.Eos.Contains(ended.Last()), string.Join(" ", ended));
                    session.SetGrammar(null);
                    session.Rewind(Prompt.Length);
                    session.SetSampling(new Sampling { Temperature = 0.8f, Seed = 5 });
                    IsText(Take(session, 64), TheText(0.8f, 5, 64), "without");
                }
            }
        }

        public static void json_schema()
        {
            const string schema = @"{""type"": ""object"", ""required"": [""old"", ""name""], ""additionalProperties"": false,
                ""properties"": {""old"": {""type"": ""boolean""}, ""name"": {""enum"": [""Tom"", ""Ann""]}}}";
            using (Model model = OpenDemo())
            using (Tokenizer tokenizer = model.OpenTokenizer())
            using (Drafter eagle = OpenEagle(model))
            using (Grammar form = tokenizer.CreateJsonGrammar(schema))
            using (Session session = Start(model, null, 0.8f, 5), drafted = Start(model, eagle, 0.8f, 5))
            {
                session.SetGrammar(form);
                drafted.SetGrammar(form);
                int[] text = ToItsEnd(session);
                string said = string.Concat(Spell(tokenizer, text).Where(c => !char.IsWhiteSpace(c)));
                That(Regex.IsMatch(said, @"^\{""old"":(true|false),""name"":""(Tom|Ann)""\}$"), said);
                IsText(ToItsEnd(drafted), text, "drafted");
                string line = null;
                using (Grammar oneLine = tokenizer.CreateJsonGrammar(schema, JsonLayout.OneLine))
                    foreach (bool without in new[] { false, true })
                        foreach (Drafter drafter in new[] { null, eagle })
                        {
                            SessionOptions options = Settings(drafter, 0.8f, 5);
                            options.NoForesight = without;
                            using (Session one = model.CreateSession(options))
                            {
                                one.Append(Prompt);
                                one.SetGrammar(oneLine);
                                said = Spell(tokenizer, ToItsEnd(one));
                                That(Regex.IsMatch(said, @"^\{""old"": (true|false), ""name"": ""(Tom|Ann)""\}$"), said);
                                line = line ?? said;
                                Is(said, line);
                                Statistics counts = one.Statistics;
                                Is(counts.ForeseenAccepted == 0, without);
                                That(counts.ForeseenVerified >= counts.ForeseenAccepted, "more than were verified");
                            }
                        }
                using (Grammar compact = tokenizer.CreateJsonGrammar(schema, JsonLayout.Compact))
                using (Session one = Start(model, null, 0.8f, 5))
                {
                    one.SetGrammar(compact);
                    said = Spell(tokenizer, ToItsEnd(one));
                    That(said.EndsWith("}", StringComparison.Ordinal) && !said.Any(char.IsWhiteSpace), said);
                }
            }
        }

        public static void grammar_closed_first()
        {
            using (Model model = OpenDemo())
            using (Tokenizer tokenizer = model.OpenTokenizer())
            using (Drafter eagle = OpenEagle(model))
            using (Session other = Sampled(model, null, ShortWords(tokenizer)))
            {
                using (Session session = Sampled(model, eagle, ShortWords(tokenizer)))
                {
                    Grammar list;
                    using (Tokenizer own = model.OpenTokenizer()) list = own.CreateGrammar(List);
                    session.SetGrammar(list);
                    other.SetGrammar(list);
                    list.Dispose();
                    list.Dispose();
                    Throws<ObjectDisposedException>(() => session.SetGrammar(list));
                    IsList(Spell(tokenizer, ToItsEnd(session)));
                }
                IsList(Spell(tokenizer, ToItsEnd(other)));
            }
        }

        public static void grammar_errors()
        {
            using (Model model = OpenDemo())
            using (Tokenizer tokenizer = model.OpenTokenizer())
            {
                Func<ErrorCode, Action, string> message = (code, action) => Fails(code, action).Message;
                string said = message(ErrorCode.BadFormat, () => tokenizer.CreateGrammar("root ::= \"a\"\nroot2 ::= ("));
                That(said.Contains("2"), said);
                said = message(ErrorCode.Unsupported, () => tokenizer.CreateGrammar("root ::= root \"a\" | \"b\""));
                That(said.Contains("root"), said);
                Refused("end_tokens", () => tokenizer.CreateGrammar(List, -1));
                Refused("json_layout", () => tokenizer.CreateJsonGrammar("{}", (JsonLayout)3));
                message(ErrorCode.BadFormat, () => tokenizer.CreateJsonGrammar("{"));
                said = message(ErrorCode.Unsupported, () => tokenizer.CreateJsonGrammar("{\"frobnicate\": 1}"));
                That(said.Contains("frobnicate"), said);
                Throws<ArgumentException>(() => tokenizer.CreateGrammar("root ::= \"\0\""));
                Throws<ArgumentNullException>(() => tokenizer.CreateGrammar(null));
                tokenizer.CreateGrammar(List, null).Dispose();
            }
        }
    }
}
