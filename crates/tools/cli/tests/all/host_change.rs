//! `uncork host plan`, `apply`, `confirm`, `revert` and `status`, each in namespaces of its own.

use std::fs;

use crate::common::Scratch;
use crate::common::sandbox::{SETUP, run, succeed};
use crate::common::schema::assert_describes;
use serde_json::Value;
use uncork_testkit::{Capability, not_run};

const FILE: &str = r#"
algorithm = "reno"
[qdisc]
t0 = "pfifo"
[buffers]
send = "16MB"
receive = "16MB"
[[route]]
to = "10.0.0.0/8"
algorithm = "reno"
[[route]]
to = "203.0.113.0/24"
algorithm = "reno"
lock = true
[[route]]
to = "::/0"
algorithm = "reno"
[namespaces]
legacy = "reno"
"#;

/// A scratch directory in which `desired.toml` is [`FILE`].
fn with_desired_state(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("desired.toml", FILE);
    scratch
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect(text)
}

#[test]
fn a_desired_state_is_planned_applied_and_reverted() {
    let scratch = with_desired_state("host-change");
    let script = r"
        seen > before
        host plan desired.toml > planned && exit 9
        host apply desired.toml > applied
        host plan desired.toml
        host apply desired.toml
        host status
        seen > after
        host revert > reverted
        seen > restored
        host revert
        host status
        ended";
    let Some(stdout) = succeed(&scratch, script) else { return };
    let read = |name: &str| fs::read_to_string(scratch.path(name)).unwrap();
    assert_eq!(read("before"), read("restored"));
    for part in
        ["congestion_control = reno", "10.0.0.0/8 via 192.0.2.1", "congctl lock reno", "pfifo"]
    {
        assert!(read("after").contains(part), "{part}: {}", read("after"));
    }
    for (name, part) in [
        ("planned", "sysctl -w net.ipv4.tcp_congestion_control=reno"),
        ("planned", "tc qdisc replace dev t0 root pfifo"),
        (
            "planned",
            "ip route add 10.0.0.0/8 via 192.0.2.1 dev t0 proto static metric 100 congctl reno",
        ),
        ("applied", "route to 10.0.0.0/8"),
        ("reverted", "root qdisc of t0"),
    ] {
        assert!(read(name).contains(part), "{part}: {}", read(name));
    }
    for part in [
        "This host matches desired.toml. Nothing to do.",
        "This host matches desired.toml. Nothing was changed.",
        "it lasts until the next reboot",
        "Nothing to restore.",
        "Nothing is applied.",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}

/// The commands of the plan, typed into another namespace, do what `apply` does, in /etc, too.
#[test]
fn the_planned_commands_do_the_same() {
    let scratch = with_desired_state("host-commands");
    let prepare = r"
        sed -i '2s/$/\npersist = true/' desired.toml
        mount -t tmpfs tmpfs /etc
        etc() { find /etc -type f -o -type l | sort; find /etc -type f | sort | xargs cat; readlink /etc/systemd/*/*/*; }
    ";
    let typed = r#"
        "$UNCORK" host plan desired.toml --state-dir state --format json > plan.json || true
        python3 -c 'import json
for change in json.load(open("plan.json"))["changes"]: print("\n".join(change["commands"]))' > typed.sh
        sh -e typed.sh > /dev/null
        seen > typed; etc >> typed"#;
    let Some(_) = succeed(&scratch, &format!("{prepare}{typed}")) else { return };
    let applied = r#"
        "$UNCORK" host apply desired.toml --state-dir state > /dev/null
        seen > applied; etc >> applied"#;
    scratch.write("desired.toml", FILE);
    succeed(&scratch, &format!("{prepare}{applied}")).unwrap();
    let read = |name: &str| fs::read_to_string(scratch.path(name)).unwrap();
    assert_eq!(read("typed"), read("applied"));
    assert!(
        read("typed").contains("/etc/systemd/system/uncork-host.service\n"),
        "{}",
        read("typed")
    );
    assert_describes("host-plan-1", [&json(&read("plan.json"))]);
}

/// The limit passes although the command, its shell and their process group were killed.
#[test]
fn a_limit_survives_the_death_of_the_process() {
    let scratch = with_desired_state("host-ttl");
    let script = r#"
        seen > before
        cat > killed.sh << 'END'
            "$UNCORK" host apply desired.toml --ttl 2s --state-dir state
            kill -KILL 0
END
        setsid --wait sh killed.sh > said || true
        seen > during
        host status
        # The guard notes the end after the last setting.
        for i in $(seq 600); do
            host status > now || true
            grep -q "not confirmed in time" now && break
            sleep 0.05
        done
        seen > restored
        host status
        host confirm && exit 9
        ended"#;
    let Some(stdout) = succeed(&scratch, script) else { return };
    let read = |name: &str| fs::read_to_string(scratch.path(name)).unwrap();
    assert!(read("during").contains("congestion_control = reno"), "{}", read("during"));
    assert_eq!(read("before"), read("restored"));
    assert!(read("said").contains(" rolled back in 2 s "), "{}", read("said"));
    assert!(stdout.contains(" rolled back in "), "{stdout}");
    assert!(stdout.contains("not confirmed in time"), "{stdout}");
}

/// A disk that fills or turns read-only after `apply` keeps neither the guard nor `revert` from restoring the host.
#[test]
fn a_full_or_read_only_disk_keeps_nothing_from_being_undone() {
    let scratch = with_desired_state("host-full");
    let script = r#"
        echo 'algorithm = "reno"' > small.toml
        cc() { cat /proc/sys/net/ipv4/tcp_congestion_control; }
        mkdir disk
        fill() { dd if=/dev/zero of=disk/fill bs=1k count=64 2> /dev/null || true; }
        for how in full read-only; do
            mount -t tmpfs -o size=16k tmpfs disk
            on() { command=$1; shift; "$UNCORK" host $command --state-dir disk/state "$@"; }
            hurt() { if [ $how = full ]; then fill; else mount -o remount,ro disk; fi; }
            heal() { mount -o remount,rw disk; rm -f disk/fill; }
            on apply small.toml --ttl 1s > /dev/null
            hurt
            for i in $(seq 1200); do [ "$(cc)" = $OTHER ] && break; sleep 0.05; done
            echo "$how: expired $(cc)"
            heal
            ended
            on status | head -1
            on apply small.toml > /dev/null
            hurt
            on revert 2> warned > /dev/null
            echo "$how: reverted $(cc)"
            [ $how = full ] || grep -q 'cannot write' warned
            heal
            on revert > /dev/null
            on status | head -1
            rm -r disk/state
            fill
            on apply small.toml 2> refused && exit 9
            grep -q 'cannot write\|no room' refused
            echo "$how: refused $(cc)"
            umount disk
        done
        echo other $OTHER"#;
    let Some(stdout) = succeed(&scratch, script) else { return };
    let other = stdout.rsplit_once("other ").unwrap().1.trim();
    for how in ["full", "read-only"] {
        for what in ["expired", "reverted", "refused"] {
            let line = format!("{how}: {what} {other}\n");
            assert!(stdout.contains(&line), "{line}: {stdout}");
        }
    }
    assert_eq!(stdout.matches("Nothing is applied.\n").count(), 4, "{stdout}");
}

/// `status` looks whether the guard lives, and as root starts another one.
#[test]
fn a_dead_guard_is_said_and_replaced() {
    let scratch = with_desired_state("host-dead-guard");
    let script = r#"
        sed -i '/^\[namespaces\]/,$d' desired.toml
        seen > before
        guard() { pgrep -f '[h]ost guard' > /dev/null; }
        host apply desired.toml --ttl 8s > /dev/null
        host status > /dev/null
        kill_guard
        setpriv --reuid 65534 --regid 65534 --clear-groups "$UNCORK" host status --state-dir state > seen.txt 2>&1 && exit 9
        guard && exit 8
        host status --format json > dead.json && exit 7
        guard
        pkill -STOP -f '[h]ost guard'
        for i in $(seq 1200); do grep -q '^State:.T' /proc/$(pgrep -f '[h]ost guard')/status && break; sleep 0.05; done
        host status && exit 6
        kill_guard
        # What waits already is applied again.
        host apply desired.toml > /dev/null
        guard
        host status > /dev/null
        for i in $(seq 600); do seen > now; cmp -s before now && break; sleep 0.05; done
        cmp before now
        ended
        cat seen.txt"#;
    let Some(run) = run(&scratch, script) else { return };
    assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
    for part in ["watchdog", "is dead", "`uncork host status` as root"] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert!(run.stderr.contains(" was started"), "{}", run.stderr);
    let status = json(&fs::read_to_string(scratch.path("dead.json")).unwrap());
    assert_eq!(status["guard"], "dead");
    assert_describes("host-status-1", [&status]);
}

/// `uncork status`: nothing active, settings with a guard, a dead guard, another user, a journal of an earlier boot.
#[test]
fn one_status_shows_what_is_active_and_what_needs_attention() {
    let scratch = with_desired_state("host-one-status");
    let script = r#"
        mount -t bpf bpf /sys/fs/bpf || true
        sed -i '/^\[namespaces\]/,$d' desired.toml
        all() { "$UNCORK" status --state-dir state "$@"; }
        earlier() { sed 's/"boot": "[^"]*"/"boot": "earlier 1 net:1"/' state/host.json; }
        all > nothing.txt
        all --format json > nothing.json
        host apply desired.toml --ttl 1min > /dev/null
        all > waiting.txt
        all --format json > waiting.json
        kill_guard
        all > dead.txt && exit 9
        setpriv --reuid 65534 --regid 65534 --clear-groups "$UNCORK" status --state-dir state > other.txt && exit 8
        host revert > /dev/null
        host apply desired.toml > /dev/null
        earlier > state/host-net-1.json
        all > earlier.txt
        earlier > state/host.json.new
        mv state/host.json.new state/host.json
        all > rebooted.txt && exit 7
        echo damaged > state/host-net-1.json
        all --format json > damaged.json && exit 6
        ended"#;
    let Some(_) = succeed(&scratch, script) else { return };
    let read = |name: &str| fs::read_to_string(scratch.path(name)).unwrap();
    let has = |name: &str, parts: &[&str]| {
        let text = read(name);
        for part in parts {
            assert!(words(&text).contains(&words(part)), "{name}: {part}: {text}");
        }
        for line in text.lines().filter(|line| !line.contains('/')) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    };
    has(
        "nothing.txt",
        &[
            "settings     none\n",
            "steered      none\n",
            "processes    none\n",
            "before boot  none\n",
        ],
    );
    assert!(!read("nothing.txt").contains("attention"));
    let waiting = [
        "settings     desired.toml, applied ",
        "watchdog alive",
        "uncork host confirm",
        "host guard --journal",
    ];
    has("waiting.txt", &waiting);
    has(
        "dead.txt",
        &["watchdog dead", "attention    the process that rolls settings back is dead"],
    );
    has("other.txt", &["watchdog dead", "not visible  ", "processes of other users; run as root"]);
    has("earlier.txt", &["before boot  desired.toml, applied ", "host-net-1.json"]);
    has("rebooted.txt", &["settings     none\n", "attention    settings ended with the last boot"]);
    let documents = ["nothing.json", "waiting.json", "damaged.json"].map(|name| json(&read(name)));
    assert_describes("status-1", &documents);
    assert!(documents[2]["attention"].to_string().contains("host-net-1.json"));
}

/// Without the places at which lines are broken.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// No one else can hold the lock; root's own other programs can, but the guard does not wait for them.
#[test]
fn who_holds_the_lock_keeps_nothing_from_being_undone() {
    let scratch = with_desired_state("host-lock");
    let script = r#"
        (umask 0; host apply desired.toml --ttl 2s > /dev/null)
        stat -c '%a %n' state state/lock state/*.json state/lock/*
        for file in state state/* state/lock/host.lock; do
            setpriv --reuid 65534 --regid 65534 --clear-groups flock -x "$file" true && echo "held $file"
        done 2> /dev/null || true
        flock -x state/lock/host.lock sleep 60 & holder=$!
        for i in $(seq 1200); do seen > now; grep -q "control = $OTHER" now && break; sleep 0.05; done
        grep -q "control = $OTHER" now
        host revert 2> waited && exit 9
        kill $(pgrep -x sleep)
        wait
        cat waited
        host status
        ended"#;
    let Some(stdout) = succeed(&scratch, script) else { return };
    for part in
        ["755 state\n", "700 state/lock\n", "644 state/host.json\n", "600 state/lock/host.lock\n"]
    {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    assert!(!stdout.contains("held state/lock"), "{stdout}");
    let waited = stdout.lines().find(|line| line.contains("waited 10 s")).expect(&stdout);
    assert!(waited.contains("process ") && waited.contains("holds it"), "{waited}");
    assert!(stdout.contains("not confirmed in time"), "{stdout}");
}

/// A journal that is damaged, of another kind, or written by others.
#[test]
fn a_damaged_journal_has_a_way_out() {
    let scratch = with_desired_state("host-damaged");
    let script = r#"
        seen > before
        journal=state/host.json
        host apply desired.toml > /dev/null
        truncate -s 100 $journal
        host status > /dev/null
        host revert > /dev/null
        seen | cmp before -
        for how in empty cut schema fifo device directory deep others file sysctl; do
            host apply desired.toml > /dev/null
            # Its guard looks once more.
            ended
            cp $journal good
            rm $journal state/host.json.copy
            case $how in
                empty) : > $journal ;;
                cut) head -c 400 good > $journal ;;
                schema) echo '{"schema":"uncork.host-journal/99"}' > $journal ;;
                fifo) mkfifo $journal ;;
                device) ln -s /dev/zero $journal ;;
                directory) mkdir $journal ;;
                deep) head -c 300000 /dev/zero | tr '\0' '[' > $journal ;;
                others) cp good $journal; chmod 666 $journal ;;
                file)
                    python3 - $journal good << 'END'
import json, sys
journal = json.load(open(sys.argv[2]))
change = {"knob": {"kind": "file", "path": "/etc/cron.d/x"}, "before": {"is": "text", "text": "x"}, "after": {"is": "absent"}}
journal["applied"]["changes"].append(change)
json.dump(journal, open(sys.argv[1], "w"))
END
                    ;;
                sysctl) sed 's,net.ipv4.tcp_wmem,../../tmp/x,' good > $journal ;;
            esac
            for command in status revert confirm 'apply desired.toml'; do
                timeout 8 "$UNCORK" host $command --state-dir state --root "$PWD/root" > said 2>&1 && exit 9
                grep -q 'uncork host revert --forget' said || { echo "$how $command"; cat said; exit 8; }
            done
            host revert --forget > forgotten
            test -e state/host.json.forgotten
            rm -r state/host.json.forgotten
            host status | head -1
            host apply desired.toml > /dev/null
            # The values of before are lost with the journal, but not here.
            rm state/host.json state/host.json.copy
            mv good $journal
            host revert > /dev/null
            seen | cmp before -
        done
        test ! -e /etc/cron.d/x"#;
    let Some(stdout) = succeed(&scratch, script) else { return };
    assert_eq!(stdout.matches("Nothing is applied.\n").count(), 10, "{stdout}");
}

/// The inode of a namespace that is gone comes again; its journal must not.
#[test]
fn a_new_namespace_has_no_journal_of_one_before() {
    let scratch = with_desired_state("host-again");
    let script = r#"
        echo 'algorithm = "reno"' > small.toml
        for i in $(seq 12); do
            ip netns add again
            inside() { ip netns exec again "$UNCORK" host "$@" --state-dir state; }
            inside status
            inside apply small.toml > /dev/null
            ip netns del again
        done"#;
    let Some(stdout) = succeed(&scratch, script) else { return };
    assert_eq!(stdout, "Nothing is applied.\n".repeat(12));
}

/// A command that is stopped before it changes anything, or while it does, is ended by the guard of the next one.
#[test]
fn a_stopped_command_does_not_hold_the_lock_forever() {
    let scratch = with_desired_state("host-stopped");
    let script = r#"
        seen > before
        "$UNCORK" host prove reno $OTHER --pairs 1 --window 20s --burn-in 2s --every 1s --state-dir state > /dev/null 2>&1 & prove=$!
        for i in $(seq 1200); do grep -qs no_metrics_save state/host.json && break; sleep 0.05; done
        kill -STOP $prove
        kill_guard
        host revert 2> noted
        grep -q "process $prove" noted
        sysctl -n net.ipv4.tcp_no_metrics_save
        seen | cmp before -
        ended"#;
    let Some(stdout) = succeed(&scratch, script) else { return };
    assert!(stdout.ends_with("0\n"), "{stdout}");
}

/// In a namespace that does not boot this host: a journal of its own, and no files.
#[test]
fn a_namespace_has_a_journal_of_its_own() {
    let scratch = with_desired_state("host-inner");
    let script = r#"
        printf 'algorithm = "reno"\n' > inner.toml
        inner() { ip netns exec legacy "$UNCORK" host "$@" --state-dir state; }
        seen > before
        inner apply inner.toml
        test -s state/host-net-*.json && ! test -e state/host.json
        seen | grep 'control = reno' | wc -l
        host status
        inner revert > /dev/null
        seen | cmp before -
        printf 'persist = true\n' >> inner.toml
        inner apply inner.toml 2> refused && exit 9
        seen | cmp before -"#;
    let Some(stdout) = succeed(&scratch, script) else { return };
    assert!(stdout.contains("\n1\nNothing is applied.\n"), "{stdout}");
    let refused = fs::read_to_string(scratch.path("refused")).unwrap();
    assert!(refused.contains("this network namespace"), "{refused}");
}

/// Commands wait for each other.
#[test]
fn commands_at_the_same_time_do_not_mix() {
    let scratch = with_desired_state("host-together");
    let script = r"
        seen > before
        for i in 1 2 3 4 5 6; do
            host apply desired.toml > /dev/null &
            host revert > /dev/null &
            host apply desired.toml --ttl 1h > /dev/null &
        done
        wait
        host status > status || true
        host revert > /dev/null
        seen | cmp before -
        ended";
    let Some(run) = run(&scratch, script) else { return };
    assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
}

/// Where systemd runs, the guard is a service of its own. A stand-in for systemd-run starts it here.
#[test]
fn under_systemd_the_guard_is_a_service() {
    let scratch = with_desired_state("host-systemd");
    let script = r#"
        mkdir -p /run/systemd/system bin
        cat > bin/systemd-run << 'END'
#!/bin/sh
echo "$@" >> asked
while [ "$1" != -- ]; do shift; done
shift
setsid "$@" > /dev/null 2>&1 &
# As Type=exec does.
until [ "$(cat /proc/$!/comm)" = uncork ]; do sleep 0.05; done
END
        chmod +x bin/systemd-run
        seen > before
        PATH="$PWD/bin:$PATH" host apply desired.toml --ttl 5s > /dev/null
        cat asked
        for i in $(seq 600); do seen > now; cmp -s before now && break; sleep 0.05; done
        cmp before now
        ended"#;
    let Some(stdout) = succeed(&scratch, script) else { return };
    for part in
        ["--collect", "--unit=uncork-host-guard-", "host guard --journal host --state-dir /"]
    {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
}

#[test]
fn confirm_keeps_what_is_applied() {
    let scratch = with_desired_state("host-confirm");
    let script = r#"
        host apply desired.toml --ttl 2s > /dev/null
        host apply desired.toml | grep 'rolled back in'
        echo 'algorithm = "reno"' > other.toml
        host apply other.toml && exit 9
        host confirm
        ended
        sleep 2.5
        seen
        host confirm
        host revert > /dev/null"#;
    let Some(run) = run(&scratch, script) else { return };
    assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("waits for") && run.stderr.contains("uncork host confirm"));
    assert!(run.stdout.contains("net.ipv4.tcp_congestion_control = reno"), "{}", run.stdout);
}

/// SIGKILL at any time: the process that guards the changes brings back the old state, or there is the new one.
#[test]
fn killed_at_any_time_the_host_is_in_the_old_or_the_new_state() {
    let scratch = with_desired_state("host-kill");
    let script = r#"
        seen > before
        host apply desired.toml > /dev/null; seen > after; host revert > /dev/null
        cat > kill.py << 'END'
import os, random, signal, subprocess, time
random.seed(5)
uncork, state = os.environ["UNCORK"], ["--state-dir", "state"]
def span():
    begin = time.monotonic()
    subprocess.run([uncork, "host", "apply", "desired.toml", *state], stdout=subprocess.DEVNULL, check=True)
    end = time.monotonic()
    subprocess.run([uncork, "host", "revert", *state], stdout=subprocess.DEVNULL, check=True)
    return end - begin
span = min(span() for _ in range(3))
counts = {}
for kind in ["apply", "revert"] * 30:
    if kind == "revert":
        subprocess.run([uncork, "host", "apply", "desired.toml", *state], stdout=subprocess.DEVNULL, check=True)
    arguments = ["desired.toml"] if kind == "apply" else []
    child = subprocess.Popen([uncork, "host", kind, *arguments, *state], stdout=subprocess.DEVNULL)
    time.sleep(random.random() * 1.2 * span)
    child.kill()
    child.wait()
    subprocess.run(["sh", "-c", os.environ["ENDED"]], check=True)
    seen = subprocess.run(["sh", "-c", os.environ["SEEN"]], stdout=subprocess.PIPE, check=True).stdout
    states = {open("before", "rb").read(): "before", open("after", "rb").read(): "after"}
    assert seen in states, (kind, seen.decode())
    state_now = states[seen]
    counts[kind, state_now] = counts.get((kind, state_now), 0) + 1
    subprocess.run([uncork, "host", "revert", *state], stdout=subprocess.DEVNULL, check=True)
for kind in ["apply", "revert"]: print(kind, counts.get((kind, "before"), 0), counts.get((kind, "after"), 0))
END
        # The functions, for other shells.
        SEEN="$(sed -n '/^seen() {/,/^}/p' functions.sh); seen"
        ENDED="$(grep '^ended()' functions.sh); ended"
        export SEEN ENDED
        python3 kill.py"#;
    scratch.write("functions.sh", SETUP);
    let Some(stdout) = succeed(&scratch, script) else { return };
    let counts: Vec<u32> = stdout.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // A revert that has begun is completed.
    let [apply_old, _, revert_old, _] = counts[..] else { panic!("{stdout}") };
    assert!(apply_old >= 3 && revert_old >= 3, "kills came too late: {stdout}");
}

#[test]
fn what_others_have_changed_is_left_and_said() {
    let scratch = with_desired_state("host-left");
    let script = r"
        host apply desired.toml > /dev/null
        tc qdisc replace dev t0 root bfifo limit 9999
        host status --format json > status.json && exit 9
        host status || true
        host revert && exit 9
        tc qdisc show dev t0
        sysctl net.ipv4.tcp_congestion_control
        cp state/host.json journal.json";
    let Some(stdout) = succeed(&scratch, script) else { return };
    for part in ["bfifo\n", "left: root qdisc of t0 is bfifo", "limit 9999"] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let read = |name: &str| json(&fs::read_to_string(scratch.path(name)).unwrap());
    assert_describes("host-status-1", [&read("status.json")]);
    assert_describes("host-journal-1", [&read("journal.json")]);
}

#[test]
fn the_journal_and_the_states_have_schemas() {
    let scratch = with_desired_state("host-schemas");
    let script = r"
        sed -i '2s/$/\npersist = true/' desired.toml
        host status --format json > 1.json
        host apply desired.toml --ttl 1h > /dev/null
        host status --format json > 2.json
        cp state/host.json journal-2.json
        host revert > /dev/null
        host status --format json > 3.json
        sed -i 's/^persist = true$//' desired.toml
        host apply desired.toml > /dev/null
        cp state/host.json journal-3.json";
    let Some(_) = succeed(&scratch, script) else { return };
    let read = |name: &str| json(&fs::read_to_string(scratch.path(name)).unwrap());
    assert_describes("host-status-1", &["1.json", "2.json", "3.json"].map(read));
    assert_describes("host-journal-1", &["journal-2.json", "journal-3.json"].map(read));
}

/// A user without any other right than CAP_NET_ADMIN.
#[test]
fn it_needs_cap_net_admin_alone() {
    let scratch = with_desired_state("host-caps");
    let script = r#"
        sed -i '/^\[namespaces\]/,$d' desired.toml
        mkdir state; chown 65534:65534 state
        seen > before
        with() {
            caps=$1; shift
            setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all$caps \
                --inh-caps=-all$caps --ambient-caps=-all$caps "$@"
        }
        with "" "$UNCORK" host apply desired.toml --state-dir state 2> refused && exit 9
        seen | cmp before -
        with ,+net_admin "$UNCORK" host apply desired.toml --state-dir state
        seen > after
        test -s state/host.json
        with ,+net_admin "$UNCORK" host revert --state-dir state > /dev/null
        seen | cmp before -
        with "" "$UNCORK" host status --state-dir state"#;
    let Some(_) = succeed(&scratch, script) else { return };
    let read = |name: &str| fs::read_to_string(scratch.path(name)).unwrap();
    assert!(read("refused").contains("it needs CAP_NET_ADMIN"), "{}", read("refused"));
    assert!(read("after").contains("congctl lock reno"), "{}", read("after"));
}

/// A reboot is a new namespace with the files and the journal of the previous one.
#[test]
fn what_persists_is_there_after_a_reboot() {
    let scratch = with_desired_state("host-persist");
    let before = r"
        sed -i '2s/$/\npersist = true/' desired.toml
        host apply desired.toml > applied
        seen > after
        cat root/etc/sysctl.d/99-uncork.conf root/etc/systemd/system/uncork-host.service
        test -L root/etc/systemd/system/multi-user.target.wants/uncork-host.service";
    let Some(stdout) = succeed(&scratch, before) else { return };
    for part in [
        "net.ipv4.tcp_congestion_control = reno\n",
        "net.ipv4.tcp_wmem = 4096 16384 16000000\n",
        "host apply --boot --state-dir \"",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let rebooted = r"
        seen > booted
        sysctl -qp root/etc/sysctl.d/99-uncork.conf
        host status || true
        host apply --boot
        host apply --boot
        seen > again
        host revert > /dev/null
        seen > reverted
        ! find root -type f | grep .";
    let stdout = succeed(&scratch, rebooted).unwrap();
    assert!(stdout.contains("before the last reboot"), "{stdout}");
    let read = |name: &str| fs::read_to_string(scratch.path(name)).unwrap();
    assert_eq!(read("after"), read("again"));
    assert!(read("booted").contains(read("reverted").trim_end()), "{}", read("reverted"));
    assert!(read("applied").contains("systemd does not run here"), "{}", read("applied"));
}

/// Without `persist` a reboot ends it, and the journal knows.
#[test]
fn what_does_not_persist_is_gone_after_a_reboot() {
    let scratch = with_desired_state("host-reboot");
    let Some(_) = succeed(&scratch, "host apply desired.toml > /dev/null") else { return };
    let rebooted = "seen > booted; host revert; seen | cmp booted -; host status";
    let stdout = succeed(&scratch, rebooted).unwrap();
    assert!(stdout.contains("the host was rebooted"), "{stdout}");
}

#[test]
fn a_desired_state_that_is_impossible_here_changes_nothing() {
    let scratch = with_desired_state("host-impossible");
    let cases = [
        ("algorithm = \"vegas2\"", 3, "algorithm vegas2 does not exist here (available: "),
        (
            "algorithm = \"reno\"\n[qdisc]\neth9 = \"fq\"",
            3,
            "root qdisc of eth9: no such interface",
        ),
        (
            "algorithm = \"reno\"\n[qdisc]\nt0 = \"nosuch\"",
            3,
            // Where the kernel loads modules, it alone knows.
            if fs::exists("/proc/modules").unwrap() {
                "nosuch"
            } else {
                "no queue discipline nosuch"
            },
        ),
        ("modules = [\"nosuchmod\"]", 3, "module nosuchmod: this kernel does not have it"),
        ("algoritm = \"reno\"", 2, "desired.toml:1:1"),
    ];
    for (text, status, part) in cases {
        let script = format!("cat > desired.toml << 'END'\n{text}\nEND\nhost apply desired.toml");
        let Some(run) = run(&scratch, &script) else { return };
        assert_eq!(run.status, status, "{}", run.stderr);
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    // The namespace of this test, the initial one or a container's.
    scratch.write("desired.toml", "algorithm = \"vegas2\"\n");
    let file = scratch.path("desired.toml");
    let here = crate::common::uncork(&format!("host plan {}", file.display()));
    assert_eq!(here.status, 3, "{}", here.stdout);
    assert!(here.stderr.contains("vegas2") && here.stderr.contains("nothing was changed"));
    let missing = crate::common::uncork("host plan nowhere.toml");
    assert!(missing.status == 2 && missing.stderr.contains("no such file"), "{}", missing.stderr);
    for ttl in ["10", "0s", "40d", "soon"] {
        let wrong = crate::common::uncork(&format!("host apply desired.toml --ttl {ttl}"));
        assert_eq!(wrong.status, 2, "{}", wrong.stderr);
    }
}

/// A container may not choose every algorithm. The refusal says why.
#[test]
fn a_restricted_algorithm_is_explained() {
    let read = |name: &str| {
        fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{name}_congestion_control")).unwrap()
    };
    let allowed = read("allowed");
    let available = read("available");
    let is_allowed = |name: &&str| allowed.split_whitespace().any(|it| it == *name);
    let Some(restricted) = available.split_whitespace().find(|name| !is_allowed(name)) else {
        return not_run(Capability::Bbr, "every algorithm is allowed");
    };
    let scratch = with_desired_state("host-restricted");
    let script =
        format!("echo 'algorithm = \"{restricted}\"' > desired.toml; host plan desired.toml");
    let Some(run) = run(&scratch, &script) else { return };
    assert_eq!(run.status, 3, "{}", run.stderr);
    let part = format!("{restricted} is not allowed here");
    assert!(
        run.stderr.contains(&part) && run.stderr.contains("on the host itself"),
        "{}",
        run.stderr
    );
}

/// The session in docs/reference/host.md is what the commands print. `UPDATE_DOCS=1` writes it.
#[test]
fn the_documented_session_is_what_is_printed() {
    const FILE: &str = "algorithm = \"bbr\"\n\n[buffers]\nsend = \"16MB\"\n\n[[route]]\nto = \"10.0.0.0/8\"\n\
                        algorithm = \"reno\"\n";
    const SESSION: [&str; 6] = [
        "cat host.toml",
        "uncork host plan host.toml",
        "uncork host apply host.toml --ttl 10min",
        "uncork host confirm",
        "uncork host status",
        "uncork host revert",
    ];
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
    if !allowed.split_whitespace().any(|name| name == "bbr") {
        return not_run(Capability::Bbr, "bbr is not allowed in containers");
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/host.md");
    let text = fs::read_to_string(file).unwrap();
    let (before, rest) = text.split_once("```console\n$ cat host.toml\n").unwrap();
    let (_, after) = rest.split_once("```").unwrap();
    let scratch = with_desired_state("host-docs");
    scratch.write("host.toml", FILE);
    let commands = SESSION.map(|line| format!("echo '$ {line}'; {line} || true\n")).concat();
    let script = format!(
        "mount -t tmpfs tmpfs /var/lib
        ip link set t0 name eth0
        echo reno > /proc/sys/net/ipv4/tcp_congestion_control
        sysctl -qw net.ipv4.tcp_wmem='4096 16384 4194304'
        uncork() {{ \"$UNCORK\" \"$@\"; }}
        {commands}"
    );
    let Some(printed) = succeed(&scratch, &script) else { return };
    let printed = printed.replace("applied 1 s ago", "applied 0 s ago");
    let new = format!("{before}```console\n{printed}```{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(file, &new).unwrap();
    }
    let is_same = fs::read_to_string(file).unwrap() == new;
    assert!(is_same, "UPDATE_DOCS=1 writes docs/reference/host.md again\n{printed}");
}
