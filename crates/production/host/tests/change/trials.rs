//! Trials, killed before each of their operations: the host ends as before.

use uncork_host::change::{
    ChangeError, DesiredState, HostTrial, Journal, Value, recover, revert, status,
};

use crate::desired_states::{ALL, OTHER, apply_text};
use crate::memory::{ALLOWED, DEFAULT, Memory, sysctl};

const NO_METRICS_SAVE: &str = "net.ipv4.tcp_no_metrics_save";
/// With the default and with a route.
const STATES: [&str; 4] = [
    "algorithm = \"bbr\"",
    "algorithm = \"cubic\"",
    "[[route]]\nto = \"10.0.0.0/8\"\nalgorithm = \"bbr\"",
    "algorithm = \"reno\"",
];

fn host() -> Memory {
    let mut host = Memory::new();
    host.set(&sysctl(NO_METRICS_SAVE), Value::text("0"));
    host
}

/// Goes through all states, and ends; `look` sees the host in each.
fn through(host: &mut Memory, mut look: impl FnMut(&Memory)) -> Result<(), ChangeError> {
    let mut trial = HostTrial::begin(host)?;
    for state in STATES {
        trial.switch(host, &DesiredState::parse(state).unwrap())?;
        assert_eq!(trial.disturbed(host)?, None);
        look(host);
    }
    assert_eq!(trial.end(host)?, Vec::new());
    Ok(())
}

#[test]
fn a_trial_goes_from_state_to_state_and_ends_as_before() {
    for applied in [None, Some(ALL), Some(OTHER)] {
        let mut host = host();
        if let Some(text) = applied {
            apply_text(&mut host, text, None).unwrap();
        }
        let (before, journal) = (host.visible(), host.journal.clone());
        let mut seen = Vec::new();
        through(&mut host, |host| {
            let value = |key: &str| host.values[&sysctl(key)].to_string();
            assert_eq!(value(NO_METRICS_SAVE), "1");
            assert!(value(ALLOWED).contains(&value(DEFAULT)));
            seen.push((value(DEFAULT), host.visible().contains_key("route to 10.0.0.0/8")));
        })
        .unwrap();
        let default = before[DEFAULT].clone();
        let has_route = before.contains_key("route to 10.0.0.0/8");
        let expected = [
            ("bbr".to_owned(), has_route),
            ("cubic".to_owned(), has_route),
            (default, true),
            ("reno".to_owned(), has_route),
        ];
        assert_eq!(seen, expected);
        assert_eq!(host.visible(), before, "{applied:?}");
        let applied =
            |journal: &Option<Journal>| journal.as_ref().and_then(|it| it.applied.clone());
        assert_eq!(applied(&host.journal), applied(&journal));
        let ended = |journal: &Option<Journal>| journal.as_ref().and_then(|it| it.ended.clone());
        assert_eq!(ended(&host.journal), ended(&journal));
        status(&mut host).unwrap();
        revert(&mut host).unwrap();
    }
}

#[test]
fn a_killed_trial_leaves_the_host_as_before() {
    for applied in [None, Some(ALL)] {
        let mut before = host();
        if let Some(text) = applied {
            apply_text(&mut before, text, None).unwrap();
        }
        let mut kills = 0;
        for step in 0.. {
            let mut host = before.clone();
            host.fuse = Some(step);
            let is_through = through(&mut host, |_| {}).is_ok();
            for second in 0..12 {
                let mut again = host.clone();
                again.fuse = Some(second);
                let _killed_too = recover(&mut again);
                again.fuse = None;
                recover(&mut again).unwrap();
                assert_eq!(again.visible(), before.visible(), "killed at {step} and {second}");
            }
            if is_through {
                break;
            }
            kills += 1;
        }
        assert!(kills > 60, "{kills}");
    }
}

#[test]
fn what_somebody_else_changes_ends_a_trial_and_is_left() {
    let mut host = host();
    let mut trial = HostTrial::begin(&mut host).unwrap();
    trial.switch(&mut host, &DesiredState::parse(STATES[0]).unwrap()).unwrap();
    host.set(&sysctl(DEFAULT), Value::text("reno"));
    let left = trial.disturbed(&mut host).unwrap().unwrap();
    assert_eq!((left.setting, left.found), (sysctl(DEFAULT), Value::text("reno")));
    let error = trial.switch(&mut host, &DesiredState::parse(STATES[1]).unwrap()).unwrap_err();
    assert!(error.to_string().contains("something else changed it since"), "{error}");
    assert_eq!(trial.end(&mut host).unwrap()[0].found, Value::text("reno"));
    assert_eq!(host.values[&sysctl(DEFAULT)], Value::text("reno"));
    assert_eq!(host.values[&sysctl(NO_METRICS_SAVE)], Value::text("0"));
}

/// In a state that the host had already, nothing has changed, so nothing is undone.
#[test]
fn what_somebody_else_changes_in_the_state_before_the_trial_is_left_too() {
    let mut host = host();
    let mut trial = HostTrial::begin(&mut host).unwrap();
    trial.switch(&mut host, &DesiredState::parse("algorithm = \"cubic\"").unwrap()).unwrap();
    host.set(&sysctl(DEFAULT), Value::text("reno"));
    let left = trial.end(&mut host).unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!((&left[0].setting, &left[0].found), (&sysctl(DEFAULT), &Value::text("reno")));
}

#[test]
fn a_trial_waits_for_no_confirmation() {
    let mut host = host();
    apply_text(&mut host, ALL, Some(60)).unwrap();
    let before = host.visible();
    let error = HostTrial::begin(&mut host).map(drop).unwrap_err();
    assert!(matches!(error, ChangeError::Waiting { remaining_s: 60, .. }), "{error}");
    assert_eq!(host.visible(), before);
}
