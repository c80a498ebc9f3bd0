//! Kills every command before each of its operations: the host ends in the old or the new state.

use uncork_host::change::{
    ChangeError, Journal, PlanError, SettingKey, Value, confirm, recover, revert,
};

use crate::desired_states::{ALL, LASTING, LITTLE, OTHER, apply_text};
use crate::memory::{Memory, qdisc, sysctl};

type Outcome = Result<(), ChangeError>;

fn applied(text: &str, ttl_s: Option<u64>) -> Memory {
    let mut host = Memory::new();
    apply_text(&mut host, text, ttl_s).unwrap();
    host
}

/// Kills `command` before each of its operations, and also kills the recovery before each of its
/// own. Returns how often the host ended in the old state and in the new one.
fn kill_everywhere(before: &Memory, command: impl Fn(&mut Memory) -> Outcome) -> (u32, u32) {
    let mut after = before.clone();
    command(&mut after).unwrap();
    let (old, new) = (before.visible(), after.visible());
    let (mut olds, mut news) = (0, 0);
    for step in 0.. {
        let mut host = before.clone();
        host.fuse = Some(step);
        let outcome = command(&mut host);
        if outcome.is_ok() {
            assert_eq!(host.visible(), new);
            break;
        }
        for second in 0.. {
            let mut again = host.clone();
            again.fuse = Some(second);
            let is_through = recover(&mut again).is_ok();
            again.fuse = None;
            let (journal, _) = recover(&mut again).unwrap();
            assert_consistent(&journal);
            let seen = again.visible();
            assert!(seen == old || seen == new, "killed at {step} and {second}: {seen:#?}");
            if is_through {
                olds += u32::from(seen == old);
                news += u32::from(seen == new);
                break;
            }
        }
    }
    (olds, news)
}

fn assert_consistent(journal: &Journal) {
    assert!(journal.open.as_ref().is_none_or(|open| open.complete), "{journal:?}");
}

#[test]
fn apply_is_all_or_nothing() {
    for text in [ALL, OTHER, LITTLE, LASTING] {
        let (olds, news) =
            kill_everywhere(&Memory::new(), |host| apply_text(host, text, None).map(drop));
        // The new state is complete only after the last write of the journal, which is the last
        // operation.
        assert!(olds > 10 && news == 0, "{olds} {news} {text}");
    }
}

#[test]
fn apply_over_another_desired_is_all_or_nothing() {
    for (first, second) in [(ALL, OTHER), (OTHER, ALL), (LITTLE, ALL), (ALL, LITTLE)] {
        let before = applied(first, None);
        let (olds, _) = kill_everywhere(&before, |host| apply_text(host, second, None).map(drop));
        assert!(olds > 10, "{olds}");
    }
}

#[test]
fn apply_with_a_limit_is_all_or_nothing() {
    let (olds, _) =
        kill_everywhere(&Memory::new(), |host| apply_text(host, ALL, Some(60)).map(drop));
    assert!(olds > 10, "{olds}");
}

#[test]
fn revert_is_all_or_nothing() {
    for text in [ALL, OTHER, LITTLE, LASTING] {
        let (olds, news) = kill_everywhere(&applied(text, None), |host| revert(host).map(drop));
        // From the first write of the journal on, it is completed.
        assert!(olds > 1 && news > 5, "{olds} {news}");
    }
}

/// A killed `confirm` leaves the desired state without its files, or nothing of it; never a part.
#[test]
fn confirm_is_all_or_nothing() {
    let before = applied(ALL, Some(60));
    let mut after = before.clone();
    confirm(&mut after).unwrap();
    let states = [Memory::new().visible(), before.visible(), after.visible()];
    for step in 0.. {
        let mut host = before.clone();
        host.fuse = Some(step);
        let is_through = confirm(&mut host).is_ok();
        host.fuse = None;
        recover(&mut host).unwrap();
        assert!(states.contains(&host.visible()), "killed at {step}: {:#?}", host.visible());
        if is_through {
            assert_eq!(host.visible(), states[2]);
            break;
        }
        // Until the files are written, the deadline still applies.
        host.clock = 60;
        recover(&mut host).unwrap();
        assert_eq!(host.visible(), states[0], "killed at {step}");
    }
}

/// The power fails while a persistent desired state is applied, and the recovery after the boot is
/// killed, too.
#[test]
fn a_power_failure_leaves_the_old_state() {
    let mut through = 0;
    for (text, step) in [ALL, LASTING].into_iter().flat_map(|text| (0..150).map(move |n| (text, n)))
    {
        let mut host = Memory::new();
        host.fuse = Some(step);
        if apply_text(&mut host, text, None).is_ok() {
            through += 1;
            continue;
        }
        host.fuse = None;
        host.boot();
        for second in 0..150 {
            let mut again = host.clone();
            again.fuse = Some(second);
            let _ = recover(&mut again);
            again.fuse = None;
            recover(&mut again).unwrap();
            assert_eq!(again.visible(), Memory::new().visible(), "killed at {step} and {second}");
        }
    }
    assert!((20..250).contains(&through), "{through}");
}

/// Undoing expired changes can be killed at any point, too.
#[test]
fn expiry_is_all_or_nothing() {
    let mut before = applied(ALL, Some(60));
    before.clock = 60;
    let (olds, _) = kill_everywhere(&before, |host| recover(host).map(drop));
    assert_eq!(olds, 0, "recovery goes on until the changes are undone");
}

#[test]
fn revert_restores_each_setting_and_what_the_kernel_chooses() {
    for text in [ALL, OTHER, LITTLE, LASTING] {
        let mut host = applied(text, None);
        assert_ne!(host.visible(), Memory::new().visible());
        let report = revert(&mut host).unwrap();
        assert_eq!(report.left, Vec::new());
        let loses_fq = text == ALL;
        assert_eq!(report.warnings.iter().any(|it| it.contains("no longer paced")), loses_fq);
        assert_eq!(host.visible(), Memory::new().visible(), "{text}");
        assert_eq!(revert(&mut host).unwrap().steps, Vec::new(), "idempotent");
    }
}

/// A command or the guard.
type Undo<'a> = &'a dyn Fn(&mut Memory) -> Outcome;

/// What was applied while there was room is undone without.
#[test]
fn a_full_disk_keeps_nothing_from_being_undone() {
    let before = Memory::new().visible();
    for text in [ALL, OTHER, LITTLE, LASTING] {
        let expire = |host: &mut Memory| {
            host.clock = 60;
            recover(host).map(drop)
        };
        let revert = |host: &mut Memory| revert(host).map(drop);
        let undo: [(Option<u64>, Undo<'_>); 3] =
            [(Some(60), &expire), (Some(60), &revert), (None, &revert)];
        for (ttl_s, undo) in undo {
            let mut host = applied(text, ttl_s);
            host.is_full = true;
            undo(&mut host).unwrap();
            assert_eq!(host.visible(), before, "{ttl_s:?} {text}");
            host.is_full = false;
            undo(&mut host).unwrap();
            assert_eq!(host.visible(), before, "{ttl_s:?} {text}");
            let journal = host.journal.unwrap();
            assert!(journal.open.is_none() && journal.applied.is_none(), "{journal:?}");
        }
    }
}

/// What cannot be restored keeps nothing else from it.
#[test]
fn revert_restores_what_it_can() {
    let mut host = applied(LASTING, None);
    let new = Memory::new().visible();
    host.broken = host
        .values
        .keys()
        .filter(|setting| matches!(setting, SettingKey::File { .. }))
        .cloned()
        .collect();
    assert!(!host.broken.is_empty());
    let error = revert(&mut host).unwrap_err().to_string();
    assert!(error.contains("is broken") && error.contains("uncork host revert"), "{error}");
    let mut seen = host.visible();
    seen.retain(|name, _| !name.starts_with("/etc/"));
    assert_eq!(seen, new);
    host.broken.clear();
    revert(&mut host).unwrap();
    assert_eq!(host.visible(), new);
}

#[test]
fn nothing_is_applied_without_room_for_the_journal() {
    let mut host = Memory { is_full: true, ..Memory::new() };
    let before = host.visible();
    apply_text(&mut host, ALL, None).unwrap_err();
    assert_eq!(host.visible(), before);
}

#[test]
fn apply_is_idempotent() {
    for text in [ALL, OTHER, LITTLE, LASTING] {
        let mut host = applied(text, None);
        let journal = host.journal.clone();
        assert_eq!(apply_text(&mut host, text, None).unwrap().steps, Vec::new());
        assert_eq!(host.journal, journal);
    }
}

/// A change that fails in the middle undoes the changes before it.
#[test]
fn a_failed_change_undoes_the_others() {
    let all: Vec<SettingKey> = applied(ALL, None).values.into_keys().collect();
    let mut failures = 0;
    for setting in all {
        let mut host = Memory::new();
        host.broken = vec![setting.clone()];
        let error = apply_text(&mut host, ALL, None).expect_err("a failure").to_string();
        assert!(
            error.contains("is broken") && error.contains("all changes were rolled back"),
            "{error}"
        );
        assert_eq!(host.visible(), Memory::new().visible(), "{setting}");
        failures += 1;
    }
    assert!(failures >= 12, "{failures}");
}

#[test]
fn settings_changed_by_others_are_skipped_and_reported() {
    let mut host = applied(ALL, None);
    let eth0 = SettingKey::Qdisc { interface: "eth0".to_owned() };
    let wmem = sysctl("net.ipv4.tcp_wmem");
    host.set(&eth0, qdisc("pfifo", true));
    host.set(&wmem, Value::text("1 2 3"));
    let report = revert(&mut host).unwrap();
    let mut left: Vec<String> = report.left.iter().map(|left| left.setting.to_string()).collect();
    left.sort();
    assert_eq!(left, ["net.ipv4.tcp_wmem", "root qdisc of eth0"]);
    let mut expected = Memory::new();
    expected.set(&eth0, qdisc("pfifo", true));
    expected.set(&wmem, Value::text("1 2 3"));
    assert_eq!(host.visible(), expected.visible());
}

/// `apply` over another program's value does not make that the value to restore.
#[test]
fn revert_restores_what_was_before_the_first_apply_also_over_foreign_values() {
    let before = Memory::new();
    let mut host = applied(ALL, None);
    let sysctls = SettingKey::File { path: "/etc/sysctl.d/99-uncork.conf".to_owned() };
    host.set(&sysctl("net.ipv4.tcp_wmem"), Value::text("4096 16384 7000000"));
    host.set(&sysctls, Value::text("# a comment\n"));
    let report = apply_text(&mut host, ALL, None).unwrap();
    let warned = |part: &str| report.warnings.iter().any(|warning| warning.contains(part));
    assert!(warned("4096 16384 7000000 since the last apply; revert restores 4096 16384 4194304"));
    assert!(warned("99-uncork.conf: another program has set it"), "{:?}", report.warnings);
    assert!(revert(&mut host).unwrap().left.is_empty());
    assert_eq!(host.visible(), before.visible());
}

/// The route to 10/8 is created from the default route, keeps its gateway, and is removed by
/// `revert`.
#[test]
fn a_route_is_created_from_the_route_that_covers_it() {
    let mut host = applied(ALL, None);
    let to = SettingKey::Route { to: "10.0.0.0/8".to_owned() };
    let made = host.values[&to].to_string();
    assert_eq!(made, "via 192.0.2.1 dev eth0 proto static initcwnd 20 congctl cubic");
    let to_all = SettingKey::Route { to: "0.0.0.0/0".to_owned() };
    let changed = host.values[&to_all].to_string();
    assert_eq!(changed, "via 192.0.2.1 dev eth0 proto dhcp congctl lock bbr");
    revert(&mut host).unwrap();
    assert!(!host.values.contains_key(&to));
}

/// The initial namespace could load a module, if there were one.
#[test]
fn what_the_kernel_lacks_is_refused_before_any_change() {
    for (text, part) in [
        (
            "algorithm = \"vegas2\"",
            "module tcp_vegas2: this kernel does not have it: choose one of",
        ),
        ("[[route]]\nto = \"10.0.0.0/8\"\nalgorithm = \"vegas2\"", "module tcp_vegas2: "),
        ("allowed = [\"reno\", \"vegas2\"]", "module tcp_vegas2: "),
        ("modules = [\"sch_vegas\"]", "module sch_vegas: this kernel does not have it: "),
        ("[qdisc]\neth0 = \"nosuch\"", "this kernel has no queue discipline nosuch"),
        ("[qdisc]\ndefault = \"nosuch\"", "this kernel has no queue discipline nosuch"),
    ] {
        let mut host = Memory::new();
        let before = host.visible();
        let error = apply_text(&mut host, text, None).unwrap_err();
        assert!(matches!(error, ChangeError::Plan(PlanError::Impossible(_))), "{error}");
        assert!(error.to_string().contains(part), "{part}: {error}");
        assert_eq!((host.visible(), &host.journal), (before, &None), "{text}");
    }
}
