//! Characters, and where a text ends.
use crate::*;

#[test]
fn emoji_by_bytes() {
    let tokenizer = Tokenizer::of(&demo()).unwrap();
    let text = "a😀é✓b";
    let ids = tokenizer.encode_with(text, Encoding { no_bos: true, special: false }).unwrap();
    assert!(ids.len() > text.chars().count());
    let mut decoder = tokenizer.decoder().unwrap();
    let mut said = String::new();
    let mut silent = 0;
    for id in &ids {
        let piece = decoder.push(*id).unwrap();
        silent += piece.is_empty() as usize;
        said += piece;
    }
    assert!(silent >= 3, "three bytes of the emoji say nothing yet");
    assert_eq!(said + decoder.finish().unwrap(), text);
    // Cut inside the emoji.
    let cut = ids.iter().scan(0, |bytes, id| {
        *bytes += tokenizer.token_bytes(*id, None).unwrap().len();
        Some(*bytes)
    });
    let cut = cut.take_while(|bytes| *bytes < 3).count() + 1;
    let mut said = String::new();
    for id in &ids[..cut] {
        said += decoder.push(*id).unwrap();
    }
    assert_eq!(said, "a");
    assert_eq!(decoder.finish().unwrap(), "\u{fffd}");
    assert_eq!(tokenizer.token_bytes(-5, None), None);
    assert_eq!(tokenizer.vocab_size(), demo().info().unwrap().vocab_size);
}

#[test]
fn stop_string() {
    let model = demo();
    let tokenizer = Tokenizer::of(&model).unwrap();
    let mut session = prompted(&model, 0.8, 5, None);
    let whole: String = tokenizer.decode(session.generate(64)).unwrap().map(Result::unwrap).collect();
    let middle = whole.char_indices().nth(whole.chars().count() / 2).unwrap().0;
    let stop: String = whole[middle..].chars().take(6).collect();
    let mut session = prompted(&model, 0.8, 5, Some(head(&model)));
    session.set_stop_strings(&[&stop, "never said"], &tokenizer).unwrap();
    let mut tokens = session.generate(64);
    let mut said = String::new();
    let mut decoder = tokenizer.decoder().unwrap();
    for token in tokens.by_ref() {
        said += decoder.push(token.unwrap().id()).unwrap();
    }
    said += decoder.finish().unwrap();
    assert_eq!(tokens.finish(), Some(Finish::StopString));
    let cut = session.result().unwrap().stop_bytes;
    said.truncate(said.len() - cut);
    assert_eq!(said, whole[..whole.find(&stop).unwrap()]);
    session.set_stop_strings(&[], &tokenizer).unwrap();
    session.rewind(PROMPT.len()).unwrap();
    assert_eq!(generate(&mut session, 64), the_text(0.8, 5, 64));
}
