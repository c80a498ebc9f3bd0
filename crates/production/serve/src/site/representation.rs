//! The parts of a file that a response carries, and how they are wrapped.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;

use super::body::SiteBody;
use super::file::ServedFile;

/// Makes strings that stand between the parts of `multipart/byteranges`, and that no file contains: each process
/// draws a new key, which files cannot know.
#[derive(Debug, Default)]
pub(super) struct Boundaries {
    key: RandomState,
    count: AtomicU64,
}

impl Boundaries {
    pub(super) fn next(&self) -> String {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let [high, low] = [0, 1].map(|half: u8| self.key.hash_one((count, half)));
        format!("{high:016x}{low:016x}")
    }
}

/// The parts of `file` as a body of type `multipart/byteranges` (RFC 9110 §14.6).
pub(super) fn multipart(
    file: &Arc<ServedFile>,
    ranges: Vec<Range<u64>>,
    boundary: &str,
    content_type: &HeaderValue,
) -> SiteBody {
    let content_type = content_type.to_str().unwrap_or_default();
    let length = file.len();
    let mut body = SiteBody::default();
    for (index, range) in ranges.into_iter().enumerate() {
        let line_end = if index == 0 { "" } else { "\r\n" };
        body.add_text(format!(
            "{line_end}--{boundary}\r\nContent-Type: {content_type}\r\n\
             Content-Range: bytes {}-{}/{length}\r\n\r\n",
            range.start,
            range.end - 1
        ));
        body.add_file(file, range);
    }
    body.add_text(format!("\r\n--{boundary}--\r\n"));
    body
}

/// The media type of a file by its name, with the character set of text.
pub(super) fn content_type(path: &str) -> HeaderValue {
    let mime = streaming(path).or_else(|| mime_guess::from_path(path).first_raw());
    let mime = mime.unwrap_or("application/octet-stream");
    let is_text = mime.starts_with("text/") || mime.ends_with("/javascript");
    if is_text {
        let with_characters = HeaderValue::try_from(format!("{mime}; charset=utf-8"));
        with_characters.unwrap_or_else(|_| HeaderValue::from_static(mime))
    } else {
        HeaderValue::from_static(mime)
    }
}

/// The types of HLS and DASH, which players insist on (RFC 8216 §4, ISO/IEC 23009-1).
fn streaming(path: &str) -> Option<&'static str> {
    let (_, ending) = path.rsplit_once('.')?;
    let types = [
        ("m3u8", "application/vnd.apple.mpegurl"),
        ("ts", "video/mp2t"),
        ("m4s", "video/iso.segment"),
        ("mpd", "application/dash+xml"),
    ];
    types.into_iter().find(|(name, _)| ending.eq_ignore_ascii_case(name)).map(|(_, mime)| mime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_differ() {
        let boundaries = Boundaries::default();
        let [one, two] = [boundaries.next(), boundaries.next()];
        assert_eq!((one.len(), two.len()), (32, 32));
        assert_ne!(one, two);
        assert_ne!(one, Boundaries::default().next());
    }

    #[test]
    fn types_go_by_the_ending() {
        assert_eq!(content_type("a/index.html"), "text/html; charset=utf-8");
        assert_eq!(content_type("a.mp4"), "video/mp4");
        assert_eq!(content_type("b.JS"), "text/javascript; charset=utf-8");
        assert_eq!(content_type("live/a.m3u8"), "application/vnd.apple.mpegurl");
        assert_eq!(content_type("a.TS"), "video/mp2t");
        assert_eq!(content_type("a.m4s"), "video/iso.segment");
        assert_eq!(content_type("a.mpd"), "application/dash+xml");
        assert_eq!(content_type("README"), "application/octet-stream");
    }
}
