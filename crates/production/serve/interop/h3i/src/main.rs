//! uncork-interop-h3i HOST:PORT PATH: breaks the rules of HTTP/3 one by one, each on a separate
//! connection, and reports the server's reaction. `PATH` is an existing file.

mod cases;

use std::time::Duration;

use h3i::actions::h3::{Action, WaitType};
use h3i::client::connection_summary::ConnectionSummary;
use h3i::client::sync_client;
use h3i::config::Config;
use h3i::frame::H3iFrame;
use h3i::quiche::ConnectionError;
use h3i::quiche::h3::Header;
use h3i::quiche::h3::frame::Frame;

/// Longer than a few round trips.
const WAIT: Duration = Duration::from_millis(200);

/// The reactions that a server may choose. RFC 9114 lets it treat a stream error as a connection
/// error, and answer a malformed request before it resets the stream (§4.1.2, §8).
#[derive(Clone, Copy)]
enum Wanted {
    /// The connection is closed with this code.
    Closed(u64),
    /// The stream is reset with this code, or answered with a status of at least 400; or the
    /// connection is closed.
    Refused(u64),
    /// The request is answered with 200.
    Answered,
}

/// Rules that the `h3` crate 0.0.8 does not enforce, and that its users cannot enforce. It does not
/// read QPACK encoder instructions, because it allows no dynamic table. It checks only some rules
/// about pushes, which it does not support. Of duplicate pseudo-headers, it passes on the last one.
const KNOWN: [&str; 12] = [
    "a push stream of a client's",
    "settings that are cut off",
    "a cancelled push that never was",
    "a smaller maximum of pushes",
    "an entry for a table of no size",
    "a table larger than allowed",
    "an acknowledgement of nothing",
    "a stream of an encoder that ends",
    "a path twice",
    "a method twice",
    "a pseudo-header behind others",
    "a pseudo-header of responses",
];

struct ConformanceCase {
    name: &'static str,
    /// The section that states the rule, of RFC 9114 unless it names another RFC.
    section: &'static str,
    wanted: Wanted,
    actions: Vec<Action>,
}

fn case(
    name: &'static str,
    section: &'static str,
    wanted: Wanted,
    actions: Vec<Action>,
) -> ConformanceCase {
    ConformanceCase { name, section, wanted, actions }
}

fn bytes(stream_id: u64, fin_stream: bool, bytes: &[u8]) -> Action {
    Action::StreamBytes {
        stream_id,
        fin_stream,
        bytes: bytes.to_vec(),
        expected_result: Default::default(),
    }
}

fn uni(stream_id: u64, stream_type: u64) -> Action {
    Action::OpenUniStream {
        stream_id,
        fin_stream: false,
        stream_type,
        expected_result: Default::default(),
    }
}

fn frame(stream_id: u64, fin_stream: bool, frame: Frame) -> Action {
    Action::SendFrame { stream_id, fin_stream, frame, expected_result: Default::default() }
}

/// A control stream without settings.
fn control() -> Vec<Action> {
    vec![uni(2, 0), bytes(2, false, &[4, 0])]
}

fn with_control(actions: Vec<Action>) -> Vec<Action> {
    [control(), actions].concat()
}

/// A head with these fields, uncompressed.
fn head(fields: &[(&str, &str)], fin_stream: bool) -> Action {
    let headers = fields.iter().map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes()));
    Action::SendHeadersFrame {
        stream_id: 0,
        fin_stream,
        literal_headers: true,
        headers: headers.collect(),
        frame: Frame::Headers { header_block: literal(fields) },
        expected_result: Default::default(),
    }
}

/// Fields as QPACK literals (RFC 9204 §4.5.6).
fn literal(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![0, 0];
    let integer = |block: &mut Vec<u8>, flags: u8, bits: u8, value: usize| {
        let most = (1 << bits) - 1;
        if value < most {
            return block.push(flags | value as u8);
        }
        block.push(flags | most as u8);
        let mut rest = value - most;
        while rest >= 128 {
            block.push((rest % 128) as u8 | 128);
            rest /= 128;
        }
        block.push(rest as u8);
    };
    for (name, value) in fields {
        integer(&mut block, 0x20, 3, name.len());
        block.extend(name.as_bytes());
        integer(&mut block, 0, 7, value.len());
        block.extend(value.as_bytes());
    }
    block
}

/// A complete request for `path` with additional fields.
fn request(path: &str, more: &[(&str, &str)]) -> Vec<Action> {
    let usual = [(":method", "GET"), (":scheme", "https"), (":authority", "test"), (":path", path)];
    with_control(vec![head(&[&usual[..], more].concat(), true)])
}

/// A description of the server's reaction, and whether it was allowed.
fn verdict(summary: &ConnectionSummary, wanted: Wanted) -> (bool, String) {
    let closed = summary.conn_close_details.peer_error();
    let frames = summary.stream_map.stream(0);
    let reset = frames.iter().find_map(|frame| match frame {
        H3iFrame::ResetStream(reset) => Some(reset.error_code),
        _ => None,
    });
    let heads = summary.stream_map.headers_on_stream(0);
    let status = heads
        .iter()
        .find_map(|head| std::str::from_utf8(head.status_code()?).ok()?.parse::<u16>().ok());
    let is_right = match (wanted, closed, reset, status) {
        (Wanted::Closed(code), Some(error), _, _) => error.is_app && error.error_code == code,
        (Wanted::Refused(code), Some(error), _, _) => error.is_app && error.error_code == code,
        (Wanted::Refused(_), None, _, Some(status)) => status >= 400,
        (Wanted::Refused(code), None, Some(reset), None) => reset == code,
        (Wanted::Answered, None, None, Some(200)) => true,
        _ => false,
    };
    let did = match (closed, reset, status) {
        (Some(error), ..) => {
            format!("closed {:#x} {}", error.error_code, String::from_utf8_lossy(&error.reason))
        }
        (None, Some(code), _) => format!("reset {code:#x}"),
        (None, None, Some(status)) => format!("answered {status}"),
        (None, None, None) => "did nothing".to_owned(),
    };
    (is_right, did)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(path)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: uncork-interop-h3i HOST:PORT PATH");
        std::process::exit(2);
    };
    let cases = [cases::streams(), cases::qpack(), cases::requests(&path)].into_iter().flatten();
    let (mut right, mut known, mut wrong) = (0, 0, 0);
    for ConformanceCase { name, section, wanted, mut actions } in cases {
        actions.push(Action::FlushPackets);
        actions.push(Action::Wait { wait_type: WaitType::WaitDuration(WAIT) });
        let error = ConnectionError { is_app: true, error_code: 0x100, reason: Vec::new() };
        actions.push(Action::ConnectionClose { error });
        let config = Config::new()
            .with_host_port(address.clone())
            .verify_peer(false)
            .with_idle_timeout(2000);
        let config = config.build().expect("a configuration");
        let (is_right, did) = match sync_client::connect(config, actions, None) {
            Ok(summary) => verdict(&summary, wanted),
            Err(error) => (false, format!("{error:?}")),
        };
        let is_known = KNOWN.contains(&name);
        let word = match (is_right, is_known) {
            (true, false) => ("right", &mut right),
            (false, true) => ("known", &mut known),
            // A rule that is enforced now must be removed from the list.
            _ => ("WRONG", &mut wrong),
        };
        *word.1 += 1;
        println!("{} {name} ({section}): {did}", word.0);
    }
    println!("{right} right, {known} known, {wrong} wrong");
    std::process::exit(i32::from(wrong > 0));
}
