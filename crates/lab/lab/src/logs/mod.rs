//! Figures of paths from logs of other programs: `ss`, iperf3, nginx, CMCD. Lines that do not show a path are left out and counted.
//! `docs/reference/from-logs.md` has the rules.

mod cmcd;
mod iperf3;
mod nginx;
mod ss;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use uncork_flow::quantile;

/// Bytes on the wire for each byte of payload.
const WIRE: f64 = 1500.0 / 1448.0;
/// An RTT this much above the least is that of a standing queue.
const STANDING: f64 = 1.15;

/// The program that wrote a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// `ss -tin`, with one or two lines for each connection, with or without units.
    Ss,
    /// `iperf3 -J` of the sender.
    Iperf3,
    /// The `log_format` of the importer's mapping for nginx, or the six fields of `log_format path`.
    Nginx,
    /// Common Media Client Data (CTA-5004), as a list of keys or query-encoded in any line of a log.
    Cmcd,
}

/// The path to a client, as a log shows it. `None`: unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientPath {
    /// Its address; of CMCD the session.
    pub client: String,
    /// Connections, responses or requests of this client that were counted.
    pub samples: usize,
    /// The minimum round-trip time, in milliseconds.
    pub rtt_ms: Option<f64>,
    /// The rate with headers, in bits per second.
    pub rate_bps: Option<f64>,
    /// Payload sent again, as a share of payload sent.
    pub resent: Option<f64>,
    /// Bytes in the queue at its maximum: a lower bound of the buffer.
    pub buffer_bytes: Option<f64>,
}

/// The paths of a log, and what it does not show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogPaths {
    /// By client, in order.
    pub paths: Vec<ClientPath>,
    /// Reasons why lines, connections or values are left out or doubtful, with their number.
    pub notes: Vec<(&'static str, usize)>,
}

impl LogFormat {
    /// The paths that `text` shows.
    ///
    /// # Errors
    ///
    /// If it is not JSON (iperf3), or of a test that failed: the message.
    pub fn paths(self, text: &str) -> Result<LogPaths, String> {
        let mut found = LogSamples::default();
        match self {
            Self::Ss => ss::read(text, &mut found),
            Self::Iperf3 => iperf3::read(text, &mut found)?,
            Self::Nginx => nginx::read(text, &mut found),
            Self::Cmcd => cmcd::read(text, &mut found),
        }
        Ok(found.paths())
    }
}

/// A connection, response or request.
#[derive(Debug, Default)]
struct Sample {
    rtt_ms: Option<f64>,
    /// Of payload, in bits per second.
    rate_bps: Option<f64>,
    /// Bytes or packets, sent and sent again.
    sent: Option<(f64, f64)>,
    buffer_bytes: Option<f64>,
}

#[derive(Debug, Default)]
struct LogSamples {
    samples: BTreeMap<String, Vec<Sample>>,
    notes: BTreeMap<&'static str, usize>,
    /// Whether rates of a client are means of responses: their median counts, else the largest.
    is_of_responses: bool,
}

impl LogSamples {
    fn add(&mut self, client: String, sample: Sample) {
        self.samples.entry(client).or_default().push(sample);
    }

    fn note(&mut self, note: &'static str) {
        *self.notes.entry(note).or_default() += 1;
    }

    fn paths(self) -> LogPaths {
        let Self { samples, notes, is_of_responses } = self;
        let path = |(client, samples): (String, Vec<Sample>)| {
            let of = |value: fn(&Sample) -> Option<f64>| samples.iter().filter_map(value);
            let rates: Vec<f64> = of(|it| it.rate_bps).collect();
            let rate = quantile(&rates, if is_of_responses { 0.5 } else { 1.0 });
            let sent = samples.iter().filter_map(|it| it.sent);
            let (sent, again) = sent.fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
            ClientPath {
                samples: samples.len(),
                rtt_ms: of(|it| it.rtt_ms).reduce(f64::min),
                rate_bps: rate.map(|rate| rate * WIRE),
                resent: (sent > 0.0).then(|| again / sent),
                buffer_bytes: of(|it| it.buffer_bytes).reduce(f64::max).map(|bytes| bytes * WIRE),
                client,
            }
        };
        LogPaths {
            paths: samples.into_iter().map(path).collect(),
            notes: notes.into_iter().collect(),
        }
    }
}

/// A finite number above zero.
fn positive(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0)
}
