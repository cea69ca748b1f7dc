package aerie

import (
	"strings"
	"testing"
)

const chatText = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}" +
	"{{ tools | tojson if tools }}{{ style }}{{ '<assistant>' if add_generation_prompt }}"

func newChatTemplate(t *testing.T, text string, model *Model) *ChatTemplate {
	t.Helper()
	c, err := NewChatTemplate(text, model)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestChatTemplate(t *testing.T) {
	model := openDemo(t)
	plain := newChatTemplate(t, chatText, nil)
	renders := func(c *ChatTemplate, chat Chat, want string) {
		t.Helper()
		if got, err := c.Render(chat); err != nil || got != want {
			t.Fatalf("%q, %v; not %q", got, err, want)
		}
	}
	messages := []ChatMessage{{"system", "é 😀"}, {"user", "Hi"}}
	renders(plain, Chat{Messages: messages, AddGenerationPrompt: true}, "<system>é 😀<user>Hi<assistant>")
	renders(plain, Chat{MessagesJSON: `[{"role": "user", "content": "Hi\u0000"}]`, ToolsJSON: `[{"b": 1, "a": "é"}]`,
		VariablesJSON: `{"style": "brief", "eos_token": "|"}`}, "<user>Hi\x00|[{\"b\": 1, \"a\": \"é\"}]brief")
	long := strings.Repeat("x", 100000)
	renders(plain, Chat{Messages: []ChatMessage{{"user", long}}}, "<user>"+long)
	ends, err := newChatTemplate(t, "{{ eos_token }}", model).Render(Chat{})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := openTokenizer(t, model).Encode(ends, EncodeOptions{NoBOS: true, Special: true})
	info, _ := model.Info()
	if err != nil || len(ids) != 1 || ids[0] != info.EOS[0] {
		t.Fatal(ends, ids, err)
	}
	plain.Close()
	plain.Close()
	if _, err := plain.Render(Chat{}); err == nil {
		t.Fatal("it is closed")
	}
	_, err = model.ChatTemplate()
	fails(t, err, ErrNotFound, "chat template")
}

func TestChatTemplateErrors(t *testing.T) {
	create := func(text string) error {
		_, err := NewChatTemplate(text, nil)
		return err
	}
	fails(t, create("a\n{% if x %}"), ErrBadFormat, "line 2")
	fails(t, create("{{ x | nope }}"), ErrUnsupported, "nope")
	render := func(chat Chat) error {
		_, err := newChatTemplate(t, "{{ raise_exception('roles must alternate') }}", nil).Render(chat)
		return err
	}
	fails(t, render(Chat{}), ErrInvalidArgument, "roles must alternate")
	fails(t, render(Chat{MessagesJSON: "[1]"}), ErrInvalidArgument, "messages")
	fails(t, render(Chat{MessagesJSON: "["}), ErrBadFormat, "messages")
	fails(t, render(Chat{Messages: []ChatMessage{{"user", "\x00"}}}), ErrInvalidArgument, "NUL")
	fails(t, render(Chat{ToolsJSON: "[\x00]"}), ErrInvalidArgument, "NUL")
	newChatTemplate(t, chatText, nil)
}
