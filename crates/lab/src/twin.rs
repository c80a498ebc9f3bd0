//! A twin of a server's clients: from records to a population of paths for each autonomous system,
//! as a scenario. `docs/from-logs.md` has the rules and how well they do.

use std::collections::BTreeMap;
use std::fmt::Write;

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

/// How the twin's clients are tried.
#[derive(Clone, Debug)]
pub struct TwinSpec {
    /// The controllers, each of which all clients of the twin have once.
    pub controllers: Vec<CcSpec>,
    /// Clients of each system with each controller.
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
        let (mut text, mut left_out) = (HEAD.to_owned(), Vec::new());
        let is_empty = |text: &str| text.len() == HEAD.len();
        for (asn, responses) in &systems {
            match system(*asn, responses, spec) {
                Some(part) => text += &part,
                None => left_out.push(format!(
                    "as{asn}: of {} responses too few show the rate",
                    responses.len()
                )),
            }
        }
        if is_empty(&text) { Err(NoTwin) } else { Ok(Self { text, left_out }) }
    }
}

/// What every twin says of itself.
const HEAD: &str = r#"title = "Clients as records show them"
assumptions = [
    "The rate is what long responses reached: BBR's, or without any CUBIC's with a standing queue. A policer's rate is taken for the link's.",
    "A client's rate and round-trip time are drawn independently of each other.",
    "Loss is that of CUBIC's responses without a standing queue; it contains drops of small buffers.",
    "The buffer is the largest queue that was seen: a lower bound. Queues are drop-tail.",
    "Records do not show other traffic on the link, queue management, aggregation or jitter: the twin has none.",
]

[run]
seeds = 1

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

    /// Bits per second on the wire.
    fn rate(&self) -> f64 {
        self.record.bytes_acked as f64 * WIRE * 8e9 / self.record.busy_ns as f64
    }

    /// Bytes in the queue at the 95th percentile of the round-trip time.
    fn queue(&self) -> f64 {
        self.rate() / 8.0 * (self.rtt.p95 - self.rtt.min) / 1e3
    }
}

/// The paths of a system and the traffic over them.
fn system(asn: u32, responses: &[Response<'_>], spec: &TwinSpec) -> Option<String> {
    // BBR fills links that CUBIC does not; CUBIC with losses shows slow links only.
    let bbr: Vec<&Response<'_>> = responses.iter().filter(|one| one.is_bbr()).collect();
    let queued = || responses.iter().filter(|one| one.has_queue()).collect();
    let full: Vec<&Response<'_>> = if bbr.is_empty() { queued() } else { bbr };
    if full.len() < FEWEST {
        return None;
    }
    // Where CUBIC had no queue, packets were lost for other reasons.
    let random = responses.iter().filter(|one| !one.is_bbr() && !one.has_queue());
    let (sent, lost) = random.fold((0, 0), |(sent, lost), one| {
        (sent + one.record.packets_sent, lost + one.record.packets_lost)
    });
    let rates: Vec<f64> = full.iter().map(|one| one.rate() / 1e6).collect();
    let rtts: Vec<f64> = responses.iter().map(|one| one.rtt.min).collect();
    let sizes: Vec<f64> =
        responses.iter().map(|one| one.record.bytes_delivered as f64 / 1e6).collect();
    let queues = responses.iter().map(Response::queue);
    let buffer = queues.fold(LEAST_BUFFER, f64::max);
    let names: Vec<String> = spec.controllers.iter().map(|cc| format!("\"{cc}\"")).collect();
    let count = spec.clients as usize * spec.controllers.len();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "[path.as{asn}]  # {} responses, {} show the rate\n\
         own_per_flow = true\n\
         rate = {{ quantiles = [{}] }}\n\
         rtt = {{ quantiles = [{}] }}\n\
         loss = \"{:.2}%\"\n\
         buffer = \"{:.0}kB\"\n\n\
         [flow.as{asn}]\n\
         path = \"as{asn}\"\n\
         cc = [{}]\n\
         count = {count}\n\
         paired = {}\n\
         transfer = \"{:.1}MB\"\n",
        responses.len(),
        full.len(),
        quartiles(&rates, "mbit"),
        quartiles(&rtts, "ms"),
        100.0 * lost as f64 / sent.max(1) as f64,
        buffer / 1e3,
        names.join(", "),
        spec.controllers.len() > 1,
        quantile(&sizes, 0.5)?,
    );
    Some(text)
}

/// A few packets: what a buffer has at least, in bytes.
const LEAST_BUFFER: f64 = 5_000.0;

/// The quartiles of `values`, as a scenario's quantiles.
fn quartiles(values: &[f64], unit: &str) -> String {
    let at = |percent: u32| {
        let value = quantile(values, f64::from(percent) / 100.0).unwrap_or_default().max(0.1);
        format!("[\"{percent}%\", \"{value:.1}{unit}\"]")
    };
    [0, 25, 50, 75, 100].map(at).join(", ")
}
