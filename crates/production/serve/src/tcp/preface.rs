//! Determines the HTTP version of a client without TLS.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, ReadBuf};

/// The client connection preface of HTTP/2 (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads until it is clear whether the client speaks HTTP/2. Returns that, and the bytes read.
pub(super) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<(bool, Vec<u8>)> {
    let mut begun = Vec::new();
    while begun.len() < PREFACE.len() && PREFACE.starts_with(&begun) {
        let mut room = [0; PREFACE.len()];
        let mut buffer = ReadBuf::new(&mut room[begun.len()..]);
        poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut buffer)).await?;
        if buffer.filled().is_empty() {
            break;
        }
        begun.extend_from_slice(buffer.filled());
    }
    Ok((begun == PREFACE, begun))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_http2(mut bytes: &[u8]) -> (bool, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (is_http2, begun) = runtime.block_on(read(&mut bytes)).unwrap();
        assert!(begun.len() <= PREFACE.len());
        (is_http2, begun.len() + bytes.len())
    }

    #[test]
    fn only_a_complete_preface_selects_http_2_and_no_byte_is_lost() {
        assert_eq!(is_http2(&[PREFACE, b"more"].concat()), (true, PREFACE.len() + 4));
        assert_eq!(is_http2(&PREFACE[..10]), (false, 10));
        assert_eq!(is_http2(b"PRI / HTTP/1.1\r\n\r\n"), (false, 18));
        assert_eq!(is_http2(b""), (false, 0));
    }
}
