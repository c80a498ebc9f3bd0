//! Tests of files that are replaced while the server runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use crate::common::{Client, Scratch, Served, content, records, spec};
use uncork_serve::{CertificateFiles, Identity, RecordsSpec, Reloaded, ServerSpec};
use uncork_testkit::assert_message;

fn policy(tcp: &str, other: &str) -> String {
    format!("[default]\ntcp = \"{other}\"\n[[rule]]\nhost = \"a\"\nuse = {{ tcp = \"{tcp}\" }}\n")
}

/// Replaces a file atomically, so that it is always complete.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).expect("written");
    fs::rename(new, path).expect("renamed");
}

fn by_policy(scratch: &Scratch, text: &str) -> (ServerSpec, PathBuf) {
    scratch.write("root/file", "fine");
    scratch.write("policy.toml", text);
    let mut spec = spec(&scratch.path("root"));
    let path = scratch.path("policy.toml");
    spec.policy = Some(path.clone());
    (spec, path)
}

fn only(mut reloaded: Vec<Reloaded>) -> Result<String, String> {
    assert_eq!(reloaded.len(), 1, "{reloaded:?}");
    reloaded.remove(0).result.map_err(|error| error.to_string())
}

fn controller(served: &Served) -> String {
    let mut client = served.connect();
    client.get_of("a", "/file").expect("a response");
    client.controller()
}

#[test]
fn a_new_policy_is_for_new_connections() {
    let scratch = Scratch::new("serve");
    let (spec, path) = by_policy(&scratch, &policy("bbr", "reno"));
    let mut served = Served::new(&spec);
    let mut old = served.connect();
    replace(&path, &policy("reno", "bbr"));
    let line = only(served.server.reload()).expect("a policy");
    assert_eq!(Some(&line), served.server.policy().as_ref());
    assert!(line.ends_with(": 1 rule") && line.contains("fingerprint "), "{line}");
    assert_eq!(controller(&served), "reno");
    // The connection was accepted before, perhaps only by the kernel. In that case it uses only the
    // new policy.
    let response = old.get_of("a", "/file").expect("a response");
    assert!(["bbr", "reno"].contains(&old.controller().as_str()));
    assert_eq!(response.timing_controller(), format!("cc;desc=\"{}\"", old.controller()));
    served.stop();
}

#[test]
fn an_invalid_policy_leaves_the_old_one_active() {
    let scratch = Scratch::new("serve");
    let good = policy("bbr", "reno");
    let (spec, path) = by_policy(&scratch, &good);
    let mut served = Served::new(&spec);
    let line = served.server.policy();
    for (text, words) in [
        (good.replace("host", "hots"), "unknown key `hots`"),
        (
            good.replace("bbr", "nosuchcc"),
            "this kernel has no congestion control 'nosuchcc': it has",
        ),
        (String::from("\u{0}"), "policy.toml"),
    ] {
        replace(&path, &text);
        let error = only(served.server.reload()).expect_err("a bad policy");
        assert!(error.contains(words), "{error}");
        assert_eq!(served.server.policy(), line);
        assert_eq!(controller(&served), "bbr");
    }
    fs::remove_file(&path).expect("removed");
    let error = only(served.server.reload()).expect_err("no policy");
    assert!(error.starts_with("cannot read the policy"), "{error}");
    assert_eq!(controller(&served), "bbr");
    served.stop();
}

/// A policy with the table `file`. Its only entry gives `arm` to all clients.
fn with_table(file: &str) -> String {
    format!(
        "[default]\ntcp = \"cubic\"\n[table]\nfile = \"{file}\"\n[table.arm.one]\ntcp = \"reno\"\n\
         [table.arm.two]\ntcp = \"bbr\"\n[[rule]]\ntable = \"all\"\n"
    )
}

fn table(expires: &str, arm: &str) -> String {
    uncork_testkit::finished_table(&format!(
        "uncork-table 1\nversion 1\nmade 2020-01-01T00:00:00Z\nexpires {expires}\nsection all\n* {arm}\n"
    ))
}

const FAR: &str = "2096-01-01T00:00:00Z";

#[test]
fn a_table_of_networks_is_replaced_whole_or_not_at_all() {
    let scratch = Scratch::new("serve");
    let (spec, path) = by_policy(&scratch, &with_table("1.table"));
    let file = |name: &str| scratch.path(name);
    scratch.write("1.table", table(FAR, "one"));
    let mut served = Served::new(&spec);
    assert_eq!((controller(&served), served.server.warnings(&spec)), ("reno".to_owned(), vec![]));
    let first = served.server.policy();
    replace(&file("1.table"), &table(FAR, "two").replace("* two", "* one"));
    assert!(served.server.reload_changed().is_empty(), "it may not be over yet");
    let error = only(served.server.reload_changed()).expect_err("a damaged table");
    let directory = scratch.path("").display().to_string();
    assert_message!("1.table", error.replace(&directory, ""));
    assert_eq!((controller(&served), served.server.policy()), ("reno".to_owned(), first.clone()));
    replace(&file("1.table"), &table(FAR, "two"));
    served.server.reload_changed();
    only(served.server.reload_changed()).expect("a table");
    assert_eq!(controller(&served), "bbr");
    assert_ne!(served.server.policy(), first, "the fingerprint is another");
    // Another policy names another table, which is watched from then on.
    scratch.write("2.table", table(FAR, "one"));
    replace(&path, &with_table("2.table"));
    only(served.server.reload()).expect("another table");
    assert_eq!(controller(&served), "reno");
    replace(&file("2.table"), &table("2020-01-02T00:00:00Z", "two"));
    served.server.reload_changed();
    only(served.server.reload_changed()).expect("a table that has expired");
    assert_eq!(controller(&served), "cubic", "the default");
    served.stop();
}

#[test]
fn without_its_table_a_server_starts_with_the_default() {
    let scratch = Scratch::new("serve");
    let (spec, _) = by_policy(&scratch, &with_table("1.table"));
    let mut served = Served::new(&spec);
    let warnings = served.server.warnings(&spec);
    assert_message!("no table", warnings[0].replace(&scratch.path("").display().to_string(), ""));
    assert_eq!(controller(&served), "cubic");
    scratch.write("1.table", table(FAR, "two"));
    served.server.reload_changed();
    only(served.server.reload_changed()).expect("a table");
    assert_eq!((controller(&served), served.server.warnings(&spec)), ("bbr".to_owned(), vec![]));
    served.stop();
}

#[test]
fn a_changed_file_is_reloaded_once_it_is_stable() {
    let scratch = Scratch::new("serve");
    let (spec, path) = by_policy(&scratch, &policy("bbr", "reno"));
    let mut served = Served::new(&spec);
    assert!(served.server.reload_changed().is_empty());
    // Written in place, in two steps. An empty file is also a valid policy, but it must not take
    // effect.
    fs::write(&path, "").expect("written");
    assert!(served.server.reload_changed().is_empty(), "it may not be over yet");
    fs::write(&path, policy("reno", "bbr")).expect("written");
    assert!(served.server.reload_changed().is_empty(), "it changed again");
    only(served.server.reload_changed()).expect("a policy");
    assert_eq!(controller(&served), "reno");
    assert!(served.server.reload_changed().is_empty(), "once");
    // An invalid policy is reported once.
    replace(&path, "no policy");
    assert!(served.server.reload_changed().is_empty());
    only(served.server.reload_changed()).expect_err("a bad policy");
    assert!(served.server.reload_changed().is_empty());
    fs::remove_file(&path).expect("removed");
    assert!(served.server.reload_changed().is_empty());
    only(served.server.reload_changed()).expect_err("no policy");
    replace(&path, &policy("bbr", "reno"));
    served.server.reload_changed();
    only(served.server.reload_changed()).expect("a policy");
    assert_eq!(controller(&served), "bbr");
    served.stop();
}

/// A hundred policy reloads while clients download: no byte is wrong, and each connection uses one
/// policy.
#[test]
fn a_hundred_reloads_at_full_load() {
    let scratch = Scratch::new("serve");
    let (mut spec, path) = by_policy(&scratch, &policy("bbr", "reno"));
    let whole = content(300_000);
    scratch.write("root/large", &whole);
    spec.records = Some(RecordsSpec::new(scratch.path("records")));
    let mut served = Served::new(&spec);
    let address = served.address;
    let (stop, count) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        for thread in 0..4 {
            let (stop, count, whole) = (&stop, &count, &whole);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let mut client = Client::new(address);
                    for turn in 0..3 {
                        let host = if (thread + turn) % 2 == 0 { "a" } else { "b" };
                        let response = client.get_of(host, "/large").expect("a response");
                        assert!(response.status == 200 && response.body == *whole);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        for turn in 0..100 {
            let before = count.load(Ordering::Relaxed);
            let text = if turn % 2 == 0 { policy("reno", "bbr") } else { policy("bbr", "reno") };
            replace(&path, &text);
            only(served.server.reload()).expect("a policy");
            while count.load(Ordering::Relaxed) < before + 4 {
                thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let summary = served.stop();
    assert_eq!(summary.lost, 0);
    let records = records(&scratch.path("records"));
    assert_eq!(records.len(), count.load(Ordering::Relaxed) as usize);
    let mut seen: BTreeMap<_, _> = BTreeMap::new();
    let mut of_connection: BTreeMap<u32, _> = BTreeMap::new();
    for record in &records {
        let choice = record.choice.as_ref().expect("a policy");
        assert_eq!(choice.cc.as_ref(), Some(&record.cc), "the kernel has what was chosen");
        let key = (choice.policy.clone(), choice.rule.clone());
        assert_eq!(seen.entry(key).or_insert_with(|| record.cc.clone()), &record.cc);
        assert_eq!(of_connection.entry(record.flow).or_insert(choice), &choice);
    }
    assert_eq!(seen.len(), 4, "two policies, a rule and a default each: {seen:?}");
}

/// A certificate for this machine, and its key.
fn certificate(scratch: &Scratch, name: &str) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("made");
    scratch.write(&format!("{name}.pem"), made.cert.pem());
    scratch.write(&format!("{name}.key"), made.signing_key.serialize_pem());
    (scratch.path(&format!("{name}.pem")), scratch.path(&format!("{name}.key")))
}

/// Whether a new client that trusts only `authority` gets the file.
fn is_trusted(served: &Served, authority: &Path) -> bool {
    let curl = Command::new("curl")
        .args(["-sS", "--cacert"])
        .arg(authority)
        .arg(format!("https://{}/file", served.address))
        .output()
        .expect("curl runs");
    // Exit status 60: the certificate is not trusted.
    assert!(matches!(curl.status.code(), Some(0 | 60)), "{curl:?}");
    curl.stdout == b"fine"
}

#[test]
fn a_new_certificate_is_for_new_connections() {
    let scratch = Scratch::new("serve");
    scratch.write("root/file", "fine");
    let (first, first_key) = certificate(&scratch, "first");
    let (second, second_key) = certificate(&scratch, "second");
    let (chain, key) = (scratch.path("chain.pem"), scratch.path("key.pem"));
    let install = |from: &Path, to: &Path| fs::copy(from, to).map(drop).expect("copied");
    install(&first, &chain);
    install(&first_key, &key);
    let mut spec = spec(&scratch.path("root"));
    spec.identity =
        Identity::Files(CertificateFiles { certificate: chain.clone(), key: key.clone() });
    let mut served = Served::new(&spec);
    assert!(is_trusted(&served, &first) && !is_trusted(&served, &second));
    // Only half of the pair: the certificate without its key.
    install(&second, &chain);
    let error = only(served.server.reload()).expect_err("they do not belong together");
    assert!(error.contains("key.pem"), "{error}");
    assert!(is_trusted(&served, &first));
    install(&second_key, &key);
    assert!(served.server.reload_changed().is_empty());
    let line = only(served.server.reload_changed()).expect("a certificate");
    assert!(line.starts_with("certificate '") && line.contains("chain.pem"), "{line}");
    assert!(is_trusted(&served, &second) && !is_trusted(&served, &first));
    fs::write(&chain, "nothing").expect("written");
    only(served.server.reload()).expect_err("no certificate");
    assert!(is_trusted(&served, &second));
    served.stop();
}
