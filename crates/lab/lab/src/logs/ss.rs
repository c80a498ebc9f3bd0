//! `ss -tin`: connections of this moment.

use std::collections::HashMap;
use std::net::IpAddr;

use super::{LogSamples, STANDING, Sample, positive};

/// A window that held the sender back for this part of the busy time hides the path.
const HELD_BACK: f64 = 0.1;
/// With fewer segments, the count of `retrans:` is not a share of losses.
const MIN_SEGMENTS: f64 = 100.0;

pub(super) fn read(text: &str, found: &mut LogSamples) {
    for connection in connections(text) {
        match client(&connection) {
            Some(client) => of_connection(client, &Values::of(&connection), found),
            None => found.note("lines are not of ss -tin"),
        }
    }
}

/// The lines of each connection as one: its values may be in the next line, which is indented.
fn connections(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !is_header(line)) {
        match all.last_mut().filter(|_| line.starts_with([' ', '\t'])) {
            Some(last) => *last += line,
            None => all.push(line.to_owned()),
        }
    }
    all
}

fn is_header(line: &str) -> bool {
    line.contains("Recv-Q") && line.contains("Send-Q")
}

/// The peer's address: the second of two after the two queues. A time, a family or a state may be before them.
fn client(connection: &str) -> Option<IpAddr> {
    let words: Vec<&str> = connection.split_whitespace().collect();
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    words.windows(4).find_map(|words| match words {
        [received, sent, own, peer] if is_number(received) && is_number(sent) => {
            address(own).and_then(|_| address(peer))
        }
        _ => None,
    })
}

/// The address of `192.0.2.1:443`, `[2001:db8::1%eth0]:443`.
fn address(text: &str) -> Option<IpAddr> {
    let (address, _port) = text.rsplit_once(':')?;
    let address = address.trim_start_matches('[').trim_end_matches(']');
    let address: IpAddr = address.split('%').next()?.parse().ok()?;
    Some(address.to_canonical())
}

fn of_connection(client: IpAddr, values: &Values<'_>, found: &mut LogSamples) {
    let Some(least_rtt) = values.number("minrtt").filter(|rtt| *rtt > 0.0) else {
        return found.note("connections have no minimum RTT (minrtt)");
    };
    if values.has("app_limited") {
        return found.note("connections had too little to send (app_limited)");
    }
    let busy = values.number("busy").unwrap_or_default();
    for (key, reason) in [
        ("rwnd_limited", "connections were held back by the client's window (rwnd_limited)"),
        ("sndbuf_limited", "connections were held back by the send buffer (sndbuf_limited)"),
    ] {
        if values.number(key).is_some_and(|held| held > HELD_BACK * busy) {
            return found.note(reason);
        }
    }
    let Some(delivered) = values.rate("delivery_rate") else {
        return found.note("connections have no delivery rate: nothing was sent yet");
    };
    let is_bbr = values.is_bbr();
    // `rtt:` is smoothed RTT and variation.
    let rtt = values.number("rtt").unwrap_or_default();
    let rate = if is_bbr || rtt > STANDING * least_rtt {
        Some(values.bbr_rate().unwrap_or(delivered).max(delivered))
    } else {
        found.note("rates are not the link's: no queue at this moment, and not BBR");
        None
    };
    let sample =
        Sample { rtt_ms: Some(least_rtt), rate_bps: rate, sent: values.sent(), buffer_bytes: None };
    found.add(client.to_string(), sample);
}

/// `key:value` and `key value` of a connection.
struct Values<'a> {
    words: Vec<&'a str>,
    values: HashMap<&'a str, &'a str>,
}

impl<'a> Values<'a> {
    fn of(connection: &'a str) -> Self {
        let words: Vec<&str> = connection.split_whitespace().collect();
        let values = words.iter().filter_map(|word| word.split_once(':')).collect();
        Self { words, values }
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word) || self.values.contains_key(word)
    }

    fn is_bbr(&self) -> bool {
        self.words.iter().any(|word| word.starts_with("bbr") || word.starts_with("uncork_bbr"))
    }

    /// The number at the beginning of a value, such as of `12850ms` or `51.2/3.1`.
    fn number(&self, key: &str) -> Option<f64> {
        let value = self.values.get(key)?;
        let end = value.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (number, rest) = value.split_at(end.unwrap_or(value.len()));
        // A decimal comma, as some locales have it, does not end the number.
        let is_cut =
            rest.strip_prefix(',').is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()));
        let number: f64 = (!is_cut).then(|| number.parse().ok()).flatten()?;
        number.is_finite().then_some(number)
    }

    /// The rate after `key`, in bits per second.
    fn rate(&self, key: &str) -> Option<f64> {
        let at = self.words.iter().position(|word| *word == key)?;
        bits(self.words.get(at + 1)?)
    }

    /// BBR's own estimate: `bbr:(bw:8123400bps,mrtt:61.3,…)`.
    fn bbr_rate(&self) -> Option<f64> {
        let model = self.values.get("bbr")?.strip_prefix("(bw:")?;
        bits(model.split([',', ')']).next()?)
    }

    /// Bytes that were sent and sent again; of kernels before 4.19 segments.
    fn sent(&self) -> Option<(f64, f64)> {
        if let Some(sent) = self.number("bytes_sent") {
            return Some((sent, self.number("bytes_retrans").unwrap_or_default()));
        }
        let sent = self.number("data_segs_out").or_else(|| self.number("segs_out"))?;
        let again = self.values.get("retrans").and_then(|it| it.split_once('/')?.1.parse().ok());
        (sent >= MIN_SEGMENTS).then(|| (sent, again.unwrap_or_default()))
    }
}

/// `20310000bps`, `20.3Mbps`: in bits per second.
fn bits(text: &str) -> Option<f64> {
    let value = text.strip_suffix("bps")?;
    let unit = match value.bytes().last()? {
        b'K' | b'k' => 1e3,
        b'M' => 1e6,
        b'G' => 1e9,
        b'T' => 1e12,
        _ => return positive(value),
    };
    positive(&value[..value.len() - 1]).map(|value| value * unit)
}
