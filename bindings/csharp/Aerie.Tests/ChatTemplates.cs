using System;
using static Aerie.Tests.Support;

namespace Aerie.Tests
{
    public static partial class Conformance
    {
        private const string ChatText = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}" +
            "{{ tools | tojson if tools }}{{ style }}{{ '<assistant>' if add_generation_prompt }}";

        public static void chat_template()
        {
            using (Model model = OpenDemo())
            using (Tokenizer tokenizer = model.OpenTokenizer())
            using (ChatTemplate plain = new ChatTemplate(ChatText), ends = new ChatTemplate("{{ eos_token }}", model))
            {
                ChatMessage[] messages = { new ChatMessage("system", "é 😀"), new ChatMessage("user", "Hi") };
                Is(plain.Render(new Chat { Messages = messages }), "<system>é 😀<user>Hi<assistant>");
                Is(plain.Render(new Chat
                {
                    MessagesJson = "[{\"role\": \"user\", \"content\": \"Hi\"}]", ToolsJson = "[{\"b\": 1, \"a\": \"é\"}]",
                    VariablesJson = "{\"style\": \"brief\", \"eos_token\": \"|\"}", AddGenerationPrompt = false,
                }), "<user>Hi|[{\"b\": 1, \"a\": \"é\"}]brief");
                string text = new string('x', 100000);
                Is(plain.Render(new Chat { Messages = new[] { new ChatMessage("user", text) } }), "<user>" + text + "<assistant>");
                int[] ids = tokenizer.Encode(ends.Render(new Chat()), bos: false, special: true);
                That(ids.Length == 1 && ids[0] == model.Info.Eos[0], "eos_token is not the model's");
                plain.Dispose();
                Throws<ObjectDisposedException>(() => plain.Render(new Chat()));
                Fails(ErrorCode.NotFound, () => model.OpenChatTemplate());
            }
        }

        public static void chat_template_errors()
        {
            Action<ErrorCode, string, Action> says = (code, words, action) =>
            {
                string message = Fails(code, action).Message;
                That(message.Contains(words), message);
            };
            says(ErrorCode.BadFormat, "line 2", () => new ChatTemplate("a\n{% if x %}"));
            says(ErrorCode.Unsupported, "nope", () => new ChatTemplate("{{ x | nope }}"));
            using (ChatTemplate refuses = new ChatTemplate("{{ raise_exception('roles must alternate') }}"))
            {
                says(ErrorCode.InvalidArgument, "roles must alternate", () => refuses.Render(new Chat()));
                says(ErrorCode.InvalidArgument, "messages", () => refuses.Render(new Chat { MessagesJson = "[1]" }));
                says(ErrorCode.BadFormat, "messages", () => refuses.Render(new Chat { MessagesJson = "[" }));
                Throws<ArgumentException>(() => refuses.Render(new Chat { Messages = new[] { new ChatMessage("user", "\0") } }));
                Throws<ArgumentNullException>(() => refuses.Render(null));
            }
            Throws<ArgumentNullException>(() => new ChatTemplate(null));
            new ChatTemplate(ChatText).Dispose();
        }
    }
}
