//! The lines of some clients: what a scenario has as a path.

use uncork_cc::CcSpec;
use uncork_flow::{FlowRecord, quantile};

use crate::check::Arms;
use crate::response::{SLACK, TwinResponse};

/// Responses that make a distribution of rates.
pub(super) const MIN_RESPONSES: usize = 2;
/// Behind a policer BBR loses more than this part of its packets,
const POLICED: f64 = 0.05;
/// more than this many times CUBIC's part,
const LOSS_RATIO: f64 = 2.0;
/// and less than this part of its responses has a standing queue.
const MAX_QUEUED_SHARE: f64 = 0.2;
/// Where a buffer holds less than this many products of rate and round-trip time, slow start's drops hide
/// random loss
const SMALL_BDPS: f64 = 1.0;
/// of more than this part.
const HIDDEN: f64 = 0.01;
/// The part of CUBIC's queues that are below what the buffer holds.
const FULL: f64 = 0.95;
/// A few packets: what a buffer has at least, in bytes.
const MIN_BUFFER: f64 = 5_000.0;

/// The lines of the clients of a system or network, as a scenario writes them.
pub(super) struct TwinLine {
    name: String,
    responses: usize,
    shown: usize,
    rate: String,
    rtt: String,
    loss: RandomLoss,
    buffer: String,
    transfer_bytes: f64,
}

/// Losses that are not congestion.
struct RandomLoss {
    /// Of the packets that were sent.
    share: f64,
    /// CUBIC's responses with losses of slow start alone.
    in_slow_start: usize,
    /// Most responses are of that kind: random loss may be among theirs.
    is_hidden: bool,
}

impl TwinLine {
    /// The line of the clients that had these responses. The error says what the records do not show.
    pub(super) fn of(name: &str, responses: &[&TwinResponse<'_>]) -> Result<Self, String> {
        // BBR fills links that CUBIC does not; CUBIC with losses shows slow links only.
        let (bbr, cubic): (Vec<_>, Vec<_>) = responses.iter().partition(|one| one.is_bbr);
        refuse_policer(&bbr, &cubic)?;
        let buffer = buffer(responses).ok_or_else(|| {
            format!(
                "of {} responses none shows a queue; look more often (--every)",
                responses.len()
            )
        })?;
        let arms = Arms::of(responses);
        let loss = random_loss(&bbr, &cubic)?;
        // A comparison of the arms would show it.
        if arms.is_none() {
            refuse_small_buffer(&cubic, &loss)?;
        }
        let queued =
            || responses.iter().copied().filter(|one| one.has_queue() == Some(true)).collect();
        let full: Vec<&TwinResponse<'_>> = if bbr.is_empty() { queued() } else { bbr };
        if full.len() < MIN_RESPONSES {
            return Err(format!("of {} responses too few show the rate", responses.len()));
        }
        let rates: Vec<f64> = full.iter().map(|one| one.rate() / 1e6).collect();
        let rtts: Vec<f64> = responses.iter().map(|one| one.min_rtt).collect();
        let sizes: Vec<f64> =
            responses.iter().map(|one| one.record.bytes_delivered as f64).collect();
        let line = Self {
            name: name.to_owned(),
            responses: responses.len(),
            shown: full.len(),
            rate: quartiles(&rates, "mbit"),
            rtt: quartiles(&rtts, "ms"),
            loss,
            buffer,
            transfer_bytes: quantile(&sizes, 0.5).unwrap_or_default(),
        };
        arms.and_then(|arms| arms.contradiction(&line)).map_or(Ok(line), Err)
    }

    /// Payload of each client, in bytes.
    pub(super) fn transfer_bytes(&self) -> f64 {
        self.transfer_bytes
    }

    /// Whether slow start's losses hide random ones.
    pub(super) fn has_hidden_loss(&self) -> bool {
        self.loss.is_hidden
    }

    /// The path, with this number of clients for each controller.
    pub(super) fn text(&self, clients: usize, controllers: &[CcSpec]) -> String {
        let Self { name, responses, shown, rate, rtt, loss, buffer, transfer_bytes } = self;
        let note = match loss.in_slow_start {
            0 => String::new(),
            count => format!("; {count} lost packets in slow start alone"),
        };
        let names: Vec<String> = controllers.iter().map(|cc| format!("\"{cc}\"")).collect();
        let count = clients * names.len();
        let is_bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let key = if is_bare { name.clone() } else { format!("\"{name}\"") };
        format!(
            "[path.{key}]  # {responses} responses, {shown} show the rate{note}\n\
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
             transfer = \"{:.1}MB\"\n\n",
            100.0 * loss.share,
            names.join(", "),
            names.len() > 1,
            transfer_bytes / 1e6,
        )
    }
}

/// Random loss, as CUBIC's responses without a standing queue show it. The error: most of them lost more than their own
/// throughput admits, and more than slow start explains.
fn random_loss(
    bbr: &[&TwinResponse<'_>],
    cubic: &[&TwinResponse<'_>],
) -> Result<RandomLoss, String> {
    if cubic.is_empty() {
        let count = bbr.len();
        return Err(format!(
            "all {count} responses are BBR's, which do not show random loss apart from drops"
        ));
    }
    let unqueued = || cubic.iter().copied().filter(|one| one.has_queue() == Some(false));
    let (random, others): (Vec<_>, Vec<_>) = unqueued().partition(|one| one.lost_at_random());
    let unexplained = others.iter().filter(|one| !one.lost_in_slow_start()).count();
    let count = unqueued().count();
    if 2 * unexplained > count {
        return Err(format!(
            "{unexplained} of {count} CUBIC responses without a queue lost more than {SLACK} times what their own \
             throughput admits (RFC 9438), and more than slow start does"
        ));
    }
    let sent: u64 = unqueued().map(|one| one.record.packets_sent).sum();
    let lost: u64 = random.iter().map(|one| one.record.packets_lost).sum();
    // BBR loses at least as much.
    let of_bbr = if bbr.is_empty() { 1.0 } else { lost_share(bbr.iter().map(|one| one.record)) };
    let share = of_bbr.min(lost as f64 / sent.max(1) as f64);
    let is_hidden = 2 * others.len() > count;
    Ok(RandomLoss { share, in_slow_start: others.len(), is_hidden })
}

/// Where the drops of a small buffer may be what looks like random loss.
fn refuse_small_buffer(cubic: &[&TwinResponse<'_>], loss: &RandomLoss) -> Result<(), String> {
    let bdps: Vec<f64> = cubic.iter().filter_map(|one| one.queue_bdps()).collect();
    let is_small = quantile(&bdps, FULL).is_some_and(|bdps| bdps < SMALL_BDPS);
    if is_small && loss.share > HIDDEN {
        let percent = 100.0 * loss.share;
        return Err(format!(
            "its buffer is so small that its drops hide random loss: {percent:.1} % were lost"
        ));
    }
    Ok(())
}

/// BBR behind a policer loses packets all the time, without a queue. Startup, which overruns a small buffer once, is not a
/// policer.
fn refuse_policer(bbr: &[&TwinResponse<'_>], cubic: &[&TwinResponse<'_>]) -> Result<(), String> {
    let seen: Vec<bool> = bbr.iter().filter_map(|one| one.has_queue()).collect();
    let queued = seen.iter().filter(|has_queue| **has_queue).count();
    let has_queue = !seen.is_empty() && queued as f64 >= MAX_QUEUED_SHARE * seen.len() as f64;
    let lost = lost_beyond_startup(bbr);
    let of_cubic = lost_share(cubic.iter().map(|one| one.record));
    if lost <= POLICED.max(LOSS_RATIO * of_cubic) || has_queue {
        return Ok(());
    }
    let percent = 100.0 * lost;
    Err(format!(
        "looks policed: BBR lost {percent:.0} % after Startup without a queue; a twin cannot have policers"
    ))
}

/// The share of packets that BBR lost, less what its Startup may.
fn lost_beyond_startup(bbr: &[&TwinResponse<'_>]) -> f64 {
    let beyond =
        |one: &&TwinResponse<'_>| (one.record.packets_lost as f64 - one.startup_losses()).max(0.0);
    let sent: u64 = bbr.iter().map(|one| one.record.packets_sent).sum();
    bbr.iter().map(beyond).sum::<f64>() / sent.max(1) as f64
}

/// Lost packets as a share of sent packets.
fn lost_share<'a>(records: impl Iterator<Item = &'a FlowRecord>) -> f64 {
    let (sent, lost) = records.fold((0, 0), |(sent, lost), record| {
        (sent + record.packets_sent, lost + record.packets_lost)
    });
    lost as f64 / u64::max(sent, 1) as f64
}

/// The largest queue of `responses`: in bytes or in products of rate and round-trip time, the unit in
/// which the queues of CUBIC agree better. `None`: no response shows a queue.
fn buffer(responses: &[&TwinResponse<'_>]) -> Option<String> {
    let cubic = || responses.iter().filter(|one| !one.is_bbr);
    let bytes: Vec<f64> = cubic().filter_map(|one| one.queue()).collect();
    let bdps: Vec<f64> = cubic().filter_map(|one| one.queue_bdps()).collect();
    let at = |values: &[f64], share| quantile(values, share).unwrap_or_default();
    let spread = |values: &[f64]| at(values, 0.9) / at(values, 0.5).max(1e-9);
    if !bdps.is_empty() && spread(&bdps) < spread(&bytes) {
        return Some(format!("{:.2}bdp", at(&bdps, FULL).max(0.01)));
    }
    let queues = responses.iter().filter_map(|one| one.queue());
    Some(format!("{:.0}kB", queues.reduce(f64::max)?.max(MIN_BUFFER) / 1e3))
}

/// The quartiles of `values`, as a scenario's quantiles.
fn quartiles(values: &[f64], unit: &str) -> String {
    let at = |percent: u32| {
        let value = quantile(values, f64::from(percent) / 100.0).unwrap_or_default().max(0.1);
        format!("[\"{percent}%\", \"{value:.1}{unit}\"]")
    };
    [0, 25, 50, 75, 100].map(at).join(", ")
}
