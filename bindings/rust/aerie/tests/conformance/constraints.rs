//! What may come next: biases, penalties, grammars, constraints.
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

use crate::*;

fn sampled(model: &Model, sampling: &Sampling, drafter: Option<Drafter>) -> Session {
    let mut session = model.session(&SessionOptions { sampling: sampling.clone(), ..options(0.0, 0, drafter) }).unwrap();
    session.append(&PROMPT).unwrap();
    session
}

#[test]
fn logit_bias() {
    let model = demo();
    let plain = the_text(0.0, 0, 64);
    let at = (3..).find(|at| !plain[..*at].contains(&plain[*at])).unwrap();
    let never = plain[at];
    let forbids = Sampling { logit_bias: vec![(never, f32::NEG_INFINITY)], ..Default::default() };
    let text = generate(&mut sampled(&model, &forbids, None), 64);
    assert!(!text.contains(&never) && text[..at] == plain[..at]);
    let mut drafted = sampled(&model, &forbids, Some(head(&model)));
    assert_eq!(generate(&mut drafted, 64), text);
    assert!(drafted.statistics().unwrap().accepted > 0);
    // From now on, and no longer; a token that is listed twice has the sum.
    let insists = Sampling { logit_bias: vec![(77, 500.0), (77, 500.0)], ..Default::default() };
    drafted.set_sampling(insists).unwrap();
    assert_eq!(generate(&mut drafted, 4), [77; 4]);
    drafted.set_sampling(Sampling::default()).unwrap();
    drafted.rewind(PROMPT.len()).unwrap();
    assert_eq!(generate(&mut drafted, 64), plain);
    for wrong in [vec![(-1, 1.0)], vec![(1 << 30, 1.0)], vec![(0, f32::NAN)]] {
        let e = drafted.set_sampling(Sampling { logit_bias: wrong, ..Default::default() }).unwrap_err();
        assert_eq!(e.code(), Code::InvalidArgument);
        assert!(e.message().contains("logit_bias"), "{e}");
    }
}

#[test]
fn penalties() {
    let model = demo();
    let plain = the_text(0.0, 0, 64);
    let each = [
        Sampling { repetition_penalty: 1.3, ..Default::default() },
        Sampling { presence_penalty: 2.0, ..Default::default() },
        Sampling { frequency_penalty: 2.0, ..Default::default() },
        Sampling { repetition_penalty: 1.3, penalty_window: 8, ..Default::default() },
    ];
    let mut texts = vec![plain];
    for sampling in &each {
        let text = generate(&mut sampled(&model, sampling, None), 64);
        assert!(!texts.contains(&text), "{sampling:?}");
        assert_eq!(generate(&mut sampled(&model, sampling, Some(head(&model))), 64), text, "{sampling:?}");
        texts.push(text);
    }
    let mut session = sampled(&model, &Sampling::default(), None);
    for (wrong, name) in [
        (Sampling { repetition_penalty: -1.0, ..Default::default() }, "repetition_penalty"),
        (Sampling { presence_penalty: f32::NAN, ..Default::default() }, "presence_penalty"),
        (Sampling { frequency_penalty: 1e9, ..Default::default() }, "frequency_penalty"),
        (Sampling { penalty_window: -1, ..Default::default() }, "penalty_window"),
    ] {
        let e = session.set_sampling(wrong).unwrap_err();
        assert_eq!(e.code(), Code::InvalidArgument);
        assert!(e.message().contains(name), "{e}");
    }
}

fn text_of(tokenizer: &Tokenizer, tokens: &[i32]) -> String {
    let mut decoder = tokenizer.decoder().unwrap();
    let mut text: String = tokens.iter().map(|t| decoder.push(*t).unwrap().to_owned()).collect();
    text += decoder.finish().unwrap();
    text
}

const LIST: &str = "root ::= \" \" [a-z]+ (\", \" [a-z]+) (\", \" [a-z]+) \".\"";

/// Whether a text is one of LIST.
fn is_list(text: &str) -> bool {
    let words = text.strip_prefix(' ').and_then(|t| t.strip_suffix('.')).map(|t| t.split(", ").collect::<Vec<_>>());
    words.map_or(false, |w| w.len() == 3 && w.iter().all(|w| !w.is_empty() && w.bytes().all(|b| b.is_ascii_lowercase())))
}

/// All tokens until the text ends, and why.
fn to_its_end(session: &mut Session) -> (Vec<i32>, Option<Finish>) {
    let mut tokens = session.generate(200);
    let all = tokens.by_ref().map(|token| token.unwrap().id()).collect();
    (all, tokens.finish())
}

/// A text of LIST takes more tokens than an end may be waited for: words end soon with this.
fn short_words(tokenizer: &Tokenizer) -> Sampling {
    let bias = |text: &str| {
        let how = Encoding { no_bos: true, special: false };
        tokenizer.encode_with(text, how).unwrap().last().map(|t| (*t, 6.0)).unwrap()
    };
    Sampling { logit_bias: vec![bias("a,"), bias("a.")], ..Sampling::new(0.8, 5) }
}

#[test]
fn grammar() {
    let model = demo();
    let tokenizer = Tokenizer::of(&model).unwrap();
    let grammar = Grammar::gbnf(&tokenizer, LIST, &[]).unwrap();
    let sampling = short_words(&tokenizer);
    let say = |drafter: Option<Drafter>| {
        let mut session = sampled(&model, &sampling, drafter);
        session.set_grammar(&grammar).unwrap();
        let said = to_its_end(&mut session);
        (said, session)
    };
    let ((tokens, finish), mut session) = say(None);
    assert_eq!(finish, Some(Finish::Constraint));
    assert!(is_list(&text_of(&tokenizer, &tokens)), "{:?}", text_of(&tokenizer, &tokens));
    let ((drafted, _), other) = say(Some(head(&model)));
    assert_eq!(drafted, tokens);
    assert!(other.statistics().unwrap().cycles > 0);
    // Back in the text, and in a fork of it.
    session.rewind(PROMPT.len() + tokens.len() / 2).unwrap();
    let mut twin = session.fork(0).unwrap();
    assert_eq!(to_its_end(&mut session).0, tokens[tokens.len() / 2..]);
    let rest = to_its_end(&mut twin).0;
    assert!(is_list(&text_of(&tokenizer, &[&tokens[..tokens.len() / 2], &rest].concat())));
    // With tokens that end it; after it, any text.
    let eos = model.info().unwrap().eos_ids;
    session.rewind(PROMPT.len()).unwrap();
    session.set_grammar(&Grammar::gbnf(&tokenizer, LIST, &eos).unwrap()).unwrap();
    let (ended, _) = to_its_end(&mut session);
    assert!(ended[..tokens.len()] == tokens && eos.contains(&ended[tokens.len()]), "{ended:?}");
    session.clear_constraint().unwrap();
    session.rewind(PROMPT.len()).unwrap();
    session.set_sampling(Sampling::new(0.8, 5)).unwrap();
    assert_eq!(generate(&mut session, 64), the_text(0.8, 5, 64));
}

#[test]
fn json_schema() {
    let model = demo();
    let tokenizer = Tokenizer::of(&model).unwrap();
    let schema = r#"{"type": "object", "properties": {"old": {"type": "boolean"}, "name": {"enum": ["Tom", "Ann"]}},
        "required": ["old", "name"], "additionalProperties": false}"#;
    let grammar = Grammar::json(&tokenizer, schema, &[]).unwrap();
    let say = |drafter: Option<Drafter>| {
        let mut session = prompted(&model, 0.8, 5, drafter);
        session.set_grammar(&grammar).unwrap();
        to_its_end(&mut session)
    };
    let (tokens, finish) = say(None);
    assert_eq!(finish, Some(Finish::Constraint));
    let text: String = text_of(&tokenizer, &tokens).split_whitespace().collect();
    let forms = ["true", "false"].iter().flat_map(|old| ["Tom", "Ann"].map(|name| format!(r#"{{"old":{old},"name":"{name}"}}"#)));
    assert!(forms.into_iter().any(|form| form == text), "{text}");
    assert_eq!(say(Some(head(&model))).0, tokens);
    let line = Grammar::json_with_layout(&tokenizer, schema, &[], JsonLayout::OneLine).unwrap();
    let mut lines = Vec::new();
    for no_foresight in [false, true] {
        for drafter in [None, Some(head(&model))] {
            let mut session = model.session(&SessionOptions { no_foresight, ..options(0.8, 5, drafter) }).unwrap();
            session.append(&PROMPT).unwrap();
            session.set_grammar(&line).unwrap();
            lines.push(text_of(&tokenizer, &to_its_end(&mut session).0));
            let counts = session.statistics().unwrap();
            assert_eq!(counts.foreseen_accepted == 0, no_foresight);
            assert!(counts.foreseen_verified >= counts.foreseen_accepted);
        }
    }
    let forms =
        ["true", "false"].iter().flat_map(|old| ["Tom", "Ann"].map(|name| format!(r#"{{"old": {old}, "name": "{name}"}}"#)));
    assert!(forms.into_iter().any(|form| lines == [&form[..]; 4]), "{lines:?}");
    let compact = Grammar::json_with_layout(&tokenizer, schema, &[], JsonLayout::Compact).unwrap();
    let mut session = prompted(&model, 0.8, 5, None);
    session.set_grammar(&compact).unwrap();
    let text = text_of(&tokenizer, &to_its_end(&mut session).0);
    assert!(text.ends_with('}') && !text.contains(char::is_whitespace), "{text}");
}

#[test]
fn grammar_closed_first() {
    let model = demo();
    let tokenizer = Tokenizer::of(&model).unwrap();
    let sampling = short_words(&tokenizer);
    let mut session = sampled(&model, &sampling, Some(head(&model)));
    let grammar = Grammar::gbnf(&tokenizer, LIST, &[]).unwrap();
    session.set_grammar(&grammar).unwrap();
    let mut other = sampled(&model, &sampling, None);
    other.set_grammar(&grammar.clone()).unwrap();
    drop((tokenizer, grammar));
    let tokenizer = Tokenizer::of(&model).unwrap();
    assert!(is_list(&text_of(&tokenizer, &to_its_end(&mut session).0)));
    drop(session);
    assert!(is_list(&text_of(&tokenizer, &to_its_end(&mut other).0)));
}

#[test]
fn grammar_errors() {
    let model = demo();
    let tokenizer = Tokenizer::of(&model).unwrap();
    let gbnf = |text: &str| Grammar::gbnf(&tokenizer, text, &[]).err().unwrap();
    let e = gbnf("root ::= \"a\"\nroot2 ::= (");
    assert!(e.code() == Code::BadFormat && e.message().contains('2'), "{e}");
    let e = gbnf("root ::= root \"a\" | \"b\"");
    assert!(e.code() == Code::Unsupported && e.message().contains("root"), "{e}");
    assert_eq!(gbnf("root ::= \"a\0\"").code(), Code::InvalidArgument);
    let e = Grammar::gbnf(&tokenizer, LIST, &[-1]).err().unwrap();
    assert!(e.code() == Code::InvalidArgument && e.message().contains("end_tokens"), "{e}");
    assert_eq!(Grammar::json(&tokenizer, "{", &[]).err().unwrap().code(), Code::BadFormat);
    let e = Grammar::json(&tokenizer, r#"{"frobnicate": 1}"#, &[]).err().unwrap();
    assert!(e.code() == Code::Unsupported && e.message().contains("frobnicate"), "{e}");
    // No harm was done.
    assert!(Grammar::gbnf(&tokenizer, LIST, &[]).is_ok());
}

/// Counts those that live.
struct Alive(Arc<AtomicUsize>, Option<&'static str>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>, fails: Option<&'static str>) -> Self {
        count.fetch_add(1, SeqCst);
        Alive(count.clone(), fails)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
        assert_ne!(self.1, Some("drop"));
    }
}

/// Token 40, then 41, and so on, until the last.
struct Counting {
    next: i32,
    last: i32,
    fails: Option<&'static str>, // where, at 45
    alive: Alive,
}

impl Counting {
    fn new(alive: &Arc<AtomicUsize>, fails: Option<&'static str>) -> Self {
        Counting { next: 40, last: 59, fails, alive: Alive::new(alive, fails) }
    }
}

impl Clone for Counting {
    fn clone(&self) -> Self {
        assert!(self.fails != Some("clone") || self.next != 45, "no {}", self.next);
        Counting { next: self.next, last: self.last, ..Counting::new(&self.alive.0, self.fails) }
    }
}

impl Constraint for Counting {
    fn allowed(&mut self, tokens: &mut Allowed<'_>) -> Result<(), Failure> {
        match self.fails {
            Some("allowed") if self.next == 45 => return Err("not after 44".into()),
            Some("panic") if self.next == 45 => panic!("at {}", self.next),
            _ => {}
        }
        tokens.allow(-1); // are none
        tokens.allow(i32::MAX);
        if self.next <= self.last {
            tokens.allow(self.next);
        }
        Ok(())
    }

    fn accept(&mut self, token: i32) -> Result<bool, Failure> {
        self.next += 1;
        Ok(token + 1 == self.next)
    }
}

#[test]
fn own_constraint() {
    let model = demo();
    let alive = Arc::new(AtomicUsize::new(0));
    for drafter in [None, Some(head(&model))] {
        let mut session = prompted(&model, 0.8, 5, drafter);
        session.set_constraint(Counting::new(&alive, None)).unwrap();
        assert_eq!(generate(&mut session, 8), (40..48).collect::<Vec<_>>());
        let mut twin = session.fork(0).unwrap();
        assert_eq!(to_its_end(&mut session), ((48..60).collect(), Some(Finish::Constraint)));
        drop(session);
        twin.rewind(PROMPT.len() + 2).unwrap();
        let mut stream = twin.into_stream(4); // on another thread
        let mut said = Vec::new();
        while let Some(token) = sessions::next(&mut stream) {
            said.push(token.unwrap().id());
        }
        assert_eq!(said, [42, 43, 44, 45]);
        let mut twin = stream.into_session();
        twin.append(&[7]).unwrap(); // begins anew
        assert_eq!(generate(&mut twin, 2), [40, 41]);
        twin.clear_constraint().unwrap();
        assert_eq!(alive.load(SeqCst), 0);
    }
    // All may come but those that are forbidden.
    #[derive(Clone)]
    struct But(i32);
    impl Constraint for But {
        fn allowed(&mut self, tokens: &mut Allowed<'_>) -> Result<(), Failure> {
            tokens.allow_all();
            tokens.forbid(self.0);
            assert_eq!(tokens.words()[self.0 as usize / 32], !(1 << (self.0 % 32)));
            Ok(())
        }
        fn accept(&mut self, token: i32) -> Result<bool, Failure> {
            Ok(token != self.0)
        }
    }
    let never = the_text(0.8, 5, 4)[3];
    let mut session = prompted(&model, 0.8, 5, Some(head(&model)));
    session.set_constraint(But(never)).unwrap();
    let text = generate(&mut session, 64);
    let forbids = Sampling { logit_bias: vec![(never, f32::NEG_INFINITY)], ..Sampling::new(0.8, 5) };
    assert_eq!(text, generate(&mut sampled(&model, &forbids, None), 64));
}

/// Counting that says what it forces.
#[derive(Clone)]
struct Forcing(Counting, fn(i32) -> Vec<i32>);

impl Constraint for Forcing {
    fn allowed(&mut self, tokens: &mut Allowed<'_>) -> Result<(), Failure> {
        self.0.allowed(tokens)
    }

    fn accept(&mut self, token: i32) -> Result<bool, Failure> {
        self.0.accept(token)
    }

    fn forced(&mut self, most: usize) -> Vec<i32> {
        assert!(most > 0);
        self.1(self.0.next)
    }
}

#[test]
fn own_constraint_that_forces() {
    let alive = Arc::new(AtomicUsize::new(0));
    // How many cycles, and what was foreseen. In a model that has not seen what usually comes.
    let said_by = |says: fn(i32) -> Vec<i32>, drafted: bool| {
        let model = runtime().open_model(model_path("demo.aerie"), ModelOptions::default()).unwrap();
        let mut session = prompted(&model, 0.8, 5, drafted.then(|| head(&model)));
        session.set_constraint(Forcing(Counting::new(&alive, None), says)).unwrap();
        assert_eq!(to_its_end(&mut session), ((40..60).collect(), Some(Finish::Constraint)));
        let counts = session.statistics().unwrap();
        drop(session);
        assert_eq!(alive.load(SeqCst), 0);
        (counts.cycles, counts.foreseen_accepted)
    };
    let truth = |next| (next..60).collect();
    let too_many = |next| (next..next + 1000).collect();
    let other = |next| vec![next + 1, 7];
    let panics = |next: i32| panic!("at {next}");
    for says in [truth, too_many, |next| vec![next]] {
        let (cycles, accepted) = said_by(says, false);
        assert!(cycles <= 10 && accepted >= 10, "{cycles} cycles, {accepted} of them foreseen");
        said_by(says, true);
    }
    for says in [|_| Vec::new(), other, |_| vec![-1], panics] {
        assert_eq!(said_by(says, false), (20, 0));
        said_by(says, true);
    }
}

#[test]
fn constraint_that_fails() {
    let model = demo();
    let alive = Arc::new(AtomicUsize::new(0));
    for (fails, words) in [("allowed", "not after 44"), ("panic", "at 45"), ("clone", "no 45")] {
        for drafter in [None, Some(head(&model))] {
            // With foresight a cycle may pass by what cannot be cloned, once sessions have learned what usually comes.
            let how = SessionOptions { no_foresight: fails == "clone", ..options(0.8, 5, drafter) };
            let mut session = model.session(&how).unwrap();
            session.append(&PROMPT).unwrap();
            session.set_constraint(Counting::new(&alive, Some(fails))).unwrap();
            let said: Vec<_> = session.generate(20).map(|t| t.map(|t| t.id()).map_err(|e| (e.code(), e.to_string()))).collect();
            let (code, message) = said.last().unwrap().clone().unwrap_err();
            assert_eq!(code, Code::Plugin);
            assert!(message.contains(words), "{message}");
            assert!(session.result().unwrap_err().message().contains(words));
            // In a batch it is that session's alone.
            let mut batch = model.batch(0).unwrap();
            let id = batch.add(session).map_err(|e| e.1).unwrap();
            let other = batch.add(prompted(&model, 0.8, 6, None)).map_err(|e| e.1).unwrap();
            while batch.step(StepOptions::default()).unwrap().failed == 0 {}
            assert!(batch.get(id).unwrap().result().unwrap_err().message().contains(words));
            assert!(batch.get(other).unwrap().result().is_ok());
            // Nothing committed was lost, and without it the text goes on.
            let mut session = batch.remove(id).unwrap();
            let said = session.tokens().unwrap()[PROMPT.len()..].to_vec();
            assert_eq!(said, (40..40 + said.len() as i32).collect::<Vec<_>>());
            session.clear_constraint().unwrap();
            assert_eq!(generate(&mut session, 4).len(), 4);
            assert_eq!(alive.load(SeqCst), 0);
        }
    }
    let mut session = prompted(&model, 0.8, 5, None);
    session.set_constraint(Counting::new(&alive, Some("drop"))).unwrap();
    assert_eq!(generate(&mut session, 2), [40, 41]);
    // None may begin: it is not taken, and the one before stays.
    let e = session.set_constraint(Counting { last: 0, ..Counting::new(&alive, None) }).unwrap_err();
    assert_eq!(e.code(), Code::Mismatch);
    assert_eq!(generate(&mut session, 2), [42, 43]);
    let e = session.set_constraint(Counting { next: 45, ..Counting::new(&alive, Some("allowed")) }).unwrap_err();
    assert!(e.code() == Code::Plugin && e.message().contains("not after 44"), "{e}");
}
