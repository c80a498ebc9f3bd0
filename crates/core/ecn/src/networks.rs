//! The verdicts of many client networks.

use std::collections::BTreeMap;

use uncork_terminal::{Column, Style, Table};
use uncork_units::TimeDelta;

use crate::flow::FlowEvidence;
use crate::limits::MAX_AGE_DAYS;
use crate::network::NetworkEvidence;
use crate::verdict::{Bottleneck, Verdict, verdict};

/// The evidence of client networks, by name: `203.0.113.0/24`.
#[derive(Clone, Debug, Default)]
pub struct Networks(BTreeMap<String, Known>);

/// The evidence of a network.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    evidence: NetworkEvidence,
    /// When its newest flow ended, in seconds since 1970 (UTC).
    newest_unix_s: u64,
}

impl Networks {
    /// Seconds until a verdict expires without newer evidence.
    pub const MAX_AGE_S: u64 = MAX_AGE_DAYS * 86_400;

    /// Adds a flow that ended at `end_unix_s`, in seconds since 1970 (UTC).
    pub fn add(&mut self, network: &str, flow: &FlowEvidence, end_unix_s: u64) {
        let known = self.0.entry(network.to_owned()).or_default();
        known.evidence.add(flow);
        known.newest_unix_s = known.newest_unix_s.max(end_unix_s);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their verdicts at `as_of_unix_s`, by name.
    pub fn verdicts(&self, as_of_unix_s: u64) -> impl Iterator<Item = (&str, Verdict)> {
        self.dated_verdicts(as_of_unix_s).map(|(name, verdict, _)| (name, verdict))
    }

    /// The verdicts, each with the end of the network's newest flow, in seconds since 1970 (UTC).
    pub(crate) fn dated_verdicts(
        &self,
        as_of_unix_s: u64,
    ) -> impl Iterator<Item = (&str, Verdict, u64)> {
        self.0.iter().map(move |(name, known)| {
            let age = TimeDelta::from_secs(as_of_unix_s.saturating_sub(known.newest_unix_s));
            (name.as_str(), verdict(&known.evidence, age), known.newest_unix_s)
        })
    }

    /// A table of the networks with a verdict, and a line that counts all.
    pub fn text(&self, as_of_unix_s: u64) -> String {
        let columns = [
            Column::left("network"),
            Column::left("ecn"),
            Column::right("flows"),
            Column::right("l4s"),
            Column::right("classic"),
            Column::right("no ecn"),
            Column::right("marked queue"),
        ];
        let proven = || self.verdicts(as_of_unix_s).filter(|(_, verdict)| is_proven(verdict));
        let table = Table::new(columns, proven().map(|(name, verdict)| row(name, &verdict)));
        let count = |ecn: &str| proven().filter(|(_, it)| it.bottleneck.ecn() == Some(ecn)).count();
        let [l4s, classic, none] = ["l4s", "classic", "none"].map(count);
        let unknown = self.len() - l4s - classic - none;
        let table =
            if proven().next().is_some() { table.render(Style::Plain) } else { String::new() };
        let networks = if self.len() == 1 { "network" } else { "networks" };
        format!(
            "{table}{} {networks}: {l4s} l4s, {classic} classic, {none} none; {unknown} unknown, which keep the policy's default\n",
            self.len()
        )
    }
}

fn is_proven(verdict: &Verdict) -> bool {
    verdict.bottleneck != Bottleneck::Unknown
}

fn row(name: &str, verdict: &Verdict) -> [String; 7] {
    let NetworkEvidence { flows, l4s, classic, no_ecn, .. } = verdict.evidence;
    let queue = verdict.evidence.marked_queue_ms();
    [
        name.to_owned(),
        verdict.bottleneck.ecn().unwrap_or("-").to_owned(),
        flows.to_string(),
        l4s.to_string(),
        classic.to_string(),
        no_ecn.to_string(),
        queue.map_or_else(|| "-".to_owned(), |queue| format!("{queue:.1} ms")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    fn flow(l4s_rounds: u32, classic_rounds: u32) -> FlowEvidence {
        let marked_rounds = l4s_rounds + classic_rounds;
        let marked_queue_us = u64::from(l4s_rounds) * 500 + u64::from(classic_rounds) * 6_000;
        let marked = u64::from(marked_rounds);
        let evidence =
            FlowEvidence { marked_rounds, l4s_rounds, classic_rounds, ..Default::default() };
        FlowEvidence { marked, marked_queue_us, ..evidence }
    }

    fn known() -> Networks {
        let mut networks = Networks::default();
        for _ in 0..3 {
            networks.add("192.0.2.0/24", &flow(20, 0), 100 * DAY);
            networks.add("198.51.100.0/24", &flow(0, 20), 100 * DAY);
        }
        networks.add("203.0.113.0/24", &flow(20, 0), 100 * DAY);
        networks
    }

    #[test]
    fn proven_networks_are_listed_and_the_others_counted() {
        let expected = "\
network          ecn      flows  l4s  classic  no ecn  marked queue
192.0.2.0/24     l4s          3    3        0       0        0.5 ms
198.51.100.0/24  classic      3    0        3       0        6.0 ms
3 networks: 1 l4s, 1 classic, 0 none; 1 unknown, which keep the policy's default
";
        assert_eq!(known().text(101 * DAY), expected);
    }

    #[test]
    fn verdicts_without_newer_evidence_expire() {
        let expected =
            "3 networks: 0 l4s, 0 classic, 0 none; 3 unknown, which keep the policy's default\n";
        assert_eq!(known().text(108 * DAY), expected);
    }
}
