//! Which columns a table keeps if it is too wide.

/// Metrics by their importance for a decision, the most important first; others come last.
const PRIORITY: [&str; 20] = [
    "completion_p50",
    "goodput_sum",
    "share_mean",
    "share_min",
    "share_max",
    "playback_latency_p50",
    // The metrics from here on may be dropped, from the end of the list.
    "stutters_mean",
    "retransmitted_mean",
    "queue_delay_p95",
    "completion_p90",
    "playback_latency_p90",
    "stalled_mean",
    "played_rate_mean",
    "goodput_mean",
    "jain_mean",
    "utilisation_mean",
    "rtt_p50",
    "bandwidth_p50",
    "goodput_p50",
    "rtt_time_p50",
];
/// The first metrics are never dropped: what was delivered, when, and to whom.
const NEVER_DROPPED: usize = 6;
/// These are what a decision needs: gains and costs.
const ESSENTIAL: usize = 15;

/// Rank of a metric, 0 for the most important.
fn rank(metric: &str) -> usize {
    PRIORITY.iter().position(|name| *name == metric).unwrap_or(PRIORITY.len())
}

/// Whether a decision needs the metric.
pub(super) fn is_essential(metric: &str) -> bool {
    rank(metric) < ESSENTIAL
}

/// The indices of the columns to keep, in their order: the ones never dropped, and by their
/// priority all others with which the table still `fits`.
pub(super) fn fitting(metrics: &[&str], fits: impl Fn(&[usize]) -> bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..metrics.len()).collect();
    order.sort_by_key(|at| rank(metrics[*at]));
    let mut kept: Vec<usize> = Vec::new();
    for at in order {
        let place = kept.partition_point(|other| *other < at);
        kept.insert(place, at);
        if rank(metrics[at]) >= NEVER_DROPPED && !fits(&kept) {
            kept.remove(place);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_least_is_dropped_first() {
        let metrics =
            ["first_byte_p50", "goodput_sum", "rtt_p50", "share_mean", "retransmitted_mean"];
        let of = |limit: usize| fitting(&metrics, |kept| kept.len() <= limit);
        assert_eq!(of(5), [0, 1, 2, 3, 4]);
        assert_eq!(of(4), [1, 2, 3, 4]);
        assert_eq!(of(3), [1, 3, 4]);
        assert_eq!(of(0), [1, 3], "goodput and share stay");
    }
}
