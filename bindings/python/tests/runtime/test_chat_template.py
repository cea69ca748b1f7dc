"""Conversations as text."""

import aerie
from aerie import Code
from case import Case

TEMPLATE = ("{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
            "{{ tools | tojson if tools }}{{ style }}{{ '<assistant>' if add_generation_prompt }}")
MESSAGES = [{"role": "system", "content": "é \0 😀"}, {"role": "user", "content": "Hi"}]


class ChatTemplates(Case):
    def test_chat_template(self):
        plain = aerie.ChatTemplate(TEMPLATE)
        self.assertEqual(plain.render(MESSAGES), "<system>é \0 😀<user>Hi<assistant>")
        self.assertEqual(plain.render(MESSAGES[1:], tools=[{"b": 1, "a": "é"}], add_generation_prompt=False, style="brief", eos_token="|"),
                         '<user>Hi|[{"b": 1, "a": "é"}]brief')
        long = "x" * 100000
        self.assertEqual(plain.render([{"role": "user", "content": long}]), f"<user>{long}<assistant>")
        # The markers are tokens of the model.
        tokenizer = self.model.tokenizer
        ends = aerie.ChatTemplate("{{ eos_token }}", self.model).render([])
        self.assertEqual(tokenizer.encode(ends, bos=False, special=True), [self.model.info.eos_ids[0]])
        plain.close()
        plain.close()
        with self.assertRaises(ValueError):
            plain.render([])
        self.assertEqual(self.model.blob("chat_template"), b"")
        with self.assertRaises(LookupError):
            self.model.chat_template

    def test_chat_template_errors(self):
        self.check_error(Code.BAD_FORMAT, "line 2", aerie.ChatTemplate, "a\n{% if x %}")
        self.check_error(Code.UNSUPPORTED, "nope", aerie.ChatTemplate, "{{ x | nope }}")
        refuses = aerie.ChatTemplate("{{ raise_exception('roles must alternate') }}")
        self.check_error(Code.INVALID_ARGUMENT, "roles must alternate", refuses.render, [])
        self.check_error(Code.INVALID_ARGUMENT, "messages", refuses.render, [1])
        with self.assertRaises(TypeError):
            aerie.ChatTemplate(TEMPLATE, self.model.tokenizer)
        with self.assertRaises(TypeError):
            refuses.render([object()])
        self.assertEqual(aerie.ChatTemplate(TEMPLATE).render([]), "<assistant>")
