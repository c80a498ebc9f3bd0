//! The metrics of an exporter as a table of its reference page.

use std::fmt::Write;

/// A family of metrics.
#[derive(Default)]
struct Family<'t> {
    name: &'t str,
    kind: &'t str,
    unit: &'t str,
    help: &'t str,
    labels: Vec<&'t str>,
}

impl Family<'_> {
    /// The name of its time series. Those of a histogram have several endings, which Prometheus adds.
    fn series(&self) -> String {
        let ending = match self.kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        format!("{}{ending}", self.name)
    }
}

/// The families in an exposition in the format OpenMetrics, as a table in Markdown. Names are without `prefix`. Labels are those of
/// the samples, so each family needs one.
///
/// # Panics
///
/// If a family has no sample, or a line is neither metadata nor a sample of the family before it.
pub fn metrics_table(exposition: &str, prefix: &str) -> String {
    let mut table =
        "| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n".to_owned();
    for family in families(exposition) {
        let Family { kind, unit, help, ref labels, .. } = family;
        let series = family.series();
        let name = series.strip_prefix(prefix).expect("a metric has the prefix of its exporter");
        let labels = labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        writeln!(
            table,
            "| <a id=\"metric-{name}\"></a>`{name}` | {kind} | {unit} | {labels} | {help} |"
        )
        .expect("memory");
    }
    table
}

fn families(exposition: &str) -> Vec<Family<'_>> {
    let mut families = Vec::<Family<'_>>::new();
    let mut sampled = 0;
    for line in exposition.lines().filter(|line| *line != "# EOF") {
        if let Some(metadata) = line.strip_prefix("# ") {
            let mut words = metadata.splitn(3, ' ');
            let [keyword, name, text] = [(); 3].map(|()| words.next().expect("three words"));
            if families.last().is_none_or(|family| family.name != name) {
                assert_eq!(sampled, families.len(), "a family before {name} has no sample");
                families.push(Family { name, ..Family::default() });
            }
            let family = families.last_mut().expect("it was added");
            match keyword {
                "HELP" => family.help = text.trim_end_matches('.'),
                "TYPE" => family.kind = text,
                "UNIT" => family.unit = text,
                _ => panic!("unknown metadata: {line}"),
            }
        } else {
            sampled = families.len();
            let family = families.last_mut().expect("metadata comes first");
            assert!(line.starts_with(family.name), "not a sample of {}: {line}", family.name);
            family.labels = labels(line);
        }
    }
    assert_eq!(sampled, families.len(), "the last family has no sample");
    families
}

/// The labels of a sample, without `le` of a histogram.
fn labels(sample: &str) -> Vec<&str> {
    let Some((_, labels)) = sample.split_once('{') else { return Vec::new() };
    let names = labels.split('"').step_by(2).filter_map(|text| text.strip_suffix('='));
    names.map(|name| name.trim_start_matches(',')).filter(|name| *name != "le").collect()
}

#[cfg(test)]
mod tests {
    use super::metrics_table;

    const EXPOSITION: &str = "\
# HELP a_rtt_seconds Round-trip time.
# TYPE a_rtt_seconds histogram
# UNIT a_rtt_seconds seconds
a_rtt_seconds_sum{cc=\"bbr\",port=\"443\"} 1.0
a_rtt_seconds_bucket{le=\"1.0\",cc=\"bbr\",port=\"443\"} 1
# HELP a_passes Passes
# TYPE a_passes counter
a_passes_total 7
# EOF
";

    #[test]
    fn a_family_is_a_row() {
        let rows = [
            "| <a id=\"metric-rtt_seconds\"></a>`rtt_seconds` | histogram | seconds | `cc`, `port` | Round-trip time |",
            "| <a id=\"metric-passes_total\"></a>`passes_total` | counter |  |  | Passes |",
        ];
        let table = metrics_table(EXPOSITION, "a_");
        assert_eq!(table.lines().skip(2).collect::<Vec<_>>(), rows);
    }

    #[test]
    #[should_panic(expected = "no sample")]
    fn a_family_without_a_sample_has_unknown_labels() {
        let without = EXPOSITION.replace("a_passes_total 7\n", "");
        metrics_table(&without, "a_");
    }
}
