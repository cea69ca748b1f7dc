package aerie

/*
#include <aerie/text.h>
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// ChatTemplate makes one text of a conversation, as its model was trained on it; immutable and shared.
type ChatTemplate struct {
	object object[*C.aerie_chat_template]
}

// ChatMessage is one of a conversation.
type ChatMessage struct {
	Role, Content string
}

// Chat is a conversation: Messages, or MessagesJSON.
type Chat struct {
	Messages            []ChatMessage
	MessagesJSON        string // a list of objects, for what else messages have, such as tool_calls
	ToolsJSON           string // a list of the tools' descriptions
	VariablesJSON       string // an object: the template's further variables, such as {"enable_thinking": false}
	AddGenerationPrompt bool   // ends with what begins the model's answer
}

// NewChatTemplate reads a Jinja template, as Hugging Face has them; Model.ChatTemplate is the short way. bos_token and eos_token are
// those of the model, which may be nil. ErrBadFormat names the line, ErrUnsupported also what is not supported.
func NewChatTemplate(text string, model *Model) (*ChatTemplate, error) {
	var memory arena
	defer memory.free()
	var tokenizer *C.aerie_tokenizer
	var info *C.aerie_model_info
	if model != nil {
		m, err := model.object.hold()
		if err != nil {
			return nil, err
		}
		defer model.object.letGo()
		t, err := model.Tokenizer()
		if err != nil {
			return nil, err
		}
		defer t.Close()
		if tokenizer, err = t.object.hold(); err != nil {
			return nil, err
		}
		defer t.object.letGo()
		info = (*C.aerie_model_info)(memory.zeroed(C.sizeof_aerie_model_info))
		info.struct_size = C.sizeof_aerie_model_info
		if err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_model_info_get(m, info, e) }); err != nil {
			return nil, err
		}
	}
	bytes := append([]byte(text), 0) // not empty, so that it has an address
	var p *C.aerie_chat_template
	err := check(func(e *C.aerie_error) C.int32_t {
		return C.aerie_chat_template_create((*C.char)(unsafe.Pointer(&bytes[0])), C.size_t(len(text)), tokenizer, info, &p, e)
	})
	if err != nil {
		return nil, err
	}
	c := &ChatTemplate{}
	c.object.open(p, func(p *C.aerie_chat_template) { C.aerie_chat_template_release(p) }, newShared(func() {}))
	runtime.SetFinalizer(c, (*ChatTemplate).Close)
	return c, nil
}

// ChatTemplate of the model's package; ErrNotFound when it has none.
func (m *Model) ChatTemplate() (*ChatTemplate, error) {
	text, err := m.Blob("chat_template")
	if err != nil {
		return nil, err
	}
	return NewChatTemplate(string(text), m)
}

// Close gives the template back.
func (c *ChatTemplate) Close() error {
	c.object.close(nil)
	return nil
}

// Render makes one text of a conversation. Encode it with NoBOS and Special. ErrInvalidArgument: the template refuses it, and says why.
func (c *ChatTemplate) Render(chat Chat) (string, error) {
	for what, text := range map[string]string{"MessagesJSON": chat.MessagesJSON, "ToolsJSON": chat.ToolsJSON, "VariablesJSON": chat.VariablesJSON} {
		if err := noNUL(what, text); err != nil {
			return "", err
		}
	}
	p, err := c.object.hold()
	if err != nil {
		return "", err
	}
	defer c.object.letGo()
	var memory arena
	defer memory.free()
	o := C.aerie_chat_options{struct_size: C.sizeof_aerie_chat_options}
	if n := len(chat.Messages); n > 0 {
		o.messages = (*C.aerie_chat_message)(memory.zeroed(uintptr(n) * C.sizeof_aerie_chat_message))
		o.n_messages = int32Of(n)
		for i, m := range unsafe.Slice(o.messages, n) {
			if err := noNUL("a message", chat.Messages[i].Role+chat.Messages[i].Content); err != nil {
				return "", err
			}
			m.role, m.content = memory.cString(chat.Messages[i].Role), memory.cString(chat.Messages[i].Content)
			unsafe.Slice(o.messages, n)[i] = m
		}
	}
	o.messages_json, o.tools_json, o.variables_json = memory.string(chat.MessagesJSON), memory.string(chat.ToolsJSON), memory.string(chat.VariablesJSON)
	if chat.AddGenerationPrompt {
		o.add_generation_prompt = 1
	}
	text := make([]byte, 4096)
	for {
		var size C.size_t
		err := check(func(e *C.aerie_error) C.int32_t {
			return C.aerie_chat_template_render(p, &o, (*C.char)(unsafe.Pointer(&text[0])), C.size_t(len(text)), &size, e)
		})
		if err == nil {
			return string(text[:size]), nil
		}
		if int(size) <= len(text) {
			return "", err
		}
		text = make([]byte, size)
	}
}
