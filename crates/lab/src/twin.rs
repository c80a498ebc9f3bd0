//! A twin of a server's clients: from records to a population of paths for each autonomous system,
//! as a scenario. `docs/from-logs.md` has the rules and how well they do.

use std::collections::BTreeMap;

use uncork_cc::CcSpec;
use uncork_flow::{FlowRecord, Quantiles, Scope, quantile};

/// Bytes on the wire for each byte of payload.
const WIRE: f64 = 1500.0 / 1448.0;
/// Responses of at most this many bytes are mostly slow start.
const SHORT_BYTES: u64 = 3_000_000;
/// A median RTT this much above the least is that of a standing queue.
const STANDING: f64 = 1.15;
/// A client's window that held the server back for this part of the time hides the path.
const HELD_BACK: f64 = 0.1;
/// Responses that make a distribution of rates.
const FEWEST: usize = 2;
/// Bytes on the wire that a sender has in flight in its first round trip (RFC 6928).
const FIRST_WINDOW: f64 = 15_000.0;
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
/// Of a thousand lines in one run none stays in the caches: a flow takes four times as long.
const FLOWS_OF_A_RUN: usize = 200;

/// How the twin's clients are tried.
#[derive(Clone, Debug)]
pub struct TwinSpec {
    /// The controllers, each of which all clients of the twin have once.
    pub controllers: Vec<CcSpec>,
    /// Clients of each system with each controller, at least: they are dealt to runs of equal size.
    pub clients: u32,
}

/// A scenario, and what it could not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twin {
    /// The scenario file.
    pub text: String,
    /// Systems whose records do not show a path, with the reason.
    pub left_out: Vec<String>,
}

/// Why records have no twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no system has {FEWEST} responses of more than 3 MB that show its rate: BBR's, or CUBIC's with a \
     standing queue; record more, or give BBR to a few per cent of the clients"
)]
pub struct NoTwin;

/// A response that tells something about its path.
struct Response<'r> {
    record: &'r FlowRecord,
    rtt: Quantiles,
}

impl Twin {
    /// The twin of the clients in `records`.
    ///
    /// # Errors
    ///
    /// If no system's records show its paths.
    pub fn of(records: &[FlowRecord], spec: &TwinSpec) -> Result<Self, NoTwin> {
        let mut systems: BTreeMap<u32, Vec<Response<'_>>> = BTreeMap::new();
        for response in records.iter().filter_map(Response::of) {
            let asn = response.record.service.as_ref().and_then(|service| service.asn);
            if let Some(asn) = asn {
                systems.entry(asn).or_default().push(response);
            }
        }
        let (mut lines, mut left_out) = (Vec::new(), Vec::new());
        for (asn, responses) in &systems {
            match Line::of(*asn, responses) {
                Ok(line) => lines.push(line),
                Err(reason) => left_out.push(format!("as{asn}: {reason}")),
            }
        }
        if lines.is_empty() {
            return Err(NoTwin);
        }
        let of_a_run = (FLOWS_OF_A_RUN / (lines.len() * spec.controllers.len()).max(1)).max(1);
        let runs = spec.clients.div_ceil(of_a_run as u32).max(1);
        let head = format!("{HEAD}[run]\nseeds = {runs}\n\n");
        let clients = spec.clients.div_ceil(runs) as usize;
        let parts = lines.iter().map(|line| line.text(clients, &spec.controllers));
        Ok(Self { text: parts.fold(head, |text, part| text + &part), left_out })
    }
}

/// What every twin says of itself.
const HEAD: &str = r#"title = "Clients as records show them"
assumptions = [
    "The rate is what long responses reached after slow start: BBR's, or without any CUBIC's with a standing queue.",
    "A client's rate and round-trip time are drawn independently of each other.",
    "Random loss is what CUBIC's responses without a standing queue lost, or BBR's if that is less; it contains some drops of queues. All clients have the same.",
    "The buffer is the largest queue that was seen: a lower bound. Queues are drop-tail.",
    "A policer is not told from random loss where no client has BBR.",
    "Records do not show other traffic on the link, queue management, aggregation or jitter: the twin has none.",
]

"#;

impl<'r> Response<'r> {
    /// Long enough to leave slow start, and not held back by the client's window.
    fn of(record: &'r FlowRecord) -> Option<Self> {
        let service = record.service.as_ref()?;
        let held_back = service.rwnd_limited_ns.unwrap_or(0) as f64;
        let tells = service.scope == Scope::Response
            && record.bytes_acked > SHORT_BYTES
            && held_back < HELD_BACK * record.busy_ns as f64;
        tells.then_some(Self { record, rtt: record.rtt_ms? })
    }

    fn is_bbr(&self) -> bool {
        self.record.cc.starts_with("bbr")
    }

    /// A queue stood most of the time, so the link was the limit and not random loss.
    fn has_queue(&self) -> bool {
        self.rtt.p50 > STANDING * self.rtt.min
    }

    /// Bits per second on the wire, after slow start: it doubles what is in flight each round trip.
    fn rate(&self) -> f64 {
        let bytes = self.record.bytes_acked as f64 * WIRE;
        let (busy, rtt) = (self.record.busy_ns as f64 / 1e9, self.rtt.min / 1e3);
        let mut rate = bytes / busy;
        for _ in 0..20 {
            let in_flight = (rate * rtt).min(bytes / 2.0).max(FIRST_WINDOW);
            let start = libm::log2(in_flight / FIRST_WINDOW) * rtt;
            rate = (bytes - (in_flight - FIRST_WINDOW)) / (busy - start).max(busy / 4.0);
        }
        rate * 8.0
    }

    /// Bytes in the queue at the 95th percentile of the round-trip time.
    fn queue(&self) -> f64 {
        self.rate() / 8.0 * (self.rtt.p95 - self.rtt.min) / 1e3
    }

    /// The same in products of rate and least round-trip time.
    fn queue_bdps(&self) -> f64 {
        (self.rtt.p95 - self.rtt.min) / self.rtt.min
    }
}

/// Whether BBR's responses, which lost these parts of their packets, look like those behind a policer.
fn is_policed(bbr: &[&Response<'_>], lost: f64, lost_by_cubic: f64) -> bool {
    let queued = bbr.iter().filter(|one| one.has_queue()).count();
    lost > POLICED.max(TIMES_CUBIC * lost_by_cubic)
        && (queued as f64) < HARDLY_ANY * bbr.len() as f64
}

/// Packets lost of those that were sent.
fn lost_share<'a>(records: impl Iterator<Item = &'a FlowRecord>) -> f64 {
    let (sent, lost) = records.fold((0, 0), |(sent, lost), record| {
        (sent + record.packets_sent, lost + record.packets_lost)
    });
    lost as f64 / u64::max(sent, 1) as f64
}

/// The lines of a system's clients, as a scenario writes them.
struct Line {
    asn: u32,
    responses: usize,
    shown: usize,
    rate: String,
    rtt: String,
    loss: f64,
    buffer: String,
    transfer: String,
}

impl Line {
    fn of(asn: u32, responses: &[Response<'_>]) -> Result<Self, String> {
        // BBR fills links that CUBIC does not; CUBIC with losses shows slow links only.
        let (bbr, cubic): (Vec<_>, Vec<_>) = responses.iter().partition(|one| one.is_bbr());
        let lost = |some: &[&Response<'_>]| lost_share(some.iter().map(|one| one.record));
        if is_policed(&bbr, lost(&bbr), lost(&cubic)) {
            return Err(format!(
                "BBR lost {:.0} % without a queue, as behind a policer, which no twin has",
                100.0 * lost(&bbr)
            ));
        }
        // Where CUBIC had no queue, it lost at random. BBR loses at least as much; a standing queue everywhere
        // leaves nothing to see.
        let unqueued: Vec<&Response<'_>> =
            cubic.iter().copied().filter(|one| !one.has_queue()).collect();
        let loss = if bbr.is_empty() { 1.0 } else { lost(&bbr) }.min(lost(&unqueued));
        let bdps: Vec<f64> = cubic.iter().map(|one| one.queue_bdps()).collect();
        let is_small = quantile(&bdps, FULL).is_some_and(|bdps| bdps < SMALL_BDPS);
        if is_small && loss > HIDDEN {
            return Err(format!(
                "its buffer is so small that its drops hide random loss: {:.1} % were lost",
                100.0 * loss
            ));
        }
        let queued = || responses.iter().filter(|one| one.has_queue()).collect();
        let full: Vec<&Response<'_>> = if bbr.is_empty() { queued() } else { bbr };
        if full.len() < FEWEST {
            return Err(format!("of {} responses too few show the rate", responses.len()));
        }
        let rates: Vec<f64> = full.iter().map(|one| one.rate() / 1e6).collect();
        let rtts: Vec<f64> = responses.iter().map(|one| one.rtt.min).collect();
        let sizes: Vec<f64> =
            responses.iter().map(|one| one.record.bytes_delivered as f64 / 1e6).collect();
        Ok(Self {
            asn,
            responses: responses.len(),
            shown: full.len(),
            rate: quartiles(&rates, "mbit"),
            rtt: quartiles(&rtts, "ms"),
            loss,
            buffer: buffer(responses),
            transfer: format!("{:.1}MB", quantile(&sizes, 0.5).unwrap_or_default()),
        })
    }

    /// The path, and so many clients with each controller.
    fn text(&self, clients: usize, controllers: &[CcSpec]) -> String {
        let Self { asn, responses, shown, rate, rtt, loss, buffer, transfer } = self;
        let names: Vec<String> = controllers.iter().map(|cc| format!("\"{cc}\"")).collect();
        let count = clients * names.len();
        format!(
            "[path.as{asn}]  # {responses} responses, {shown} show the rate\n\
             own_per_flow = true\n\
             rate = {{ quantiles = [{rate}] }}\n\
             rtt = {{ quantiles = [{rtt}] }}\n\
             loss = \"{:.3}%\"\n\
             buffer = \"{buffer}\"\n\n\
             [flow.as{asn}]\n\
             path = \"as{asn}\"\n\
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

/// The largest queue of `responses`: in bytes or in products of rate and round-trip time, in whichever the
/// queues of CUBIC agree better.
fn buffer(responses: &[Response<'_>]) -> String {
    let cubic = || responses.iter().filter(|one| !one.is_bbr());
    let bytes: Vec<f64> = cubic().map(Response::queue).collect();
    let bdps: Vec<f64> = cubic().map(Response::queue_bdps).collect();
    let at = |values: &[f64], share| quantile(values, share).unwrap_or_default();
    let spread = |values: &[f64]| at(values, 0.9) / at(values, 0.5).max(1e-9);
    if !bdps.is_empty() && spread(&bdps) < spread(&bytes) {
        return format!("{:.2}bdp", at(&bdps, FULL).max(0.01));
    }
    let largest = responses.iter().map(Response::queue).fold(LEAST_BUFFER, f64::max);
    format!("{:.0}kB", largest / 1e3)
}

/// The quartiles of `values`, as a scenario's quantiles.
fn quartiles(values: &[f64], unit: &str) -> String {
    let at = |percent: u32| {
        let value = quantile(values, f64::from(percent) / 100.0).unwrap_or_default().max(0.1);
        format!("[\"{percent}%\", \"{value:.1}{unit}\"]")
    };
    [0, 25, 50, 75, 100].map(at).join(", ")
}
