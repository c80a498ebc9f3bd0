//! Bad input: its exit status, and the place that the error names.

use std::fs;
use std::path::Path;

use crate::common::{Finished, Scratch, command, finish};
use uncork_testkit::assert_message;

/// Arguments of `uncork compare`, how errors show them, and values that they refuse.
const COMPARE: [(&str, &str, &[&str]); 10] = [
    ("--rate", "--rate <RATE>", &["20", "20M", "fast", "-5mbit", "0bit", "500gbit"]),
    ("--rtt", "--rtt <TIME>", &["25", "0s", "2min"]),
    (
        "--loss",
        "--loss <PERCENT>",
        &[
            "1",
            "0.01",
            "101%",
            "-1%",
            "100%",
            "every:0",
            "every:1",
            "gilbert:mean=90%,burst=5",
            "gemodel:p=1%,r=2",
            "gemodel:p=1%,r=0%",
        ],
    ),
    ("--buffer", "--buffer <SIZE>", &["100", "-1bdp", "64k", "0p", "1499B", "0.01bdp", "100TB"]),
    ("--size", "--size <SIZE>", &["10", "0B", "10TB"]),
    ("--duration", "--duration <TIME>", &["30", "0s", "100000s"]),
    (
        "--cc",
        "--cc <CC>",
        &["cubci", "bbr3+westwood", "reno:fast", "bbr3:loss-floor", "cubic:", "cubic,bbr1,cubic"],
    ),
    ("--flows", "--flows <N>", &["0", "100000", "-1", "1.5"]),
    ("--seeds", "--seeds <N>", &["0", "10001", "many"]),
    ("--jobs", "--jobs <N>", &["0"]),
];

/// Command lines, their exit status, and what the error names.
const LINES: [(&str, i32, &str); 68] = [
    ("compare --cc cubic,bbr", 2, "'bbr' for '--cc <CC>'"),
    ("compare --cc cubic,", 2, "'' for '--cc <CC>'"),
    ("compare --seed -1", 2, "'-1' for '--seed <N>'"),
    ("compare --seed 18446744073709551615", 2, "for '--seed <N>'"),
    ("compare --flows 501 --cc bbr3+cubic", 2, "'501' for '--flows <N>'"),
    ("compare --rate 400gbit --duration 60s", 2, "'60s' for '--duration <TIME>'"),
    ("compare --size 1B --flows 1000 --seeds 10000", 2, "'10000' for '--seeds <N>'"),
    ("compare --size 1MB --duration 3s", 2, "'--duration <TIME>'"),
    ("compare --los 1%", 2, "'--loss'"),
    ("compare --loss-position middle", 2, "[possible values: after, before]"),
    ("compare --format xml", 2, "[possible values: human, json, csv]"),
    ("compaer", 2, "'compare'"),
    ("man everything", 2, "'everything' for '[COMMAND]...'"),
    ("man lab ran", 2, "'lab ran' for '[COMMAND]...'"),
    ("lab run litespeed_loss", 2, "litespeed-loss?"),
    ("lab run some/where", 2, "'some/where' for '<NAME|FILE>...'"),
    ("lab run no.toml", 2, "'no.toml' for '<NAME|FILE>...'"),
    ("lab run directory.toml", 3, "'directory.toml' for '<NAME|FILE>...'"),
    ("lab run binary.toml", 2, "'binary.toml' for '<NAME|FILE>...'"),
    ("lab show litespeed-los", 2, "litespeed-loss?"),
    ("lab run litespeed-loss --seeds 0", 2, "'0' for '--seeds <N>'"),
    ("lab run litespeed-loss --set loss", 2, "'loss' for '--set <KEY=VALUE>'"),
    ("lab run litespeed-loss -o x --shard 9/8", 2, "'9/8' for '--shard <I/N>'"),
    ("lab run litespeed-loss -o x --shard auto", 2, "'auto' for '--shard <I/N>'"),
    (
        "compare -o s3://bucket/x",
        2,
        "'s3://bucket/x' for '--output <DIR>': this command writes to this host only",
    ),
    ("emu -o gs://bucket/x -- true", 2, "'gs://bucket/x' for '--output <DIR>'"),
    ("records rollup records -o az://bucket/x --host a", 2, "'az://bucket/x' for '--output <DIR>'"),
    ("lab internet lines -o s3://bucket/x", 2, "'s3://bucket/x' for '--output <FILE>'"),
    ("emu", 2, "<COMMAND>..."),
    ("emu --rate 0bit -- true", 2, "'0bit' for '--rate <RATE>'"),
    ("emu --delay 2min -- true", 2, "'120s' for '--delay <TIME>'"),
    ("emu --loss 100% -- true", 2, "'100%' for '--loss <PERCENT>'"),
    ("emu --jitter 2min -- true", 2, "'120s' for '--jitter <TIME>'"),
    ("emu --queue red -- true", 2, "droptail,"),
    ("emu --mtu 100 -- true", 2, "'100' for '--mtu <BYTES>'"),
    ("emu --hosts 0 -- true", 2, "'0' for '--hosts <N>'"),
    ("emu --scenario nosuch -- true", 2, "'nosuch' for '--scenario <NAME|FILE>'"),
    ("emu --scenario cdn-edge --rate 20mbit -- true", 2, "'--rate <RATE>'"),
    ("emu --up cdn-edge --uplink 1mbit", 2, "'--uplink <RATE>'"),
    ("emu --set path.loss=1% -- true", 2, "'--set <KEY=VALUE>'"),
    ("emu --up --cell 1", 2, "'--cell <N>'"),
    ("emu --up litespeed-loss --cell 99", 2, "1 to 15"),
    ("emu --uplink 1mbit --uplink-queue pie:x -- true", 2, "'--uplink-queue <QUEUE>'"),
    ("emu --uplink 1bit -- true", 2, "'1bit' for '--uplink <RATE>'"),
    ("policy check none.toml", 2, "'none.toml' for '<FILE>'"),
    ("policy check directory.toml", 3, "'directory.toml' for '<FILE>'"),
    ("policy check binary.toml", 2, "'binary.toml' for '<FILE>'"),
    ("policy explain policy.toml --ip 203.0.113", 2, "'203.0.113' for '--ip <ADDRESS>'"),
    ("policy explain policy.toml --asn ASX", 2, "'ASX' for '--asn <ASN>'"),
    ("policy explain policy.toml --country Peru", 2, "'Peru' for '--country <COUNTRY>'"),
    ("policy explain policy.toml --at 2026-12-01", 2, "'2026-12-01' for '--at <TIME>'"),
    ("policy explain policy.toml --header x", 2, "'x' for '--header <NAME: VALUE>'"),
    ("policy explain policy.toml --size 3", 2, "'3' for '--size <SIZE>'"),
    ("policy explain policy.toml --ip 10.0.0.1 --geo policy.toml", 2, "for '--geo <FILE.mmdb>'"),
    ("policy explain policy.toml --ip 10.0.0.1 --geo none.mmdb", 2, "for '--geo <FILE.mmdb>'"),
    ("play get nowhere", 2, "'nowhere' for '<URL>...'"),
    ("play get http://127.0.0.1:9/ --range 5-4", 2, "'5-4' for '--range <A-B>'"),
    ("play get http://127.0.0.1:9/ --parallel 0", 2, "'0' for '--parallel <N>'"),
    ("play get http://127.0.0.1:9/ -o x --repeat 2", 2, "'x' for '--output <FILE>'"),
    ("play get http://127.0.0.1:9/ --connections one", 2, "'one' for '--connections <WHICH>'"),
    (
        "play get http://127.0.0.1:9/ http://127.0.0.1:7/ --connections one --http 2",
        2,
        "'one' for '--connections <WHICH>'",
    ),
    ("play get http://127.0.0.1:9/ --records no/where", 3, "'no/where'"),
    ("play audio http://127.0.0.1:9/ --listeners 0", 2, "'0' for '--listeners <N>'"),
    ("play audio http://127.0.0.1:9/ --bitrate 0bit", 2, "bitrate"),
    ("play audio http://127.0.0.1:9/ --chunk 0B", 2, "chunk"),
    ("play audio http://127.0.0.1:9/", 1, "http://127.0.0.1:9/"),
    ("serve --root . --listen a@b@127.0.0.1:0", 2, "'--listen <[NAME@]ADDR:PORT[=CC]>'"),
    ("serve --root . --listen @127.0.0.1:0", 2, "'--listen <[NAME@]ADDR:PORT[=CC]>'"),
];

/// Files that cannot be what the command lines take them for.
fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("policy.toml", "[default]\ntcp = \"cubic\"\n");
    scratch.write("binary.toml", b"\xff\xfe");
    fs::create_dir(scratch.path("directory.toml")).expect("a directory");
    scratch
}

fn run(scratch: &Scratch, line: &str) -> Finished {
    let mut command = command(line);
    command.current_dir(scratch.path(""));
    finish(command)
}

/// The error.
fn message(done: &Finished) -> &str {
    done.stderr.trim_end()
}

#[test]
fn compare_names_the_argument_of_a_refused_value() {
    let scratch = scratch("bad-compare");
    for (argument, shown, values) in COMPARE {
        for value in values {
            let line = format!("compare {argument} {value}");
            let done = run(&scratch, &line);
            assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{argument} {value}");
            let start = format!("error: invalid value '{value}' for '{shown}': ");
            assert!(done.stderr.starts_with(&start), "{}", done.stderr);
            assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
            assert_message!(line, message(&done));
        }
    }
}

#[test]
fn bad_input_exits_with_2_and_names_the_place() {
    let scratch = scratch("bad-lines");
    for (line, status, place) in LINES {
        let done = run(&scratch, line);
        assert_eq!((done.status, done.stdout.as_str()), (status, ""), "{line}: {}", done.stderr);
        assert!(done.stderr.starts_with("error: "), "{line}: {}", done.stderr);
        assert!(done.stderr.contains(place), "{line}: {}", done.stderr);
        assert_message!(line, message(&done));
    }
}

#[test]
fn arguments_that_are_not_unicode_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = command("compare --rate");
    command.arg(std::ffi::OsStr::from_bytes(b"\xff\xfe20mbit"));
    assert_eq!(finish(command).status, 2);
}

/// Title, bell, clear, a C1 sequence, and text in another order: what a terminal obeys.
const HOSTILE: &str = "\u{1b}]0;pwned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\r";

/// Runs `uncork` with the arguments. No argument has a space.
fn run_with(arguments: &str, files: &[(&str, &Path)]) -> Finished {
    let mut line = arguments.to_owned();
    for (name, path) in files {
        line = line.replace(name, &path.display().to_string());
    }
    finish(command(&line))
}

/// Files with hostile names, below `scratch`: what they are called in [`HOSTILE_LINES`].
fn hostile_files(scratch: &Scratch) -> Vec<(&'static str, std::path::PathBuf)> {
    let name = serde_json::to_string(HOSTILE).expect("a string");
    let name = name.trim_matches('"').replace('\u{9b}', "\\u009b").replace('\u{202e}', "\\u202e");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../production");
    let read = |path: &str| fs::read_to_string(tests.join(path)).expect("a file of the tests");
    let facts = read("host/tests/hosts/rocky-9.json")
        .replace("systemd (1)", &format!("{name} (1)"))
        .replace("eth0", &format!("e{name}"))
        .replace("\"default\": \"bbr\"", &format!("\"default\": \"b{name}\""));
    let session =
        read("watch/tests/sessions/mixed.jsonl").replace("\"bbr\"", &format!("\"{name}\""));
    let policy = format!(
        "[default]\ntcp = \"cubic\"\n[[rule]]\nname = \"r{name}\"\nhost = \"x{name}*\"\nuse = {{ tcp = \"bbr\" }}\n"
    );
    let scenario = format!(
        "title = \"t{name}\"\nabout = \"a{name}\"\n[run]\nend = \"1s\"\nseeds = 1\n[path]\nrate = \"20mbit\"\nrtt = \"50ms\"\n\
         [flow.\"m\"]\ncc = \"bbr3\"\ntransfer = \"10kB\"\n[matrix]\n\
         \"path.loss\" = [{{ name = \"l{name}\", values = [\"1%\"] }}]\n"
    );
    let wrong = format!("\"k{name}\" = 3 # \u{202e}\n");
    let contents = [
        ("FACTS", facts),
        ("SESSION", session),
        ("POLICY", policy),
        ("SCENARIO", scenario),
        ("WRONG", wrong),
    ];
    contents
        .map(|(file, text)| {
            let place = format!("{file}.toml");
            scratch.write(&place, text);
            (file, scratch.path(&place))
        })
        .to_vec()
}

/// Command lines that print names of these files.
const HOSTILE_LINES: [&str; 14] = [
    "host doctor --facts FACTS",
    "host doctor --facts FACTS --expect cubic",
    "host watch --replay SESSION",
    "host watch --replay SESSION --by controller",
    "policy explain POLICY --ip 192.0.2.1",
    "policy explain POLICY --ip 192.0.2.1 --format json",
    "policy check WRONG",
    "lab run SCENARIO",
    "lab run SCENARIO --color always",
    "lab run WRONG --color always",
    "host plan WRONG",
    "serve --config WRONG --check",
    "emu --scenario WRONG -- true",
    "steer apply WRONG --cgroup /nowhere",
];

/// Command lines that a name continues.
const HOSTILE_ARGUMENTS: [&str; 9] = [
    "compare --cc",
    "emu --loss",
    "emu --up",
    "kernel load",
    "kernel unload",
    "play get",
    "play audio",
    "steer explain 192.0.2.1 --cgroup",
    "lab from-log nginx",
];

#[test]
fn no_command_writes_control_characters_of_names() {
    let scratch = Scratch::new("hostile");
    let files = hostile_files(&scratch);
    let files: Vec<(&str, &Path)> = files.iter().map(|(name, path)| (*name, &**path)).collect();
    for line in HOSTILE_LINES {
        let Finished { stdout, stderr, .. } = run_with(line, &files);
        let text = format!("{stdout}{stderr}");
        // JSON for programs is data: it has what it has.
        let is_data = line.contains("--format json");
        assert!(is_data || text.contains("u001b"), "{line}: the names are not shown: {text}");
        let text = if line.contains("--color always") { without_styles(&text) } else { text };
        assert!(is_data || controls(&text).is_empty(), "{line}: {:?} in {text:?}", controls(&text));
    }
    for line in HOSTILE_ARGUMENTS {
        let mut with_name = command(line);
        with_name.arg(HOSTILE);
        let Finished { stdout, stderr, .. } = finish(with_name);
        // The parser of arguments leaves out escape sequences; the rest is shown.
        assert!(stderr.contains("pwned") || stderr.contains("u009b"), "{line}: {stderr:?}");
        assert!(controls(&stdout).is_empty() && controls(&stderr).is_empty(), "{line}: {stderr:?}");
    }
}

/// Characters that a terminal obeys.
fn controls(text: &str) -> Vec<char> {
    let hidden = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}";
    let is_wrong = |c: &char| (c.is_control() && !"\n\t".contains(*c)) || hidden.contains(*c);
    text.chars().filter(is_wrong).collect()
}

fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        let style = part.find(|c: char| !c.is_ascii_digit() && c != ';');
        let is_style = style.is_some_and(|end| part[end..].starts_with('m'));
        out + if is_style { &part[style.unwrap_or(0) + 1..] } else { "\u{1b}" }
    })
}

/// `2>&1 | head -1` on an error ended with 134: the standard library's macro panics, and its hook does again.
#[test]
fn closed_streams_keep_the_exit_status() {
    for (line, status) in
        [("compare --los 1%", 2), ("compare --rate 20", 2), ("lab run /nowhere", 2)]
    {
        let mut lost = command(line);
        lost.stderr(closed_pipe());
        assert_eq!(lost.status().unwrap().code(), Some(status), "{line}");
    }
    let mut lost = command("man");
    lost.stdout(closed_pipe()).stderr(closed_pipe());
    assert_eq!(lost.status().unwrap().code(), Some(0));
}

/// The end for writing of a pipe without a reader.
fn closed_pipe() -> std::io::PipeWriter {
    std::io::pipe().expect("a pipe").1
}
