//! Lines as Apache writes them (`vhost_combined`), which tools for logs read.

use std::fmt::Write;
use std::net::IpAddr;
use std::time::SystemTime;

use http::{HeaderName, Request, Version, header};

use super::writer::AccessLog;
use crate::choice::host;
use crate::site::without_port;

/// The line of a response under way, without its size.
#[derive(Debug)]
pub(crate) struct Line {
    log: AccessLog,
    before_size: String,
    after_size: String,
}

impl Line {
    /// Of a request that came at `today`. `port` is the server's.
    pub(crate) fn new(
        log: &AccessLog,
        (client, port): (IpAddr, u16),
        today: SystemTime,
        request: &Request<()>,
        status: u16,
    ) -> Self {
        let mut before_size = escaped(host(request).map_or("-", without_port));
        let target = request.uri().path_and_query().map_or("", |it| it.as_str());
        let request_line = format!("{} {target} {}", request.method(), version(request.version()));
        let _ = write!(
            before_size,
            ":{port} {} - - [{}] \"{}\" {status} ",
            client.to_canonical(),
            date(today),
            escaped(&request_line)
        );
        let [referer, agent] = [header::REFERER, header::USER_AGENT].map(|it| field(request, &it));
        let after_size = format!(" \"{referer}\" \"{agent}\"\n");
        Self { log: log.clone(), before_size, after_size }
    }

    /// Of a head without a valid request: it is logged as `-`, as Apache does.
    pub(crate) fn refused(
        log: &AccessLog,
        (client, port): (IpAddr, u16),
        today: SystemTime,
        status: u16,
    ) -> Self {
        let (client, date) = (client.to_canonical(), date(today));
        let before_size = format!("-:{port} {client} - - [{date}] \"-\" {status} ");
        Self { log: log.clone(), before_size, after_size: " \"-\" \"-\"\n".to_owned() }
    }

    /// Writes the line. The response had this many bytes, without its head.
    pub(crate) fn end(self, bytes: u64) {
        let Self { log, before_size, after_size } = self;
        log.leave(format!("{before_size}{bytes}{after_size}"));
    }
}

fn field(request: &Request<()>, name: &HeaderName) -> String {
    let value = request.headers().get(name);
    value.map_or_else(|| "-".to_owned(), |it| escaped(&String::from_utf8_lossy(it.as_bytes())))
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

/// `22/Nov/2026:20:53:20 +0000`, out of the date that HTTP has: `Sun, 22 Nov 2026 20:53:20 GMT`.
fn date(today: SystemTime) -> String {
    let http = httpdate::fmt_http_date(today);
    let mut words = http.split(' ').skip(1);
    let mut word = || words.next().unwrap_or_default();
    format!("{}/{}/{}:{} +0000", word(), word(), word(), word())
}

/// No text of a client's ends the line or a quotation.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(escaped, "\\x{:02x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_is_in_the_combined_format_with_the_host_before_it() {
        let request = Request::get("/a%20b?c=%22")
            .header("host", "a.example:8443")
            .header("user-agent", "curl \"\u{e9}\\")
            .version(Version::HTTP_11)
            .body(())
            .unwrap();
        let (log, line) = AccessLog::for_tests();
        let today = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_380_800);
        let client = "::ffff:192.0.2.1".parse().unwrap();
        Line::new(&log, (client, 443), today, &request, 200).end(17);
        assert_eq!(
            line(),
            "a.example:443 192.0.2.1 - - [22/Nov/2026:20:53:20 +0000] \"GET /a%20b?c=%22 HTTP/1.1\" 200 17 \"-\" \
             \"curl \\\"é\\\\\"\n"
        );
        assert_eq!(escaped("a\n\u{7f}"), "a\\x0a\\x7f");
    }

    #[test]
    fn a_head_without_a_request_has_a_dash() {
        let (log, line) = AccessLog::for_tests();
        let client = "192.0.2.1".parse().unwrap();
        Line::refused(&log, (client, 80), SystemTime::UNIX_EPOCH, 431).end(0);
        let date = "01/Jan/1970:00:00:00 +0000";
        assert_eq!(line(), format!("-:80 192.0.2.1 - - [{date}] \"-\" 431 0 \"-\" \"-\"\n"));
    }
}
