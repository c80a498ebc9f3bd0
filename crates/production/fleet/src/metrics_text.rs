//! Metrics as text for Prometheus: for a file that node_exporter reads, or an endpoint.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>

use std::fmt::{Display, Write as _};

/// The content type of [`MetricsText`].
pub const METRICS_TEXT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Families of metrics of one prefix.
#[derive(Clone, Debug)]
pub struct MetricsText {
    prefix: &'static str,
    text: String,
}

impl MetricsText {
    /// Of no metrics.
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, text: String::new() }
    }

    /// A count that only grows.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help, [("", value)]);
    }

    /// A value.
    pub fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.family(name, "gauge", help, [("", value)]);
    }

    /// Values by a label, in the order given. No value of the label has quotation marks.
    pub fn gauges<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, usize)>,
    ) {
        let values = values.into_iter().map(|(of, value)| (format!("{{{label}=\"{of}\"}}"), value));
        self.family(name, "gauge", help, values);
    }

    fn family(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl IntoIterator<Item = (impl Display, impl Display)>,
    ) {
        let Self { prefix, text } = self;
        // Writing into a string cannot fail.
        let _ = writeln!(text, "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(text, "{prefix}{name}{labels} {value}");
        }
    }

    /// The text of all families.
    pub fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_help_type_and_whole_numbers_without_exponent() {
        let mut text = MetricsText::new("a_");
        text.counter("files_total", "Files.", 3);
        text.gauge("at_seconds", "When.", 1_796_083_200.0);
        text.gauges("hosts", "Hosts.", "version", [("7", 2), ("default", 1)]);
        let expected = "# HELP a_files_total Files.\n# TYPE a_files_total counter\na_files_total 3\n\
            # HELP a_at_seconds When.\n# TYPE a_at_seconds gauge\na_at_seconds 1796083200\n\
            # HELP a_hosts Hosts.\n# TYPE a_hosts gauge\na_hosts{version=\"7\"} 2\na_hosts{version=\"default\"} 1\n";
        assert_eq!(text.into_text(), expected);
    }
}
