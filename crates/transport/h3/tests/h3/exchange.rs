//! Requests and responses over the loopback device.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::common::{Counts, Test, client, fits, get, run, until};
use uncork_h3::client::{Body, ClientError};
use uncork_testkit::pause_async;

/// Reads a body and checks each byte. Returns its length.
async fn read(body: &mut Body) -> Result<u64, ClientError> {
    let (mut length, mut last) = (0, body.head_at());
    while let Some(chunk) = body.next_chunk().await {
        let chunk = chunk?;
        assert!(fits(length, &chunk.data), "wrong bytes at {length}");
        assert!(chunk.at >= last, "time runs backwards");
        last = chunk.at;
        length += chunk.data.len() as u64;
    }
    Ok(length)
}

#[test]
fn bodies_arrive_as_they_were_sent() {
    let (test, client) = (Test::new(), client());
    run(async {
        let connection = test.connect(&client).await;
        for length in [0, 1, 1024, 16_384, 65_521, 1_000_000, 20_000_000] {
            let mut response = connection.request(get(&format!("/{length}"))).await.unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(read(response.body_mut()).await, Ok(length));
        }
        let observation = connection.observe().unwrap();
        assert!(observation.rtt.is_some() && observation.acked_bytes > 0, "{observation:?}");
        until("all is acknowledged", || Counts::of(&test.counts.acknowledged) == 7).await;
        drop(connection);
        until("the connection is closed", || Counts::of(&test.counts.closed) == 1).await;
        assert_eq!(Counts::of(&test.counts.code), 0x100, "H3_NO_ERROR");
    });
}

/// Each name and value of QPACK's static table that is encoded by its index, and others that are not.
#[test]
fn heads_arrive_as_they_were_sent() {
    let long = "v".repeat(5000);
    let fields = [
        ("accept-ranges", &["bytes", "none"][..]),
        ("age", &["0", "7"]),
        ("content-disposition", &["", "inline"]),
        ("date", &["Sun, 06 Nov 1994 08:49:37 GMT"]),
        ("etag", &["\"a-1\""]),
        ("last-modified", &["Sun, 06 Nov 1994 08:49:37 GMT"]),
        ("link", &["</a>; rel=preload"]),
        ("location", &["/a"]),
        ("access-control-allow-headers", &["range", "content-type"]),
        ("access-control-allow-origin", &["*", "https://a.example"]),
        ("access-control-allow-methods", &["get"]),
        ("access-control-expose-headers", &["content-length"]),
        ("alt-svc", &["clear"]),
        (
            "cache-control",
            &["max-age=0", "max-age=2592000", "max-age=604800", "no-cache", "no-store"],
        ),
        ("cache-control", &["public, max-age=31536000", "max-age=1"]),
        ("content-encoding", &["br", "gzip", "zstd"]),
        ("content-type", &["application/javascript", "application/json", "image/gif"]),
        ("content-type", &["image/jpeg", "image/png", "text/css", "text/html; charset=utf-8"]),
        ("content-type", &["text/plain", "video/mp4", ""]),
        ("content-security-policy", &["default-src 'self'"]),
        ("strict-transport-security", &["max-age=1"]),
        ("vary", &["accept-encoding", "origin", "Accept-Encoding"]),
        ("x-content-type-options", &["nosniff"]),
        ("x-frame-options", &["deny"]),
        ("timing-allow-origin", &["*"]),
        ("server-timing", &["cc;desc=\"bbr\"", &long]),
        ("x", &["\u{e9}", ""]),
    ];
    let fields = fields.iter().flat_map(|(name, values)| values.iter().map(move |it| (name, it)));
    let fields = fields.map(|(name, value)| {
        (name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    });
    let fields: HeaderMap = fields.collect();
    let (test, client) = (Test::new(), client());
    run(async {
        let connection = test.connect(&client).await;
        for status in [200, 206, 304, 404, 418, 503] {
            let mut request = get(&format!("/fields/{status}"));
            *request.headers_mut() = fields.clone();
            let response = connection.request(request).await.expect("a response");
            assert_eq!(response.status(), status);
            assert_eq!(response.headers(), &fields);
        }
    });
}

#[test]
fn requests_succeed_in_parallel_and_in_sequence() {
    let (test, client) = (Test::new(), client());
    run(async {
        let connection = test.connect(&client).await;
        let requests = (0..500_u64).map(|index| {
            let connection = connection.clone();
            async move {
                let length = index * 101;
                let mut response = connection.request(get(&format!("/{length}"))).await.unwrap();
                assert_eq!(read(response.body_mut()).await, Ok(length));
            }
        });
        futures_util::future::join_all(requests).await;
        assert_eq!(Counts::of(&test.counts.connections), 1);
    });
}

#[test]
fn a_body_dropped_unread_is_stopped_and_leaves_the_window_to_others() {
    let (test, client) = (Test::new(), client());
    run(async {
        let connection = test.connect(&client).await;
        // Far larger than the receive window, which the streams of the connection share.
        let unread = connection.request(get("/100000000")).await.unwrap();
        pause_async(Duration::from_millis(50), "a body that is not read").await;
        drop(unread);
        until("it was stopped", || Counts::of(&test.counts.stopped) == 1).await;
        let mut response = connection.request(get("/5000000")).await.unwrap();
        assert_eq!(read(response.body_mut()).await, Ok(5_000_000));
        assert_eq!(Counts::of(&test.counts.sent), 1);
    });
}

#[test]
fn a_truncated_body_is_an_error() {
    let (test, client) = (Test::new(), client());
    run(async {
        let connection = test.connect(&client).await;
        for length in [0, 100_000] {
            let response = connection.request(get(&format!("/cut/{length}"))).await;
            // A reset may overtake the data before it.
            let error = match response {
                Ok(mut response) => read(response.body_mut()).await.unwrap_err(),
                Err(error) => error,
            };
            assert_eq!(error, ClientError::Reset(0x102));
        }
        let mut response = connection.request(get("/10")).await.unwrap();
        assert_eq!(read(response.body_mut()).await, Ok(10), "the connection goes on");
    });
}

#[test]
fn dropped_requests_are_cancelled() {
    let (test, client) = (Test::new(), client());
    run(async {
        let connection = test.connect(&client).await;
        for _ in 0..200 {
            let request = connection.request(get("/silent"));
            let given_up = tokio::time::timeout(Duration::from_millis(1), request).await;
            assert!(given_up.is_err());
        }
        let mut response = connection.request(get("/10")).await.unwrap();
        assert_eq!(read(response.body_mut()).await, Ok(10), "streams have room for it");
    });
}

#[test]
fn a_server_shutdown_closes_connections() {
    let (test, client) = (Test::new(), client());
    run(async {
        let connection = test.connect(&client).await;
        let mut response = connection.request(get("/100000000")).await.unwrap();
        let silent = connection.request(get("/silent"));
        test.server.shut_down(&uncork_quic_io::ShutdownOptions::at_once(
            noq_proto::VarInt::from_u32(0x100),
        ));
        assert!(matches!(silent.await, Err(ClientError::Lost(_) | ClientError::Ended)));
        let error = read(response.body_mut()).await.unwrap_err();
        assert!(matches!(error, ClientError::Lost(_) | ClientError::Ended), "{error}");
        connection.closed().await;
        assert_eq!(connection.request(get("/1")).await.unwrap_err(), ClientError::Ended);
    });
}

#[test]
fn an_untrusted_or_invalid_server_is_an_error() {
    let (test, other) = (Test::new(), Test::new());
    let options = uncork_h3::client::ClientOptions::default();
    let client = uncork_h3::Client::start(&options, crate::common::now()).unwrap();
    run(async {
        let cc = || ("cubic".parse().unwrap(), 1);
        let name = crate::common::identity::NAME;
        let wrong = client.connect(test.address, name, cc(), &other.tls).await;
        assert!(matches!(wrong, Err(ClientError::Lost(_))));
        let wrong = client.connect(test.address, "other.example", cc(), &test.tls).await;
        assert!(matches!(wrong, Err(ClientError::Lost(_))));
        let wrong = client.connect(test.address, "no name", cc(), &test.tls).await;
        assert!(matches!(wrong, Err(ClientError::Connect(_))));
    });
}
