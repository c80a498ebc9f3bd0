//! Tests of a file server's HTTP semantics, over QUIC.

use std::process::Command;
use std::time::Duration;

use crate::common::{Scratch, Served, content};
use crate::lossy::LossyPath;
use crate::talker::{Http3Client, body, get, request, run, secured};
use http::StatusCode;
use uncork_h3::client::ClientError;
use uncork_testkit::pause_async;

const LENGTH: usize = 700_001;

fn site() -> (Scratch, Vec<u8>) {
    let (scratch, bytes) = (Scratch::new("serve"), content(LENGTH));
    scratch.write("root/file.bin", &bytes);
    scratch.write("root/empty", "");
    (scratch, bytes)
}

/// Ten thousand ranges. A third of them have up to `longest` bytes.
fn random_ranges(http3_client: &Http3Client, bytes: &[u8], longest: usize) {
    let mut random = uncork_units::Rng::new(3, 0);
    run(async {
        let connection = http3_client.connect().await;
        for _ in 0..100 {
            let ranges = (0..100).map(|_| {
                let from = random.next_u64() as usize % LENGTH;
                let length = match random.next_u64() % 3 {
                    0 => 1,
                    1 => random.next_u64() as usize % 2000,
                    _ => random.next_u64() as usize % longest,
                };
                (from, (from + length).min(LENGTH - 1))
            });
            let requests = ranges.map(|(from, last)| {
                let connection = &connection;
                async move {
                    let range = format!("bytes={from}-{last}");
                    let (head, body) = get(connection, "/file.bin", &[("range", &range)])
                        .await
                        .expect("a response");
                    assert_eq!(head.status(), StatusCode::PARTIAL_CONTENT);
                    assert!(body == bytes[from..=last], "wrong bytes in {range}");
                }
            });
            futures_util::future::join_all(requests).await;
        }
    });
}

#[test]
fn ten_thousand_random_ranges_over_one_connection() {
    let (scratch, bytes) = site();
    let served = Served::new(&secured(&scratch));
    random_ranges(&Http3Client::new(&scratch, &served), &bytes, LENGTH);
    served.stop();
}

#[test]
fn ten_thousand_random_ranges_over_a_lossy_path() {
    let (scratch, bytes) = site();
    let mut spec = secured(&scratch);
    // CUBIC would take minutes.
    spec.listeners[0].quic_cc = Some("bbr3".parse().expect("a controller"));
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    let lossy = LossyPath::to(http3_client.address);
    random_ranges(&Http3Client { address: lossy.address, ..http3_client }, &bytes, 200_000);
    served.stop();
    let lost = lossy.end();
    assert!(lost > 3000, "{lost} datagrams lost");
}

#[test]
fn responses_match_those_over_tcp() {
    let (scratch, bytes) = site();
    let served = Served::new(&secured(&scratch));
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let connection = http3_client.connect().await;
        let (head, whole) = get(&connection, "/file.bin", &[]).await.expect("a response");
        assert!(head.status() == 200 && whole == bytes);
        let date = head.headers()["date"].to_str().expect("text");
        let date = httpdate::parse_http_date(date).expect("a date");
        assert!(date.elapsed().is_ok_and(|ago| ago < Duration::from_secs(30)), "{date:?}");
        let timing = head.headers()["server-timing"].to_str().expect("text");
        assert!(timing.starts_with("cc;desc=\"cubic\", rtt;dur="), "{timing}");
        let etag = head.headers()["etag"].to_str().expect("text").to_owned();
        let cases = [
            ("HEAD", "/file.bin", vec![], 200, 0),
            ("GET", "/empty", vec![], 200, 0),
            ("GET", "/file.bin", vec![("if-none-match", &*etag)], 304, 0),
            ("GET", "/file.bin", vec![("range", "bytes=700001-")], 416, 26),
            ("GET", "/nothing", vec![], 404, 14),
            ("POST", "/file.bin", vec![], 405, 23),
        ];
        for (method, path, headers, status, length) in cases {
            let response = connection.request(request(method, path, &headers)).await;
            let response = response.expect("a response");
            assert_eq!(response.status(), status, "{method} {path}");
            assert!(response.headers().contains_key("date"), "{method} {path}");
            let body = body(response).await.expect("a body");
            assert_eq!(body.len(), length, "{method} {path}");
        }
        let parts = [("range", "bytes=0-9,100-109,-10")];
        let (head, multipart) = get(&connection, "/file.bin", &parts).await.expect("a response");
        assert_eq!(head.status(), StatusCode::PARTIAL_CONTENT);
        let has = |part: &[u8]| multipart.windows(part.len()).any(|window| window == part);
        assert!(has(&bytes[..10]) && has(&bytes[100..110]) && has(&bytes[LENGTH - 10..]));
    });
    served.stop();
}

/// The head of the response over TCP, from curl.
fn head_over_tcp(served: &Served) -> String {
    let url = format!("https://{}/empty", served.address);
    let curl = Command::new("curl").args(["-sSkI", &url]).output().expect("curl runs");
    String::from_utf8_lossy(&curl.stdout).into_owned()
}

#[test]
fn http3_is_announced_by_alt_svc() {
    let (scratch, _) = site();
    let mut spec = secured(&scratch);
    let served = Served::new(&spec);
    let port = served.server.listening()[1].address.port();
    assert_eq!(port, served.address.port());
    let announced = format!("alt-svc: h3=\":{port}\"; ma=86400\r\n");
    let head = head_over_tcp(&served);
    assert!(head.contains(&announced), "{head}");
    served.stop();
    spec.http3 = false;
    let served = Served::new(&spec);
    assert_eq!(served.server.listening().len(), 1);
    let head = head_over_tcp(&served);
    assert!(head.contains("200") && !head.contains("alt-svc"), "{head}");
    served.stop();
}

#[test]
fn a_file_that_changes_while_it_is_sent_resets_the_stream() {
    let scratch = Scratch::new("serve");
    let length = 50_000_000;
    scratch.write("root/file.bin", content(length));
    scratch.write("root/other", "fine");
    let served = Served::new(&secured(&scratch));
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let connection = http3_client.connect().await;
        let response = connection.request(request("GET", "/file.bin", &[])).await;
        let response = response.expect("a response");
        // Most of it waits for the client.
        std::fs::OpenOptions::new()
            .write(true)
            .open(scratch.path("root/file.bin"))
            .and_then(|file| file.set_len(20_000_000))
            .expect("truncated");
        assert_eq!(body(response).await, Err(ClientError::Reset(0x102)), "H3_INTERNAL_ERROR");
        let (_, body) = get(&connection, "/other", &[]).await.expect("a response");
        assert_eq!(body, b"fine");
    });
    served.stop();
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let (scratch, _) = site();
    let served = Served::new(&secured(&scratch));
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let connection = http3_client.connect().await;
        // With the first response, the client learns the server's limit, and then does not even
        // send such a request.
        get(&connection, "/empty", &[]).await.expect("a response");
        let large = "x".repeat(20_000);
        let refused = get(&connection, "/empty", &[("x-large", &large)]).await;
        assert!(matches!(refused, Err(ClientError::Malformed(_))), "{refused:?}");
        let (head, _) = get(&connection, "/empty", &[]).await.expect("a response");
        assert_eq!(head.status(), 200);
    });
    served.stop();
}

#[test]
fn connection_specific_fields_are_malformed() {
    let (scratch, _) = site();
    let served = Served::new(&secured(&scratch));
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let connection = http3_client.connect().await;
        for field in [
            ("connection", "close"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("te", "gzip"),
            ("te", "trailers, gzip"),
        ] {
            let refused = get(&connection, "/empty", &[field]).await.map(|(head, _)| head.status());
            assert_eq!(refused, Err(ClientError::Reset(0x10e)), "H3_MESSAGE_ERROR: {field:?}");
        }
        let (head, _) =
            get(&connection, "/empty", &[("te", "trailers")]).await.expect("a response");
        assert_eq!(head.status(), 200);
    });
    served.stop();
}

/// RFC 9114 §4.3.1 and §4.1.2.
#[test]
fn requests_with_two_hosts_or_another_length_are_malformed() {
    let (scratch, _) = site();
    let served = Served::new(&secured(&scratch));
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let connection = http3_client.connect().await;
        for fields in [
            &[("host", "localhost"), ("host", "localhost")][..],
            &[("content-length", "0"), ("content-length", "1")],
            &[("content-length", "five")],
            &[("content-length", "5")],
        ] {
            let refused = get(&connection, "/empty", fields).await.map(|(head, _)| head.status());
            assert_eq!(refused, Err(ClientError::Reset(0x10e)), "H3_MESSAGE_ERROR: {fields:?}");
        }
        for fields in [&[("content-length", "0")][..], &[("host", "localhost")]] {
            let (head, _) = get(&connection, "/empty", fields).await.expect("a response");
            assert_eq!(head.status(), 200);
        }
    });
    served.stop();
}

#[test]
fn a_thousand_connections_that_are_abandoned() {
    let (scratch, _) = site();
    let mut spec = secured(&scratch);
    spec.limits.idle_time = Duration::from_millis(200);
    spec.limits.stall_time = Duration::from_millis(200);
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        for _ in 0..20 {
            let connections =
                futures_util::future::join_all((0..50).map(|_| http3_client.connect()));
            for connection in connections.await {
                let unread = connection.request(request("GET", "/file.bin", &[])).await;
                drop((unread.expect("a response"), connection));
            }
        }
        let connection = http3_client.connect().await;
        let (head, _) = get(&connection, "/empty", &[]).await.expect("a response");
        assert_eq!(head.status(), 200);
    });
    served.stop();
}

#[test]
fn idle_and_stalled_clients_are_disconnected() {
    let scratch = Scratch::new("serve");
    scratch.write("root/file.bin", content(20_000_000));
    let mut spec = secured(&scratch);
    spec.limits.head_time = Duration::from_millis(300);
    // A client loses received data that it has not read when the connection closes.
    spec.limits.idle_time = Duration::from_secs(2);
    spec.limits.stall_time = Duration::from_millis(500);
    let served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let silent = http3_client.connect().await;
        silent.closed().await;
        let stalled = http3_client.connect().await;
        let response = stalled.request(request("GET", "/file.bin", &[])).await;
        stalled.closed().await;
        assert!(body(response.expect("a response")).await.is_err());
        // A client that reads now and then is not disconnected.
        let slow = http3_client.connect().await;
        let response = slow.request(request("GET", "/file.bin", &[])).await;
        let (mut body, mut length) = (response.expect("a response").into_body(), 0);
        while let Some(chunk) = body.next_chunk().await {
            length += chunk.expect("the rest").data.len();
            pause_async(Duration::from_millis(5), "a client that reads slowly").await;
        }
        assert_eq!(length, 20_000_000);
        slow.closed().await;
    });
    served.stop();
}

#[test]
fn shutdown_completes_responses() {
    let scratch = Scratch::new("serve");
    let bytes = content(20_000_000);
    scratch.write("root/file.bin", &bytes);
    let served = Served::new(&secured(&scratch));
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let (busy, idle) = (http3_client.connect().await, http3_client.connect().await);
        let responses = (0..5).map(|_| busy.request(request("GET", "/file.bin", &[])));
        let responses = futures_util::future::join_all(responses).await;
        let stopped = std::thread::spawn(move || served.stop());
        idle.closed().await;
        // An unread response would block the others through the connection's window.
        let bodies = responses.into_iter().map(|response| body(response.expect("a response")));
        for body in futures_util::future::join_all(bodies).await {
            assert!(body.expect("all of it") == bytes);
        }
        assert!(busy.request(request("GET", "/file.bin", &[])).await.is_err(), "no more");
        busy.closed().await;
        stopped.join().expect("it ended");
    });
}

#[test]
fn a_policy_chooses_by_host_and_bounds_the_rate() {
    let (scratch, _) = site();
    let mut spec = secured(&scratch);
    let policy = "[default]\nquic = \"reno\"\ninitial_window = \"4p\"\n\
                  [[rule]]\nhost = \"localhost\"\nuse = { quic = \"bbr3\", pacing_cap = \"8mbit\" }\n";
    scratch.write("policy.toml", policy);
    spec.policy = Some(scratch.path("policy.toml"));
    let served = Served::new(&spec);
    assert_eq!(served.server.listening()[1].cc, "policy");
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let connection = http3_client.connect().await;
        let begun = crate::talker::now();
        let (head, _) = get(&connection, "/file.bin", &[]).await.expect("a response");
        let timing = head.headers()["server-timing"].to_str().expect("text");
        assert!(timing.starts_with("cc;desc=\"bbr3\", rtt;dur="), "{timing}");
        // 700 kB take 0.7 s, minus an initial burst.
        assert!(begun.elapsed() > Duration::from_millis(500), "{:?}", begun.elapsed());
    });
    served.stop();
}

/// Whether a new connection succeeds that trusts only this certificate.
async fn is_trusted(http3_client: &Http3Client, certificate: &std::path::Path) -> bool {
    let cc = ("cubic".parse().expect("a controller"), 1);
    let tls = crate::talker::tls(certificate);
    http3_client.client.connect(http3_client.address, "localhost", cc, &tls).await.is_ok()
}

#[test]
fn a_new_certificate_is_for_new_connections() {
    let (scratch, bytes) = site();
    let spec = secured(&scratch);
    let first = scratch.path("first.pem");
    std::fs::copy(scratch.path("chain.pem"), &first).expect("copied");
    let mut served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    run(async {
        let old = http3_client.connect().await;
        // Replaces it with another certificate.
        secured(&scratch);
        assert!(is_trusted(&http3_client, &first).await, "nothing was read yet");
        let reloaded = served.server.reload();
        assert!(reloaded.len() == 1 && reloaded[0].result.is_ok(), "{reloaded:?}");
        assert!(!is_trusted(&http3_client, &first).await);
        assert!(is_trusted(&http3_client, &scratch.path("chain.pem")).await);
        let (_, body) = get(&old, "/file.bin", &[]).await.expect("a response");
        assert!(body == bytes, "what was open goes on");
    });
    served.stop();
}
