//! A new process takes over from a running one, and no request fails.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod common;
#[path = "common/late.rs"]
mod late;
#[path = "common/load.rs"]
mod load;
#[path = "common/talker.rs"]
mod talker;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use common::{Scratch, Served, content, records};
use load::{Load, Protocol, Tally};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use talker::{Http3Client, get, now, run, secured, tls};
use uncork_flow::FlowRecord;
use uncork_h3::Client as H3Client;
use uncork_h3::client::{ClientOptions, Tls};
use uncork_serve::{RecordsSpec, ServeError, Server, ServerSpec};
use uncork_testkit::{pause, pause_async, wait_for, wait_until};

const SMALL: usize = 1000;
const LARGE: usize = 8_000_000;

fn site(name: &str) -> (Scratch, ServerSpec) {
    let scratch = Scratch::new(name);
    scratch.write("root/small", content(SMALL));
    scratch.write("root/large", content(LARGE));
    let mut spec = secured(&scratch);
    spec.handover = Some(scratch.path("handover.sock"));
    (scratch, spec)
}

/// The same server, with its name in all responses.
fn called(name: &'static str, spec: &ServerSpec) -> ServerSpec {
    let mut spec = spec.clone();
    spec.site.cache_control = Some(name.parse().unwrap());
    spec
}

/// Starts a server that takes over from `old`.
fn take_over(old: &mut Server, spec: &ServerSpec) -> Result<Server, ServeError> {
    let spec = spec.clone();
    let new = thread::spawn(move || Server::start(&spec));
    wait_for("a handover", Duration::from_mins(1), || {
        let given = old.hand_over();
        (given.is_some() || new.is_finished()).then_some(())
    });
    new.join().unwrap()
}

fn have_served(tallies: &[Tally], server: &str, count: usize) -> bool {
    tallies.iter().all(|it| it.of(server) >= count)
}

/// Three servers in succession, while clients send requests over all protocols continuously, and
/// slow downloads continue.
#[test]
fn two_restarts_under_load_fail_no_request() {
    let (scratch, spec) = site("handover");
    let mut first = Server::start(&called("first", &spec)).unwrap();
    let address = first.listening()[0].address;
    let (tallies, is_over) = ([(); 3].map(|()| Tally::default()), AtomicBool::new(false));
    let pieces = [(); 3].map(|()| AtomicUsize::new(0));
    let load = Load { address, chain: scratch.path("chain.pem"), small: content(SMALL) };
    let (load, over) = (&load, &is_over);
    let third = thread::scope(|threads| {
        let mut slow = Vec::new();
        for ((protocol, tally), pieces) in Protocol::ALL.into_iter().zip(&tallies).zip(&pieces) {
            for _ in 0..3 {
                threads.spawn(move || load.ask(protocol, over, tally));
            }
            let download = move || load.download_slowly(protocol, Duration::from_secs(4), pieces);
            slow.push(threads.spawn(download));
        }
        wait_until("the first server serves all", Duration::from_mins(1), || {
            pieces.iter().all(|it| it.load(Ordering::Relaxed) > 0)
                && have_served(&tallies, "first", 20)
        });
        let mut second = take_over(&mut first, &called("second", &spec)).unwrap();
        let first = threads.spawn(move || first.stop(Duration::from_mins(1)));
        wait_until("the second server serves, the first drains", Duration::from_mins(1), || {
            have_served(&tallies, "second", 20)
        });
        let third = take_over(&mut second, &called("third", &spec)).unwrap();
        let second = threads.spawn(move || second.stop(Duration::from_mins(1)));
        wait_until("the third server serves", Duration::from_mins(1), || {
            have_served(&tallies, "third", 20)
        });
        let slow: Vec<_> = slow.into_iter().map(|it| it.join().expect("an outcome")).collect();
        first.join().expect("the first ends");
        second.join().expect("the second ends");
        is_over.store(true, Ordering::Relaxed);
        for (protocol, outcome) in Protocol::ALL.into_iter().zip(slow) {
            let (server, body) = outcome.unwrap_or_else(|error| panic!("{protocol:?}: {error}"));
            assert!(server == "first" && body == content(LARGE), "{protocol:?}: {server}");
        }
        third
    });
    drop(third);
    for (protocol, tally) in Protocol::ALL.into_iter().zip(&tallies) {
        let (served, failures) = tally.counts();
        println!("{protocol:?}: {served:?}");
        assert_eq!(failures, Vec::<String>::new(), "{protocol:?}");
        for server in ["first", "second", "third"] {
            assert!(
                served.get(server).is_some_and(|count| *count >= 20),
                "{protocol:?}: {served:?}"
            );
        }
    }
    assert!(!scratch.path("handover.sock").exists(), "the last one removes it");
}

/// Each response that a client receives during a shutdown is recorded once, as complete.
#[test]
fn responses_received_during_shutdown_are_not_broken_off() {
    let (scratch, mut spec) = site("ended");
    spec.handover = None;
    spec.records = Some(RecordsSpec::new(scratch.path("records")));
    let served = Served::new(&called("it", &spec));
    let load =
        Load { address: served.address, chain: scratch.path("chain.pem"), small: content(SMALL) };
    let (tallies, is_over) = ([(); 3].map(|()| Tally::default()), AtomicBool::new(false));
    let (load, over) = (&load, &is_over);
    thread::scope(|threads| {
        for (protocol, tally) in Protocol::ALL.into_iter().zip(&tallies) {
            for _ in 0..3 {
                threads.spawn(move || load.ask(protocol, over, tally));
            }
        }
        wait_until("the server serves", Duration::from_mins(1), || {
            have_served(&tallies, "it", 100)
        });
        served.stop();
        is_over.store(true, Ordering::Relaxed);
    });
    let records = records(&scratch.path("records"));
    let is_broken = |it: &&FlowRecord| it.service.as_ref().is_some_and(|it| it.broken_off > 0);
    let broken = records.iter().filter(is_broken).count();
    let arrived: usize = tallies.iter().flat_map(|it| it.counts().0.into_values()).sum();
    assert_eq!((records.len(), broken), (arrived, 0));
    assert!(arrived > 300, "{arrived}");
}

/// The first server continues to serve if the second cannot start.
#[test]
fn a_failed_takeover_leaves_the_old_server_running() {
    let (scratch, spec) = site("handover");
    let mut served = Served::new(&spec);
    let http3_client = Http3Client::new(&scratch, &served);
    let mut wrong = spec.clone();
    wrong.policy = Some(scratch.path("missing.toml"));
    assert!(take_over(&mut served.server, &wrong).is_err());
    scratch.write("file", "not a directory");
    wrong = ServerSpec { records: Some(RecordsSpec::new(scratch.path("file/x"))), ..spec };
    assert!(take_over(&mut served.server, &wrong).is_err());
    run(async {
        let connection = http3_client.connect().await;
        let (head, body) = get(&connection, "/small", &[]).await.unwrap();
        assert!(head.status() == 200 && body == content(SMALL));
    });
    let checked = thread::spawn({
        let spec = ServerSpec { policy: None, records: None, ..wrong };
        move || spec.check().map(drop)
    });
    wait_for("a check", Duration::from_mins(1), || {
        let _asked = served.server.hand_over();
        checked.is_finished().then_some(())
    });
    checked.join().unwrap().expect("a check while a server serves");
    assert!(scratch.path("handover.sock").exists());
    served.stop();
    assert!(!scratch.path("handover.sock").exists());
}

/// After a crash, a restarted server with the same keys resets the connections of clients. One with
/// other keys does not answer them.
#[test]
fn after_a_crash_clients_get_a_stateless_reset() {
    for (has_keys, resets) in [(true, true), (false, false)] {
        let (scratch, mut spec) = site("reset");
        spec.handover = None;
        spec.keys = has_keys.then(|| scratch.path("keys"));
        let served = Served::new(&spec);
        let mut http3_client = Http3Client::new(&scratch, &served);
        // The crash: from now on the client's packets reach the restarted server.
        let path = late::DelayedPath::to(http3_client.address, Duration::ZERO);
        http3_client.address = path.address;
        let restarted = Served::new(&spec);
        run(async {
            let connection = http3_client.connect().await;
            get(&connection, "/small", &[]).await.unwrap();
            path.lead_to(restarted.server.listening()[1].address);
            let began = now();
            let asked = tokio::time::timeout(
                Duration::from_secs(if resets { 60 } else { 5 }),
                get(&connection, "/small", &[]),
            );
            let outcome = asked.await;
            assert_eq!(outcome.is_ok_and(|it| it.is_err()), resets, "after {:?}", began.elapsed());
        });
        drop(served);
        restarted.stop();
    }
}

/// Connects over TLS. Returns whether the session was resumed.
fn handshake(config: &std::sync::Arc<rustls::ClientConfig>, address: SocketAddr) -> bool {
    load::handshake(config, address) == rustls::HandshakeKind::Resumed
}

#[test]
fn sessions_over_tcp_resume_after_many_others_and_on_another_server() {
    let (scratch, mut spec) = site("tickets");
    spec.handover = None;
    spec.keys = Some(scratch.path("keys"));
    let (one, other) = (Served::new(&spec), Served::new(&spec));
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = || load::client(&scratch.path("chain.pem"), version, b"http/1.1");
        let patient = client();
        assert!(!handshake(&patient, one.address));
        for _ in 0..300 {
            assert!(!handshake(&client(), one.address));
        }
        assert!(handshake(&patient, one.address), "{version:?}: after 300 others");
        assert!(handshake(&patient, other.address), "{version:?}: on another server");
    }
    // A new key at the top encrypts, the old one still decrypts. Without the old key, earlier
    // sessions are not resumed.
    let client = load::client(&scratch.path("chain.pem"), &rustls::version::TLS13, b"http/1.1");
    assert!(!handshake(&client, one.address));
    let mut one = one;
    let old = fs::read_to_string(scratch.path("keys/tickets")).unwrap();
    write_keys(&scratch.path("keys/tickets"), &format!("{}\n{old}", "5".repeat(64)));
    assert!(one.server.reload().iter().all(|it| it.result.is_ok()));
    assert!(handshake(&client, one.address), "the old key opens");
    write_keys(&scratch.path("keys/tickets"), &"6".repeat(64));
    assert!(one.server.reload().iter().all(|it| it.result.is_ok()));
    assert!(!handshake(&client, one.address), "no key opens");
    write_keys(&scratch.path("keys/tickets"), "7");
    assert!(one.server.reload().iter().any(|it| it.what == "keys" && it.result.is_err()));
    assert!(handshake(&client, one.address), "a bad file leaves the active keys");
}

/// Counts how often the server showed its certificate, which it does not for a session that it resumes.
#[derive(Debug)]
struct CountingVerifier {
    inner: Arc<WebPkiServerVerifier>,
    count: AtomicU32,
}

impl ServerCertVerifier for CountingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.inner.verify_server_cert(end_entity, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// A QUIC session of one server is resumed by a restarted one with the same keys, and by no other.
#[test]
fn sessions_over_quic_resume_on_another_server_with_the_same_keys() {
    let (scratch, mut spec) = site("tickets");
    spec.handover = None;
    spec.keys = Some(scratch.path("keys"));
    let one = Served::new(&spec);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(scratch.path("chain.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let verifier =
        Arc::new(CountingVerifier { inner: inner.build().unwrap(), count: AtomicU32::new(0) });
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(verifier.clone())
        .with_no_client_auth();
    let mut client = Http3Client::new(&scratch, &one);
    client.tls = Tls::new(config).unwrap();
    let shown_by = |client: &Http3Client| {
        let before = verifier.count.load(Ordering::Relaxed);
        run(async {
            let connection = client.connect().await;
            get(&connection, "/small", &[]).await.unwrap();
        });
        verifier.count.load(Ordering::Relaxed) - before
    };
    assert_eq!(shown_by(&client), 1, "the first connection");
    assert_eq!(shown_by(&client), 0, "the same server");
    one.stop();
    let restarted = Served::new(&spec);
    client.address = restarted.server.listening()[1].address;
    assert_eq!(shown_by(&client), 0, "the same keys");
    restarted.stop();
    spec.keys = None;
    let stranger = Served::new(&spec);
    client.address = stranger.server.listening()[1].address;
    assert_eq!(shown_by(&client), 1, "other keys");
    stranger.stop();
}

fn write_keys(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

/// A shutdown does not wait for vanished clients, whether or not they have received a response.
#[test]
fn shutdown_does_not_wait_for_vanished_clients() {
    let (scratch, spec) = site("vanished");
    for is_idle in [true, false] {
        let served = Served::new(&spec);
        let client = H3Client::start(&ClientOptions::default(), now()).unwrap();
        let path =
            late::DelayedPath::to(served.server.listening()[1].address, Duration::from_millis(1));
        let http3_client =
            Http3Client { client, tls: tls(&scratch.path("chain.pem")), address: path.address };
        let connection = run(async {
            let connection = http3_client.connect().await;
            get(&connection, "/small", &[]).await.unwrap();
            if !is_idle {
                let asked = connection.request(talker::request("GET", "/large", &[])).await;
                path.cut();
                std::mem::forget(asked.unwrap());
            }
            pause_async(Duration::from_millis(200), "the last acknowledgement").await;
            connection
        });
        path.cut();
        pause(Duration::from_secs(1), "the client is gone");
        let began = now();
        served.server.stop(Duration::from_mins(1));
        let took = began.elapsed();
        let most = Duration::from_secs(if is_idle { 4 } else { 15 });
        assert!(took < most, "idle: {is_idle}, after {took:?}");
        drop(connection);
    }
}
