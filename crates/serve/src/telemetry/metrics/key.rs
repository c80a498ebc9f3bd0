//! What tells series apart: few words, all of them the operator's.

use std::sync::Arc;

/// The labels of a series. Nothing that a client chooses is among them, so that clients cannot make
/// series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The listener's address.
    pub(crate) listener: Arc<str>,
    /// `h1`, `h2`, `h3`; `tcp` or `tls` before the first request.
    pub(crate) protocol: &'static str,
    /// The controller in force.
    pub(crate) cc: String,
    /// The experiment and its arm, empty if there is none.
    pub(crate) experiment: String,
    pub(crate) arm: String,
}

impl Key {
    pub(super) fn labels(&self) -> [(&'static str, &str); 5] {
        [
            ("listener", &self.listener),
            ("protocol", self.protocol),
            ("cc", &self.cc),
            ("experiment", &self.experiment),
            ("arm", &self.arm),
        ]
    }

    /// Where all goes that there is no room for.
    pub(super) fn other() -> Self {
        let other = || "other".to_owned();
        let (listener, protocol) = ("other".into(), "other");
        Self { listener, protocol, cc: other(), experiment: other(), arm: other() }
    }
}
