//! Prompt lookup with two opinions: what followed the text's last words when they were said before, and what followed
//! them the time before that. Both paths grow from the root and share their beginning.

/// Tokens that must have been said before, most first.
const LONGEST: usize = 5;
const SHORTEST: usize = 2;
/// Tokens guessed on a path.
const PATH: usize = 10;
const OPINIONS: usize = 2;

/// Where guesses go: parents come before their children.
pub struct Tree<'a> {
    pub token: &'a mut [i32],
    pub parent: &'a mut [i32],
    pub confidence: &'a mut [f32],
    pub count: usize,
}

impl Tree<'_> {
    /// The child of `parent` (-1: the root) with this token, there already or new; none when the tree is full.
    fn child(&mut self, parent: i32, token: i32, confidence: f32) -> Option<i32> {
        if let Some(known) = (0..self.count).find(|&i| self.parent[i] == parent && self.token[i] == token) {
            return Some(known as i32);
        }
        let i = self.count;
        *self.token.get_mut(i)? = token;
        self.parent[i] = parent;
        self.confidence[i] = confidence;
        self.count += 1;
        Some(i as i32)
    }
}

/// How likely the next token is the one that followed a match of this length, and how fast that falls with depth.
fn confidence(matched: usize, opinion: usize, depth: usize) -> f32 {
    let first = 0.3 + 0.12 * matched as f32;
    first.min(0.9) * 0.93f32.powi(depth as i32) / (1 + opinion) as f32
}

pub fn propose(text: &[i32], max_depth: usize, tree: &mut Tree<'_>) {
    let mut opinion = 0;
    let mut end = text.len(); // matches end before it
    while opinion < OPINIONS {
        let found = match latest(text, end) {
            Some(found) => found,
            None => return,
        };
        let (follow, matched) = found;
        let mut parent = -1;
        for (depth, &token) in text[follow..].iter().take(PATH.min(max_depth)).enumerate() {
            match tree.child(parent, token, confidence(matched, opinion, depth)) {
                Some(node) => parent = node,
                None => return,
            }
        }
        opinion += 1;
        end = follow;
    }
}

/// The latest place before `end` where the text's last words stood: what follows them, and how many they were.
fn latest(text: &[i32], end: usize) -> Option<(usize, usize)> {
    (SHORTEST..=LONGEST.min(text.len())).rev().find_map(|n| {
        let words = &text[text.len() - n..];
        let before = &text[..end.saturating_sub(1)];
        let at = before.windows(n).rposition(|w| w == words)?;
        Some((at + n, n))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guesses(text: &[i32], capacity: usize, max_depth: usize) -> Vec<(i32, i32)> {
        let (mut token, mut parent, mut confidence) = (vec![0; capacity], vec![0; capacity], vec![0.0; capacity]);
        let mut tree = Tree { token: &mut token, parent: &mut parent, confidence: &mut confidence, count: 0 };
        propose(text, max_depth, &mut tree);
        let n = tree.count;
        assert!(confidence[..n].iter().all(|c| (0.0..=1.0).contains(c)));
        token.into_iter().zip(parent).take(n).collect()
    }

    #[test]
    fn what_followed_last_time_and_the_time_before() {
        let text = [1, 2, 7, 8, 1, 2, 7, 9, 1, 2];
        assert_eq!(guesses(&text, 96, 3), [(7, -1), (9, 0), (1, 1), (8, 0), (1, 3)]);
    }

    #[test]
    fn nothing_said_twice() {
        assert_eq!(guesses(&[1, 2, 3, 4], 96, 9), []);
        assert_eq!(guesses(&[1], 96, 9), []);
        assert_eq!(guesses(&[], 96, 9), []);
    }

    #[test]
    fn no_more_than_there_is_room_for() {
        let text: Vec<i32> = (0..60).map(|i| i % 6).collect();
        assert_eq!(guesses(&text, 4, 9).len(), 4);
        assert_eq!(guesses(&text, 0, 9).len(), 0);
        assert_eq!(guesses(&text, 96, 9).len(), 9, "two opinions that agree are one path");
    }
}
