//! The effects of a policy on kernel TCP connections.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Client, Scratch, Served, available, content, listener, records, spec};
use uncork_serve::{Identity, RecordsSpec, Server, ServerSpec};

const SPOTIFY: &str = "\
[default]
tcp = \"reno\"
[[rule]]
name = \"spotify\"
host = \"*-bbr*\"
use = { tcp = \"bbr\" }
";

/// A server of a `file` that uses the policy `text`.
fn by_policy(scratch: &Scratch, text: &str) -> ServerSpec {
    scratch.write("root/file", "fine");
    scratch.write("policy.toml", text);
    let mut spec = spec(&scratch.path("root"));
    spec.policy = Some(scratch.path("policy.toml"));
    spec.records = Some(RecordsSpec::new(scratch.path("records")));
    spec
}

#[test]
fn the_host_of_the_first_request_decides() {
    let scratch = Scratch::new("serve");
    let served = Served::new(&by_policy(&scratch, SPOTIFY));
    assert_eq!(served.server.listening()[0].cc, "policy");
    for (host, cc) in [("audio-fa.example", "reno"), ("audio-fa-bbr.example", "bbr")] {
        let mut client = served.connect();
        let first = client.get_of(host, "/file").expect("a response");
        assert_eq!(first.timing_controller(), format!("cc;desc=\"{cc}\""));
        // Another host on the same connection changes nothing.
        client.get_of("audio-fa-bbr.example", "/file").expect("a response");
        assert_eq!(client.controller(), cc);
    }
    served.stop();
    let records = records(&scratch.path("records"));
    let choices: Vec<_> = records
        .iter()
        .map(|it| (it.group.as_str(), it.cc.as_str(), it.choice.as_ref().expect("a policy")))
        .map(|(group, cc, choice)| (group, cc, choice.rule.as_str(), choice.cc.as_deref()))
        .collect();
    let (plain, bbr) =
        (("default", "reno", "default", Some("reno")), ("spotify", "bbr", "spotify", Some("bbr")));
    assert_eq!(choices, [plain, plain, bbr, bbr]);
}

#[test]
fn each_request_exchanges_the_controller_of_an_open_connection() {
    let scratch = Scratch::new("serve");
    let text = format!("decide = \"each_request\"\n{SPOTIFY}");
    let served = Served::new(&by_policy(&scratch, &text));
    let mut client = served.connect();
    for (host, cc) in [("a", "reno"), ("a-bbr", "bbr"), ("a-bbr", "bbr"), ("b", "reno")] {
        let response = client.get_of(host, "/file").expect("a response");
        assert_eq!(response.timing_controller(), format!("cc;desc=\"{cc}\""));
        assert_eq!(client.controller(), cc);
    }
    served.stop();
    let controllers: Vec<_> =
        records(&scratch.path("records")).into_iter().map(|record| record.cc).collect();
    assert_eq!(controllers, ["reno", "bbr", "bbr", "reno"]);
}

/// A setting that a rule does not name has the system's default, even after another rule set it.
#[test]
fn unset_settings_have_system_defaults() {
    let scratch = Scratch::new("serve");
    let path = "/proc/sys/net/ipv4/tcp_congestion_control";
    let system = fs::read_to_string(path).expect("the system's").trim().to_owned();
    let other = available().into_iter().find(|name| *name != system).expect("two of them");
    let text = format!(
        "decide = \"each_request\"\n[[rule]]\nquery = {{ cc = \"x\" }}\nuse = {{ tcp = \"{other}\" }}"
    );
    let served = Served::new(&by_policy(&scratch, &text));
    let mut client = served.connect();
    for (path, cc) in [("/file", &system), ("/file?cc=x", &other), ("/file", &system)] {
        client.get_of("a", path).expect("a response");
        assert_eq!(&client.controller(), cc);
    }
    served.stop();
}

#[test]
fn listeners_go_by_their_names() {
    let scratch = Scratch::new("serve");
    let text =
        "[default]\ntcp = \"reno\"\n[[rule]]\nlistener = \"internal\"\nuse = { tcp = \"bbr\" }";
    let mut spec = by_policy(&scratch, text);
    spec.listeners = vec![listener("public", None), listener("internal", None)];
    let served = Served::new(&spec);
    for (listening, cc) in served.server.listening().iter().zip(["reno", "bbr"]) {
        let mut client = Client::new(listening.address);
        client.get_of("a", "/file").expect("a response");
        assert_eq!(client.controller(), cc);
    }
    served.stop();
}

/// Clients of 100 networks: each always gets the same arm, and records contain it.
#[test]
fn a_client_stays_in_its_arm() {
    let scratch = Scratch::new("serve");
    let text = "key = \"000102030405060708090a0b0c0d0e0f\"\n\
        [experiment.may]\nunit = \"prefix\"\nshare = \"100%\"\n\
        [experiment.may.arm.a]\ntcp = \"reno\"\n[experiment.may.arm.b]\ntcp = \"bbr\"\n\
        [[rule]]\nname = \"all\"\nlistener = \"*\"\nexperiment = \"may\"";
    let served = Served::new(&by_policy(&scratch, text));
    let mut arms = Vec::new();
    for _ in 0..2 {
        for network in 0..100 {
            let mut client = Client::from(Ipv4Addr::new(127, 1, network, 7), served.address);
            let response = client.get_of("a", "/file").expect("a response");
            arms.push(response.timing_controller().to_owned());
        }
    }
    served.stop();
    assert_eq!(arms[..100], arms[100..]);
    let timing = |cc: &str, arm: &str| format!("cc;desc=\"{cc}\", arm;desc=\"may/{arm}\"");
    let b = arms.iter().filter(|arm| **arm == timing("bbr", "b")).count();
    let a = arms.iter().filter(|arm| **arm == timing("reno", "a")).count();
    // 100 fair coins: fewer than 30 of either is beyond 4 sigma.
    assert!(a + b == 200 && a >= 60 && b >= 60, "{a} {b}");
    let mut units: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    for record in records(&scratch.path("records")) {
        let arm = record.choice.expect("a policy").arm.expect("an arm");
        assert_eq!((arm.experiment.as_str(), arm.propensity), ("may", 0.5));
        assert_eq!(record.group, format!("may/{}", arm.arm));
        assert_eq!(record.cc, if arm.arm == "a" { "reno" } else { "bbr" });
        units.entry(arm.unit).or_default().push((arm.arm, arm.bucket));
    }
    assert_eq!(units.len(), 100);
    assert!(units.values().all(|seen| seen.len() == 2 && seen[0] == seen[1]));
}

/// 16 Mbit/s are 2 MB/s. The first ten packets are never paced; on loopback they have up to 64 KiB
/// each.
#[test]
fn a_pacing_cap_holds() {
    let scratch = Scratch::new("serve");
    let text = "[[rule]]\nhost = \"capped\"\nuse = { tcp = \"reno\", pacing_cap = \"16mbit\" }";
    let spec = by_policy(&scratch, text);
    let length = 6_000_000;
    scratch.write("root/large", content(length));
    let served = Served::new(&spec);
    let mut took = [Duration::ZERO; 2];
    for (host, took) in ["capped", "free"].into_iter().zip(&mut took) {
        #[expect(clippy::disallowed_methods, reason = "a test in real time")]
        let began = Instant::now();
        let response = served.connect().get_of(host, "/large").expect("a response");
        assert_eq!(response.body.len(), length);
        *took = began.elapsed();
    }
    let least = (length - 10 * 65_536) as f64 / 2e6;
    let [capped, free] = took.map(|took| took.as_secs_f64());
    assert!(capped >= 0.95 * least, "{capped} s, of at least {least} s");
    assert!(free < least / 2.0, "{free} s without a cap");
    served.stop();
}

/// The server name (SNI) decides, over HTTP/2 with curl.
#[test]
fn the_name_in_the_handshake_decides() {
    let scratch = Scratch::new("serve");
    let text = "[default]\ntcp = \"reno\"\n[[rule]]\nsni = \"b.example\"\nuse = { tcp = \"bbr\" }";
    let mut spec = by_policy(&scratch, text);
    spec.identity = Identity::SelfSigned;
    let served = Served::new(&spec);
    let port = served.address.port();
    for (host, cc) in [("a.example", "reno"), ("b.example", "bbr")] {
        let curl = Command::new("curl")
            .args(["-sSk", "--http2", "-D-", "--resolve", &format!("{host}:{port}:127.0.0.1")])
            .arg(format!("https://{host}:{port}/file"))
            .output()
            .expect("curl runs");
        let output = String::from_utf8_lossy(&curl.stdout);
        assert!(output.starts_with("HTTP/2 200"), "{output}");
        assert!(output.contains(&format!("server-timing: cc;desc=\"{cc}\"")), "{output}");
    }
    served.stop();
}

/// Many concurrent requests on an HTTP/2 connection. Every other one asks for BBR.
#[test]
fn requests_that_share_a_connection_share_its_controller() {
    for decide in ["once", "each_request"] {
        let scratch = Scratch::new("serve");
        let text = format!(
            "decide = \"{decide}\"\n[default]\ntcp = \"reno\"\n\
             [[rule]]\nname = \"asked\"\nquery = {{ cc = \"1\" }}\nuse = {{ tcp = \"bbr\" }}"
        );
        let mut spec = by_policy(&scratch, &text);
        scratch.write("root/large", content(1_000_000));
        spec.identity = Identity::SelfSigned;
        let served = Served::new(&spec);
        let curl = Command::new("curl")
            .args(["-sSkZ", "--http2", "-o", "/dev/null", "-w", "%{size_download}\n"])
            .arg(format!("https://{}/large?n=[1-10]&cc=[0-1]", served.address))
            .output()
            .expect("curl runs");
        let output = String::from_utf8_lossy(&curl.stdout).into_owned();
        assert_eq!(output.lines().filter(|size| *size == "1000000").count(), 20, "{output}");
        served.stop();
        let records = records(&scratch.path("records"));
        let mut chosen: BTreeMap<u32, BTreeMap<_, usize>> = BTreeMap::new();
        for record in &records {
            let choice = record.choice.as_ref().expect("a policy");
            assert_eq!(choice.cc.as_ref(), Some(&record.cc));
            assert_eq!(record.cc, if choice.rule == "asked" { "bbr" } else { "reno" });
            let of_connection = chosen.entry(record.flow).or_default();
            *of_connection.entry(choice.rule.clone()).or_default() += 1;
        }
        let asked: usize = chosen.values().filter_map(|rules| rules.get("asked")).sum();
        match decide {
            "once" => assert!(chosen.values().all(|rules| rules.len() == 1), "{chosen:?}"),
            _ => assert_eq!((records.len(), asked), (20, 10), "{chosen:?}"),
        }
    }
}

/// 127.1.0.0/16 is in Peru.
#[test]
fn databases_locate_clients_and_are_read_again() {
    let scratch = Scratch::new("serve");
    let text = "[default]\ntcp = \"reno\"\n[[rule]]\ncountry = \"PE\"\nuse = { tcp = \"bbr\" }";
    let mut spec = by_policy(&scratch, text);
    let warnings = spec.check().expect("a good policy");
    assert!(
        warnings.len() == 1 && warnings[0].contains("`country = PE` never matches"),
        "{warnings:?}"
    );
    scratch.write("geo.mmdb", crate::mmdb::of_country(0x7f01_0000, 16, "PE"));
    spec.geo = vec![scratch.path("geo.mmdb")];
    assert!(spec.check().expect("a good policy").is_empty());
    let mut served = Served::new(&spec);
    let controllers = |served: &Served| {
        [Ipv4Addr::new(127, 1, 2, 3), Ipv4Addr::new(127, 2, 2, 3)].map(|from| {
            let mut client = Client::from(from, served.address);
            client.get_of("a", "/file").expect("a response");
            client.controller()
        })
    };
    assert_eq!(controllers(&served), ["bbr", "reno"]);
    scratch.write("geo.mmdb", "no database");
    let reloaded = served.server.reload();
    assert_eq!(reloaded.iter().map(|it| it.result.is_ok()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(controllers(&served), ["bbr", "reno"]);
    scratch.write("geo.mmdb", crate::mmdb::of_country(0x7f02_0000, 16, "PE"));
    assert!(served.server.reload().iter().all(|it| it.result.is_ok()));
    assert_eq!(controllers(&served), ["reno", "bbr"]);
    served.stop();
}

#[test]
fn the_size_condition_uses_the_whole_file() {
    let scratch = Scratch::new("serve");
    let text = "decide = \"each_request\"\n[default]\ntcp = \"reno\"\n\
        [[rule]]\nsize = { min = \"1MB\" }\npath = \"/a dir/*\"\nuse = { tcp = \"bbr\" }";
    let spec = by_policy(&scratch, text);
    scratch.write("root/a dir/large", content(1_000_000));
    scratch.write("root/a dir/small", content(999_999));
    let served = Served::new(&spec);
    let mut client = served.connect();
    for (path, headers, cc) in [
        ("/a%20dir/large", "", "bbr"),
        ("/a%20dir/small", "", "reno"),
        ("/a%20dir/large", "Range: bytes=0-9\r\n", "bbr"),
        ("/a%20dir/missing", "", "reno"),
        ("/file", "", "reno"),
    ] {
        let response = client.request("GET", path, headers).expect("a response");
        assert_eq!(response.timing_controller(), format!("cc;desc=\"{cc}\""), "{path}");
    }
    served.stop();
}

#[test]
fn policies_with_unavailable_controllers_are_rejected_at_start() {
    let scratch = Scratch::new("serve");
    let text = "[[rule]]\nhost = \"a\"\nuse = { tcp = \"nosuchcc\" }";
    let spec = by_policy(&scratch, text);
    for error in [Server::start(&spec).map(drop), spec.check().map(drop)] {
        let error = error.expect_err("no such controller");
        assert!(!error.is_usage());
        let output = error.to_string();
        for part in ["policy.toml': ", "'nosuchcc'", &available().join(", ")] {
            assert!(output.contains(part), "{output}");
        }
    }
}
