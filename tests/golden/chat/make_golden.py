#!/usr/bin/env python3
"""Writes conversations.json and language.json: what jinja2 makes of templates/*.jinja and of the templates below.

Run with `pip install jinja2` (3.1.6). The environment is that of transformers 5, whose apply_chat_template this is to equal.
"""
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from language import REFUSED, TEMPLATES, VARIABLES

HERE = pathlib.Path(__file__).resolve().parent
NOW = datetime.datetime(2026, 11, 5, 14, 3, 9)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
environment.filters["tojson"] = tojson
environment.globals.update(raise_exception=raise_exception, strftime_now=lambda form: NOW.strftime(form))

WEATHER = {"type": "function", "function": {
    "name": "weather", "description": "The weather \u2014 \"now\" & <b>here</b>.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "where"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": ["integer", "null"], "minimum": 1, "maximum": 10.5},
        "options": {"type": "object", "properties": {
            "layers": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}, "deep": {"type": "boolean"}},
            "required": ["deep"]}}, "required": ["city"]},
    "return": {"type": "string"}}}
CLOCK = {"type": "function", "function": {"name": "clock", "description": "Two\nlines", "parameters": {"type": "object", "properties": {}}}}


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content):
    return {"role": "system", "content": content}


def call(name, arguments, id="abcdefghi"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(content, **more):
    return {"role": "tool", "content": content, "tool_call_id": "abcdefghi", **more}


CONVERSATIONS = [
    [user("Hello")],
    [system("Be brief.\nAlways."), user("  Hi there \n")],
    [user("a"), assistant("b"), user("c")],
    [system("s"), user("a"), assistant(" b \n"), user("c \u00e9 \U0001F600 <|im_end|>"), assistant("d"), user("e")],
    [user("a"), assistant("<think>\nhm\n</think>\n\nanswer"), user("again")],
    [user("a"), assistant("<think>\nhm\n</think>\n\nanswer")],
    [user("a"), assistant("answer", reasoning_content="hm\nyes\n"), user("again"), assistant("b", reasoning_content="r")],
    [system("s"), user("w?"), assistant("", tool_calls=[call("weather", {
        "city": "Paris \u2014 \"x\" \u2028\x7f\u00a0", "days": 3, "f": 1.5, "g": 1e100, "b": True, "n": None, "l": [1, "a", {"k": []}]})]),
     tool("{\"t\": 21}"), assistant("It is 21."), user("thanks")],
    [user("w?"), assistant("let me", tool_calls=[call("weather", {"city": "A"}), call("clock", {}, "bbbbbbbbb")]), tool("1"), tool("2")],
    [user("w?"), assistant(None, tool_calls=[call("weather", '{"city": "A"}')]), tool({"t": 1, "u": [None, False]})],
    [user([{"type": "text", "text": "one "}, {"type": "image"}, {"type": "text", "text": "two"}]), assistant([]), user("x")],
    [user("a"), user("b")],
    [assistant("first"), user("b")],
    [system("one"), system("two"), user("x")],
    [user("")],
    [],
    [{"role": "other", "content": "x"}],
    [user("<result>1</result>"), assistant("2"), user("<result>3</result>")],
    [user("q"), assistant("w", tool_calls=[call("weather", {"city": "B", "unit": "celsius"}, "short")]), tool("x")],
]
OTHERS = [{}, {"tools": [WEATHER, CLOCK]}, {"tools": [CLOCK], "variables": {
    "enable_thinking": False, "where": "system", "builtin": ["weather", "interpreter", "search"], "today": "a Monday"}}]


def without_null(messages):  # as apply_chat_template does
    return [{k: v for k, v in m.items() if v is not None} for m in messages]


def outcome(template, **values):
    try:
        return {"text": template.render(**values)}
    except jinja2.exceptions.TemplateError as e:
        return {"raised": str(e)} if type(e) is jinja2.exceptions.TemplateError else {"failed": True}
    except Exception:
        return {"failed": True}


def conversations():
    rows = []
    for path in sorted((HERE / "templates").glob("*.jinja")):
        template = environment.from_string(path.read_text())
        for i, messages in enumerate(CONVERSATIONS):
            for k, other in enumerate(OTHERS):
                for prompt in (True, False) if k == 0 else (True,):
                    values = dict(messages=without_null(messages), tools=other.get("tools"), documents=None,
                                  add_generation_prompt=prompt, bos_token="<s>", eos_token="</s>", **other.get("variables", {}))
                    rows.append({"template": path.name, "conversation": i, "other": k, "add_generation_prompt": prompt,
                                 **outcome(template, **values)})
    return {"conversations": CONVERSATIONS, "others": OTHERS, "rows": rows}


def language():
    rows = []
    for text in TEMPLATES:
        if text in REFUSED:
            rows.append({"template": text, "failed": True})
            continue
        try:
            template = environment.from_string(text)
        except Exception:
            rows.append({"template": text, "failed": True})
            continue
        rows.append({"template": text, **outcome(template, messages=[], tools=None, documents=None, add_generation_prompt=False, **VARIABLES)})
    return {"variables": VARIABLES, "rows": rows}


def write(name, made):
    lines = json.dumps(made, ensure_ascii=True)
    # A row a line: what changes shows.
    lines = lines.replace('"rows": [', '"rows": [\n').replace('}, {"template"', '},\n{"template"')
    (HERE / name).write_text(lines + "\n")
    rows = made["rows"]
    print(name, len(rows), "rows,", sum("text" in r for r in rows), "texts")


write("conversations.json", conversations())
write("language.json", language())
