//! Converts scripts to requests, and checks their responses.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use uncork_serve::site::SiteBody;

use super::model::{Conditions, Wanted, conditions, decoded, ranges};
use super::world::{SECRET, TestDirectory};

/// Plays a script: a path, and header lines after it. `$` stands for the file's entity tag. Returns
/// the status, if the script was a request.
pub(crate) fn play(world: &TestDirectory, script: &[u8]) -> Option<u16> {
    let mut lines = script.split(|byte| *byte == b'\n');
    let raw = std::str::from_utf8(lines.next().unwrap_or_default()).ok()?;
    let (method, raw) = match raw.as_bytes().first() {
        Some(b'H') => (Method::HEAD, &raw[1..]),
        Some(b'O') => (Method::OPTIONS, &raw[1..]),
        Some(b'P') => (Method::POST, &raw[1..]),
        _ => (Method::GET, raw),
    };
    let mut request = Request::builder().method(method).uri(raw).body(()).ok()?;
    let path = request.uri().path().to_owned();
    let file = decoded(&path).and_then(|path| world.files.get(&path));
    let etag = file.map(|_| etag(world, &path)).unwrap_or_default();
    for line in lines {
        let line: Vec<u8> = line
            .iter()
            .flat_map(|byte| match byte {
                b'$' => etag.clone(),
                byte => vec![*byte],
            })
            .collect();
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name.try_into(), value.try_into()) {
            let name: http::HeaderName = name;
            request.headers_mut().append(name, value);
        }
    }
    let (head, body) = answer(world, &request);
    check(&request, file.map(|file| (file.as_slice(), etag.as_slice())), &head, &body);
    Some(head.status().as_u16())
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000)
}

fn etag(world: &TestDirectory, path: &str) -> Vec<u8> {
    let request = Request::builder().method(Method::HEAD).uri(path).body(()).unwrap();
    answer(world, &request).0.headers()["etag"].as_bytes().to_vec()
}

fn answer(world: &TestDirectory, request: &Request<()>) -> (Response<()>, Vec<u8>) {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap()
    });
    let answer = world.site.respond(request, now());
    let (head, mut body) = answer.response.into_parts();
    let bytes = runtime.block_on(read(&mut body));
    (Response::from_parts(head, ()), bytes)
}

async fn read(body: &mut SiteBody) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
        bytes.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    assert!(body.is_end_stream());
    bytes
}

fn check(request: &Request<()>, file: Option<(&[u8], &[u8])>, head: &Response<()>, body: &[u8]) {
    let context = format!("{request:?}: {head:?}");
    let status = head.status();
    assert!(!body.windows(SECRET.len()).any(|window| window == SECRET), "{context}");
    let length = head
        .headers()
        .get("content-length")
        .map(|it| it.to_str().unwrap().parse::<usize>().unwrap());
    if *request.method() == Method::HEAD {
        assert!(body.is_empty(), "{context}");
    } else {
        assert_eq!(length.unwrap_or(0), body.len(), "{context}");
    }
    match (request.method().as_str(), file) {
        ("OPTIONS", _) => assert_eq!(status, StatusCode::NO_CONTENT, "{context}"),
        ("POST", _) => assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{context}"),
        (_, None) => {
            assert!(
                [StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST].contains(&status),
                "{context}"
            );
            let reason = format!("{} {}\n", status.as_u16(), status.canonical_reason().unwrap());
            assert!(body.is_empty() || body == reason.as_bytes(), "{context}");
        }
        (_, Some((file, etag))) => of_file(request, file, etag, head, body, &context),
    }
}

/// Checks that the status and each byte match the model.
fn of_file(
    request: &Request<()>,
    file: &[u8],
    etag: &[u8],
    head: &Response<()>,
    body: &[u8],
    context: &str,
) {
    let (status, headers) = (head.status().as_u16(), head.headers());
    let is_get = *request.method() == Method::GET;
    assert_eq!(headers["etag"].as_bytes(), etag, "{context}");
    let may_be_parts = match conditions(request.headers(), etag) {
        Conditions::NotModified => return assert_eq!((status, body.len()), (304, 0), "{context}"),
        Conditions::Failed => return assert_eq!(status, 412, "{context}"),
        Conditions::Send { ranges } => ranges,
        // The outcome of an unknown condition is open, but the bytes of a 206 must be right.
        Conditions::Unknown if status == 206 => true,
        Conditions::Unknown => return assert!([200, 304, 412, 416].contains(&status), "{context}"),
    };
    let asked = request.headers().get("range").filter(|_| may_be_parts && is_get);
    match asked.map_or(Wanted::Whole, |value| ranges(value.as_bytes(), file.len())) {
        Wanted::Whole => {
            assert_eq!(status, 200, "{context}");
            assert!(!is_get || body == file, "{context}");
        }
        Wanted::Nothing => {
            assert_eq!(status, 416, "{context}");
            assert_eq!(headers["content-range"], format!("bytes */{}", file.len()), "{context}");
        }
        Wanted::Parts(parts) => {
            assert_eq!(status, 206, "{context}");
            let got = if parts.len() == 1 {
                vec![part(headers["content-range"].to_str().unwrap(), body)]
            } else {
                multipart(headers, body, context)
            };
            let wanted: Vec<_> = parts
                .iter()
                .map(|part| {
                    let bytes: Vec<u8> = part.iter().map(|at| file[*at]).collect();
                    (part[0], part[part.len() - 1], file.len(), bytes)
                })
                .collect();
            assert!(got == wanted, "{context}");
        }
    }
}

/// Start, end, total length and content.
type Part = (usize, usize, usize, Vec<u8>);

fn part(content_range: &str, body: &[u8]) -> Part {
    let (range, length) = content_range.strip_prefix("bytes ").unwrap().split_once('/').unwrap();
    let (first, last) = range.split_once('-').unwrap();
    (first.parse().unwrap(), last.parse().unwrap(), length.parse().unwrap(), body.to_vec())
}

/// Parses a multipart body as in RFC 2046 §5.1.1.
fn multipart(headers: &HeaderMap, body: &[u8], context: &str) -> Vec<Part> {
    let kind = headers["content-type"].to_str().unwrap();
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect(context);
    let (mut rest, mut parts) = (body, Vec::new());
    let first = format!("--{boundary}");
    rest = rest.strip_prefix(first.as_bytes()).expect(context);
    let delimiter = format!("\r\n--{boundary}");
    loop {
        if rest == b"--\r\n" {
            return parts;
        }
        rest = rest.strip_prefix(b"\r\n").expect(context);
        let end =
            rest.windows(delimiter.len()).position(|it| it == delimiter.as_bytes()).expect(context);
        let one = &rest[..end];
        rest = &rest[end + delimiter.len()..];
        let blank = one.windows(4).position(|it| it == b"\r\n\r\n").expect(context);
        let fields = std::str::from_utf8(&one[..blank]).expect(context);
        let range = fields.lines().find_map(|line| line.strip_prefix("Content-Range: "));
        parts.push(part(range.expect(context), &one[blank + 4..]));
    }
}
