//! Virtual hosts: certificates by server name, directories by host, own headers, redirects and error pages, over each
//! version of HTTP.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod common;
#[path = "common/talker.rs"]
mod talker;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;

use common::{Client, Scratch, Served, listener, spec as spec_of};
use http::Request;
use talker::{body, run, secured};
use uncork_h3::Client as H3Client;
use uncork_h3::client::ClientOptions;
use uncork_serve::config::{read_hosts, read_site};
use uncork_serve::{CertificateFiles, ListenerSpec, ServeError, ServerSpec};

/// A certificate for `name`, in `name.pem`.
fn certificate(scratch: &Scratch, name: &str) -> CertificateFiles {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
    scratch.write(&certificate, made.cert.pem());
    scratch.write(&key, made.signing_key.serialize_pem());
    CertificateFiles { certificate: scratch.path(&certificate), key: scratch.path(&key) }
}

/// Adds what a configuration file's tables say.
fn configured(scratch: &Scratch, mut spec: ServerSpec, tables: &str) -> ServerSpec {
    let tables = tables.replace("DIR", scratch.path("").to_str().unwrap());
    let file = uncork_config::Node::of_text(&tables).unwrap();
    read_site(&file, &mut spec.site).unwrap();
    spec.hosts = read_hosts(&file, &spec.root, &spec.site).unwrap();
    spec
}

#[derive(Debug)]
struct Told {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Told {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// Asks `host` for `path` over a version of HTTP, trusting the certificate in `trusted` alone.
fn ask(
    served: &Served,
    scratch: &Scratch,
    version: &str,
    url: (&str, &str),
    trusted: &str,
) -> Told {
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
    Told {
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
) -> Told {
    let client = H3Client::start(&ClientOptions::default(), talker::now()).unwrap();
    let tls = talker::tls(&scratch.path(trusted));
    run(async {
        let cc = ("cubic".parse().unwrap(), 1);
        let connection = client.connect(address, host, cc, &tls).await.unwrap();
        let request = Request::builder().uri(format!("https://{host}{path}")).body(()).unwrap();
        let response = connection.request(request).await.unwrap();
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        let fields = response.headers().iter();
        Told {
            status: response.status().as_u16(),
            headers: fields.map(|(name, it)| (name.to_string(), text(it))).collect(),
            body: String::from_utf8(body(response).await.unwrap()).unwrap(),
        }
    })
}

const VERSIONS: [&str; 3] = ["h1", "h2", "h3"];

fn two_hosts(scratch: &Scratch) -> ServerSpec {
    scratch.write("root/file", "default");
    scratch.write("a/file", "a");
    scratch.write("a/missing.html", "<p>nothing here");
    certificate(scratch, "a.example");
    configured(
        scratch,
        secured(scratch),
        r#"
        [headers]
        Strict-Transport-Security = "max-age=31536000"
        [[redirect]]
        from = "/old/*"
        to = "/new/*"
        status = 301
        [[host]]
        names = ["a.example"]
        root = "DIR/a"
        tls_cert = "DIR/a.example.pem"
        tls_key = "DIR/a.example.key"
        error_pages = { 404 = "/missing.html" }
        headers = { X-Host = "a" }
        "#,
    )
}

#[test]
fn each_host_has_its_certificate_and_directory() {
    let scratch = Scratch::new("serve");
    let served = Served::new(&two_hosts(&scratch));
    for version in VERSIONS {
        let a = ask(&served, &scratch, version, ("a.example", "/file"), "a.example.pem");
        assert_eq!((a.status, a.body.as_str(), a.header("x-host")), (200, "a", "a"), "{version}");
        assert_eq!(a.header("strict-transport-security"), "", "{version}");
        let other = ask(&served, &scratch, version, ("localhost", "/file"), "chain.pem");
        assert_eq!((other.status, other.body.as_str()), (200, "default"), "{version}");
        assert_eq!(other.header("strict-transport-security"), "max-age=31536000", "{version}");
    }
    served.stop();
}

#[test]
fn redirects_and_error_pages_are_the_hosts() {
    let scratch = Scratch::new("serve");
    let served = Served::new(&two_hosts(&scratch));
    for version in VERSIONS {
        let moved = ask(&served, &scratch, version, ("a.example", "/old/x?y"), "a.example.pem");
        assert_eq!((moved.status, moved.header("location")), (301, "/new/x?y"), "{version}");
        let missing = ask(&served, &scratch, version, ("a.example", "/none"), "a.example.pem");
        assert_eq!((missing.status, missing.body.as_str()), (404, "<p>nothing here"), "{version}");
        assert_eq!(missing.header("content-type"), "text/html; charset=utf-8", "{version}");
        assert_eq!(missing.header("x-host"), "a", "{version}");
        let plain = ask(&served, &scratch, version, ("localhost", "/none"), "chain.pem");
        assert_eq!((plain.status, plain.body.as_str()), (404, "404 Not Found\n"), "{version}");
    }
    served.stop();
}

#[test]
fn another_configuration_is_in_force_as_a_whole_or_not_at_all() {
    let scratch = Scratch::new("serve");
    let spec = two_hosts(&scratch);
    let mut served = Served::new(&spec);
    scratch.write("b/file", "b");
    certificate(&scratch, "b.example");
    let mut with_b = configured(
        &scratch,
        secured(&scratch),
        "[[host]]\nnames = [\"b.example\"]\nroot = \"DIR/b\"\ntls_cert = \"DIR/b.example.pem\"\n\
         tls_key = \"DIR/b.example.key\"\n",
    );
    // The last of it cannot be read, so that nothing of it is in force.
    let root = std::mem::replace(&mut with_b.root, scratch.path("missing"));
    let refused = served.server.reconfigure(&with_b).result.unwrap_err();
    assert!(matches!(refused, ServeError::Root(..)), "{refused}");
    let a = ask(&served, &scratch, "h1", ("a.example", "/file"), "a.example.pem");
    assert_eq!(a.body, "a");
    with_b.root = root;
    let mut other_listener = with_b.clone();
    other_listener.listeners.push(listener("other", None));
    let refused = served.server.reconfigure(&other_listener).result.unwrap_err();
    assert!(refused.to_string().starts_with("`listen` or `cc` cannot change"), "{refused}");
    served.server.reconfigure(&with_b).result.unwrap();
    for version in VERSIONS {
        let b = ask(&served, &scratch, version, ("b.example", "/file"), "b.example.pem");
        assert_eq!((b.status, b.body.as_str()), (200, "b"), "{version}");
        let default = ask(&served, &scratch, version, ("localhost", "/file"), "chain.pem");
        assert_eq!(default.header("strict-transport-security"), "", "{version}");
    }
    served.stop();
}

/// A listener without TLS sends browsers on to HTTPS, and shows authorities their challenge.
#[test]
fn plain_requests_are_sent_on_to_https() {
    let scratch = Scratch::new("serve");
    scratch.write("root/.well-known/acme-challenge/token", "proof");
    let mut spec = secured(&scratch);
    spec.listeners.push(ListenerSpec { to_https: true, ..listener("plain", None) });
    let served = Served::new(&spec);
    let listening = served.server.listening();
    let plain = listening.iter().find(|it| !it.is_tls).unwrap().address;
    let mut client = Client::new(plain);
    let moved = client.get_of("a.example:80", "/file?x").unwrap();
    let to = format!("https://a.example:{}/file?x", served.address.port());
    assert_eq!((moved.status, moved.header("location")), (308, to.as_str()));
    assert_eq!(moved.header("alt-svc"), "");
    let challenge = client.get_of("a.example", "/.well-known/acme-challenge/token").unwrap();
    assert_eq!((challenge.status, challenge.body.as_slice()), (200, b"proof".as_slice()));
    served.stop();
    let mut alone = spec_of(&scratch.path("root"));
    alone.listeners[0].to_https = true;
    assert!(matches!(alone.check(), Err(ServeError::RedirectWithoutTls)));
}

#[test]
fn a_host_has_a_certificate_only_if_the_server_has_one() {
    let scratch = Scratch::new("serve");
    scratch.write("root/file", "");
    let mut plain = spec_of(&scratch.path("root"));
    plain.hosts = two_hosts(&scratch).hosts;
    assert!(
        matches!(plain.check(), Err(ServeError::HostCertificateAlone(name)) if name == "a.example")
    );
}
