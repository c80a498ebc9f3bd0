//! Comma-separated values for spreadsheets and data frames.

use serde::Serialize;

use crate::csv_text::csv_text;
use crate::document::{ColumnResult, CompareDocument};
use crate::number::rounded;

/// A header line and a line for each result, with the names of the JSON form, flattened. Absent
/// figures are empty.
pub fn compare_csv(document: &CompareDocument) -> String {
    csv_text(|csv| document.results.iter().try_for_each(|result| csv.serialize(Row::of(result))))
}

#[derive(Serialize)]
struct Row<'a> {
    cc: &'a str,
    flows: u32,
    completion_p10_s: Option<f64>,
    completion_p50_s: Option<f64>,
    completion_p90_s: Option<f64>,
    unfinished: u64,
    goodput_bps: u64,
    utilisation: f64,
    rtt_min_ms: Option<f64>,
    rtt_p50_ms: Option<f64>,
    rtt_p95_ms: Option<f64>,
    queue_p50_ms: Option<f64>,
    queue_p95_ms: Option<f64>,
    retransmit_fraction: f64,
    timeouts: u64,
    jain: Option<f64>,
}

impl<'a> Row<'a> {
    fn of(result: &'a ColumnResult) -> Self {
        let figure = |value| rounded(value, 6);
        Self {
            cc: &result.cc,
            flows: result.flows,
            completion_p10_s: result.completion_s.map(|c| figure(c.p10)),
            completion_p50_s: result.completion_s.map(|c| figure(c.p50)),
            completion_p90_s: result.completion_s.map(|c| figure(c.p90)),
            unfinished: result.unfinished,
            goodput_bps: result.goodput_bps,
            utilisation: figure(result.utilisation),
            rtt_min_ms: result.rtt_ms.map(|rtt| figure(rtt.min)),
            rtt_p50_ms: result.rtt_ms.map(|rtt| figure(rtt.p50)),
            rtt_p95_ms: result.rtt_ms.map(|rtt| figure(rtt.p95)),
            queue_p50_ms: result.queue_ms.map(|queue| figure(queue.p50)),
            queue_p95_ms: result.queue_ms.map(|queue| figure(queue.p95)),
            retransmit_fraction: figure(result.retransmit_fraction),
            timeouts: result.timeouts,
            jain: result.jain.map(figure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn one_line_for_each_result() {
        let expected = "\
cc,flows,completion_p10_s,completion_p50_s,completion_p90_s,unfinished,goodput_bps,utilisation,\
rtt_min_ms,rtt_p50_ms,rtt_p95_ms,queue_p50_ms,queue_p95_ms,retransmit_fraction,timeouts,jain
bbr3,1,4.39,4.42,4.6,0,18100000,0.905,40.1,44.2,61.3,4.1,21.3,0.0102,0,
cubic,1,9.8,12.4,15.9,0,6450000,0.3225,40.1,40.9,48.7,0.3,8.4,0.0101,0,
newreno,1,14.2,18.3,24.7,0,4370000,0.2185,40.1,40.4,44.0,0.1,3.9,0.01,1,
";
        assert_eq!(compare_csv(&sample::transfers()), expected);
    }

    #[test]
    fn quotes_what_needs_quotes() {
        let mut document = sample::transfers();
        document.results.truncate(1);
        document.results[0].cc = "bbr3:a=1,\"b\"=2".to_owned();
        let csv = compare_csv(&document);
        assert!(csv.lines().nth(1).unwrap().starts_with("\"bbr3:a=1,\"\"b\"\"=2\",1,"), "{csv}");
    }
}
