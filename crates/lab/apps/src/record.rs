//! A client's experience as records.

use uncork_flow::{Playback, RequestRecord};
use uncork_units::{Time, TimeDelta};

use crate::ClientReport;

impl ClientReport {
    /// The requests of the client of flow `flow`, and their answers.
    pub fn request_records(&self, flow: u32) -> Vec<RequestRecord> {
        let since = |start: Time| move |time: Time| time.since(start).as_nanos();
        let record = |transfer: &crate::Transfer| RequestRecord {
            flow,
            start_ns: transfer.start.as_nanos(),
            first_byte_ns: transfer.first_byte.map(since(transfer.start)),
            completion_ns: transfer.end.map(since(transfer.start)),
            size_bytes: transfer.bytes,
            bytes_delivered: transfer.received,
        };
        self.transfers.iter().map(record).collect()
    }

    /// Playback of a listener or viewer; `None` for other clients.
    pub fn playback_record(&self) -> Option<Playback> {
        let playback = self.playback.as_ref()?;
        let video = self.video.as_ref();
        Some(Playback {
            startup_ns: playback.startup.map(TimeDelta::as_nanos),
            played_ns: playback.played.as_nanos(),
            stalled_ns: playback.stalled().as_nanos(),
            stutters: playback.stalls.len() as u64,
            items: self.audio.as_ref().map_or(1, |audio| audio.started as u64),
            bitrate_bps: video.map(|video| video.mean_bitrate.bits_per_sec()),
            switches: video.map_or(0, |video| video.switches as u64),
        })
    }
}
