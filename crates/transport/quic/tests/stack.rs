//! Undocumented behaviour of noq-proto that this crate relies on. If an update changes any of it,
//! these tests fail: review `tls.rs`, `observed.rs` and `congestion.rs` before moving the pinned
//! version.
mod pair;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pair::{Pair, Spec};
use uncork_quic::{Event, Handle, Observation, Space, Watch};
use uncork_units::Time;

#[derive(Clone, Debug, PartialEq)]
enum Record {
    Sent(Space, u64),
    Acknowledged(Space, Vec<(u64, u64)>),
    Lost(Space, u64),
    Settled(Box<Observation>),
}

struct Recorder(Arc<Mutex<Vec<Record>>>);

impl Watch for Recorder {
    fn event(&mut self, _: Time, event: &Event<'_>) {
        let record = match *event {
            Event::Sent { space, packet, .. } => Record::Sent(space, packet),
            Event::Acknowledged { space, ranges, .. } => {
                Record::Acknowledged(space, ranges.to_vec())
            }
            Event::Lost { space, packet, .. } => Record::Lost(space, packet),
            Event::Settled(observation) => Record::Settled(Box::new(*observation)),
            _ => return,
        };
        self.0.lock().expect("one thread").push(record);
    }
}

/// The events of the server's connection while the client fetches 1 MB.
fn records(spec: Spec) -> Vec<Record> {
    let records = Arc::new(Mutex::new(Vec::new()));
    let mut pair = Pair::new(spec);
    pair.handle.watch(Box::new(Recorder(Arc::clone(&records))));
    let stream = pair.request(1_000_000);
    pair.run(stream, Duration::from_mins(1)).expect("it arrives");
    pair.wait(Duration::from_secs(2));
    drop(pair);
    let records = records.lock().expect("one thread");
    records.clone()
}

fn lossy() -> Spec {
    Spec { is_lost: Arc::new(|n| n == 200 || n == 201), ..Spec::new("cubic", 20, 40) }
}

/// `tls.rs` and `Cargo.toml` were written for these versions.
#[test]
fn dependencies_are_the_reviewed_versions() {
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../Cargo.lock");
    let lock = std::fs::read_to_string(lock).expect("Cargo.lock");
    for (name, version) in [("noq-proto", "1.4.0"), ("h3", "0.0.8")] {
        let package = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(
            lock.contains(&package),
            "{name} is not {version}: review patches/ and the wrapping"
        );
    }
}

/// The stack encrypts a packet right before it reports it as sent, which shows its space.
#[test]
fn sent_packets_are_numbered_within_the_space_of_the_last_encryption() {
    let mut last: HashMap<u8, u64> = HashMap::new();
    for record in records(lossy()) {
        if let Record::Sent(space, packet) = record {
            let before = last.insert(space as u8, packet);
            assert!(before.is_none_or(|before| before < packet), "{space:?} {packet} {before:?}");
        }
    }
    assert_eq!(last.len(), 3, "packets in all three spaces");
}

/// The stack processes a packet right after its decryption and reports each packet that its ACK frame
/// acknowledges: settled packets lie in the ranges read from plain text.
#[test]
fn acknowledged_bytes_match_the_ranges_in_plain_text() {
    let mut in_flight: HashSet<(u8, u64)> = HashSet::new();
    let (mut newly, mut lost, mut settled) = (0, 0, 0);
    for record in records(lossy()) {
        match record {
            Record::Sent(space, packet) => {
                in_flight.insert((space as u8, packet));
            }
            Record::Acknowledged(space, ranges) => {
                let acked = |(of, packet): &(u8, u64)| {
                    *of == space as u8
                        && ranges.iter().any(|(from, to)| from <= packet && packet <= to)
                };
                let before = in_flight.len();
                in_flight.retain(|packet| !acked(packet));
                newly += before - in_flight.len();
            }
            Record::Lost(space, packet) => {
                assert!(in_flight.remove(&(space as u8, packet)), "{space:?} {packet}");
                lost += 1;
            }
            Record::Settled(seen) => {
                settled += 1;
                assert_eq!(seen.lost_packets, lost);
                assert_eq!(seen.in_flight == 0, in_flight.is_empty(), "{seen:?} {in_flight:?}");
            }
        }
    }
    assert!(newly > 600 && settled > 100 && lost >= 2, "{newly} {settled} {lost}");
}

/// Losses are reported after their acknowledgement and before the next query, so one feedback has both.
#[test]
fn losses_settle_with_the_acknowledgement_that_shows_them() {
    let records = records(lossy());
    let first = records.iter().position(|record| matches!(record, Record::Lost(..)));
    let (before, after) = records.split_at(first.expect("a loss"));
    let is_boundary = |record: &&Record| !matches!(record, Record::Lost(..));
    assert!(matches!(before.last(), Some(Record::Acknowledged(Space::Data, _))), "{before:?}");
    let settled = after.iter().find(is_boundary);
    assert!(matches!(settled, Some(Record::Settled(_))), "{settled:?}");
}

/// A small window must not block an ack-eliciting packet forever: the stack counts padded ACK-only
/// packets in flight, does not report them, and while the window is full sends no ACKs either.
#[test]
fn a_packet_may_be_sent_if_nothing_is_in_flight() {
    const MTU: u16 = 1452;
    let epoch = pair::epoch();
    let mut cc = Handle::new(pair::choice("cubic"), 1, epoch).factory().build(epoch, MTU);
    for packet in 0..10 {
        cc.on_packet_sent(epoch, MTU, packet);
    }
    let later = epoch + Duration::from_millis(50);
    cc.on_congestion_event(later, epoch, false, false, 10 * u64::from(MTU), 9);
    for packet in 0..10 {
        cc.on_packet_lost(MTU, packet, later);
    }
    let minimum = 2 * u64::from(MTU); // RFC 9002 §7.2
    assert_eq!(cc.metrics().congestion_window, minimum);
    assert!(cc.window() >= 1000 * u64::from(MTU), "{}", cc.window());
    cc.on_packet_sent(later, MTU, 10);
    assert_eq!(cc.window(), minimum);
}
