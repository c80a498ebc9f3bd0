//! Routes of a policy on this kernel, in new namespaces: thousands of them.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use uncork_host::change::{LiveHost, StateDirectory, revert, status};
use uncork_testkit::now;

use crate::desired_states::apply_text;
use crate::live::{KillableHost, in_namespaces, shell};
use crate::policies::table;

/// Of a run on two busy cores; it takes a tenth of that on idle ones.
const LONGEST: Duration = Duration::from_mins(10);
const LARGEST_JOURNAL: u64 = 1_000;

const POLICY: &str = r#"
[default]
tcp = "OTHER"
[table]
file = "networks.table"
[table.arm.reno]
tcp = "reno"
[table.arm.other]
tcp = "OTHER"
[[rule]]
table = "large"
"#;

/// Networks of /24 and /48 in turn; `odd` in 100 are of the other arm, which needs no route.
fn networks(count: u32, odd: u32) -> String {
    let mut entries = String::new();
    for index in 0..count {
        let arm = if index % 100 < odd { "other" } else { "reno" };
        let (at, is_v4) = (index / 2, index % 2 == 0);
        let network = if is_v4 {
            format!("10.{}.{}.0/24", at >> 8, at & 255)
        } else {
            format!("2001:db9:{at:x}::/48")
        };
        writeln!(entries, "{network} {arm}").unwrap();
    }
    entries
}

fn routes() -> usize {
    let listed = shell("ip route show proto static; ip -6 route show proto static");
    listed.lines().filter(|line| line.contains("congctl reno")).count()
}

#[test]
fn thousands_of_routes_take_seconds() {
    in_namespaces("live_policies::thousands_of_routes_take_seconds", |scratch| {
        let other = std::env::var("OTHER").unwrap();
        let file = format!(
            "algorithm = \"{other}\"\n[routes]\npolicy = \"{}\"\n",
            scratch.path("policy.toml").display()
        );
        let put = |name: &str, bytes: &[u8]| fs::write(scratch.path(name), bytes).unwrap();
        put("policy.toml", POLICY.replace("OTHER", &other).as_bytes());
        let state = scratch.path("state");
        let live = || LiveHost::new(StateDirectory::new(&state), &scratch.path("root"));
        // The table of these tests expired long ago, so the clock is set back.
        let host = || KillableHost { host: live(), left: u32::MAX, ahead_s: 0, unix_s: Some(0) };
        let journal = || {
            let files = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap());
            // Its copy is twice as long.
            let files = files.filter(|it| it.path().extension().is_some_and(|it| it == "json"));
            files.map(|file| file.metadata().unwrap().len()).max().unwrap()
        };
        let before = shell("ip route; ip -6 route");
        for count in [5_000_u32, 20_000] {
            let timed = |what: &str, work: &mut dyn FnMut() -> usize| {
                let began = now();
                let steps = work();
                let took = now() - began;
                println!("{count} routes: {what}: {steps} changes in {took:.2?}");
                assert!(took < LONGEST, "{what}: {took:?}");
                steps
            };
            let mut apply = || apply_text(&mut host(), &file, None).unwrap().steps.len();
            put("networks.table", &table(&networks(count, 0)));
            assert_eq!(timed("apply", &mut apply), count as usize);
            assert_eq!(routes(), count as usize);
            let bytes = journal();
            println!("{count} routes: the journal has {bytes} bytes");
            assert!(bytes < u64::from(count) * LARGEST_JOURNAL);
            assert_eq!(timed("apply again", &mut apply), 0);
            put("networks.table", &table(&networks(count, 1)));
            assert_eq!(timed("apply another version", &mut apply), count as usize / 100);
            assert_eq!(routes(), count as usize / 100 * 99);
            let kept = |host: &mut KillableHost| {
                let settings = status(host).unwrap().settings;
                settings.iter().filter(|setting| !setting.changed).count()
            };
            assert_eq!(timed("status", &mut || kept(&mut host())), count as usize / 100 * 99);
            let mut back = || revert(&mut host()).unwrap().steps.len();
            assert_eq!(timed("revert", &mut back), count as usize / 100 * 99);
            assert_eq!(shell("ip route; ip -6 route"), before);
        }
        assert!(Path::new("/run/netns/legacy").exists(), "this was not the test's own host");
    });
}
