//! Glob patterns with `*` and `**`.

/// The kind of text that a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GlobKind {
    /// Names of hosts and listeners: case-insensitive, `*` matches anything.
    Name,
    /// Paths: `*` does not match `/`, `**` does.
    Path,
    /// Values of headers, cookies and query parameters: `*` matches anything.
    Value,
}

/// Maximum number of tokens from the first star on: the automaton has a bit per token and one for the
/// end.
pub(crate) const MAX_TAIL: usize = u128::BITS as usize - 1;

/// A compiled pattern: a bit-parallel automaton (the Shift-And method of Baeza-Yates and Gonnet). Matching
/// takes time linear in the text, so a client cannot send a path that is slow to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    /// The literal text before the first star.
    head: Box<[u8]>,
    /// The class of each byte, from 1 for bytes in the tail, else 0.
    classes: Box<[u8; 256]>,
    /// Per class, the states that such a byte advances; none for class 0.
    moves: Box<[u128]>,
    /// The states at a star, which remain active after a byte.
    stars: u128,
    /// Of these, the states that remain active after `/`.
    deep: u128,
    /// The number of tokens in the tail.
    length: usize,
    folds: bool,
}

/// Why a pattern is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GlobError {
    /// It ends with a backslash.
    Unfinished,
    /// The part from the first star is longer than [`MAX_TAIL`].
    TooLong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GlobToken {
    Byte(u8),
    Star { deep: bool },
}

impl Glob {
    /// Compiles `pattern`. A backslash escapes the next character.
    pub(crate) fn new(pattern: &str, kind: GlobKind) -> Result<Self, GlobError> {
        let tokens = tokens(pattern, kind)?;
        let first_star = tokens.iter().position(|token| matches!(token, GlobToken::Star { .. }));
        let (head, tail) = tokens.split_at(first_star.unwrap_or(tokens.len()));
        if tail.len() > MAX_TAIL {
            return Err(GlobError::TooLong);
        }
        let byte =
            |token: &GlobToken| if let GlobToken::Byte(byte) = token { Some(*byte) } else { None };
        let mut glob = Self {
            head: head.iter().filter_map(byte).collect(),
            classes: Box::new([0; 256]),
            moves: Box::default(),
            stars: 0,
            deep: 0,
            length: tail.len(),
            folds: kind == GlobKind::Name,
        };
        let mut moves = vec![0];
        for (state, token) in tail.iter().enumerate() {
            match *token {
                GlobToken::Byte(byte) => glob.add_move(&mut moves, byte, 1 << state),
                GlobToken::Star { deep } => {
                    glob.stars |= 1 << state;
                    glob.deep |= u128::from(deep) << state;
                }
            }
        }
        glob.moves = moves.into();
        Ok(glob)
    }

    fn add_move(&mut self, moves: &mut Vec<u128>, byte: u8, state: u128) {
        let class = &mut self.classes[usize::from(byte)];
        if *class == 0 {
            // At most one class per token of the tail.
            *class = moves.len() as u8;
            moves.push(0);
        }
        moves[usize::from(*class)] |= state;
        if self.folds {
            let class = *class;
            self.classes[usize::from(byte.to_ascii_uppercase())] = class;
        }
    }

    /// Whether the pattern matches the whole `text`.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        let Some((head, tail)) = text.split_at_checked(self.head.len()) else { return false };
        let same =
            if self.folds { head.eq_ignore_ascii_case(&self.head) } else { head == &*self.head };
        if !same || self.length == 0 {
            return same && tail.is_empty();
        }
        let last = 1 << (self.length - 1);
        let mut states = self.past_stars(1);
        for byte in tail {
            if states & last & self.deep != 0 {
                return true;
            }
            let stay = if *byte == b'/' { self.deep } else { self.stars };
            let moved = states & self.moves[usize::from(self.classes[usize::from(*byte)])];
            states = self.past_stars((moved << 1) | (states & stay));
            if states == 0 {
                return false;
            }
        }
        states >> self.length & 1 == 1
    }

    /// Adds the states after stars, since a star also matches nothing. Stars are never adjacent.
    fn past_stars(&self, states: u128) -> u128 {
        states | (states & self.stars) << 1
    }
}

fn tokens(pattern: &str, kind: GlobKind) -> Result<Vec<GlobToken>, GlobError> {
    let mut tokens = Vec::new();
    let mut bytes = pattern.bytes();
    while let Some(byte) = bytes.next() {
        match (byte, tokens.last_mut()) {
            (b'*', Some(GlobToken::Star { deep })) => *deep = true,
            (b'*', _) => tokens.push(GlobToken::Star { deep: kind != GlobKind::Path }),
            (b'\\', _) => {
                let escaped = bytes.next().ok_or(GlobError::Unfinished)?;
                tokens.push(GlobToken::Byte(folded(escaped, kind)));
            }
            _ => tokens.push(GlobToken::Byte(folded(byte, kind))),
        }
    }
    Ok(tokens)
}

fn folded(byte: u8, kind: GlobKind) -> u8 {
    if kind == GlobKind::Name { byte.to_ascii_lowercase() } else { byte }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(kind: GlobKind, pattern: &str, text: &str) -> bool {
        Glob::new(pattern, kind).expect("a pattern").matches(text.as_bytes())
    }

    #[test]
    fn names_are_matched_in_any_case() {
        for text in ["audio-fa-bbr.example.com", "AUDIO-BBR", "-bbr"] {
            assert!(matches(GlobKind::Name, "*-bBr*", text), "{text}");
        }
        assert!(!matches(GlobKind::Name, "*-bbr*", "audio.example.com"));
        assert!(matches(GlobKind::Name, "cdn.example.com", "CDN.example.com"));
        assert!(!matches(GlobKind::Name, "cdn.example.com", "cdn.example.com.evil"));
        assert!(!matches(GlobKind::Name, "cdn.example.com", "cdn"));
    }

    #[test]
    fn one_star_stays_in_its_segment() {
        for (pattern, text, is) in [
            ("/audio/*", "/audio/1.ogg", true),
            ("/audio/*", "/audio/", true),
            ("/audio/*", "/audio/a/1.ogg", false),
            ("/audio/**", "/audio/a/1.ogg", true),
            ("/audio/**", "/audio", false),
            ("/*/1.ogg", "/audio/1.ogg", true),
            ("/*/1.ogg", "/a/b/1.ogg", false),
            ("**.ogg", "/a/b/1.ogg", true),
            ("/a**z", "/a/b/c/z", true),
            ("/*/*.m*", "/a/b.mp3", true),
            ("/A", "/a", false),
            ("", "", true),
        ] {
            assert_eq!(matches(GlobKind::Path, pattern, text), is, "{pattern} {text}");
        }
    }

    #[test]
    fn a_backslash_escapes_a_star() {
        assert!(matches(GlobKind::Value, r"a\*b", "a*b"));
        assert!(!matches(GlobKind::Value, r"a\*b", "axb"));
        assert_eq!(Glob::new(r"a\", GlobKind::Value).err(), Some(GlobError::Unfinished));
    }

    #[test]
    fn only_the_part_from_the_first_star_is_bounded() {
        let long = "x".repeat(1000);
        assert!(matches(GlobKind::Path, &long, &long));
        assert!(matches(GlobKind::Path, &format!("{long}*y"), &format!("{long}zzy")));
        let most = format!("*{}", "y".repeat(MAX_TAIL - 1));
        assert!(matches(GlobKind::Value, &most, &format!("xyx{}", "y".repeat(MAX_TAIL))));
        assert_eq!(Glob::new(&format!("{most}y"), GlobKind::Value).err(), Some(GlobError::TooLong));
    }

    /// A naive matcher: a star matches any run of characters, in a path one without `/`.
    fn model(kind: GlobKind, pattern: &[u8], text: &[u8]) -> bool {
        let stars = pattern.iter().take_while(|byte| **byte == b'*').count();
        if stars > 0 {
            let deep = kind != GlobKind::Path || stars > 1;
            let ends = (0..=text.len()).filter(|end| deep || !text[..*end].contains(&b'/'));
            return ends.into_iter().any(|end| model(kind, &pattern[stars..], &text[end..]));
        }
        match (pattern, text) {
            ([], []) => true,
            ([one, pattern @ ..], [other, text @ ..]) => {
                let same =
                    one == other || kind == GlobKind::Name && one.eq_ignore_ascii_case(other);
                same && model(kind, pattern, text)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn automaton_matches_the_model(
            pattern in "[ab/*A]{0,9}",
            text in "[ab/A]{0,12}",
            kind in prop::sample::select(vec![GlobKind::Name, GlobKind::Path, GlobKind::Value]),
        ) {
            let expected = model(kind, pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(kind, &pattern, &text), expected);
        }
    }
}
