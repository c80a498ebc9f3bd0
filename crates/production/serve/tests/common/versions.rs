//! The same request over each version of HTTP.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;

use http::Request;
use uncork_h3::Client as H3Client;
use uncork_h3::client::ClientOptions;

use crate::common::{Scratch, Served};
use crate::talker::{self, body, run};

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// Asks `host` for `path` over a version of HTTP, trusting the certificate in `trusted` alone.
pub fn ask(
    served: &Served,
    scratch: &Scratch,
    version: &str,
    url: (&str, &str),
    trusted: &str,
) -> Answer {
    let (host, path) = url;
    if version == "h3" {
        return over_http3(served.server.listening()[1].address, scratch, url, trusted);
    }
    let port = served.address.port();
    let output = Command::new("curl")
        .args(["-sSi", if version == "h2" { "--http2" } else { "--http1.1" }])
        .args(["--resolve", &format!("{host}:{port}:127.0.0.1"), "--cacert"])
        .arg(scratch.path(trusted))
        .arg(format!("https://{host}:{port}{path}"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap();
    assert_eq!(status.starts_with("HTTP/2"), version == "h2", "{status}");
    let fields = lines.filter_map(|line| line.split_once(": "));
    Answer {
        status: status.split(' ').nth(1).unwrap().parse().unwrap(),
        headers: fields.map(|(name, it)| (name.to_ascii_lowercase(), it.to_owned())).collect(),
        body: body.to_owned(),
    }
}

fn over_http3(
    address: SocketAddr,
    scratch: &Scratch,
    (host, path): (&str, &str),
    trusted: &str,
) -> Answer {
    let client = H3Client::start(&ClientOptions::default(), talker::now()).unwrap();
    let tls = talker::tls(&scratch.path(trusted));
    run(async {
        let cc = ("cubic".parse().unwrap(), 1);
        let connection = client.connect(address, host, cc, &tls).await.unwrap();
        let request = Request::builder().uri(format!("https://{host}{path}")).body(()).unwrap();
        let response = connection.request(request).await.unwrap();
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        let fields = response.headers().iter();
        Answer {
            status: response.status().as_u16(),
            headers: fields.map(|(name, it)| (name.to_string(), text(it))).collect(),
            body: String::from_utf8(body(response).await.unwrap()).unwrap(),
        }
    })
}

pub const VERSIONS: [&str; 3] = ["h1", "h2", "h3"];
