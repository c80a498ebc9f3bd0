//! Keys of tables.

/// A key of a table. Its texts, in Markdown, are a row of the reference page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What its value means.
    pub meaning: &'static str,
    /// The default value, or `required`; empty if an absent key has no effect.
    pub default: &'static str,
}

impl Key {
    /// A key without a default.
    pub const fn new(name: &'static str, meaning: &'static str) -> Self {
        Self::with_default(name, "", meaning)
    }

    /// A key that must be present.
    pub const fn required(name: &'static str, meaning: &'static str) -> Self {
        Self::with_default(name, "required", meaning)
    }

    /// A key with a default.
    pub const fn with_default(
        name: &'static str,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        // Only the reference pages have these texts, and a page loads what it does not need.
        if cfg!(target_family = "wasm") {
            return Self { name, meaning: "", default: "" };
        }
        Self { name, meaning, default }
    }

    /// The names of `keys`.
    pub fn names(keys: &'static [Self]) -> impl Iterator<Item = &'static str> + Clone {
        keys.iter().map(|key| key.name)
    }

    /// Whether one of `keys` has this name.
    pub fn has(keys: &[Self], name: &str) -> bool {
        keys.iter().any(|key| key.name == name)
    }

    /// The keys of both lists, which have `N` together.
    ///
    /// # Panics
    ///
    /// If they have another number.
    pub const fn join<const N: usize>(first: &[Self], second: &[Self]) -> [Self; N] {
        assert!(first.len() + second.len() == N, "N is the sum of both lengths");
        let mut all = [Self::new("", ""); N];
        let (head, tail) = all.split_at_mut(first.len());
        head.copy_from_slice(first);
        tail.copy_from_slice(second);
        all
    }
}
