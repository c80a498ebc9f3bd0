//! Combines the writes of one turn of a connection.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::socket::Stream;
use crate::clock;

/// The maximum size of a TLS record (RFC 8446 §5.1). HTTP/2 frames are slightly larger.
const RECORD: usize = 16 * 1024;
/// The size of the buffer: a few records, which is also what the TLS library takes at once.
const MAX_BUFFERED: usize = 4 * RECORD;
/// A record can only be decrypted once it is complete. A record larger than the initial window of
/// ten packets (RFC 6928) delays even its first byte by a round trip. So records are smaller at
/// first, and after an idle period, when the kernel may have reduced the window (RFC 2861).
const FIRST_RECORDS: usize = 4 * 1024;
const FIRST_BYTES: usize = 64 * 1024;
const SILENCE: Duration = Duration::from_secs(1);

thread_local! {
    /// The buffer of the connection that was served last, for the next one.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A stream that buffers writes until the end of the connection's turn. HTTP/2 flushes each frame
/// of a body, which would cost a TLS record, a system call and a packet for each small response.
///
/// Clones share the stream: one is for the HTTP library, the other for the task that ends the turn.
#[derive(Clone)]
pub(super) struct CoalescingWriter(Arc<Mutex<CoalescedOutput>>);

struct CoalescedOutput {
    stream: Box<dyn Stream>,
    /// Bytes not yet written to the stream.
    kept: Vec<u8>,
    /// Whether the HTTP library has more than was taken.
    has_more: bool,
    is_tls: bool,
    /// Bytes that are still to be sent in small records.
    first: usize,
    last: Instant,
}

impl CoalescingWriter {
    pub(super) fn new(stream: Box<dyn Stream>, is_tls: bool) -> Self {
        let (first, last) = (FIRST_BYTES, clock::now());
        let output =
            CoalescedOutput { stream, kept: Vec::new(), has_more: false, is_tls, first, last };
        Self(Arc::new(Mutex::new(output)))
    }

    /// Ends each turn: sends the buffered bytes whenever this is polled. Returns only after an
    /// error.
    pub(super) async fn end(&self) -> io::Error {
        poll_fn(|cx| match self.poll_end(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(error),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
        })
        .await
    }

    fn poll_end(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let output = &mut *self.output();
        ready!(output.poll_drain(cx, 1))?;
        // An idle connection holds no buffer.
        let kept = std::mem::take(&mut output.kept);
        if (1..=2 * MAX_BUFFERED).contains(&kept.capacity()) {
            SPARE.set(kept);
        }
        // A flush says that the socket has accepted all of the responses.
        if output.has_more {
            return Poll::Pending;
        }
        Pin::new(&mut output.stream).poll_flush(cx)
    }

    fn output(&self) -> MutexGuard<'_, CoalescedOutput> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CoalescedOutput {
    fn keep(&mut self, slices: &[IoSlice<'_>], length: usize) {
        if self.kept.capacity() == 0 {
            self.kept = SPARE.take();
        }
        if self.kept.is_empty() && length > RECORD / 2 {
            self.kept.reserve_exact(MAX_BUFFERED + RECORD); // More data follows.
        }
        self.kept.reserve(length);
        for slice in slices {
            self.kept.extend_from_slice(slice);
        }
    }

    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum::<usize>();
        if length > MAX_BUFFERED {
            ready!(self.poll_drain(cx, 1))?;
            return self.poll_write_now(cx, slices);
        }
        if self.kept.len() >= MAX_BUFFERED {
            ready!(self.poll_drain(cx, RECORD))?;
        }
        self.keep(slices, length);
        Poll::Ready(Ok(length))
    }

    /// Sends the buffered bytes in pieces that are multiples of `unit`. Removes written bytes even
    /// if the stream is full: a stream that never takes everything must not make the buffer grow.
    fn poll_drain(&mut self, cx: &mut Context<'_>, unit: usize) -> Poll<io::Result<()>> {
        let mut kept = std::mem::take(&mut self.kept);
        let mut taken = 0;
        let drained = loop {
            let left = kept.len() - taken;
            let whole = left - left % unit;
            if whole == 0 {
                break Poll::Ready(Ok(()));
            }
            match self.poll_write_now(cx, &[IoSlice::new(&kept[taken..][..whole])]) {
                Poll::Ready(Ok(0)) => break Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(wrote)) => taken += wrote,
                Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                Poll::Pending => break Poll::Pending,
            }
        };
        kept.drain(..taken);
        self.kept = kept;
        drained
    }

    /// Writes to the stream, in records of a suitable size.
    fn poll_write_now(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.stream);
        if !self.is_tls {
            return stream.poll_write_vectored(cx, slices);
        }
        let now = clock::now();
        if now.saturating_duration_since(self.last) > SILENCE {
            self.first = FIRST_BYTES;
        }
        let wrote = ready!(match slices.iter().find(|slice| !slice.is_empty()) {
            Some(slice) if self.first > 0 => {
                stream.poll_write(cx, &slice[..slice.len().min(FIRST_RECORDS)])
            }
            _ => stream.poll_write_vectored(cx, slices),
        })?;
        self.first = self.first.saturating_sub(wrote);
        self.last = now;
        Poll::Ready(Ok(wrote))
    }
}

impl AsyncRead for CoalescingWriter {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for CoalescingWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let output = &mut *self.output();
        let took = output.poll_take(cx, slices);
        output.has_more = took.is_pending();
        took
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Buffered bytes are sent at the end of the turn.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_end(cx))?;
        Pin::new(&mut self.output().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// A stream that accepts a limited number of bytes, and records each write.
    #[derive(Clone, Default)]
    struct LimitedStream(Arc<Mutex<(usize, Vec<Vec<u8>>)>>);

    impl LimitedStream {
        fn with_room_for(room: usize) -> Self {
            Self(Arc::new(Mutex::new((room, Vec::new()))))
        }

        fn writes(&self) -> Vec<Vec<u8>> {
            std::mem::take(&mut self.0.lock().unwrap().1)
        }

        fn has_room_for(&self, room: usize) {
            self.0.lock().unwrap().0 = room;
        }
    }

    impl AsyncRead for LimitedStream {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for LimitedStream {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let (room, writes) = &mut *self.0.lock().unwrap();
            let taken = bytes.len().min(*room);
            if taken == 0 {
                return Poll::Pending;
            }
            *room -= taken;
            writes.push(bytes[..taken].to_vec());
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn write(writer: &mut CoalescingWriter, bytes: &[u8]) -> usize {
        match Pin::new(writer).poll_write(&mut Context::from_waker(Waker::noop()), bytes) {
            Poll::Ready(wrote) => wrote.unwrap(),
            Poll::Pending => 0,
        }
    }

    fn end(writer: &CoalescingWriter) -> bool {
        writer.poll_end(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    fn lengths(taker: &LimitedStream) -> Vec<usize> {
        taker.writes().iter().map(Vec::len).collect()
    }

    #[test]
    fn small_writes_of_a_turn_are_combined_despite_flushes() {
        let taker = LimitedStream::with_room_for(usize::MAX);
        let mut writer = CoalescingWriter::new(Box::new(taker.clone()), false);
        for part in [&b"one "[..], b"turn"] {
            assert_eq!(write(&mut writer, part), 4);
            let flushed = Pin::new(&mut writer).poll_flush(&mut Context::from_waker(Waker::noop()));
            assert!(flushed.is_ready());
        }
        assert!(taker.writes().is_empty());
        assert!(end(&writer));
        assert_eq!(taker.writes(), [b"one turn"]);
        assert!(end(&writer));
        assert!(taker.writes().is_empty());
    }

    #[test]
    fn the_buffer_of_a_turn_serves_the_next_connection() {
        let writers = [(); 2].map(|()| {
            CoalescingWriter::new(Box::new(LimitedStream::with_room_for(usize::MAX)), false)
        });
        let [one, two] = writers.map(|mut writer| {
            assert_eq!(write(&mut writer, b"turn"), 4);
            let buffer = writer.output().kept.as_ptr();
            assert!(end(&writer));
            assert_eq!(writer.output().kept.capacity(), 0, "an idle connection holds none");
            buffer
        });
        assert_eq!(one, two);
    }

    #[test]
    fn large_writes_follow_buffered_bytes() {
        let taker = LimitedStream::with_room_for(usize::MAX);
        let mut writer = CoalescingWriter::new(Box::new(taker.clone()), false);
        assert_eq!(write(&mut writer, b"head"), 4);
        assert_eq!(write(&mut writer, &vec![7; 3 * MAX_BUFFERED]), 3 * MAX_BUFFERED);
        assert_eq!(lengths(&taker), [4, 3 * MAX_BUFFERED]);
    }

    #[test]
    fn unsent_bytes_stay_buffered_and_block_writes() {
        let taker = LimitedStream::with_room_for(3);
        let mut writer = CoalescingWriter::new(Box::new(taker.clone()), false);
        let all: Vec<u8> = (0..=255).cycle().take(MAX_BUFFERED + 3).collect();
        assert_eq!(write(&mut writer, &all[..MAX_BUFFERED]), MAX_BUFFERED);
        assert!(!end(&writer));
        assert_eq!(write(&mut writer, &all[MAX_BUFFERED..]), 3);
        assert_eq!(write(&mut writer, b"more"), 0, "until there is room");
        assert_eq!(taker.writes().concat(), all[..3]);
        taker.has_room_for(usize::MAX);
        assert!(!end(&writer), "a turn that ends with more to come does not flush");
        assert_eq!(write(&mut writer, b"more"), 4);
        assert!(end(&writer));
        assert_eq!(taker.writes().concat(), [&all[3..], b"more"].concat());
    }

    /// A client with a small window: the socket accepts some bytes on each wake-up, but never all.
    #[test]
    fn the_buffer_is_bounded_while_the_stream_never_takes_everything() {
        let taker = LimitedStream::with_room_for(0);
        let mut writer = CoalescingWriter::new(Box::new(taker.clone()), false);
        let frame = vec![7; RECORD + 9];
        let mut sent = 0;
        for _ in 0..3000 {
            taker.has_room_for(29_000);
            while write(&mut writer, &frame) > 0 {}
            assert!(!end(&writer));
            sent += taker.writes().concat().len();
            let output = writer.output();
            assert!(output.kept.len() < 200_000, "{} bytes after {sent}", output.kept.len());
            assert!(output.kept.capacity() < 400_000, "{} bytes", output.kept.capacity());
        }
        assert_eq!(sent, 3000 * 29_000);
    }

    #[test]
    fn frames_of_a_large_body_fill_records() {
        let taker = LimitedStream::with_room_for(usize::MAX);
        let mut writer = CoalescingWriter::new(Box::new(taker.clone()), false);
        for _ in 0..9 {
            assert_eq!(write(&mut writer, &vec![0; RECORD + 9]), RECORD + 9);
        }
        assert_eq!(lengths(&taker), [MAX_BUFFERED, MAX_BUFFERED]);
        assert!(end(&writer));
        assert_eq!(lengths(&taker), [RECORD + 9 * 9]);
    }

    #[test]
    fn records_are_small_at_first_and_after_an_idle_period() {
        let taker = LimitedStream::with_room_for(usize::MAX);
        let mut writer = CoalescingWriter::new(Box::new(taker.clone()), true);
        let large = vec![0; FIRST_BYTES + 2 * MAX_BUFFERED];
        let mut sent = 0;
        while sent < large.len() {
            sent += write(&mut writer, &large[sent..]);
        }
        let small = FIRST_BYTES / FIRST_RECORDS;
        assert_eq!(
            lengths(&taker),
            [&vec![FIRST_RECORDS; small][..], &[2 * MAX_BUFFERED]].concat()
        );
        writer.output().last -= 2 * SILENCE;
        assert_eq!(write(&mut writer, &large), FIRST_RECORDS);
    }
}
