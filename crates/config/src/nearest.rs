//! Which of the known words a wrong one was meant to be.

/// The nearest of `known`, if `word` may be a slip of it: at most a third of its letters differ,
/// neighbours that changed places counting once.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let distance = |name: &&str| strsim::osa_distance(&word, name);
    let near = known.into_iter().min_by_key(distance)?;
    let longest = near.chars().count().max(word.chars().count());
    (distance(&near) <= (longest / 3).max(1)).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_word() {
        assert_eq!(nearest("rte", ["rate", "rtt"]), Some("rate"));
        assert_eq!(nearest("flwo", ["flow", "path"]), Some("flow"));
        assert_eq!(nearest("Loss", ["loss"]), Some("loss"));
        assert_eq!(nearest("bandwidth", ["rate", "rtt", "loss"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
