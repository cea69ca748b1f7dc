use crate::*;

const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}\
                        {{ tools | tojson if tools }}{{ style }}{{ '<assistant>' if add_generation_prompt }}";

#[test]
fn chat_template() {
    let model = demo();
    let plain = ChatTemplate::new(TEMPLATE, None).unwrap();
    let chat = Chat { messages: &[("system", "é 😀"), ("user", "Hi")], add_generation_prompt: true, ..Default::default() };
    assert_eq!(plain.render(&chat).unwrap(), "<system>é 😀<user>Hi<assistant>");
    let chat = Chat {
        messages_json: Some(r#"[{"role": "user", "content": "Hi"}]"#),
        tools_json: Some(r#"[{"b": 1, "a": "é"}]"#),
        variables_json: Some(r#"{"style": "brief", "eos_token": "|"}"#),
        ..Default::default()
    };
    assert_eq!(plain.render(&chat).unwrap(), r#"<user>Hi|[{"b": 1, "a": "é"}]brief"#);
    let long = "x".repeat(100000);
    assert_eq!(plain.render(&Chat { messages: &[("user", &long)], ..Default::default() }).unwrap(), format!("<user>{long}"));
    let ends = ChatTemplate::new("{{ eos_token }}", Some(&model)).unwrap().render(&Chat::default()).unwrap();
    let tokenizer = Tokenizer::of(&model).unwrap();
    assert_eq!(
        tokenizer.encode_with(&ends, Encoding { no_bos: true, special: true }).unwrap(),
        [model.info().unwrap().eos_ids[0]]
    );
    assert_eq!(ChatTemplate::of(&model).err().unwrap().code(), Code::NotFound);
}

#[test]
fn chat_template_errors() {
    let e = ChatTemplate::new("a\n{% if x %}", None).err().unwrap();
    assert!(e.code() == Code::BadFormat && e.message().contains("line 2"), "{e}");
    let e = ChatTemplate::new("{{ x | nope }}", None).err().unwrap();
    assert!(e.code() == Code::Unsupported && e.message().contains("nope"), "{e}");
    let refuses = ChatTemplate::new("{{ raise_exception('roles must alternate') }}", None).unwrap();
    let e = refuses.render(&Chat::default()).err().unwrap();
    assert!(e.code() == Code::InvalidArgument && e.message().contains("roles must alternate"), "{e}");
    let json = |text| refuses.render(&Chat { messages_json: Some(text), ..Default::default() }).err().unwrap();
    assert!(json("[1]").code() == Code::InvalidArgument && json("[1]").message().contains("messages"));
    assert_eq!(json("[").code(), Code::BadFormat);
    assert_eq!(json("[]\0").code(), Code::InvalidArgument);
    let e = refuses.render(&Chat { messages: &[("user", "\0")], ..Default::default() }).err().unwrap();
    assert_eq!(e.code(), Code::InvalidArgument);
    assert!(ChatTemplate::new(TEMPLATE, None).is_ok());
}
