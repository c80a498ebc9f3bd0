//! The output of `uncork policy`.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;

use crate::common::{Finished, Scratch, command, finish, stdout};
use uncork_flow::{EcnEvidence, EcnUse, FlowRecord, Scope, Service, write_json_lines};
use uncork_testkit::assert_message;

const POLICY: &str = "\
[[rule]]
name = \"spotify\"
host = \"*-bbr*\"
use = { quic = \"bbr3\", tcp = \"bbr\" }

[[rule]]
country = \"PE\"
query = { bbr = \"1\" }
header = { x-client = \"ios/*\" }
cookie = { uid = \"7\" }
size = { min = \"1MB\" }
time = { since = 2026-01-01T00:00:00Z }
use = { tcp = \"bbr\" }
";

/// `uncork policy` in a directory with `text` as `policy.toml`.
fn policy(scratch: &Scratch, text: &str, arguments: &[&str]) -> Finished {
    fs::write(scratch.path("policy.toml"), text).unwrap();
    let mut command = command("policy");
    command.args(arguments).current_dir(scratch.path(""));
    finish(command)
}

fn explained(name: &str, arguments: &[&str]) -> String {
    let scratch = Scratch::new(name);
    let all = [&["explain", "policy.toml"], arguments].concat();
    let Finished { status, stdout, stderr } = policy(&scratch, POLICY, &all);
    assert_eq!((status, stderr.as_str()), (0, ""));
    stdout
}

#[test]
fn valid_policy_is_summarised() {
    let scratch = Scratch::new("policy-check");
    let Finished { status, stdout, stderr } = policy(&scratch, POLICY, &["check", "policy.toml"]);
    assert_eq!((status, stderr.as_str()), (0, ""));
    let expected = "policy.toml: 2 rules; `asn` and `country` need a database (--geo) to match\n";
    assert_eq!(stdout, expected);
}

#[test]
fn invalid_policy_is_shown_with_the_place() {
    let scratch = Scratch::new("policy-bad");
    for arguments in [&["check", "policy.toml"], &["explain", "policy.toml"]] {
        let text = POLICY.replace("host", "hots");
        let Finished { status, stdout, stderr } = policy(&scratch, &text, arguments);
        assert_eq!((status, stdout.as_str()), (2, ""));
        assert!(stderr.starts_with("error: ") && stderr.contains("policy.toml:3:1"), "{stderr}");
        assert!(stderr.contains("`hots`") && stderr.contains("`host`"), "{stderr}");
    }
}

#[test]
fn accepted_connection_gets_a_preliminary_decision() {
    let shown = explained("policy-accept", &["--ip", "203.0.113.9", "--listener", "public"]);
    assert_message!("accepted", shown);
}

#[test]
fn request_gets_a_final_decision() {
    let shown = explained("policy-host", &["--host", "audio-fa-bbr.example.com"]);
    assert_message!("host", shown);
    let mut all = vec!["--country", "PE", "--path", "/a?x&bbr=1", "--header", "X-Client: ios/17"];
    all.extend(["--cookie", "uid=7", "--size", "3MB", "--at", "2026-12-01T18:00:00Z"]);
    let shown = explained("policy-request", &all);
    assert_message!("all but the host", shown);
}

#[test]
fn explanations_are_available_as_json() {
    let text = explained("policy-json", &["--host", "a-bbr", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    crate::common::schema::assert_describes("policy-explain", [&document]);
    assert_eq!(
        (&document["policy"], &document["rules"][0]["line"]),
        (&"policy.toml".into(), &1.into())
    );
    let decision = &document["decision"];
    assert_eq!((&decision["rule"], &decision["name"]), (&1.into(), &"spotify".into()));
    assert_eq!((&decision["final"], &decision["tcp"]), (&true.into(), &"bbr".into()));
    let [first, second] = document["rules"].as_array().unwrap().as_slice() else {
        panic!("{document}")
    };
    assert_eq!((&first["outcome"], &second["outcome"]), (&"decides".into(), &"never_asked".into()));
    let condition = &first["conditions"][0];
    assert_eq!(
        (&condition["holds"], &condition["condition"]),
        (&true.into(), &"host = *-bbr*".into())
    );
    // With unknown facts it is neither true nor false.
    let text = explained("policy-json-accept", &["--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&document["decision"]["rule"], &document["decision"]["final"]),
        (&().into(), &false.into())
    );
    assert!(document["rules"][0]["conditions"][0]["holds"].is_null());
}

#[test]
fn help_shows_the_purpose_then_examples() {
    for command in ["check", "explain"] {
        let help = stdout(&format!("policy {command} --help"));
        let example = format!("\n\nExamples:\n  uncork policy {command} policy.toml");
        assert!(help.contains(&example) && !help.starts_with("Examples"), "{help}");
    }
}

#[test]
fn explain_rejects_a_cookie_without_a_value() {
    let scratch = Scratch::new("policy-cookie");
    for cookie in ["uid", "=7", ""] {
        let done = policy(&scratch, POLICY, &["explain", "policy.toml", "--cookie", cookie]);
        assert_eq!(done.status, 2, "{cookie}");
        assert!(done.stderr.contains("--cookie"), "{}", done.stderr);
    }
}

/// The warnings of `steer apply` and `serve` that do not depend on the host.
#[test]
fn check_warns_of_controllers_that_do_not_do_what_the_policy_says() {
    let scratch = Scratch::new("policy-warnings");
    let text = "[default]\ntcp = \"bbr\"\nresume = true\n[[rule]]\nasn = [\"AS64500\"]\nuse = { tcp = \"prague\" }\n";
    let Finished { status, stderr, .. } = policy(&scratch, text, &["check", "policy.toml"]);
    assert_eq!(status, 0, "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    let expected = [
        "warning: policy.toml: `tcp = prague`: prague is not part of Linux: load `uncork_prague` (`uncork kernel load \
         uncork_prague`) and write that name",
        "warning: policy.toml: `resume` holds for QUIC only with `tcp = bbr`; write a controller of `uncork kernel load \
         --resume`, such as uncork_cubic",
    ];
    assert_eq!(lines[..2], expected, "{stderr}");
}

/// The commonest mistake in an ordered list.
#[test]
fn check_warns_of_rules_that_never_decide() {
    let scratch = Scratch::new("policy-shadowed");
    let text = "[[rule]]\nclient = \"0.0.0.0/0\"\nuse = { tcp = \"cubic\" }\n[[rule]]\nclient = \"10.0.0.0/8\"\nuse = { tcp = \"reno\" }\n\
        [[rule]]\ntime = { until = 2020-01-01T00:00:00Z }\nuse = { tcp = \"reno\" }\n";
    let Finished { status, stderr, .. } = policy(&scratch, text, &["check", "policy.toml"]);
    assert_eq!(status, 0, "{stderr}");
    let [shadowed, expired] = stderr.lines().collect::<Vec<_>>().try_into().expect("two warnings");
    assert!(
        shadowed.starts_with("warning: policy.toml:4: this rule never decides: the rule in line 1"),
        "{shadowed}"
    );
    assert!(
        expired.starts_with("warning: policy.toml:7: this rule never decides: `time ="),
        "{expired}"
    );
}

/// A connection of `client` in this hour of 1 December 2026, with this number of rounds that show a queue for L4S, and a classic one.
fn connection(client: &str, hour: u64, (l4s_rounds, classic_rounds): (u32, u32)) -> FlowRecord {
    let start = 1_796_083_200_000_000_000 + hour * 3_600_000_000_000;
    let marked_rounds = l4s_rounds + classic_rounds;
    let marked_queue_us = u64::from(l4s_rounds) * 500 + u64::from(classic_rounds) * 9_000;
    let rounds = marked_rounds + 10;
    let evidence =
        EcnEvidence { rounds, marked_rounds, l4s_rounds, classic_rounds, ..Default::default() };
    let service = Service {
        client: Some(client.into()),
        ecn: Some(EcnUse::L4s),
        ecn_evidence: Some(Box::new(EcnEvidence { marked_queue_us, ..evidence })),
        ..Service::blank(Scope::Connection, start, "h3", "public")
    };
    let packets_marked = marked_rounds.into();
    let record = FlowRecord::blank("serve", "main", "prague", (0, 0));
    FlowRecord { packets_sent: 1000, packets_marked, service: Some(service), ..record }
}

fn write(scratch: &Scratch, records: &[FlowRecord]) {
    let mut file = fs::File::create(scratch.path("records.jsonl")).unwrap();
    write_json_lines(&mut file, records).unwrap();
}

#[test]
fn ecn_records_become_verdicts_and_a_table_that_a_policy_reads() {
    let scratch = Scratch::new("policy-ecn");
    let mut records = Vec::new();
    for hour in 0..4 {
        records.push(connection("203.0.113.0/24", hour, (20, 0)));
        records.push(connection("2001:db8::/48", hour, (0, 20)));
    }
    records.push(connection("198.51.100.0/24", 0, (20, 0)));
    // A response has the evidence of its connection: it counts once.
    let mut response = connection("198.51.100.0/24", 0, (20, 0));
    response.service.as_mut().unwrap().scope = Scope::Response;
    records.extend(std::iter::repeat_n(response, 9));
    write(&scratch, &records);
    let text = "\
[table]
file = \"ecn.table\"
[table.arm.l4s]
quic = \"prague\"
[table.arm.classic]
quic = \"prague\"
ecn = \"classic\"
[table.arm.none]
ecn = \"none\"
[[rule]]
table = \"ecn\"
";
    let as_of = "--as-of=2026-12-02T00:00:00Z";
    let arguments = ["ecn", "records.jsonl", "-o", "ecn.table", as_of];
    let Finished { status, stdout, stderr } = policy(&scratch, text, &arguments);
    assert_eq!((status, stderr.as_str()), (0, ""));
    let expected = "\
network         ecn      flows  l4s  classic  no ecn  marked queue
2001:db8::/48   classic      4    0        4       0        9.0 ms
203.0.113.0/24  l4s          4    4        0       0        0.5 ms
3 networks: 1 l4s, 1 classic, 0 none; 1 unknown, which keep the policy's default
";
    assert_eq!(stdout, expected);
    let arguments = ["ecn", "records.jsonl", "--format", "json", as_of];
    let document = policy(&scratch, text, &arguments).stdout;
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    crate::common::schema::assert_describes("policy-ecn-1", [&document]);
    let found = |at: usize, field: &str| document["networks"][at][field].clone();
    assert_eq!(found(0, "network"), "198.51.100.0/24");
    assert_eq!(found(0, "bottleneck"), "unknown");
    assert_eq!((found(1, "ecn"), found(1, "classic")), ("classic".into(), 4.into()));
    for (ip, ecn) in
        [("203.0.113.9", "l4s"), ("2001:db8::9", "classic"), ("198.51.100.9", "classic")]
    {
        let at = "--at=2026-12-03T00:00:00Z";
        let arguments = ["explain", "policy.toml", "--ip", ip, at, "--format", "json"];
        let explained = policy(&scratch, text, &arguments);
        let document: serde_json::Value = serde_json::from_str(&explained.stdout).unwrap();
        assert_eq!(document["decision"]["ecn"], ecn, "{ip}: {}", explained.stderr);
    }
    // Without newer evidence the table ends after a week.
    let later = "--as-of=2026-12-09T00:00:00Z";
    let expired = policy(&scratch, text, &["ecn", "records.jsonl", later]).stdout;
    assert_eq!(
        expired,
        "3 networks: 0 l4s, 0 classic, 0 none; 3 unknown, which keep the policy's default\n"
    );
}

#[test]
fn ecn_records_without_ect1_are_refused_with_what_to_do() {
    let scratch = Scratch::new("policy-no-ecn");
    write(&scratch, &[FlowRecord::blank("serve", "main", "cubic", (0, 0))]);
    let Finished { status, stdout, stderr } = policy(&scratch, "", &["ecn", "records.jsonl"]);
    assert_eq!((status, stdout.as_str()), (2, ""));
    assert!(stderr.contains("<RECORDS>") && stderr.contains("quic = \"prague\""), "{stderr}");
    let missing = policy(&scratch, "", &["ecn", "nowhere.parquet"]);
    assert_eq!(missing.status, 2);
    assert!(missing.stderr.contains("nowhere.parquet"), "{}", missing.stderr);
}
