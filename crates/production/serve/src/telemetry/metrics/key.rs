//! The labels of series: few values, all set by the operator.

use std::sync::Arc;

use smol_str::SmolStr;

/// The labels of a series. Clients control none of them, so they cannot create series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MetricKey {
    /// The listener's name; its address if unnamed.
    pub(crate) listener: Arc<str>,
    /// `h1`, `h2`, `h3`; `tcp` or `tls` before the first request.
    pub(crate) protocol: &'static str,
    /// The controller in effect.
    pub(crate) cc: SmolStr,
    /// The experiment and its arm, empty if there is none.
    pub(crate) experiment: SmolStr,
    pub(crate) arm: SmolStr,
}

impl MetricKey {
    pub(super) fn labels(&self) -> [(&'static str, &str); 5] {
        [
            ("listener", &self.listener),
            ("protocol", self.protocol),
            ("cc", &self.cc),
            ("experiment", &self.experiment),
            ("arm", &self.arm),
        ]
    }

    /// The labels of the series that counts everything beyond the limit of series.
    pub(super) fn other() -> Self {
        let other = || SmolStr::new_static("other");
        let (listener, protocol) = ("other".into(), "other");
        Self { listener, protocol, cc: other(), experiment: other(), arm: other() }
    }
}
