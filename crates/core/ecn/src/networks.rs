//! The verdicts of many client networks.

use std::collections::BTreeMap;

use uncork_terminal::{Column, Style, Table};
use uncork_units::TimeDelta;

use crate::flow::FlowEvidence;
use crate::limits::MAX_AGE_DAYS;
use crate::network::NetworkEvidence;
use crate::verdict::{Bottleneck, Verdict};
use crate::votes::Votes;

const HOUR_S: u64 = 3_600;

/// The evidence of client networks at one time, by name: `203.0.113.0/24`. Flows that ended earlier than
/// [`Networks::MAX_AGE_S`] before that time, or after it, do not count.
#[derive(Clone, Debug)]
pub struct Networks {
    as_of_unix_s: u64,
    known: BTreeMap<String, Known>,
    /// Flows that ended after the time, by a clock that is ahead or in records of later days.
    later: u64,
}

/// The evidence of a network.
#[derive(Clone, Debug, Default)]
struct Known {
    /// By the hour in which flows ended: at most [`Networks::MAX_AGE_S`] of hours.
    hours: BTreeMap<u64, NetworkEvidence>,
    /// When its newest flow ended, in seconds since 1970 (UTC).
    newest_unix_s: u64,
}

impl Known {
    fn verdict(&self, as_of_unix_s: u64) -> Verdict {
        let (mut evidence, mut votes) = (NetworkEvidence::default(), Votes::default());
        for hour in self.hours.values() {
            evidence.merge(hour);
            votes.add(Votes::of_hour(hour));
        }
        let age = TimeDelta::from_secs(as_of_unix_s.saturating_sub(self.newest_unix_s));
        Verdict::of(&evidence, votes, age)
    }
}

impl Networks {
    /// Seconds until a verdict expires without newer evidence.
    pub const MAX_AGE_S: u64 = MAX_AGE_DAYS * 86_400;

    /// None yet, for verdicts at `as_of_unix_s`, in seconds since 1970 (UTC).
    pub const fn new(as_of_unix_s: u64) -> Self {
        Self { as_of_unix_s, known: BTreeMap::new(), later: 0 }
    }

    /// Adds a flow that ended at `end_unix_s`, in seconds since 1970 (UTC).
    pub fn add(&mut self, network: &str, flow: &FlowEvidence, end_unix_s: u64) {
        let Some(age_s) = self.as_of_unix_s.checked_sub(end_unix_s) else {
            self.later += 1;
            return;
        };
        let known = self.known.entry(network.to_owned()).or_default();
        known.newest_unix_s = known.newest_unix_s.max(end_unix_s);
        if age_s <= Self::MAX_AGE_S {
            known.hours.entry(end_unix_s / HOUR_S).or_default().add(flow);
        }
    }

    /// The time of the verdicts, in seconds since 1970 (UTC).
    pub const fn as_of_unix_s(&self) -> u64 {
        self.as_of_unix_s
    }

    /// Flows that do not count because they ended after that time.
    pub const fn later(&self) -> u64 {
        self.later
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Their verdicts, by name.
    pub fn verdicts(&self) -> impl Iterator<Item = (&str, Verdict)> {
        self.dated_verdicts().map(|(name, verdict, _)| (name, verdict))
    }

    /// The verdicts, each with the end of the network's newest flow, in seconds since 1970 (UTC).
    pub(crate) fn dated_verdicts(&self) -> impl Iterator<Item = (&str, Verdict, u64)> {
        self.known.iter().map(|(name, known)| {
            (name.as_str(), known.verdict(self.as_of_unix_s), known.newest_unix_s)
        })
    }

    /// A table of the networks with a verdict, and a line that counts all.
    pub fn text(&self) -> String {
        let columns = [
            Column::left("network"),
            Column::left("ecn"),
            Column::right("flows"),
            Column::right("l4s"),
            Column::right("classic"),
            Column::right("no ecn"),
            Column::right("marked queue"),
        ];
        let proven: Vec<_> = self.verdicts().filter(|(_, verdict)| is_proven(verdict)).collect();
        let table = Table::new(columns, proven.iter().map(|(name, verdict)| row(name, verdict)));
        let count =
            |ecn: &str| proven.iter().filter(|(_, it)| it.bottleneck.ecn() == Some(ecn)).count();
        let [l4s, classic, none] = ["l4s", "classic", "none"].map(count);
        let unknown = self.len() - l4s - classic - none;
        let table = if proven.is_empty() { String::new() } else { table.render(Style::Plain) };
        let networks = if self.len() == 1 { "network" } else { "networks" };
        format!(
            "{table}{} {networks}: {l4s} l4s, {classic} classic, {none} none; {unknown} unknown, which keep the policy's default\n{}",
            self.len(),
            self.later_text(),
        )
    }

    fn later_text(&self) -> String {
        match self.later {
            0 => String::new(),
            1 => {
                "1 connection does not count: it ended after the time of the verdicts\n".to_owned()
            }
            many => format!(
                "{many} connections do not count: they ended after the time of the verdicts\n"
            ),
        }
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

    /// Networks on day 108, each with flows of three hours from this day on, or of one hour.
    fn known(day: u64) -> Networks {
        let mut networks = Networks::new(108 * DAY);
        for hour in 0..3 {
            let end = day * DAY + hour * HOUR_S;
            networks.add("192.0.2.0/24", &flow(20, 0), end);
            networks.add("198.51.100.0/24", &flow(0, 20), end);
        }
        networks.add("203.0.113.0/24", &flow(20, 0), day * DAY);
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
        assert_eq!(known(102).text(), expected);
    }

    #[test]
    fn verdicts_without_newer_evidence_expire() {
        let expected =
            "3 networks: 0 l4s, 0 classic, 0 none; 3 unknown, which keep the policy's default\n";
        assert_eq!(known(100).text(), expected);
    }

    fn reason(networks: &Networks) -> (Bottleneck, String) {
        let (_, verdict) = networks.verdicts().next().expect("a network");
        (verdict.bottleneck, verdict.to_string())
    }

    /// After an exchange of the access equipment, three months of another queue say nothing.
    #[test]
    fn evidence_older_than_a_week_does_not_count_next_to_new_evidence() {
        let mut networks = Networks::new(100 * DAY);
        for hour in 0..90 * 24 {
            networks.add("192.0.2.0/24", &flow(20, 0), hour * HOUR_S);
        }
        for hour in 0..2 {
            networks.add("192.0.2.0/24", &flow(0, 20), 99 * DAY + hour * HOUR_S);
        }
        assert_eq!(reason(&networks).0, Bottleneck::Classic);
    }

    #[test]
    fn flows_of_one_hour_have_one_vote_together() {
        let mut networks = Networks::new(100 * DAY);
        (0..50).for_each(|_| networks.add("192.0.2.0/24", &flow(20, 0), 99 * DAY));
        let expected = "unknown: of 50 flows with marks, 50 met a short queue and 0 a standing one; \
                        flows that end in the same hour have one vote";
        assert_eq!(reason(&networks), (Bottleneck::Unknown, expected.to_owned()));
        (1..3)
            .for_each(|hour| networks.add("192.0.2.0/24", &flow(20, 0), 99 * DAY + hour * HOUR_S));
        assert_eq!(reason(&networks).0, Bottleneck::L4s);
    }

    /// A clock that is ahead would keep a verdict for as much longer.
    #[test]
    fn flows_after_the_time_of_the_verdicts_do_not_count_and_are_named() {
        let mut networks = known(102);
        (0..9).for_each(|hour| {
            networks.add("192.0.2.0/24", &flow(0, 20), 108 * DAY + hour * HOUR_S + 1);
        });
        let text = networks.text();
        assert!(text.contains("192.0.2.0/24     l4s          3"), "{text}");
        let line = "9 connections do not count: they ended after the time of the verdicts\n";
        assert!(text.ends_with(line), "{text}");
    }
}
