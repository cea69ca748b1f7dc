using System;
using System.Collections.Generic;
using Aerie.Native;

namespace Aerie
{
    public sealed class ChatMessage
    {
        public readonly string Role, Content;

        public ChatMessage(string role, string content)
        {
            if (role == null) throw new ArgumentNullException("role");
            if (content == null) throw new ArgumentNullException("content");
            Role = role;
            Content = content;
        }
    }

    /// <summary>A conversation: Messages, or MessagesJson.</summary>
    public sealed class Chat
    {
        public IList<ChatMessage> Messages;
        /// <summary>A list of objects, for what else messages have, such as tool_calls.</summary>
        public string MessagesJson;
        /// <summary>A list of the tools' descriptions.</summary>
        public string ToolsJson;
        /// <summary>An object: the template's further variables, such as {"enable_thinking": false}.</summary>
        public string VariablesJson;
        /// <summary>Ends with what begins the model's answer.</summary>
        public bool AddGenerationPrompt = true;
    }

    /// <summary>
    /// Makes one text of a conversation, as its model was trained on it; immutable, any thread. Model.OpenChatTemplate is the short way.
    /// </summary>
    public sealed unsafe class ChatTemplate : IDisposable
    {
        private readonly ChatTemplateHandle handle;

        /// <summary>
        /// From a Jinja template, as Hugging Face has them. bos_token and eos_token are those of the model, which may be null.
        /// ErrorCode.BadFormat names the line, ErrorCode.Unsupported also what is not supported.
        /// </summary>
        public ChatTemplate(string text, Model model = null)
        {
            if (text == null) throw new ArgumentNullException("text");
            byte[] bytes = Utf8.ToBytes(text);
            IntPtr p = IntPtr.Zero;
            aerie_error e = AerieException.NewError();
            fixed (byte* t = bytes)
            {
                if (model == null)
                {
                    AerieException.Check(Methods.aerie_chat_template_create(t, (UIntPtr)bytes.Length, IntPtr.Zero, null, &p, &e), ref e);
                }
                else
                {
                    var info = new aerie_model_info { struct_size = (uint)sizeof(aerie_model_info) };
                    using (Tokenizer tokenizer = model.OpenTokenizer())
                    using (var m = model.Handle.Use())
                    using (var on = tokenizer.Handle.Use())
                    {
                        AerieException.Check(Methods.aerie_model_info_get(m.Pointer, &info, &e), ref e);
                        AerieException.Check(Methods.aerie_chat_template_create(t, (UIntPtr)bytes.Length, on.Pointer, &info, &p, &e), ref e);
                    }
                }
            }
            handle = new ChatTemplateHandle(p);
        }

        /// <summary>
        /// The conversation as one text; encode it with bos: false, special: true. ErrorCode.InvalidArgument: the template refuses it,
        /// and says why.
        /// </summary>
        public string Render(Chat chat)
        {
            if (chat == null) throw new ArgumentNullException("chat");
            int n = chat.Messages == null ? 0 : chat.Messages.Count;
            // All texts in one array, which is fixed at once; offsets, -1: none.
            var memory = new List<byte>();
            var at = new int[2 * n + 3];
            for (int i = 0; i < n; ++i)
            {
                at[2 * i] = Put(memory, chat.Messages[i].Role, "Role");
                at[2 * i + 1] = Put(memory, chat.Messages[i].Content, "Content");
            }
            at[2 * n] = Put(memory, chat.MessagesJson, "MessagesJson");
            at[2 * n + 1] = Put(memory, chat.ToolsJson, "ToolsJson");
            at[2 * n + 2] = Put(memory, chat.VariablesJson, "VariablesJson");
            memory.Add(0); // not empty, so that it has an address
            byte[] all = memory.ToArray(), text = new byte[4096];
            var messages = new aerie_chat_message[n + 1];
            aerie_error e = AerieException.NewError();
            using (var template = handle.Use())
                fixed (byte* a = all)
                fixed (aerie_chat_message* m = messages)
                {
                    for (int i = 0; i < n; ++i)
                    {
                        m[i].role = a + at[2 * i];
                        m[i].content = a + at[2 * i + 1];
                    }
                    var o = new aerie_chat_options { struct_size = (uint)sizeof(aerie_chat_options) };
                    o.add_generation_prompt = chat.AddGenerationPrompt ? 1 : 0;
                    o.messages = n == 0 ? null : m;
                    o.n_messages = n;
                    o.messages_json = at[2 * n] < 0 ? null : a + at[2 * n];
                    o.tools_json = at[2 * n + 1] < 0 ? null : a + at[2 * n + 1];
                    o.variables_json = at[2 * n + 2] < 0 ? null : a + at[2 * n + 2];
                    for (;;)
                    {
                        UIntPtr size = UIntPtr.Zero;
                        fixed (byte* t = text)
                        {
                            int code = Methods.aerie_chat_template_render(template.Pointer, &o, t, (UIntPtr)text.Length, &size, &e);
                            if (code != Constants.AERIE_E_LIMIT || (ulong)size <= (ulong)text.Length)
                            {
                                AerieException.Check(code, ref e);
                                return Utf8.FromNative(t, (int)size);
                            }
                        }
                        text = new byte[checked((int)size)];
                    }
                }
        }

        private static int Put(List<byte> memory, string text, string what)
        {
            if (text == null) return -1;
            int at = memory.Count;
            memory.AddRange(Utf8.ToNative(text, what));
            return at;
        }

        public void Dispose()
        {
            handle.Dispose();
        }
    }
}
