//! Suggestions for misspelled words.

/// The `known` word most similar to `word`, if at most a third of the letters differ. Transposed neighbours
/// count once.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_of(word, &mut known.into_iter())
}

/// The same: one function for lists of every kind.
fn nearest_of<'a>(word: &str, known: &mut dyn Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let distance = |name: &&str| strsim::osa_distance(&word, name);
    let near = known.min_by_key(distance)?;
    let longest = near.chars().count().max(word.chars().count());
    (distance(&near) <= (longest / 3).max(1)).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_misspellings_but_not_other_words() {
        assert_eq!(nearest("rte", ["rate", "rtt"]), Some("rate"));
        assert_eq!(nearest("flwo", ["flow", "path"]), Some("flow"));
        assert_eq!(nearest("Loss", ["loss"]), Some("loss"));
        assert_eq!(nearest("bandwidth", ["rate", "rtt", "loss"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
