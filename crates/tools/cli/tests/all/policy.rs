//! The output of `uncork policy`.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;

use crate::common::{Finished, Scratch, command, finish, stdout};
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
