//! One direction of a connection: messages cut into segments.

use std::collections::VecDeque;

use super::MSS_BYTES;

/// A sequence of messages. Each starts with a new segment, so only the last segment of a message
/// may be short. Both ends keep one: the server for the data it may send, the client for the data
/// it has requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    /// Segments of all messages; `u64::MAX` for endless data.
    segments: u64,
    /// Last segment of each message not yet passed, and its payload bytes.
    ends: VecDeque<(u64, u32)>,
    /// Segments already passed, and how many bytes they are short of full segments.
    passed: u64,
    lacking: u64,
}

impl Stream {
    /// Endless full segments.
    pub(crate) fn endless() -> Self {
        Self { segments: u64::MAX, ..Self::default() }
    }

    /// One message of `bytes`.
    pub(crate) fn of(bytes: u64) -> Self {
        let mut stream = Self::default();
        stream.append(bytes);
        stream
    }

    /// Appends a message. An empty one is ignored.
    pub(crate) fn append(&mut self, bytes: u64) {
        let mss = u64::from(MSS_BYTES);
        let Some(before_last) = bytes.checked_sub(1).map(|rest| rest / mss) else { return };
        let last = self.segments.saturating_add(before_last);
        self.ends.push_back((last, (bytes - before_last * mss) as u32));
        self.segments = last.saturating_add(1);
    }

    /// Appends `count` full segments.
    pub(crate) fn append_segments(&mut self, count: u64) {
        self.segments = self.segments.saturating_add(count);
    }

    /// Truncates to `segments` segments.
    pub(crate) fn cut(&mut self, segments: u64) {
        self.segments = segments;
        self.ends.retain(|(last, _)| *last < segments);
    }

    /// Segments of all messages.
    pub(crate) fn segments(&self) -> u64 {
        self.segments
    }

    /// Payload bytes of a segment at or after the next one.
    pub(crate) fn bytes_of(&self, seq: u64) -> u32 {
        self.end_at(seq).unwrap_or(MSS_BYTES)
    }

    /// Whether a message not yet passed ends with this segment.
    pub(crate) fn ends_at(&self, seq: u64) -> bool {
        self.end_at(seq).is_some()
    }

    /// Asked for each packet. A transfer has few messages, endless data none.
    #[inline]
    fn end_at(&self, seq: u64) -> Option<u32> {
        if self.ends.back().is_none_or(|(last, _)| *last < seq) {
            return None;
        }
        self.known_end_at(seq)
    }

    #[inline(never)]
    fn known_end_at(&self, seq: u64) -> Option<u32> {
        let index = self.ends.binary_search_by_key(&seq, |(last, _)| *last).ok()?;
        self.ends.get(index).map(|(_, bytes)| *bytes)
    }

    /// All segments below `next` have been sent, or have arrived. Returns true if a message ended
    /// with them.
    pub(crate) fn pass(&mut self, next: u64) -> bool {
        self.passed = self.passed.max(next);
        let before = self.ends.len();
        while let Some((_, bytes)) = self.ends.pop_front_if(|(last, _)| *last < next) {
            self.lacking += u64::from(MSS_BYTES - bytes);
        }
        self.ends.len() < before
    }

    /// Payload bytes of the segments passed.
    pub(crate) fn passed_bytes(&self) -> u64 {
        self.passed * u64::from(MSS_BYTES) - self.lacking
    }

    /// Whether all messages have been passed.
    pub(crate) fn is_passed(&self) -> bool {
        self.passed >= self.segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = MSS_BYTES as u64;

    #[test]
    fn messages_start_with_a_new_segment() {
        let mut stream = Stream::of(2 * MSS + 1);
        stream.append(0);
        stream.append(MSS);
        stream.append(10);
        assert_eq!(stream.segments(), 5);
        let bytes: Vec<u32> = (0..5).map(|seq| stream.bytes_of(seq)).collect();
        assert_eq!(bytes, [MSS_BYTES, MSS_BYTES, 1, MSS_BYTES, 10]);
        let ends: Vec<bool> = (0..5).map(|seq| stream.ends_at(seq)).collect();
        assert_eq!(ends, [false, false, true, true, true]);
    }

    #[test]
    fn passing_counts_bytes_and_ends() {
        let mut stream = Stream::of(2 * MSS + 1);
        stream.append(10);
        let steps = [(1, false, MSS), (2, false, 2 * MSS), (3, true, 2 * MSS + 1)];
        for (next, ended, bytes) in steps {
            assert_eq!((stream.pass(next), stream.passed_bytes()), (ended, bytes));
        }
        assert!(!stream.is_passed());
        assert!(stream.pass(4) && stream.is_passed());
        assert_eq!(stream.passed_bytes(), 2 * MSS + 11);
    }

    #[test]
    fn endless_stream_has_full_segments_until_cut() {
        let mut stream = Stream::endless();
        assert_eq!((stream.bytes_of(1 << 40), stream.segments()), (MSS_BYTES, u64::MAX));
        stream.cut(7);
        stream.append_segments(3);
        assert_eq!(stream.segments(), 10);
        stream.append_segments(u64::MAX);
        assert_eq!(stream.segments(), u64::MAX);
    }
}
