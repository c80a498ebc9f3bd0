//! One direction of a connection: messages cut into segments.

use std::collections::VecDeque;

use super::MSS_BYTES;

/// Messages one after the other. Each begins with a segment of its own, so that only the last segment
/// of a message may be short. Both ends keep one: the server of what it may send, the client of what
/// it has asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    /// Segments of all messages; `u64::MAX` when there is always more.
    segments: u64,
    /// The last segment of each message that has not been passed, and its payload bytes.
    ends: VecDeque<(u64, u32)>,
    /// Segments that have been passed, and how many bytes they lack of full ones.
    passed: u64,
    lacking: u64,
}

impl Stream {
    /// Full segments without end.
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

    /// So many full segments more.
    pub(crate) fn append_segments(&mut self, count: u64) {
        self.segments = self.segments.saturating_add(count);
    }

    /// At most `segments` segments.
    pub(crate) fn cut(&mut self, segments: u64) {
        self.segments = segments;
        self.ends.retain(|(last, _)| *last < segments);
    }

    /// Segments of all messages.
    pub(crate) fn segments(&self) -> u64 {
        self.segments
    }

    /// Payload bytes of a segment that is the next one or lies beyond it.
    pub(crate) fn bytes_of(&self, seq: u64) -> u32 {
        self.end_at(seq).unwrap_or(MSS_BYTES)
    }

    /// Whether a message that has not been passed ends with this segment.
    pub(crate) fn ends_at(&self, seq: u64) -> bool {
        self.end_at(seq).is_some()
    }

    fn end_at(&self, seq: u64) -> Option<u32> {
        let index = self.ends.binary_search_by_key(&seq, |(last, _)| *last).ok()?;
        self.ends.get(index).map(|(_, bytes)| *bytes)
    }

    /// All segments below `next` have been sent, or have arrived. True when a message ended with them.
    pub(crate) fn pass(&mut self, next: u64) -> bool {
        self.passed = self.passed.max(next);
        let before = self.ends.len();
        while let Some((_, bytes)) = self.ends.pop_front_if(|(last, _)| *last < next) {
            self.lacking += u64::from(MSS_BYTES - bytes);
        }
        self.ends.len() < before
    }

    /// Payload bytes of the segments that have been passed.
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
    fn messages_begin_with_segments_of_their_own() {
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
    fn the_endless_has_full_segments_until_it_is_cut() {
        let mut stream = Stream::endless();
        assert_eq!((stream.bytes_of(1 << 40), stream.segments()), (MSS_BYTES, u64::MAX));
        stream.cut(7);
        stream.append_segments(3);
        assert_eq!(stream.segments(), 10);
        stream.append_segments(u64::MAX);
        assert_eq!(stream.segments(), u64::MAX);
    }
}
