//! How a session draws, drafts and verifies.
use aerie_sys as sys;

use crate::error::sized;
use crate::model::Drafter;

/// How the next token is drawn. The default is greedy. Biases come first, then penalties, what constrains the session,
/// temperature, `top_k`, `top_p`, `min_p` and the draw; a drafter changes none of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// 0: greedy, ties to the lowest id.
    pub temperature: f32,
    /// 0: off.
    pub top_k: i32,
    /// 0, or 1 and above: off.
    pub top_p: f32,
    /// 0: off.
    pub min_p: f32,
    /// Same seed, same text.
    pub seed: u64,
    /// Sessions with equal seeds but different streams differ.
    pub stream: u32,
    /// Of each token in the text, prompt included: a logit above 0 is divided by it, any other multiplied. 0 or 1: off.
    pub repetition_penalty: f32,
    /// Taken from the logit of each token that was generated since the last append. 0: off.
    pub presence_penalty: f32,
    /// The same, as often as it was generated. 0: off.
    pub frequency_penalty: f32,
    /// Penalties look at this many tokens, the newest; 0: all.
    pub penalty_window: i32,
    /// Tokens and what is added to their logits; [`NEG_INFINITY`](f32::NEG_INFINITY): it never comes. One that is listed
    /// twice has the sum.
    pub logit_bias: Vec<(i32, f32)>,
}

impl Sampling {
    /// At a temperature, with a seed.
    pub fn new(temperature: f32, seed: u64) -> Self {
        Sampling { temperature, seed, ..Default::default() }
    }

    /// Hand it to `call`; the struct's pointers live as long as that.
    pub(crate) fn with_raw<T>(&self, call: impl FnOnce(&sys::aerie_sampling) -> T) -> T {
        let biases = self.logit_bias.iter().map(|&(token, bias)| sys::aerie_logit_bias { token, bias });
        let biases: Vec<_> = biases.collect();
        call(&sized!(aerie_sampling {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            seed: self.seed,
            stream: self.stream,
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            penalty_window: self.penalty_window,
            logit_bias: biases.as_ptr(),
            n_logit_bias: biases.len() as i32,
        }))
    }
}

/// Which tree policy chooses what is verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// `Auto`; `Static` under the sampled rule.
    #[default]
    Default,
    /// One guess a position.
    Chain,
    /// A tree of fixed shape (EAGLE).
    Static,
    /// Grown by confidence, then reranked (EAGLE-2).
    Eagle2,
    /// A backbone with siblings (FastEagle).
    Backbone,
    /// Grown while a node pays (CAST).
    Cast,
    /// What gives most tokens a second here; plain decode where drafting would lose.
    Auto,
}

/// The draft tree. Zeros are the policy's own defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Which policy.
    pub policy: Policy,
    /// Chain: length. Eagle2, Cast: nodes with the root.
    pub nodes: i32,
    /// Eagle2: levels after the first; -1: none. Backbone, Cast: levels.
    pub depth: i32,
    /// Eagle2, Cast: children a node and frontier width; Backbone: nodes a level.
    pub top_k: i32,
    /// Static: each path as its ranks, for instance `[[0], [1], [0, 0]]`.
    pub paths: Vec<Vec<i32>>,
    /// Cast: its three thresholds.
    pub threshold: f32,
}

impl Tree {
    /// A policy as published.
    pub fn policy(policy: Policy) -> Self {
        Tree { policy, ..Default::default() }
    }

    /// Hand it to `call`; the struct's pointers live as long as that.
    pub(crate) fn with_raw<T>(&self, call: impl FnOnce(sys::aerie_tree_options) -> T) -> T {
        let flat: Vec<i32> = self.paths.iter().flat_map(|path| path.iter().copied().chain([-1])).collect();
        call(sized!(aerie_tree_options {
            policy: self.policy as i32,
            nodes: self.nodes,
            depth: self.depth,
            top_k: self.top_k,
            n_paths: self.paths.len() as i32,
            paths: flat.as_ptr(),
            threshold: self.threshold,
        }))
    }
}

/// Whether candidates are ranked with the target's own noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DraftNoise {
    /// With the target's own dice.
    #[default]
    Shared,
    /// By their scores alone, as published.
    None,
}

/// What makes a guess count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Same seed, same text, bit for bit.
    #[default]
    Exact,
    /// The papers' sampled-draft rule: exact in distribution only; chain and static trees.
    Sampled,
}

/// How to make a session. The default is greedy plain decode.
#[derive(Clone, Default)]
pub struct SessionOptions {
    /// Longest text; 0: the model's.
    pub max_context: i32,
    /// Who guesses; none: plain decode.
    pub drafter: Option<Drafter>,
    /// Further drafters, beside [`drafter`](Self::drafter), that the tree policy `auto` chooses from cycle by cycle.
    pub more_drafters: Vec<Drafter>,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// What is drafted.
    pub tree: Tree,
    /// How candidates are ranked.
    pub draft_noise: DraftNoise,
    /// What makes a guess count.
    pub verify: Verify,
    /// The model's end-of-text ids are ordinary tokens.
    pub ignore_eos: bool,
    /// Further tokens that end the text; they are emitted.
    pub stop_tokens: Vec<i32>,
    /// What a constraint forces, or has usually come there, is left to the drafter, or to plain decode; to measure what
    /// foresight brings. The text is the same.
    pub no_foresight: bool,
}

impl SessionOptions {
    pub(crate) fn with_raw<T>(&self, call: impl FnOnce(&sys::aerie_session_options) -> T) -> T {
        let more: Vec<_> = self.more_drafters.iter().map(Drafter::raw).collect();
        self.sampling.with_raw(|sampling| {
            self.tree.with_raw(|tree| {
                call(&sized!(aerie_session_options {
                    max_context: self.max_context,
                    drafter: self.drafter.as_ref().map_or(std::ptr::null_mut(), Drafter::raw),
                    sampling: sampling,
                    tree: &tree,
                    draft_noise: self.draft_noise as i32,
                    verify: self.verify as i32,
                    ignore_eos: self.ignore_eos as i32,
                    n_stop_tokens: self.stop_tokens.len() as i32,
                    stop_tokens: self.stop_tokens.as_ptr(),
                    n_more_drafters: more.len() as i32,
                    no_foresight: self.no_foresight as i32,
                    more_drafters: more.as_ptr(),
                }))
            })
        })
    }
}
