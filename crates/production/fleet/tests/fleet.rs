//! A fleet in one machine: forty agents over one store, and what breaks.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Signal, getpid, kill_process};
use uncork_fleet::{
    Agent, AgentSpec, Apply, Commands, Disk, Fleet, FleetStatus, HostName, HostState, Lease, Next,
    PackedFile, Planned, PublishError, Report, Rollout, SigningKey, Stage, Steps, Tolerance,
    public_key_pem, read_public_key,
};
use uncork_policy::PublicKey;
use uncork_store::{Condition, Directory, GetResult, Store, StoreError, Tag};
use uncork_testkit::{Scratch, assert_message};

const DEFAULT: &[u8] = b"# the default\n";
const HOLD_S: u64 = 600;
const WEEK_S: u64 = 7 * 86_400;

#[expect(clippy::disallowed_methods, reason = "links have the times of the file system")]
fn start() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn key() -> SigningKey {
    SigningKey::from_pem(SigningKey::generate().unwrap().as_bytes()).unwrap()
}

/// A policy of two files: half of it would be one with the other's number.
fn files(number: u64) -> Vec<PackedFile> {
    let file =
        |name: &str, bytes: String| PackedFile { name: name.to_owned(), bytes: bytes.into() };
    let controller = if number.is_multiple_of(2) { "bbr" } else { "cubic" };
    vec![
        file("policy.toml", format!("# {number}\n[default]\ntcp = \"{controller}\"\n")),
        file("notes.txt", number.to_string()),
    ]
}

/// The number of the policy that a link leads to, 0 for the default.
fn whole(root: &Path) -> Option<u64> {
    let version = fs::canonicalize(root.join("current")).ok()?;
    let policy = fs::read_to_string(version.join("policy.toml")).unwrap();
    if policy.as_bytes() == DEFAULT {
        return Some(0);
    }
    let number: u64 = policy[2..].lines().next().unwrap().parse().unwrap();
    for file in files(number) {
        let found = fs::read(version.join(&file.name)).unwrap();
        assert_eq!(found, file.bytes, "half a policy in {}", version.display());
    }
    Some(number)
}

/// A store that can be away, and has the clock of the test.
#[derive(Clone)]
struct Link {
    directory: Directory,
    away: Rc<Cell<bool>>,
    now: Rc<Cell<u64>>,
    written: Rc<RefCell<BTreeMap<String, u64>>>,
}

impl Link {
    fn is_there(&self) -> Result<(), StoreError> {
        let away = StoreError::Away("store".to_owned(), "timed out".to_owned());
        if self.away.get() { Err(away) } else { Ok(()) }
    }
}

impl Store for Link {
    fn get(&self, name: &str, max: u64, known: Option<&Tag>) -> Result<GetResult, StoreError> {
        self.is_there()?;
        let mut got = self.directory.get(name, max, known)?;
        if let (GetResult::Object(object), Some(written)) =
            (&mut got, self.written.borrow().get(name))
        {
            object.modified_unix_s = *written;
        }
        Ok(got)
    }

    fn put(&self, name: &str, bytes: &[u8], condition: &Condition) -> Result<(), StoreError> {
        self.is_there()?;
        self.directory.put(name, bytes, condition)?;
        self.written.borrow_mut().insert(name.to_owned(), self.now.get());
        Ok(())
    }

    fn put_file(&self, name: &str, file: &Path) -> Result<(), StoreError> {
        self.is_there()?;
        self.directory.put_file(name, file)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.is_there()?;
        self.directory.list(folder)
    }
}

/// Fails for the policies with these numbers.
#[derive(Clone, Default)]
struct Kernel(Rc<RefCell<Vec<u64>>>);

impl Apply for Kernel {
    fn apply(&self, policy: &Path) -> Result<(), String> {
        let number = whole(policy.parent().unwrap().parent().unwrap()).unwrap();
        if self.0.borrow().contains(&number) {
            Err("no such controller".to_owned())
        } else {
            Ok(())
        }
    }

    fn behind(&self, _: &Path) -> Vec<String> {
        Vec::new()
    }
}

fn controllers(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn spec(host: &str, keys: Vec<PublicKey>) -> AgentSpec {
    AgentSpec {
        host: host.parse().unwrap(),
        place: None,
        keys,
        default: DEFAULT.to_vec(),
        patience_s: 120,
        report_every_s: 600,
        kernel: "6.12".to_owned(),
    }
}

struct Host {
    root: PathBuf,
    /// How far its clock is ahead.
    ahead_s: i64,
    kernel: Kernel,
    agent: Agent<Link, Kernel>,
}

struct World {
    scratch: Scratch,
    link: Link,
    key: SigningKey,
    keys: Vec<PublicKey>,
    hosts: Vec<Host>,
    now: u64,
}

impl World {
    fn new(name: &str, hosts: usize) -> Self {
        let scratch = Scratch::new(name);
        let store = scratch.path("store");
        fs::create_dir(&store).unwrap();
        let directory = Directory::new(&store);
        let now = Rc::new(Cell::new(start()));
        let link = Link { directory, away: Rc::default(), now, written: Rc::default() };
        let key = key();
        let keys = vec![key.public()];
        let mut world = Self { scratch, link, key, keys, hosts: Vec::new(), now: start() };
        for number in 0..hosts {
            let host = world.host(&format!("edge{number}"), Steps::default());
            world.hosts.push(host);
        }
        world
    }

    fn host(&self, name: &str, steps: Steps) -> Host {
        let root = self.scratch.path(name);
        let kernel = Kernel::default();
        let disk = Disk::new(&root, steps);
        drop(disk.lock().unwrap());
        let agent =
            Agent::new(spec(name, self.keys.clone()), self.link.clone(), disk, kernel.clone());
        Host { root, ahead_s: 0, kernel, agent }
    }

    fn fleet(&self) -> Fleet<'_> {
        Fleet::new(&self.link, &self.keys)
    }

    fn publish(&self, number: u64, stages: &[&str]) -> Rollout {
        let stages: Vec<Stage> = stages.iter().map(|it| it.parse().unwrap()).collect();
        let times = (self.now, self.now + WEEK_S);
        self.fleet().begin(&self.key, &files(number), (stages, HOLD_S), times).unwrap()
    }

    /// Each agent asks the store once, a minute later. No link leads to half a policy.
    fn poll(&mut self) -> Vec<Report> {
        self.now += 60;
        self.link.now.set(self.now);
        let now = self.now;
        let poll = |host: &mut Host| {
            let clock = now.checked_add_signed(host.ahead_s).unwrap();
            let report = host.agent.poll(clock, &controllers(&["cubic", "bbr"])).unwrap();
            whole(&host.root);
            report
        };
        self.hosts.iter_mut().map(poll).collect()
    }

    /// Polls until the patience of the agents has ended.
    fn give_up(&mut self) -> Vec<Report> {
        (0..3).for_each(|_| drop(self.poll()));
        self.poll()
    }

    /// How many hosts run the policies with these numbers.
    fn running(&self) -> BTreeMap<u64, usize> {
        let mut running = BTreeMap::new();
        for host in &self.hosts {
            *running.entry(whole(&host.root).unwrap()).or_default() += 1;
        }
        running
    }

    fn status(&self) -> FleetStatus {
        let (rollout, _) = self.fleet().rollout().unwrap().unwrap();
        FleetStatus::new(&rollout, self.fleet().reports().unwrap(), self.now)
    }

    fn next(&self) -> Next {
        let (rollout, _) = self.fleet().rollout().unwrap().unwrap();
        rollout.next_step(&self.status().hosts, &[], Tolerance::default(), self.now)
    }

    fn go_on(&self, step: &Next) -> Rollout {
        let current = self.fleet().current().unwrap();
        self.fleet().go_on(&self.key, current, step, self.now).unwrap()
    }

    fn roll_back(&self, version: Option<u64>) -> Rollout {
        let current = self.fleet().current().unwrap();
        self.fleet().roll_back(&self.key, current, version, self.now).unwrap()
    }

    /// Polls and steps until the version is on all hosts.
    fn finish(&mut self) {
        for _ in 0..20 {
            self.poll();
            match self.next() {
                Next::Nothing => return,
                Next::Hold(_) => self.now += HOLD_S,
                step @ (Next::Stage(_) | Next::Widen(_) | Next::Finish) => {
                    self.go_on(&step);
                }
                Next::Stop(reasons) => panic!("{reasons:?}"),
            }
        }
        panic!("it does not finish: {:?}", self.next());
    }
}

#[test]
fn version_goes_out_in_stages_and_is_rolled_back_within_two_polls() {
    let mut world = World::new("fleet-stages", 40);
    world.publish(1, &[]);
    world.finish();
    assert_eq!(world.running(), [(1, 40)].into());
    world.publish(2, &["10%", "50%", "100%"]);
    world.poll();
    let few = world.running()[&2];
    assert!((1..15).contains(&few), "{few}");
    assert!(matches!(world.next(), Next::Hold(_)), "the stage is held");
    world.now += HOLD_S;
    assert_eq!(world.next(), Next::Stage(1));
    world.go_on(&Next::Stage(1));
    world.poll();
    let half = world.running()[&2];
    assert!(few < half && half < 40, "{half}");
    world.roll_back(None);
    world.poll();
    assert_eq!(world.running(), [(1, 40)].into(), "one poll later");
    // The next version has a number of its own, and goes to all.
    assert_eq!(world.publish(3, &["10%", "100%"]).highest, 3);
    world.finish();
    assert_eq!(world.running(), [(3, 40)].into());
    world.roll_back(None);
    world.poll();
    let after = world.running();
    assert_eq!(after.len(), 1, "{after:?}");
    assert!(!after.contains_key(&3), "{after:?}");
    let status = world.status();
    assert!(status.attention.is_empty(), "{:?}", status.attention);
}

/// Otherwise a bad version is on all hosts within as many runs of the timer as it has stages.
#[test]
fn stage_while_no_host_has_reported_waits_and_says_what_to_do() {
    let mut world = World::new("fleet-unreported", 3);
    world.publish(1, &["1%", "10%", "100%"]);
    let waits = |world: &World| {
        let Next::Hold(reasons) = world.next() else { panic!("{:?}", world.next()) };
        assert!(reasons[0].starts_with("no host has reported; start an agent"), "{reasons:?}");
    };
    waits(&world);
    world.now += 100 * HOLD_S;
    waits(&world);
    let (rollout, _) = world.fleet().rollout().unwrap().unwrap();
    let skips = Tolerance { skip_empty: true, ..Tolerance::default() };
    let hold = rollout.next_step(&world.status().hosts, &[], skips, world.now);
    assert!(matches!(hold, Next::Hold(_)), "no flag makes a canary of nothing");
    world.poll();
    assert!(matches!(world.next(), Next::Widen(_)), "{:?}", world.next());
}

/// No host of three has one of the first hundred slots.
#[test]
fn share_without_a_host_is_widened_to_the_first_host_and_held_again() {
    let mut world = World::new("fleet-small", 3);
    world.publish(1, &[]);
    world.finish();
    world.publish(2, &["0.01%", "1%", "50%", "100%"]);
    world.poll();
    assert_eq!(world.running(), [(1, 3)].into(), "no host is in the first share");
    world.now += HOLD_S;
    let step = world.next();
    assert!(matches!(step, Next::Widen(_)), "{step:?}");
    world.go_on(&step);
    assert!(matches!(world.next(), Next::Hold(_)));
    world.poll();
    assert_eq!(world.running(), [(1, 2), (2, 1)].into(), "one host is the canary");
    let Next::Hold(reasons) = world.next() else { panic!("{:?}", world.next()) };
    assert!(reasons[0].contains("is held for"), "the time begins with the host: {reasons:?}");
    world.now += HOLD_S;
    assert_eq!(world.next(), Next::Stage(2), "1% adds no host to the share of the canary");
    world.finish();
    assert_eq!(world.running(), [(2, 3)].into());
}

#[test]
fn stage_of_a_place_without_hosts_is_held_unless_it_is_skipped() {
    let mut world = World::new("fleet-place", 3);
    world.poll();
    world.publish(1, &["place:fra1", "100%"]);
    let (rollout, _) = world.fleet().rollout().unwrap().unwrap();
    let step = |skip_empty, now| {
        let tolerance = Tolerance { skip_empty, ..Tolerance::default() };
        rollout.next_step(&world.status().hosts, &[], tolerance, now)
    };
    assert!(matches!(step(false, world.now), Next::Hold(_)));
    assert_eq!(step(false, world.now + HOLD_S), Next::Stage(1));
    assert_eq!(step(true, world.now), Next::Stage(1));
}

#[test]
fn report_that_the_store_does_not_take_is_known_until_one_is_delivered() {
    let mut world = World::new("fleet-undelivered", 1);
    world.publish(1, &[]);
    let reports = world.scratch.path("store/reports");
    fs::write(&reports, "a file where the folder should be").unwrap();
    let report = world.poll().remove(0);
    assert_eq!(report.state, HostState::Active);
    let error = world.hosts[0].agent.undelivered().unwrap().to_string();
    assert!(error.contains("reports/edge0.json"), "{error}");
    fs::remove_file(&reports).unwrap();
    world.poll();
    assert_eq!(world.hosts[0].agent.undelivered(), None);
    assert!(reports.join("edge0.json").exists());
}

/// A freeze or a rollback is in the rollout: it would be repeated in an incident if it were called a failure.
#[test]
fn rollout_without_its_copy_for_readers_is_active_and_the_reason_is_known() {
    let world = World::new("fleet-uncopied", 1);
    world.publish(1, &[]);
    let copies = world.scratch.path("store/rollouts");
    fs::remove_dir_all(&copies).unwrap();
    fs::write(&copies, "a file where the folder should be").unwrap();
    let fleet = world.fleet();
    fleet.freeze(&world.key, true, world.now).unwrap();
    assert!(fleet.current().unwrap().0.frozen);
    let reason = fleet.uncopied().unwrap().to_string();
    assert!(reason.contains("rollouts/0000000002"), "{reason}");
    fs::remove_file(&copies).unwrap();
    fleet.freeze(&world.key, false, world.now).unwrap();
    assert_eq!(fleet.uncopied(), None);
}

/// Otherwise all hosts keep the bad version: they refuse the one to return to.
#[test]
fn rollback_to_a_version_that_has_expired_signs_its_files_again() {
    let mut world = World::new("fleet-back-expired", 2);
    world.publish(1, &[]);
    world.finish();
    world.now += WEEK_S - 2 * HOLD_S;
    world.publish(2, &["100%"]);
    world.poll();
    world.now += WEEK_S / 2;
    let rollout = world.roll_back(None);
    world.poll();
    assert_eq!(world.running(), [(1, 2)].into());
    let stable = rollout.stable.unwrap();
    assert_eq!((stable.version, rollout.highest, rollout.rolled_back), (3, 3, Some(2)));
    assert_eq!(stable.expires_unix_s, world.now - 60 + WEEK_S, "its life is that of the first");
    // The next version goes on from there.
    assert_eq!(world.publish(4, &[]).highest, 4);
    world.finish();
    assert_eq!(world.running(), [(4, 2)].into());
}

#[test]
fn rollback_to_a_version_of_another_key_is_signed_again_or_refused_with_the_remedy() {
    let mut world = World::new("fleet-back-key", 2);
    world.publish(1, &[]);
    world.finish();
    let old = world.keys[0].clone();
    world.key = key();
    world.keys = vec![old.clone(), world.key.public()];
    for number in 0..2 {
        world.hosts[number] = world.host(&format!("edge{number}"), Steps::default());
    }
    world.publish(2, &["100%"]);
    world.keys.remove(0);
    for number in 0..2 {
        world.hosts[number] = world.host(&format!("edge{number}"), Steps::default());
    }
    world.poll();
    let before = world.fleet().current().unwrap();
    let back = world.fleet().roll_back(&world.key, before.clone(), None, world.now);
    let error = back.unwrap_err();
    assert!(matches!(error, PublishError::Unusable(1, _)), "{error}");
    assert!(error.to_string().contains("--public-key"), "{error}");
    assert_eq!(world.fleet().current().unwrap(), before, "nothing is published");
    let keys = [old, world.key.public()];
    let fleet = Fleet::new(&world.link, &keys);
    fleet.roll_back(&world.key, before, None, world.now).unwrap();
    world.poll();
    assert_eq!(world.running(), [(1, 2)].into());
}

#[test]
fn host_that_cannot_get_the_version_to_return_to_leaves_the_bad_one() {
    let mut world = World::new("fleet-back-damaged", 1);
    world.publish(1, &[]);
    world.finish();
    world.publish(2, &["100%"]);
    world.poll();
    let stable = world.roll_back(None).stable.unwrap();
    fs::write(world.scratch.path("store").join(stable.object()), "damaged").unwrap();
    let report = world.poll().remove(0);
    assert_eq!(report.state, HostState::Refused);
    assert_eq!(world.running(), [(0, 1)].into());
}

#[test]
fn rollback_skips_versions_that_were_rolled_back_and_bundles_that_were_never_published() {
    let mut world = World::new("fleet-back-bad", 2);
    world.publish(1, &[]);
    world.finish();
    world.publish(2, &["100%"]);
    world.poll();
    world.roll_back(None);
    world.publish(3, &[]);
    world.finish();
    // What a publisher leaves that was killed before it wrote the rollout.
    for number in 10..14 {
        let store = Dying(&world.link, Cell::new(1));
        let killed = Fleet::new(&store, &world.keys);
        let times = (world.now, world.now + WEEK_S);
        killed.begin(&world.key, &files(number), (Vec::new(), 0), times).unwrap_err();
    }
    world.publish(4, &[]);
    world.finish();
    let fleet = world.fleet();
    let refused = |version| {
        let current = fleet.current().unwrap();
        fleet.roll_back(&world.key, current, Some(version), world.now).unwrap_err()
    };
    let bad = refused(2);
    assert!(matches!(bad, PublishError::TakenBack(2)), "{bad}");
    assert!(matches!(refused(9), PublishError::NoVersion(_)));
    let back = fleet.roll_back(&world.key, fleet.current().unwrap(), None, world.now).unwrap();
    assert_eq!(back.stable.unwrap().version, 3);
    let again = fleet.roll_back(&world.key, fleet.current().unwrap(), None, world.now).unwrap();
    assert_eq!(again.stable.unwrap().version, 1, "not the second, which was bad");
    world.poll();
    assert_eq!(world.running(), [(1, 2)].into());
}

/// With autoscaling most names of reports are of hosts that are gone.
#[test]
fn host_that_left_before_a_stage_is_not_waited_for_and_one_that_left_in_it_is_named() {
    let mut world = World::new("fleet-gone", 12);
    world.publish(1, &[]);
    world.finish();
    world.publish(2, &["50%", "100%"]);
    world.poll();
    world.hosts.retain(|host| whole(&host.root) == Some(1));
    assert!((1..12).contains(&world.hosts.len()));
    world.roll_back(None);
    world.now += 3600;
    world.poll();
    world.publish(3, &["50%", "100%"]);
    world.poll();
    let step = world.next();
    assert!(matches!(step, Next::Widen(_)), "{step:?}");
    world.go_on(&step);
    world.finish();
    assert_eq!(world.running(), [(3, world.hosts.len())].into());
    world.publish(4, &["100%"]);
    world.poll();
    world.now += 3600;
    let Next::Hold(reasons) = world.next() else { panic!("{:?}", world.next()) };
    assert!(reasons[0].contains("is gone, remove reports/HOST.json"), "{reasons:?}");
    // None of them has reported since the next version began.
    let times = (world.now, world.now + WEEK_S);
    world.fleet().begin_at_once(&world.key, &files(5), times).unwrap();
    let Next::Hold(reasons) = world.next() else { panic!("{:?}", world.next()) };
    assert!(reasons[0].starts_with("no host has reported"), "{reasons:?}");
}

#[test]
fn host_that_does_not_run_what_it_shall_needs_attention() {
    let mut world = World::new("fleet-attention", 2);
    let target = world.publish(1, &["100%"]).next.unwrap().target;
    let object = world.scratch.path("store").join(target.object());
    let bundle = fs::read(&object).unwrap();
    fs::remove_file(&object).unwrap();
    world.poll();
    let needs = |world: &World, line: &str| {
        let attention = world.status().attention;
        assert!(attention.iter().any(|it| it == line), "{attention:?}");
    };
    needs(&world, "store or version not readable: edge0, edge1");
    fs::write(&object, bundle).unwrap();
    world.finish();
    assert_eq!(world.status().attention, [""; 0]);
    // A host that reads an old copy of the store goes on to report.
    world.publish(2, &["100%"]);
    let report = fs::read(world.scratch.path("store/reports/edge0.json")).unwrap();
    let mut report: Report = serde_json::from_slice(&report).unwrap();
    for after in [60, 700] {
        report.unix_s = world.now + after;
        world.link.now.set(report.unix_s);
        let bytes = serde_json::to_vec(&report).unwrap();
        world.link.put("reports/edge0.json", &bytes, &Condition::Any).unwrap();
        if after == 60 {
            assert_eq!(world.status().attention, [""; 0], "its next poll");
        }
    }
    needs(&world, "another version than the rollout says: edge0");
    world.fleet().freeze(&world.key, true, world.now).unwrap();
    assert_eq!(world.status().attention, [""; 0], "it stays where it is");
    world.link.put("reports/edge0.json", b"junk", &Condition::Any).unwrap();
    needs(&world, "report not readable: edge0");
    assert_eq!(world.status().versions, [("1".to_owned(), 1)].into());
}

/// The next older one would be another policy than the operator expects.
#[test]
fn rollback_while_an_older_version_cannot_be_read_is_an_error() {
    struct Without<'a>(&'a Link, &'a str);

    impl Store for Without<'_> {
        fn get(&self, name: &str, max: u64, known: Option<&Tag>) -> Result<GetResult, StoreError> {
            if name.starts_with(self.1) {
                return Err(StoreError::Away(name.to_owned(), "timed out".to_owned()));
            }
            self.0.get(name, max, known)
        }

        fn put(&self, name: &str, bytes: &[u8], condition: &Condition) -> Result<(), StoreError> {
            self.0.put(name, bytes, condition)
        }

        fn put_file(&self, name: &str, file: &Path) -> Result<(), StoreError> {
            self.0.put_file(name, file)
        }

        fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
            self.0.list(folder)
        }
    }

    let mut world = World::new("fleet-back-away", 1);
    for number in [1, 2, 3] {
        world.publish(number, &[]);
        world.finish();
    }
    let store = Without(&world.link, "bundles/0000000002");
    let fleet = Fleet::new(&store, &world.keys);
    let back = fleet.roll_back(&world.key, fleet.current().unwrap(), None, world.now);
    assert!(matches!(back, Err(PublishError::Store(StoreError::Away(..)))), "{back:?}");
    assert_eq!(world.roll_back(None).stable.unwrap().version, 2);
}

/// Otherwise the timer rolls the fix back before any host has seen it.
#[test]
fn report_about_another_version_stops_nothing_and_one_of_an_unknown_host_still_does() {
    let mut world = World::new("fleet-stale", 2);
    world.hosts[0].kernel.0.borrow_mut().push(1);
    world.publish(1, &["100%"]);
    world.give_up();
    assert!(matches!(world.next(), Next::Stop(_)), "{:?}", world.next());
    let times = (world.now, world.now + WEEK_S);
    world.fleet().begin_at_once(&world.key, &files(2), times).unwrap();
    assert!(matches!(world.next(), Next::Hold(_)), "{:?}", world.next());
    world.hosts[0].kernel.0.borrow_mut().push(2);
    world.give_up();
    let unknown = world.hosts.remove(0);
    world.now += 3600;
    world.poll();
    assert!(matches!(world.next(), Next::Stop(_)), "{:?}", world.next());
    drop(unknown);
}

/// A reboot, or a restart of what applies it: one failure is not the end of a version that was good.
#[test]
fn version_that_fails_once_stays_and_one_that_stays_bad_gives_way_to_the_one_before() {
    let mut world = World::new("fleet-patience", 1);
    for number in [1, 2] {
        world.publish(number, &[]);
        world.finish();
    }
    world.now += 86_400;
    world.poll();
    let restart = |world: &mut World| {
        world.hosts[0] = world.host("edge0", Steps::default());
        world.hosts[0].kernel.0.borrow_mut().push(2);
    };
    restart(&mut world);
    let report = world.poll().remove(0);
    assert_eq!((report.state, world.running()), (HostState::Waiting, [(2, 1)].into()));
    world.hosts[0].kernel.0.borrow_mut().clear();
    let report = world.poll().remove(0);
    assert_eq!((report.state, report.error), (HostState::Active, None));
    // The time of the first failure is over: a second one has its own.
    world.now += 600;
    restart(&mut world);
    assert_eq!(world.poll()[0].state, HostState::Waiting);
    let report = world.give_up().remove(0);
    assert_eq!((report.state, world.running()), (HostState::Failed, [(1, 1)].into()));
    // A stable version has no next rollout, so it is tried again after an hour.
    world.hosts[0].kernel.0.borrow_mut().clear();
    world.poll();
    assert_eq!(world.running(), [(1, 1)].into());
    world.now += 3600;
    world.poll();
    assert_eq!(world.running(), [(2, 1)].into());
}

#[test]
fn host_that_was_away_stays_with_its_version_while_the_fleet_is_frozen() {
    let mut world = World::new("fleet-frozen-away", 2);
    world.publish(1, &[]);
    world.finish();
    let away = world.hosts.remove(1);
    world.publish(2, &[]);
    world.finish();
    world.fleet().freeze(&world.key, true, world.now).unwrap();
    world.hosts.push(away);
    world.poll();
    assert_eq!(world.running(), [(1, 1), (2, 1)].into());
}

#[test]
fn rollback_of_a_fleet_that_runs_no_version_says_so() {
    let mut world = World::new("fleet-nothing", 1);
    world.publish(1, &[]);
    world.roll_back(None);
    let current = || world.fleet().current().unwrap();
    let error = world.fleet().roll_back(&world.key, current(), None, world.now).unwrap_err();
    assert!(matches!(error, PublishError::NothingToRollBack), "{error}");
    assert_message!("nothing", error);
    // It still ends a freeze.
    world.fleet().freeze(&world.key, true, world.now).unwrap();
    assert!(!world.roll_back(None).frozen);
    world.poll();
    assert_eq!(world.running(), [(0, 1)].into());
}

/// `uncork kernel load` adds controllers while an agent runs.
#[test]
fn controller_that_the_kernel_has_later_is_supported_at_the_next_poll() {
    let mut world = World::new("fleet-controllers", 1);
    world.publish(2, &[]);
    world.poll();
    let now = world.now;
    let mut poll =
        |names: &[&str]| world.hosts[0].agent.poll(now, &controllers(names)).unwrap().unsupported;
    assert_eq!(poll(&["cubic"]), ["bbr"]);
    assert!(poll(&["cubic", "bbr"]).is_empty());
    assert_eq!(poll(&["cubic"]), ["bbr"]);
    assert!(poll(&[]).is_empty(), "not known");
}

/// One signature of a publisher with a fast clock must not end all versions of all hosts.
#[test]
fn publisher_with_a_clock_a_year_ahead_changes_no_host_and_its_next_rollout_counts() {
    let mut world = World::new("fleet-fast", 3);
    world.publish(1, &[]);
    world.finish();
    let now = world.now;
    world.now += 365 * 86_400;
    world.publish(2, &["100%"]);
    world.now = now;
    for report in world.poll() {
        assert_eq!(report.state, HostState::Refused);
        let error = report.error.unwrap();
        assert!(error.contains("signed 364 days in the future"), "{error}");
    }
    assert_eq!(world.running(), [(1, 3)].into());
    world.roll_back(None);
    world.publish(3, &["100%"]);
    world.finish();
    assert_eq!(world.running(), [(3, 3)].into());
}

#[test]
fn stolen_key_has_no_effect_once_agents_do_not_have_it() {
    let mut world = World::new("fleet-stolen", 2);
    world.publish(1, &[]);
    world.finish();
    let (mut forged, _) = world.fleet().current().unwrap();
    (forged.serial, forged.highest) = (1 << 32, u64::MAX);
    forged.made_unix_s = world.now + 80_000;
    let sealed = forged.seal(&world.key).unwrap();
    world.link.put(Rollout::OBJECT, &sealed, &Condition::Any).unwrap();
    world.poll();
    let error = begin_second(&world).unwrap_err();
    assert!(matches!(error, PublishError::Exhausted("version")), "{error}");
    assert_message!("exhausted", error);
    // The new key alone, and a store without the rollout of the thief.
    world.key = key();
    world.keys = vec![world.key.public()];
    fs::remove_file(world.scratch.path("store").join(Rollout::OBJECT)).unwrap();
    for number in 0..2 {
        world.hosts[number] = world.host(&format!("edge{number}"), Steps::default());
    }
    world.poll();
    assert_eq!(world.running(), [(0, 2)].into());
    world.publish(2, &[]);
    world.finish();
    assert_eq!(world.running(), [(2, 2)].into());
}

/// Otherwise each publication is refused until there is one for each lost serial, and versions expire meanwhile.
#[test]
fn store_that_was_restored_or_lost_is_followed_again_after_one_publication() {
    let mut world = World::new("fleet-restored", 3);
    let file = world.scratch.path("store").join(Rollout::OBJECT);
    world.publish(1, &[]);
    world.finish();
    let backup = fs::read(&file).unwrap();
    for number in [2, 3] {
        world.publish(number, &[]);
        world.finish();
    }
    let lost = world.fleet().current().unwrap().0;
    fs::write(&file, backup).unwrap();
    assert!(world.poll().iter().all(|report| report.state == HostState::Refused));
    let again = world.publish(4, &[]);
    assert_eq!((again.serial, again.highest), (lost.serial + 1, lost.highest + 1));
    world.finish();
    assert_eq!(world.running(), [(4, 3)].into());
    fs::remove_dir_all(world.scratch.path("store")).unwrap();
    fs::create_dir(world.scratch.path("store")).unwrap();
    assert!(world.poll().iter().all(|report| report.state == HostState::Away));
    world.publish(5, &[]);
    world.finish();
    assert_eq!(world.running(), [(5, 3)].into());
}

#[test]
fn serial_of_a_stolen_host_that_is_far_ahead_does_not_count() {
    let mut world = World::new("fleet-far", 1);
    world.publish(1, &[]);
    let report = world.poll().remove(0);
    let serial = world.fleet().current().unwrap().0.serial;
    for (ahead, next) in [(1 << 16, serial + (1 << 16) + 1), (1 << 40, serial + (1 << 16) + 2)] {
        let forged = Report { serial: serial + ahead, ..report.clone() };
        let bytes = serde_json::to_vec(&forged).unwrap();
        world.link.put("reports/edge0.json", &bytes, &Condition::Any).unwrap();
        let frozen = world.fleet().freeze(&world.key, true, world.now).unwrap();
        assert_eq!(frozen.serial, next);
    }
}

#[test]
fn version_with_the_stable_files_is_not_held() {
    let mut world = World::new("fleet-renewed", 1);
    world.publish(1, &[]);
    world.finish();
    world.publish(1, &["10%", "100%"]);
    world.poll();
    assert_eq!(world.next(), Next::Finish);
}

#[test]
fn stage_that_adds_no_host_is_refused() {
    let world = World::new("fleet-order", 1);
    let begin = |stages: &[&str]| {
        let stages = stages.iter().map(|it| it.parse().unwrap()).collect();
        let times = (world.now, world.now + WEEK_S);
        world.fleet().begin(&world.key, &files(1), (stages, HOLD_S), times)
    };
    for stages in
        [&["50%", "10%", "100%"][..], &["place:a", "1%", "place:a", "100%"], &["100%", "100%"]]
    {
        let error = begin(stages).unwrap_err();
        assert!(matches!(error, PublishError::Order(..)), "{error}");
    }
    begin(&["place:a", "1%", "place:b", "100%"]).unwrap();
}

fn begin_second(world: &World) -> Result<Rollout, PublishError> {
    let times = (world.now, world.now + WEEK_S);
    world.fleet().begin(&world.key, &files(2), (Vec::new(), HOLD_S), times)
}

#[test]
fn hosts_that_cannot_apply_stop_the_stage_and_keep_the_version_before() {
    let mut world = World::new("fleet-fails", 12);
    world.publish(1, &[]);
    world.finish();
    world.hosts[3].kernel.0.borrow_mut().push(2);
    world.publish(2, &["100%"]);
    let reports = world.give_up();
    assert_eq!(reports[3].state, HostState::Failed);
    assert!(reports[3].error.as_ref().unwrap().contains("no such controller"));
    assert_eq!(world.running(), [(1, 1), (2, 11)].into());
    world.now += HOLD_S;
    world.poll();
    let Next::Stop(reasons) = world.next() else { panic!("{:?}", world.next()) };
    assert!(reasons[0].contains("edge3"), "{reasons:?}");
    world.roll_back(None);
    world.poll();
    assert_eq!(world.running(), [(1, 12)].into());
}

/// Before the first verdict, and after a reboot, its file is missing.
#[test]
fn verdict_that_is_not_there_holds_the_stage_and_failing_hosts_still_stop_it() {
    let mut world = World::new("fleet-no-verdict", 2);
    let missing = || [Err("no verdict in 'verdict.json'".to_owned())];
    let next = |world: &World| {
        let (rollout, _) = world.fleet().current().unwrap();
        rollout.next_step(&world.status().hosts, &missing(), Tolerance::default(), world.now)
    };
    world.publish(1, &["100%"]);
    world.poll();
    world.now += HOLD_S;
    assert_eq!(next(&world), Next::Hold(vec!["no verdict in 'verdict.json'".to_owned()]));
    world.finish();
    assert_eq!(next(&world), Next::Nothing);
    world.hosts[0].kernel.0.borrow_mut().push(2);
    world.publish(2, &["100%"]);
    world.give_up();
    assert!(matches!(next(&world), Next::Stop(_)), "{:?}", next(&world));
}

#[test]
fn frozen_fleet_stays_where_it_is() {
    let mut world = World::new("fleet-frozen", 12);
    world.publish(1, &[]);
    world.finish();
    world.publish(2, &["50%", "100%"]);
    let late = world.hosts.split_off(6);
    world.poll();
    let before = world.running();
    world.fleet().freeze(&world.key, true, world.now).unwrap();
    world.hosts.extend(late);
    world.now += HOLD_S;
    world.poll();
    let running = world.running();
    assert_eq!(running.get(&2), before.get(&2), "no other host has taken it");
    assert!(matches!(world.next(), Next::Hold(_)));
    world.fleet().freeze(&world.key, false, world.now).unwrap();
    world.finish();
    assert_eq!(world.running(), [(2, 12)].into());
}

#[test]
fn store_away_keeps_the_last_version_until_it_expires_and_then_the_default() {
    let mut world = World::new("fleet-away", 5);
    world.publish(1, &[]);
    world.finish();
    let started = world.now;
    world.link.away.set(true);
    let reports = world.poll();
    assert!(reports.iter().all(|report| report.state == HostState::Away));
    assert_eq!(world.running(), [(1, 5)].into());
    // A restart does not change that: the version on the disk is verified again.
    for number in 0..5 {
        world.hosts[number] = world.host(&format!("edge{number}"), Steps::default());
    }
    world.poll();
    assert_eq!(world.running(), [(1, 5)].into());
    world.now = started + WEEK_S;
    world.poll();
    assert_eq!(world.running(), [(0, 5)].into());
    // A clock that is set back does not revive it once another time was signed.
    world.link.away.set(false);
    world.publish(2, &[]);
    world.poll();
    assert_eq!(world.running(), [(2, 5)].into());
}

#[test]
fn clocks_that_are_off_by_two_hours_change_nothing_and_are_named() {
    let mut world = World::new("fleet-clock", 40);
    for (host, ahead) in [(1, 7200), (2, -7200), (3, 7200)] {
        world.hosts[host].ahead_s = ahead;
    }
    world.publish(1, &[]);
    world.finish();
    world.publish(2, &["10%", "100%"]);
    world.finish();
    assert_eq!(world.running(), [(2, 40)].into());
    world.roll_back(Some(1));
    world.poll();
    assert_eq!(world.running(), [(1, 40)].into());
    let status = world.status();
    let off: Vec<_> = (status.hosts.iter())
        .filter_map(|host| Some((host.host.as_str(), host.clock_s?)))
        .collect();
    assert_eq!(off, [("edge1", 7200), ("edge2", -7200), ("edge3", 7200)]);
    let clocks = "clock off by more than a minute: edge1, edge2, edge3";
    assert!(status.attention.iter().any(|line| line == clocks), "{:?}", status.attention);
}

#[test]
fn what_is_altered_replayed_or_signed_by_others_is_refused_everywhere() {
    let mut world = World::new("fleet-attack", 40);
    let store = world.scratch.path("store");
    let read = |name: &str| fs::read(store.join(name)).unwrap();
    let first = world.publish(1, &[]);
    let old_rollout = read(Rollout::OBJECT);
    world.finish();
    let target = world.publish(2, &[]).next.unwrap().target;
    let object = target.object();
    let (good, good_rollout) = (read(&object), read(Rollout::OBJECT));
    let link = world.link.directory.clone();
    let all_refuse = |world: &mut World, what: &str, words: &str| {
        for report in world.poll() {
            assert_eq!(report.state, HostState::Refused, "{what}");
            let error = report.error.unwrap();
            assert!(error.contains(words), "{what}: {error}");
        }
        assert_eq!(world.running(), [(1, 40)].into(), "{what}");
    };
    let put = |name: &str, bytes: &[u8]| link.put(name, bytes, &Condition::Any).unwrap();
    // A bundle with one bit changed, cut, and one of another version under its name.
    let mut corrupt = good.clone();
    corrupt[good.len() / 2] ^= 1;
    let other = read(&first.next.unwrap().target.object());
    for (what, bytes) in [("corrupt", &corrupt[..]), ("cut", &good[..90]), ("other", &other)] {
        put(&object, bytes);
        all_refuse(&mut world, what, "other bytes");
    }
    put(&object, &good);
    // A rollout of before, of a stranger, with one bit changed, and without content.
    put(Rollout::OBJECT, &old_rollout);
    all_refuse(&mut world, "replayed", "an old file was put back");
    let (rollout, _) = Rollout::open(&good_rollout, &world.keys).unwrap();
    let newer = Rollout { serial: rollout.serial + 1, ..rollout };
    put(Rollout::OBJECT, &newer.seal(&key()).unwrap());
    all_refuse(&mut world, "stranger", "signed");
    let mut corrupt = good_rollout.clone();
    corrupt[40] ^= 1;
    put(Rollout::OBJECT, &corrupt);
    all_refuse(&mut world, "altered", "signed");
    put(Rollout::OBJECT, b"");
    all_refuse(&mut world, "empty", "does not begin");
    put(Rollout::OBJECT, &good_rollout);
    world.poll();
    assert_eq!(world.running(), [(2, 40)].into());
    // Signed, newer, and back to version 1 without a rollback.
    let (mut back, _) = Rollout::open(&good_rollout, &world.keys).unwrap();
    back.serial += 1;
    back.next = None;
    put(Rollout::OBJECT, &back.seal(&world.key).unwrap());
    for report in world.poll() {
        assert!(report.error.unwrap().contains("is older than 2"));
    }
    assert_eq!(world.running(), [(2, 40)].into());
}

#[test]
fn keys_are_rotated_while_both_count() {
    let mut world = World::new("fleet-rotate", 3);
    world.publish(1, &[]);
    world.finish();
    let new = key();
    world.keys.push(new.public());
    for number in 0..3 {
        world.hosts[number] = world.host(&format!("edge{number}"), Steps::default());
    }
    world.key = new;
    world.publish(2, &[]);
    world.finish();
    world.keys.remove(0);
    for number in 0..3 {
        world.hosts[number] = world.host(&format!("edge{number}"), Steps::default());
    }
    world.poll();
    assert_eq!(world.running(), [(2, 3)].into());
}

#[test]
fn version_that_somebody_changed_on_the_disk_is_replaced() {
    let mut world = World::new("fleet-drift", 1);
    world.publish(1, &[]);
    world.finish();
    let root = world.hosts[0].root.clone();
    fs::write(root.join("current/policy.toml"), "# mine\n").unwrap();
    world.poll();
    assert_eq!(whole(&root), Some(1));
    // Without the store there is the default: what is not signed is not active.
    fs::write(root.join("current/policy.toml"), "# mine\n").unwrap();
    world.link.away.set(true);
    world.poll();
    assert_eq!(whole(&root), Some(0));
}

/// Polls with an agent that dies before the step with this number; whether it got there.
fn killed_poll(world: &World, name: &str, at: usize) -> bool {
    let steps = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&steps);
    let hook = Steps::new(move |_| {
        let step = counted.fetch_add(1, Ordering::Relaxed);
        if step >= at { Err(io::Error::other("killed")) } else { Ok(()) }
    });
    let mut host = world.host(name, hook);
    let _ = host.agent.poll(world.now, &[]);
    steps.load(Ordering::Relaxed) > at
}

#[test]
fn agent_that_dies_at_any_step_leaves_a_whole_version_and_the_next_one_goes_on() {
    let mut died = 0;
    for at in 0..100 {
        let mut world = World::new("fleet-killed", 1);
        world.publish(1, &[]);
        world.finish();
        world.publish(2, &[]);
        world.now += 60;
        let got_there = killed_poll(&world, "edge0", at);
        let root = world.hosts[0].root.clone();
        let there = whole(&root).unwrap();
        assert!([1, 2].contains(&there), "step {at}: {there}");
        // What it has accepted counts: the rollout before is refused, at any step.
        world.hosts[0] = world.host("edge0", Steps::default());
        world.poll();
        assert_eq!(world.running(), [(2, 1)].into(), "step {at}");
        world.roll_back(None);
        world.poll();
        assert_eq!(whole(&root), Some(1), "step {at}");
        if !got_there {
            break;
        }
        died += 1;
    }
    assert!((10..100).contains(&died), "{died}");
}

/// What did not fit would keep the disk full: not even a rollback would fit then.
#[test]
fn version_that_cannot_be_written_whole_leaves_nothing() {
    let mut world = World::new("fleet-full", 1);
    world.publish(1, &[]);
    world.finish();
    world.publish(2, &[]);
    let full = |step: &str| match step {
        "flush the directory" => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    };
    world.hosts[0] = world.host("edge0", Steps::new(full));
    assert_eq!(world.poll()[0].state, HostState::Failed);
    let new = world.hosts[0].root.join("versions/.new");
    assert!(!new.exists());
    // Nor what a process leaves that was killed there.
    fs::create_dir(&new).unwrap();
    world.hosts[0] = world.host("edge0", Steps::default());
    assert!(!new.exists());
}

/// Not a test of its own: the process that the next one kills.
#[test]
#[ignore = "the next test runs it"]
fn child_that_is_killed() {
    let given = |name: &str| env::var(name).unwrap();
    let at: usize = given("FLEET_AT").parse().unwrap();
    let root = PathBuf::from(given("FLEET_ROOT"));
    let keys = vec![read_public_key(&fs::read(root.join("key.pub")).unwrap()).unwrap()];
    let steps = AtomicUsize::new(0);
    let hook = Steps::new(move |_| {
        if steps.fetch_add(1, Ordering::Relaxed) == at {
            kill_process(getpid(), Signal::KILL)?;
        }
        Ok(())
    });
    let disk = Disk::new(&root.join("edge0"), hook);
    let _lock = disk.lock().unwrap();
    let store = Directory::new(&root.join("store"));
    let mut agent = Agent::new(spec("edge0", keys), store, disk, Commands::default());
    agent.poll(given("FLEET_NOW").parse().unwrap(), &[]).unwrap();
}

#[test]
fn agent_process_killed_at_any_step_leaves_a_whole_version() {
    let mut killed = 0;
    for at in 0..100 {
        let mut world = World::new("fleet-sigkill", 1);
        world.publish(1, &[]);
        world.finish();
        world.publish(2, &[]);
        let root = world.scratch.path("");
        fs::write(root.join("key.pub"), public_key_pem(&world.keys[0])).unwrap();
        let mut child = Command::new(env::current_exe().unwrap());
        child.args(["child_that_is_killed", "--exact", "--ignored"]).stdout(Stdio::null());
        child.env("FLEET_AT", at.to_string()).env("FLEET_ROOT", &root);
        let status = child.env("FLEET_NOW", world.now.to_string()).status().unwrap();
        let there = whole(&root.join("edge0")).unwrap();
        assert!([1, 2].contains(&there), "step {at}: {there}");
        world.hosts[0] = world.host("edge0", Steps::default());
        world.poll();
        assert_eq!(world.running(), [(2, 1)].into(), "step {at}");
        if status.success() {
            break;
        }
        assert_eq!(status.signal(), Some(9), "step {at}");
        killed += 1;
    }
    assert!((10..100).contains(&killed), "{killed}");
}

#[test]
fn two_publishers_never_publish_over_each_other() {
    let world = World::new("fleet-two", 0);
    world.publish(1, &[]);
    let (_, tag) = world.fleet().rollout().unwrap().unwrap();
    world.fleet().freeze(&world.key, true, world.now).unwrap();
    let error = world.link.put(Rollout::OBJECT, b"x", &Condition::Same(tag)).unwrap_err();
    assert!(matches!(error, StoreError::Conflict(_)));
}

fn holder(name: &str) -> HostName {
    name.parse().unwrap()
}

fn plan(world: &World, name: &str, number: u64) -> Result<Planned, PublishError> {
    let stages = (vec!["100%".parse().unwrap()], HOLD_S);
    let times = (world.now, world.now + WEEK_S);
    world.fleet().publish_planned((&world.key, &holder(name)), &files(number), stages, times)
}

#[test]
fn two_planners_one_publishes_and_the_other_learns_who_holds_the_lease_until_when() {
    let mut world = World::new("fleet-planners", 1);
    let (one, two) = (holder("planner1"), holder("planner2"));
    assert!(matches!(plan(&world, "planner1", 1), Err(PublishError::NoLease(_))));
    let lease = world.fleet().take_lease(&one, world.now, 3600).unwrap();
    assert_eq!((lease.holder.as_str(), lease.expires_unix_s), ("planner1", world.now + 3600));
    let error = world.fleet().take_lease(&two, world.now + 600, 3600).unwrap_err();
    assert!(matches!(&error, PublishError::Held(held) if *held == lease), "{error}");
    let until = Lease { expires_unix_s: 1_796_000_000, ..lease.clone() };
    assert_message!("held", PublishError::Held(until));
    assert!(matches!(plan(&world, "planner2", 2), Err(PublishError::Held(_))));
    assert!(matches!(plan(&world, "planner1", 1), Ok(Planned::Published(_))));
    // A renewed lease keeps its beginning. An expired one is anybody's.
    world.now += 1800;
    let renewed = world.fleet().take_lease(&one, world.now, 3600).unwrap();
    assert_eq!(renewed.since_unix_s, lease.since_unix_s);
    world.now += 3600;
    assert!(matches!(plan(&world, "planner1", 3), Err(PublishError::NoLease(_))));
    world.fleet().take_lease(&two, world.now, 3600).unwrap();
    assert!(matches!(plan(&world, "planner1", 3), Err(PublishError::Held(_))));
    world.finish();
    let error = world.fleet().release_lease(&one, world.now).unwrap_err();
    assert!(matches!(error, PublishError::Held(_)), "{error}");
    world.fleet().release_lease(&two, world.now).unwrap();
    world.fleet().take_lease(&one, world.now, 3600).unwrap();
    assert!(matches!(plan(&world, "planner1", 3), Ok(Planned::Published(_))));
}

/// The lease of one planner ends between its look at the store and its write.
#[test]
fn planner_that_slept_until_another_one_published_writes_nothing() {
    struct Slow<'a>(&'a World, Cell<bool>);

    impl Store for Slow<'_> {
        fn get(&self, name: &str, max: u64, known: Option<&Tag>) -> Result<GetResult, StoreError> {
            self.0.link.get(name, max, known)
        }

        fn put(&self, name: &str, bytes: &[u8], condition: &Condition) -> Result<(), StoreError> {
            if name == Rollout::OBJECT && !self.1.replace(true) {
                let (late, two) = (self.0.now + 4000, holder("planner2"));
                self.0.fleet().take_lease(&two, late, 3600).unwrap();
                let (stages, times) = ((Vec::new(), HOLD_S), (late, late + WEEK_S));
                let by = (&self.0.key, &two);
                self.0.fleet().publish_planned(by, &files(2), stages, times).unwrap();
            }
            self.0.link.put(name, bytes, condition)
        }

        fn put_file(&self, name: &str, path: &Path) -> Result<(), StoreError> {
            self.0.link.put_file(name, path)
        }

        fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
            self.0.link.list(folder)
        }
    }

    let world = World::new("fleet-slow", 0);
    let one = holder("planner1");
    let slow = Slow(&world, Cell::new(false));
    let fleet = Fleet::new(&slow, &world.keys);
    fleet.take_lease(&one, world.now, 3600).unwrap();
    let times = (world.now, world.now + WEEK_S);
    let error = fleet.publish_planned((&world.key, &one), &files(1), (Vec::new(), HOLD_S), times);
    assert!(matches!(error, Err(PublishError::Store(StoreError::Conflict(_)))), "{error:?}");
    let next = world.fleet().current().unwrap().0.next.unwrap();
    let object = fs::read(world.scratch.path("store").join(next.target.object())).unwrap();
    assert!(object.windows(3).any(|it| it == b"# 2"), "the other planner's version");
}

#[test]
fn planner_repeats_itself_without_effect_and_renews_before_the_version_expires() {
    let mut world = World::new("fleet-repeat", 1);
    let one = holder("planner1");
    world.fleet().take_lease(&one, world.now, 100 * WEEK_S).unwrap();
    assert!(matches!(plan(&world, "planner1", 1), Ok(Planned::Published(_))));
    assert!(matches!(plan(&world, "planner1", 1), Ok(Planned::Unchanged(_))), "on its way");
    assert!(matches!(plan(&world, "planner1", 2), Err(PublishError::Running(1, _))));
    world.finish();
    let before = world.fleet().current().unwrap();
    assert!(matches!(plan(&world, "planner1", 1), Ok(Planned::Unchanged(_))), "stable");
    assert_eq!(world.fleet().current().unwrap(), before);
    world.now += WEEK_S / 2 + 1;
    assert!(matches!(plan(&world, "planner1", 1), Ok(Planned::Published(_))), "half of its life");
}

#[test]
fn switch_off_while_a_version_is_in_its_stages_replaces_it_on_all_hosts_at_once() {
    let mut world = World::new("fleet-switch", 20);
    let one = holder("planner1");
    world.fleet().take_lease(&one, world.now, 100 * WEEK_S).unwrap();
    plan(&world, "planner1", 1).unwrap();
    world.finish();
    world.publish(2, &["10%", "100%"]);
    world.poll();
    assert!(matches!(plan(&world, "planner1", 3), Err(PublishError::Running(2, _))));
    let times = (world.now, world.now + WEEK_S);
    let switch =
        |world: &World| world.fleet().switch_planned((&world.key, &one), &files(3), times).unwrap();
    let switched = switch(&world);
    assert!(matches!(switched, Planned::Published(_)));
    world.poll();
    assert_eq!(world.running(), BTreeMap::from([(3, 20)]));
    let again = switch(&world);
    assert!(matches!(again, Planned::Unchanged(_)), "on its way to all");
    // A person does it without the lease, over a version that has begun with all hosts, too.
    world.fleet().begin_at_once(&world.key, &files(4), times).unwrap();
    world.poll();
    assert_eq!(world.running(), BTreeMap::from([(4, 20)]));
}

#[test]
fn planner_does_not_publish_after_a_rollback_until_a_person_does() {
    let mut world = World::new("fleet-after", 1);
    world.fleet().take_lease(&holder("planner1"), world.now, 100 * WEEK_S).unwrap();
    plan(&world, "planner1", 1).unwrap();
    world.finish();
    plan(&world, "planner1", 2).unwrap();
    world.roll_back(None);
    for number in [2, 3] {
        let error = plan(&world, "planner1", number).unwrap_err();
        assert!(matches!(error, PublishError::RolledBack(2)), "{error}");
    }
    // The kill switch of a planner works in an incident, too.
    let (one, times) = (holder("planner1"), (world.now, world.now + WEEK_S));
    world.fleet().switch_planned((&world.key, &one), &files(6), times).unwrap();
    world.finish();
    assert_eq!(world.running(), [(6, 1)].into());
    plan(&world, "planner1", 2).unwrap();
    world.roll_back(None);
    world.publish(4, &[]);
    world.finish();
    assert!(matches!(plan(&world, "planner1", 5), Ok(Planned::Published(_))));
}

/// A store that is away from its write number `at` on, as for a planner that is killed there.
struct Dying<'a>(&'a Link, Cell<usize>);

impl Store for Dying<'_> {
    fn get(&self, name: &str, max: u64, known: Option<&Tag>) -> Result<GetResult, StoreError> {
        self.0.get(name, max, known)
    }

    fn put(&self, name: &str, bytes: &[u8], condition: &Condition) -> Result<(), StoreError> {
        let left = self.1.get();
        if left == 0 {
            return Err(StoreError::Away(name.to_owned(), "killed".to_owned()));
        }
        self.1.set(left - 1);
        self.0.put(name, bytes, condition)
    }

    fn put_file(&self, name: &str, path: &Path) -> Result<(), StoreError> {
        self.0.put_file(name, path)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.0.list(folder)
    }
}

#[test]
fn planner_that_dies_at_any_write_leaves_the_store_as_before_or_as_after() {
    for at in 0..5 {
        let mut world = World::new(&format!("fleet-dies-{at}"), 1);
        world.publish(1, &[]);
        world.finish();
        let before = world.fleet().current().unwrap().0;
        let one = holder("planner1");
        let store = Dying(&world.link, Cell::new(at));
        let fleet = Fleet::new(&store, &world.keys);
        let stages = || (vec!["100%".parse().unwrap()], HOLD_S);
        let times = (world.now, world.now + WEEK_S);
        let done = fleet
            .take_lease(&one, world.now, 3600)
            .and_then(|_| fleet.publish_planned((&world.key, &one), &files(2), stages(), times));
        // The lease, the bundle, the rollout. Its copy for readers may be missing.
        assert_eq!(done.is_ok(), at >= 3, "{at}");
        let found = world.fleet().current().unwrap().0;
        let is_after = found.next.is_some() && found.serial == before.serial + 1;
        assert!(if at < 3 { found == before } else { is_after }, "{at}: {found:?}");
        // The next round, or another planner after the lease, brings it to its end.
        world.now += 3601;
        world.fleet().take_lease(&holder("planner2"), world.now, 3600).unwrap();
        plan(&world, "planner2", 2).unwrap();
        world.finish();
        assert_eq!(world.running(), [(2, 1)].into(), "{at}");
    }
}

/// Otherwise the step of one version would be taken for another.
#[test]
fn step_found_for_a_rollout_that_was_replaced_is_a_conflict() {
    let world = World::new("fleet-late", 0);
    world.publish(1, &["1%", "10%", "100%"]);
    let late = world.fleet().current().unwrap();
    world.roll_back(None);
    world.publish(2, &["1%", "10%", "100%"]);
    let before = world.fleet().current().unwrap();
    let error = world.fleet().go_on(&world.key, late.clone(), &Next::Stage(1), world.now);
    assert!(matches!(error, Err(PublishError::Store(StoreError::Conflict(_)))));
    let error = world.fleet().roll_back(&world.key, late, None, world.now);
    assert!(matches!(error, Err(PublishError::Store(StoreError::Conflict(_)))));
    assert_eq!(world.fleet().current().unwrap(), before);
}
