//! Tests of a file server's HTTP semantics, over real connections.

use std::cell::RefCell;
use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::common::{Response, Scratch, Served, content, spec};
use http::HeaderValue;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const LENGTH: usize = 700_001;

fn site() -> (Scratch, Vec<u8>) {
    let (scratch, bytes) = (Scratch::new("serve"), content(LENGTH));
    scratch.write("file.bin", &bytes);
    scratch.write("empty", "");
    (scratch, bytes)
}

/// The parts of a multipart body, with their declared ranges.
fn parts(response: &Response) -> Vec<(String, Vec<u8>)> {
    let kind = response.header("content-type");
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("multipart");
    let mut parts = Vec::new();
    let mut rest = response.body.as_slice();
    let mut delimiter = format!("--{boundary}");
    loop {
        rest = rest.strip_prefix(delimiter.as_bytes()).expect("a delimiter");
        if rest == b"--\r\n" {
            return parts;
        }
        let end = rest.windows(4).position(|at| at == b"\r\n\r\n").expect("headers");
        let headers = String::from_utf8(rest[..end].to_vec()).expect("text");
        let range = headers.split("Content-Range: ").nth(1).expect("a range").to_owned();
        delimiter = format!("\r\n--{boundary}");
        rest = &rest[end + 4..];
        let next = rest.windows(delimiter.len()).position(|at| at == delimiter.as_bytes());
        let (body, behind) = rest.split_at(next.expect("a delimiter"));
        parts.push((range, body.to_vec()));
        rest = behind;
    }
}

/// Ranges of every kind, on persistent connections, compared with slices of the file.
#[test]
fn random_ranges_match_slices() {
    let (scratch, bytes) = site();
    let served = Served::new(&spec(&scratch.path("")));
    let client = RefCell::new(served.connect());
    let length = LENGTH as u64;
    let mut runner = TestRunner::new(ProptestConfig::with_cases(10_000));
    let range = (0..length + 10, prop_oneof![Just(0), 0..100_u64, 0..length], 0..3);
    runner
        .run(&range, |(start, extent, form)| {
            let last = start + extent;
            let (value, expected) = match form {
                0 => (format!("{start}-{last}"), start..(last + 1).min(length)),
                1 => (format!("{start}-"), start..length),
                _ => (format!("-{extent}"), length.saturating_sub(extent)..length),
            };
            let headers = format!("Range: bytes={value}\r\n");
            let response = client.borrow_mut().request("GET", "/file.bin", &headers);
            let response = response.expect("a response");
            if expected.start >= expected.end {
                prop_assert_eq!(response.status, 416);
                prop_assert_eq!(response.header("content-range"), format!("bytes */{length}"));
                return Ok(());
            }
            prop_assert_eq!(response.status, 206);
            let range = format!("bytes {}-{}/{length}", expected.start, expected.end - 1);
            prop_assert_eq!(response.header("content-range"), range);
            let slice = &bytes[expected.start as usize..expected.end as usize];
            prop_assert!(response.body == slice, "{value}");
            Ok(())
        })
        .expect("equal");
    served.stop();
}

#[test]
fn several_ranges_are_multipart() {
    let (scratch, bytes) = site();
    let served = Served::new(&spec(&scratch.path("")));
    let response = served.get("/file.bin", "Range: bytes=500000-699999, 0-9, -1\r\n");
    assert_eq!(response.status, 206);
    let received: Vec<_> = parts(&response);
    let expected = [
        ("bytes 500000-699999/700001".to_owned(), bytes[500_000..700_000].to_vec()),
        ("bytes 0-9/700001".to_owned(), bytes[..10].to_vec()),
        ("bytes 700000-700000/700001".to_owned(), bytes[700_000..].to_vec()),
    ];
    assert!(received == expected);
    let overlapping = served.get("/file.bin", "Range: bytes=0-9,5-20\r\n");
    assert_eq!((overlapping.status, overlapping.body.len()), (200, LENGTH));
    served.stop();
}

#[test]
fn conditional_requests_are_evaluated() {
    let (scratch, _) = site();
    let modified = SystemTime::UNIX_EPOCH + Duration::new(784_111_777, 500_000_000);
    File::options()
        .write(true)
        .open(scratch.path("file.bin"))
        .expect("the file")
        .set_modified(modified)
        .expect("modified");
    let served = Served::new(&spec(&scratch.path("")));
    let whole = served.get("/file.bin", "");
    assert_eq!((whole.status, whole.body.len()), (200, LENGTH));
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(whole.header("last-modified"), date);
    assert_eq!(whole.header("accept-ranges"), "bytes");
    assert_eq!(whole.header("content-type"), "application/octet-stream");
    let etag = whole.header("etag");
    assert!(etag.starts_with('"') && etag.ends_with('"'), "{etag}");
    let status = |headers: &str| {
        let response = served.get("/file.bin", headers);
        assert_eq!(response.header("etag"), etag);
        response.status
    };
    assert_eq!(status(&format!("If-None-Match: {etag}\r\n")), 304);
    assert_eq!(status(&format!("If-Modified-Since: {date}\r\n")), 304);
    assert_eq!(status("If-Modified-Since: whenever\r\n"), 200);
    assert_eq!(status("If-Match: \"other\"\r\n"), 412);
    assert_eq!(status(&format!("Range: bytes=0-1\r\nIf-Range: {etag}\r\n")), 206);
    assert_eq!(status("Range: bytes=0-1\r\nIf-Range: \"other\"\r\n"), 200);
    assert_eq!(status(&format!("Range: bytes=0-1\r\nIf-Range: {date}\r\n")), 200);
    served.stop();
}

#[test]
fn head_has_the_headers_of_get() {
    let (scratch, _) = site();
    let served = Served::new(&spec(&scratch.path("")));
    let mut client = served.connect();
    for headers in ["", "Range: bytes=0-9\r\n"] {
        let head = client.request("HEAD", "/file.bin", headers).expect("a response");
        assert_eq!((head.status, head.header("content-length")), (200, "700001"));
    }
    assert_eq!(client.request("GET", "/empty", "").expect("a response").body, b"");
    let refused = client.request("DELETE", "/file.bin", "").expect("a response");
    assert_eq!((refused.status, refused.header("allow")), (405, "GET, HEAD, OPTIONS"));
    let upload = client.request("GET", "/file.bin", "Content-Length: 5\r\n").expect("a response");
    assert_eq!((upload.status, upload.header("connection")), (413, "close"));
    served.stop();
}

/// Handles a request with a body, a request that signals late that it has no body, and a request
/// that is malformed after its head.
#[test]
fn the_server_waits_for_the_end_of_the_request() {
    let (scratch, _) = site();
    let served = Served::new(&spec(&scratch.path("")));
    for (rest, status) in [("0\r\n\r\n", 200), ("5\r\nhello\r\n0\r\n\r\n", 413), ("x\r\n", 413)] {
        let mut client = served.connect();
        let head = "GET /empty HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(head.as_bytes()).expect("a connection");
        client.send(rest.as_bytes()).expect("a connection");
        assert_eq!(client.head().expect("a response").status, status, "{rest:?}");
    }
    served.stop();
}

/// RFC 9112 §6.1: a server in front might take the second coding for content.
#[test]
fn a_body_that_is_chunked_twice_is_refused_and_ends_the_connection() {
    let (scratch, _) = site();
    let served = Served::new(&spec(&scratch.path("")));
    for codings in [
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    ] {
        let mut client = served.connect();
        let head = format!("GET /empty HTTP/1.1\r\nHost: test\r\n{codings}\r\n\r\n0\r\n\r\n");
        client.send(head.as_bytes()).expect("a connection");
        let response = client.head().expect("a response");
        assert_eq!((response.status, response.header("connection")), (400, "close"), "{codings}");
    }
    served.stop();
}

#[test]
fn compressed_files_are_sent_to_clients_that_accept_them() {
    let scratch = Scratch::new("serve");
    scratch.write("page.html", "plain");
    scratch.write("page.html.br", "brotli");
    scratch.write("page.html.gz", "gzip");
    scratch.write("old.css", "new");
    scratch.write("old.css.gz", "stale");
    File::options()
        .write(true)
        .open(scratch.path("old.css.gz"))
        .expect("the file")
        .set_modified(SystemTime::UNIX_EPOCH)
        .expect("modified");
    let mut spec = spec(&scratch.path(""));
    spec.site.precompressed = true;
    let served = Served::new(&spec);
    let get = |path: &str, accept: &str| {
        let response = served.get(path, &format!("Accept-Encoding: {accept}\r\n"));
        assert_eq!(response.header("vary"), "Accept-Encoding");
        let coding = response.header("content-encoding").to_owned();
        (coding, response.header("content-type").to_owned(), response.body)
    };
    let html = || "text/html; charset=utf-8".to_owned();
    assert_eq!(get("/page.html", "gzip, br, zstd"), ("br".into(), html(), b"brotli".into()));
    assert_eq!(get("/page.html", "zstd, gzip"), ("gzip".into(), html(), b"gzip".into()));
    assert_eq!(get("/page.html", "identity"), (String::new(), html(), b"plain".into()));
    assert_eq!(get("/old.css", "gzip").2, b"new", "the compressed one is older");
    let [plain, brotli] = ["identity", "br"].map(|accept| {
        let response = served.get("/page.html", &format!("Accept-Encoding: {accept}\r\n"));
        response.header("etag").to_owned()
    });
    assert_ne!(plain, brotli);
    served.stop();
}

#[test]
fn options_have_their_headers() {
    let scratch = Scratch::new("serve");
    scratch.write("sub/index.html", "index");
    let mut spec = spec(&scratch.path(""));
    spec.site.index = true;
    spec.site.cors = Some(HeaderValue::from_static("https://player.example"));
    spec.site.cache_control = Some(HeaderValue::from_static("max-age=60"));
    let served = Served::new(&spec);
    let page = served.get("/sub/", "");
    assert_eq!((page.status, page.body.as_slice()), (200, b"index".as_slice()));
    assert_eq!(page.header("access-control-allow-origin"), "https://player.example");
    assert_eq!(page.header("cache-control"), "max-age=60");
    assert_eq!(page.header("vary"), "Origin");
    let moved = served.get("/sub?x=1", "");
    assert_eq!((moved.status, moved.header("location")), (308, "/sub/?x=1"));
    assert_eq!(served.get("/", "").status, 404);
    let preflight = served.connect().request("OPTIONS", "/sub/", "").expect("a response");
    assert_eq!(preflight.status, 204);
    assert!(preflight.header("access-control-allow-headers").contains("Range"));
    served.stop();
}

/// RFC 9112 §3.2. The connection is closed, because the next request may belong to another host.
#[test]
fn requests_without_one_valid_host_are_refused() {
    let (scratch, _) = site();
    let served = Served::new(&spec(&scratch.path("")));
    let status = |head: &str| {
        let mut client = served.connect();
        client.send(format!("{head}\r\n\r\n").as_bytes()).expect("sent");
        client.head().expect("a head").status
    };
    for wrong in
        ["", "\r\nHost: a\r\nHost: a", "\r\nHost: a b/c@d", "\r\nHost: a:b", "\r\nHost: a, b"]
    {
        assert_eq!(status(&format!("GET /empty HTTP/1.1{wrong}")), 400, "{wrong:?}");
    }
    for right in ["\r\nHost: a", "\r\nHost: [::1]:80", "\r\nHost:"] {
        assert_eq!(status(&format!("GET /empty HTTP/1.1{right}")), 200, "{right:?}");
    }
    assert_eq!(status("GET /empty HTTP/1.0"), 200);
    assert_eq!(status("GET http://a/empty HTTP/1.1\r\nHost: a\r\nHost: b"), 400);
    assert_eq!(status("GET http://u@a/empty HTTP/1.1\r\nHost: a"), 400);
    served.stop();
}

/// Copies of a file on several servers, or at several paths, are the same representation.
#[test]
fn entity_tags_agree_between_servers() {
    let scratch = Scratch::new("serve");
    let modified = SystemTime::UNIX_EPOCH + Duration::new(784_111_777, 500_000_000);
    let tags = ["one/file", "other/file"].map(|name| {
        scratch.write(name, "text");
        let file = File::options().write(true).open(scratch.path(name)).expect("the file");
        file.set_modified(modified).expect("modified");
        let root = scratch.path(name.trim_end_matches("/file"));
        let served = Served::new(&spec(&root));
        let tag = served.get("/file", "").header("etag").to_owned();
        served.stop();
        tag
    });
    assert_eq!(tags[0], tags[1]);
    assert!(!tags[0].is_empty());
}

#[test]
fn only_well_known_dotfiles_are_served() {
    let scratch = Scratch::new("serve");
    scratch.write(".well-known/security.txt", "Contact");
    scratch.write(".git/config", "secret");
    let served = Served::new(&spec(&scratch.path("")));
    assert_eq!(served.get("/.well-known/security.txt", "").body, b"Contact");
    assert_eq!(served.get("/.git/config", "").status, 404);
    assert_eq!(served.get("/.well-known/../.git/config", "").status, 404);
    served.stop();
}

/// Deployments that switch a symbolic link take effect at SIGHUP, and not before.
#[test]
fn reload_resolves_a_symlinked_root_again() {
    let scratch = Scratch::new("serve");
    scratch.write("one/file", "one");
    scratch.write("two/file", "two");
    let link = scratch.path("current");
    std::os::unix::fs::symlink("one", &link).expect("a link");
    let mut served = Served::new(&spec(&link));
    assert_eq!(served.get("/file", "").body, b"one");
    std::os::unix::fs::symlink("two", scratch.path("new")).expect("a link");
    std::fs::rename(scratch.path("new"), &link).expect("switched");
    assert_eq!(served.get("/file", "").body, b"one");
    let reloaded = served.server.reload();
    assert_eq!((reloaded.len(), reloaded[0].what), (1, "root"));
    assert_eq!(served.get("/file", "").body, b"two");
    std::fs::remove_file(&link).expect("removed");
    let reloaded = served.server.reload();
    assert!(reloaded[0].result.is_err(), "{reloaded:?}");
    assert_eq!(served.get("/file", "").body, b"two");
    served.stop();
}
