//! The lines of some clients: what a scenario has as a path.

use uncork_cc::CcSpec;
use uncork_flow::{FlowRecord, quantile};

use super::response::Response;

/// Responses that make a distribution of rates.
pub(super) const FEWEST: usize = 2;
/// Behind a policer BBR loses more than this part of its packets,
const POLICED: f64 = 0.05;
/// more than this many times CUBIC's part,
const TIMES_CUBIC: f64 = 2.0;
/// and less than this part of its responses has a standing queue.
const HARDLY_ANY: f64 = 0.2;
/// Where a buffer holds less than this many products of rate and round-trip time, slow start's drops hide
/// random loss
const SMALL_BDPS: f64 = 1.0;
/// of more than this part.
const HIDDEN: f64 = 0.01;
/// The part of CUBIC's queues that are below what the buffer holds.
const FULL: f64 = 0.95;
/// A few packets: what a buffer has at least, in bytes.
const LEAST_BUFFER: f64 = 5_000.0;

/// The lines of the clients of a system or network, as a scenario writes them.
pub(super) struct Line {
    name: String,
    responses: usize,
    shown: usize,
    rate: String,
    rtt: String,
    loss: f64,
    buffer: String,
    transfer: String,
}

impl Line {
    /// By the responses to these clients. The error is what their records do not show.
    pub(super) fn of(name: &str, responses: &[&Response<'_>]) -> Result<Self, String> {
        // BBR fills links that CUBIC does not; CUBIC with losses shows slow links only.
        let (bbr, cubic): (Vec<_>, Vec<_>) = responses.iter().partition(|one| one.is_bbr);
        let lost = |some: &[&Response<'_>]| lost_share(some.iter().map(|one| one.record));
        if is_policed(&bbr, lost(&bbr), lost(&cubic)) {
            return Err(format!(
                "BBR lost {:.0} % without a queue, as behind a policer, which no twin has",
                100.0 * lost(&bbr)
            ));
        }
        let buffer = buffer(responses).ok_or_else(|| {
            format!(
                "of {} responses none shows a queue; look more often (--every)",
                responses.len()
            )
        })?;
        if cubic.is_empty() {
            let count = responses.len();
            return Err(format!(
                "all {count} responses are BBR's, which does not tell random loss from drops"
            ));
        }
        // Where CUBIC had no queue, it lost at random. BBR loses at least as much; a standing queue everywhere
        // leaves nothing to see.
        let unqueued: Vec<&Response<'_>> =
            cubic.iter().copied().filter(|one| one.has_queue() == Some(false)).collect();
        let loss = if bbr.is_empty() { 1.0 } else { lost(&bbr) }.min(lost(&unqueued));
        let bdps: Vec<f64> = cubic.iter().filter_map(|one| one.queue_bdps()).collect();
        let is_small = quantile(&bdps, FULL).is_some_and(|bdps| bdps < SMALL_BDPS);
        if is_small && loss > HIDDEN {
            return Err(format!(
                "its buffer is so small that its drops hide random loss: {:.1} % were lost",
                100.0 * loss
            ));
        }
        let queued =
            || responses.iter().copied().filter(|one| one.has_queue() == Some(true)).collect();
        let full: Vec<&Response<'_>> = if bbr.is_empty() { queued() } else { bbr };
        if full.len() < FEWEST {
            return Err(format!("of {} responses too few show the rate", responses.len()));
        }
        let rates: Vec<f64> = full.iter().map(|one| one.rate() / 1e6).collect();
        let rtts: Vec<f64> = responses.iter().map(|one| one.least_rtt).collect();
        let sizes: Vec<f64> =
            responses.iter().map(|one| one.record.bytes_delivered as f64 / 1e6).collect();
        Ok(Self {
            name: name.to_owned(),
            responses: responses.len(),
            shown: full.len(),
            rate: quartiles(&rates, "mbit"),
            rtt: quartiles(&rtts, "ms"),
            loss,
            buffer,
            transfer: format!("{:.1}MB", quantile(&sizes, 0.5).unwrap_or_default()),
        })
    }

    /// The path, and so many clients with each controller.
    pub(super) fn text(&self, clients: usize, controllers: &[CcSpec]) -> String {
        let Self { name, responses, shown, rate, rtt, loss, buffer, transfer } = self;
        let names: Vec<String> = controllers.iter().map(|cc| format!("\"{cc}\"")).collect();
        let count = clients * names.len();
        let is_bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let key = if is_bare { name.clone() } else { format!("\"{name}\"") };
        format!(
            "[path.{key}]  # {responses} responses, {shown} show the rate\n\
             own_per_flow = true\n\
             rate = {{ quantiles = [{rate}] }}\n\
             rtt = {{ quantiles = [{rtt}] }}\n\
             loss = \"{:.3}%\"\n\
             buffer = \"{buffer}\"\n\n\
             [flow.{key}]\n\
             path = \"{name}\"\n\
             cc = [{}]\n\
             count = {count}\n\
             paired = {}\n\
             transfer = \"{transfer}\"\n\n",
            100.0 * loss,
            names.join(", "),
            names.len() > 1,
        )
    }
}

/// Whether BBR's responses, which lost these parts of their packets, look like those behind a policer.
fn is_policed(bbr: &[&Response<'_>], lost: f64, lost_by_cubic: f64) -> bool {
    let seen: Vec<bool> = bbr.iter().filter_map(|one| one.has_queue()).collect();
    let queued = seen.iter().filter(|has_queue| **has_queue).count();
    lost > POLICED.max(TIMES_CUBIC * lost_by_cubic)
        && (seen.is_empty() || (queued as f64) < HARDLY_ANY * seen.len() as f64)
}

/// Packets lost of those that were sent.
fn lost_share<'a>(records: impl Iterator<Item = &'a FlowRecord>) -> f64 {
    let (sent, lost) = records.fold((0, 0), |(sent, lost), record| {
        (sent + record.packets_sent, lost + record.packets_lost)
    });
    lost as f64 / u64::max(sent, 1) as f64
}

/// The largest queue of `responses`: in bytes or in products of rate and round-trip time, in whichever the
/// queues of CUBIC agree better. `None`: nobody saw any.
fn buffer(responses: &[&Response<'_>]) -> Option<String> {
    let cubic = || responses.iter().filter(|one| !one.is_bbr);
    let bytes: Vec<f64> = cubic().filter_map(|one| one.queue()).collect();
    let bdps: Vec<f64> = cubic().filter_map(|one| one.queue_bdps()).collect();
    let at = |values: &[f64], share| quantile(values, share).unwrap_or_default();
    let spread = |values: &[f64]| at(values, 0.9) / at(values, 0.5).max(1e-9);
    if !bdps.is_empty() && spread(&bdps) < spread(&bytes) {
        return Some(format!("{:.2}bdp", at(&bdps, FULL).max(0.01)));
    }
    let queues = responses.iter().filter_map(|one| one.queue());
    Some(format!("{:.0}kB", queues.reduce(f64::max)?.max(LEAST_BUFFER) / 1e3))
}

/// The quartiles of `values`, as a scenario's quantiles.
fn quartiles(values: &[f64], unit: &str) -> String {
    let at = |percent: u32| {
        let value = quantile(values, f64::from(percent) / 100.0).unwrap_or_default().max(0.1);
        format!("[\"{percent}%\", \"{value:.1}{unit}\"]")
    };
    [0, 25, 50, 75, 100].map(at).join(", ")
}
