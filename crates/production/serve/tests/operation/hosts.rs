//! Virtual hosts: certificates by server name, directories by host, own headers, redirects and error pages, over each
//! version of HTTP.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use crate::common::{Client, Scratch, Served, listener, spec as spec_of};
use crate::talker::secured;
use crate::versions::{VERSIONS, ask};
use uncork_serve::config::{read_hosts, read_site};
use uncork_serve::site::Redirect;
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
fn another_configuration_is_active_as_a_whole_or_not_at_all() {
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
    // Its last part cannot be read, so no part of it becomes active.
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
    // The host's own redirects come after: the other host could not prove this one's domain.
    let elsewhere = Redirect::new("/*", "https://other.example/*", 308).unwrap();
    spec.site.redirects.push(elsewhere);
    spec.listeners.push(ListenerSpec { to_https: true, ..listener("plain", None) });
    let served = Served::new(&spec);
    let listening = served.server.listening();
    let plain = listening.iter().find(|it| !it.is_tls).unwrap().address;
    let mut client = Client::new(plain);
    let moved = client.get_of("a.example:80", "/file?x").unwrap();
    let to = format!("https://a.example:{}/file?x", served.address.port());
    assert_eq!((moved.status, moved.header("location")), (308, to.as_str()));
    assert_eq!(moved.header("alt-svc"), "");
    // It has no path, so no URL says it.
    let server = client.ask("a.example", "OPTIONS", "*", "").unwrap();
    assert_eq!((server.status, server.header("location")), (204, ""));
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
