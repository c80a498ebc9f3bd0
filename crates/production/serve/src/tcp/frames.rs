//! The frames of an HTTP/2 connection, as they pass (RFC 9113 §4.1).

const HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const END_STREAM: u8 = 1;

/// What frames say about a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameEvent {
    /// This number of bytes of its body.
    Data(u64),
    /// It is complete.
    End,
    /// It is cut off.
    Reset,
}

/// Follows the frames in one direction.
#[derive(Debug)]
pub(crate) struct FrameScanner {
    head: [u8; HEAD],
    /// Bytes of the head so far.
    filled: usize,
    /// Bytes of the payload, or of the preface, that are still to come.
    left: usize,
}

impl FrameScanner {
    /// Of a stream that begins with a preface of `preface` bytes.
    pub(crate) fn after(preface: usize) -> Self {
        Self { head: [0; HEAD], filled: 0, left: preface }
    }

    /// Takes more bytes. Calls `pass` with bytes up to an event and that event, of a stream; without one at the end.
    pub(crate) fn scan(
        &mut self,
        mut bytes: &[u8],
        mut pass: impl FnMut(usize, Option<(u32, FrameEvent)>),
    ) {
        while !bytes.is_empty() {
            if self.left == 0 && self.filled < HEAD {
                let count = bytes.len().min(HEAD - self.filled);
                self.head[self.filled..][..count].copy_from_slice(&bytes[..count]);
                self.filled += count;
                bytes = &bytes[count..];
                pass(count, None);
                if self.filled < HEAD {
                    return;
                }
                let [a, b, c, ..] = self.head;
                self.left = u32::from_be_bytes([0, a, b, c]) as usize;
            } else {
                let count = bytes.len().min(self.left);
                self.left -= count;
                bytes = &bytes[count..];
                let data = (self.kind() == Some(DATA)).then_some(FrameEvent::Data(count as u64));
                pass(count, data.map(|it| (self.stream(), it)));
            }
            if self.left == 0 {
                if let Some(event) = self.end() {
                    pass(0, Some((self.stream(), event)));
                }
                self.filled = 0;
            }
        }
    }

    /// The kind of the frame, once its head is complete.
    fn kind(&self) -> Option<u8> {
        (self.filled == HEAD).then_some(self.head[3])
    }

    fn stream(&self) -> u32 {
        let [.., a, b, c, d] = self.head;
        u32::from_be_bytes([a, b, c, d]) & (u32::MAX >> 1)
    }

    /// What the end of the frame means.
    fn end(&self) -> Option<FrameEvent> {
        match self.kind()? {
            DATA | HEADERS if self.head[4] & END_STREAM != 0 => Some(FrameEvent::End),
            RST_STREAM => Some(FrameEvent::Reset),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    /// The events, each with its position, of bytes that come in pieces.
    fn events(bytes: &[u8], preface: usize, piece: usize) -> Vec<(usize, u32, FrameEvent)> {
        let (mut scanner, mut at, mut found) = (FrameScanner::after(preface), 0, Vec::new());
        for piece in bytes.chunks(piece) {
            scanner.scan(piece, |count, event| {
                at += count;
                found.extend(event.map(|(stream, event)| (at, stream, event)));
            });
        }
        assert_eq!(at, bytes.len());
        found
    }

    #[test]
    fn frames_are_followed_however_their_bytes_come() {
        let bytes = [
            b"preface".to_vec(),
            frame(4, 0, 0, &[0; 6]),
            frame(4, 1, 0, &[]),
            frame(HEADERS, 4, 1, b"head"),
            frame(HEADERS, 5, 3, b"no body"),
            frame(DATA, 0, 1, b"four"),
            frame(DATA, END_STREAM, 1, &[]),
            frame(RST_STREAM, 0, 5, &[0; 4]),
            frame(DATA, END_STREAM, 7, b"last"),
        ]
        .concat();
        let [head, end] = [7 + 15 + 9 + 13 + 16, bytes.len()];
        let expected = [
            (head, 3, FrameEvent::End),
            (head + 13, 1, FrameEvent::Data(4)),
            (head + 22, 1, FrameEvent::End),
            (head + 35, 5, FrameEvent::Reset),
            (end, 7, FrameEvent::Data(4)),
            (end, 7, FrameEvent::End),
        ];
        assert_eq!(events(&bytes, 7, bytes.len()), expected);
        let is_data = |event: &FrameEvent| matches!(event, FrameEvent::Data(_));
        let ends = expected.iter().filter(|it| !is_data(&it.2));
        for piece in [1, 2, 3, 8, 9, 10] {
            let found = events(&bytes, 7, piece);
            assert!(
                found.iter().filter(|it| !is_data(&it.2)).eq(ends.clone()),
                "{piece}: {found:?}"
            );
            let sum = |of: u32| {
                let all = found.iter().filter(|it| it.1 == of);
                let bytes =
                    all.map(|it| if let FrameEvent::Data(bytes) = it.2 { bytes } else { 0 });
                bytes.sum::<u64>()
            };
            assert_eq!((sum(1), sum(7)), (4, 4), "{piece}");
        }
    }
}
