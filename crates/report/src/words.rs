//! Paths and workloads in words.

use crate::document::{CompareDocument, LossPosition, PathFigures, Workload};
use crate::number::{bytes, percent, rate, seconds, short};

/// `20 Mbit/s, 40 ms RTT, 1 % random loss after the bottleneck`
pub(crate) fn path(path: &PathFigures) -> String {
    format!("{}, {} RTT, {}", link_rate(path), rtt(path), loss(path))
}

/// `20 Mbit/s`
pub(crate) fn link_rate(path: &PathFigures) -> String {
    rate(path.rate_bps as f64)
}

/// `40 ms`
pub(crate) fn rtt(path: &PathFigures) -> String {
    seconds(path.rtt_ms / 1e3)
}

/// `1 % random loss after the bottleneck`
pub(crate) fn loss(path: &PathFigures) -> String {
    let place = match path.loss_position {
        LossPosition::Before => "before",
        LossPosition::After => "after",
    };
    if path.loss <= 0.0 {
        return "no random loss".to_owned();
    }
    format!("{} random loss {place} the bottleneck", percent(path.loss))
}

/// `100 kB (67 packets, 1 BDP)`
pub(crate) fn buffer(path: &PathFigures) -> String {
    format!(
        "{} ({}, {} BDP)",
        bytes(path.buffer_bytes as f64),
        counted(path.buffer_packets, "packet"),
        short(path.buffer_bdp)
    )
}

/// `10 MB`, `4 flows of 10 MB each`, `30 s`; the number of flows only where every column has it.
pub(crate) fn workload(document: &CompareDocument) -> String {
    let flows = common_flows(document);
    match (document.workload, flows) {
        (Workload::Size { size_bytes }, Some(1)) => bytes(size_bytes as f64),
        (Workload::Size { size_bytes }, Some(n)) => {
            format!("{n} flows of {} each", bytes(size_bytes as f64))
        }
        (Workload::Size { size_bytes }, None) => format!("{} per flow", bytes(size_bytes as f64)),
        (Workload::Duration { duration_s }, Some(n)) if n > 1 => {
            format!("{n} flows for {}", seconds(duration_s))
        }
        (Workload::Duration { duration_s }, _) => seconds(duration_s),
    }
}

fn common_flows(document: &CompareDocument) -> Option<u32> {
    let mut flows = document.results.iter().map(|r| r.flows);
    let first = flows.next()?;
    flows.all(|n| n == first).then_some(first)
}

/// What the comparison asks, as one sentence.
pub(crate) fn question(document: &CompareDocument) -> String {
    let labels: Vec<&str> = document.results.iter().map(|r| r.cc.as_str()).collect();
    let path = format!("{} with {} RTT", link_rate(&document.path), rtt(&document.path));
    let all = list(&labels);
    let sole = labels.len() == 1;
    match document.workload {
        Workload::Size { .. } if sole => {
            format!("How soon does {all} move {} over {path}?", workload(document))
        }
        Workload::Size { .. } => {
            let load = workload(document);
            format!("Which of {all} moves {load} soonest over {path}, and at what cost?")
        }
        Workload::Duration { duration_s } => {
            let verb = if sole { "does" } else { "do" };
            format!("How {verb} {all} use a path of {path} in {}?", seconds(duration_s))
        }
    }
}

/// `1 seed`, `20 seeds`
pub(crate) fn counted(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// `a, b and c`
pub(crate) fn list<S: AsRef<str>>(items: &[S]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match items.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// One line for each column with transfers that did not finish.
pub(crate) fn unfinished(document: &CompareDocument) -> Vec<String> {
    let results = document.results.iter().filter(|r| r.unfinished > 0);
    results
        .map(|r| {
            let all = u64::from(r.flows).saturating_mul(document.seeds);
            format!("{}: {} of {} did not finish.", r.cc, r.unfinished, counted(all, "transfer"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_path_in_words() {
        let mut document = sample::transfers();
        let words = path(&document.path);
        assert_eq!(words, "20 Mbit/s, 40 ms RTT, 1 % random loss after the bottleneck");
        assert_eq!(buffer(&document.path), "100 kB (67 packets, 1 BDP)");
        document.path.loss = 0.0;
        assert_eq!(loss(&document.path), "no random loss");
    }

    #[test]
    fn the_question_names_everybody() {
        let mut document = sample::transfers();
        assert_eq!(
            question(&document),
            "Which of bbr3, cubic and newreno moves 10 MB soonest over 20 Mbit/s with 40 ms RTT, \
             and at what cost?"
        );
        document.results.truncate(1);
        assert_eq!(
            question(&document),
            "How soon does bbr3 move 10 MB over 20 Mbit/s with 40 ms RTT?"
        );
        assert_eq!(
            question(&sample::mix()),
            "How do 2xbbr3 and bbr3+cubic use a path of 20 Mbit/s with 40 ms RTT in 30 s?"
        );
    }

    #[test]
    fn flows_are_counted_when_all_columns_agree() {
        let mut document = sample::mix();
        assert_eq!(workload(&document), "2 flows for 30 s");
        document.results[0].flows = 1;
        assert_eq!(workload(&document), "30 s");
    }
}
