//! One clear error for each kind of bad input, and its exit status.
mod common;

use common::{Finished, uncork};

const HELP: &str = "\n\nFor more information, try '--help'.\n";

/// The first paragraph of stderr; nothing may be on stdout.
fn usage_error(line: &str) -> String {
    let Finished { status, stdout, stderr } = uncork(line);
    assert_eq!((status, stdout.as_str()), (2, ""), "{line}: {stderr}");
    assert!(stderr.ends_with(HELP), "{line}: {stderr}");
    stderr.trim_end_matches(HELP).to_owned()
}

/// Every value of `argument` is refused with its own words.
fn refuses(argument: &str, shown: &str, cases: &[(&str, &str)]) {
    for (value, words) in cases {
        let expected = format!("error: invalid value '{value}' for '{shown}': {words}");
        assert_eq!(usage_error(&format!("compare {argument} {value}")), expected);
    }
}

#[test]
fn rates() {
    refuses(
        "--rate",
        "--rate <RATE>",
        &[
            ("20", "a rate needs a unit: write 20mbit, 20kbit or 20MB/s"),
            ("20M", "the unit has two meanings: write 20mbit or 20MB/s"),
            ("fast", "a rate starts with a number: write 20mbit, 2.5gbit, 64kbit or 2.5MB/s"),
            ("-5mbit", "a rate is never negative: write 20mbit, 2.5gbit, 64kbit or 2.5MB/s"),
            ("0bit", "a rate of 0bit is not simulated; 8kbit to 400gbit are"),
            ("500gbit", "a rate of 500gbit is not simulated; 8kbit to 400gbit are"),
        ],
    );
}

#[test]
fn round_trip_times() {
    refuses(
        "--rtt",
        "--rtt <TIME>",
        &[
            ("25", "a span of time needs a unit: write 25ms, 25s or 25us"),
            ("0s", "an RTT of 0ns is not simulated; 10us to 60s are"),
            ("2min", "an RTT of 120s is not simulated; 10us to 60s are"),
        ],
    );
}

#[test]
fn losses() {
    refuses(
        "--loss",
        "--loss <PERCENT>",
        &[
            ("1", "a probability is written in percent: write 1%, or 100% for 1 of 1"),
            ("0.01", "a probability is written in percent: write 0.01%, or 1% for 0.01 of 1"),
            ("101%", "too large: a probability is at most 100%"),
            ("-1%", "a probability is never negative: write 1%, 0.5% or 0.01%"),
            ("100%", "nothing arrives when every packet is lost; give less than 100%"),
            ("every:0", "each n-th packet is lost, n being at least 1: write every:100"),
            ("every:1", "nothing arrives when every packet is lost; give less than 100%"),
            (
                "gilbert:mean=90%,burst=5",
                "a mean of 90% takes bursts of at least 9 packets; give burst=9",
            ),
            ("gemodel:p=1%,r=2", "r: a probability needs a unit: write 2%"),
            ("gemodel:p=1%,r=0%", "nothing arrives when every packet is lost; give less than 100%"),
        ],
    );
}

#[test]
fn buffers() {
    let words = "a buffer is a size with a unit: write 1bdp, 0.5bdp, 100kB or 83p";
    refuses(
        "--buffer",
        "--buffer <SIZE>",
        &[
            ("100", words),
            ("-1bdp", words),
            ("64k", words),
            ("0p", "a buffer of 0 B cannot hold one packet of 1500 B; give at least 1p"),
            ("1499B", "a buffer of 1499 B cannot hold one packet of 1500 B; give at least 1p"),
            ("0.01bdp", "a buffer of 1250 B cannot hold one packet of 1500 B; give at least 1p"),
            ("100TB", "a buffer of 100000000000000 B is too large; at most 68719476736 B"),
        ],
    );
}

#[test]
fn sizes_and_durations() {
    refuses(
        "--size",
        "--size <SIZE>",
        &[
            ("10", "a number of bytes needs a unit: write 10MB, 10kB or 10B"),
            ("0B", "nothing to transfer; give at least 1B"),
        ],
    );
    refuses(
        "--duration",
        "--duration <TIME>",
        &[
            ("30", "a span of time needs a unit: write 30ms, 30s or 30us"),
            ("0s", "give 1ms to 86400s"),
            ("100000s", "give 1ms to 86400s"),
        ],
    );
    let both = usage_error("compare --size 1MB --duration 3s");
    assert!(
        both.starts_with(
            "error: the argument '--size <SIZE>' cannot be used with '--duration <TIME>'"
        ),
        "{both}"
    );
}

#[test]
fn controllers() {
    let known = "known are reno, cubic, bbr1, bbr2, bbr3, and mixes such as bbr3+cubic";
    for (cc, value, words) in [
        ("cubci", "cubci", format!("unknown controller 'cubci', did you mean cubic? {known}")),
        (
            "cubic,bbr",
            "bbr",
            format!("unknown controller 'bbr', did you mean bbr1 or bbr2 or bbr3? {known}"),
        ),
        ("bbr3+westwood", "bbr3+westwood", format!("unknown controller 'westwood'; {known}")),
        ("cubic,", "", format!("a controller is missing; {known}")),
        ("reno:fast", "reno:fast", "reno has no option 'fast'; it takes none".to_owned()),
        (
            "bbr3:loss-floor",
            "bbr3:loss-floor",
            "bbr3 has no option 'loss-floor', did you mean loss_floor? It takes strict_draft, \
             loss_floor, rtt_fair"
                .to_owned(),
        ),
        (
            "cubic:",
            "cubic:",
            "'cubic:': an option is missing after ':'; cubic takes rfc8312".to_owned(),
        ),
        ("cubic,bbr1,cubic", "cubic,bbr1,cubic", "cubic is there twice; give it once".to_owned()),
    ] {
        let expected = format!("error: invalid value '{value}' for '--cc <CC>': {words}");
        assert_eq!(usage_error(&format!("compare --cc {cc}")), expected);
    }
}

#[test]
fn counts() {
    let whole = "a whole number is expected: write 10";
    refuses(
        "--flows",
        "--flows <N>",
        &[
            ("0", "no flows, nothing to measure; give 1 to 1000"),
            ("100000", "too many flows on one path; give 1 to 1000 for bbr3"),
            ("-1", whole),
            ("1.5", whole),
        ],
    );
    refuses(
        "--seeds",
        "--seeds <N>",
        &[("0", "give 1 to 10000"), ("10001", "give 1 to 10000"), ("many", whole)],
    );
    refuses(
        "--seed",
        "--seed <N>",
        &[
            ("-1", whole),
            ("18446744073709551615", "the seeds after it exceed 18446744073709551615"),
        ],
    );
    refuses("--jobs", "--jobs <N>", &[("0", "a whole number of at least 1 is expected: write 2")]);
    assert_eq!(
        usage_error("compare --flows 501 --cc bbr3+cubic"),
        "error: invalid value '501' for '--flows <N>': \
         too many flows on one path; give 1 to 500 for bbr3+cubic"
    );
}

#[test]
fn work_that_nobody_would_wait_for() {
    assert_eq!(
        usage_error("compare --size 10TB"),
        "error: invalid value '10TB' for '--size <SIZE>': this means 207182320470 packets over all \
         controllers and seeds, hours of computing; at most 10000000000 are simulated: give less \
         data, or fewer seeds, flows or controllers"
    );
    assert!(usage_error("compare --rate 400gbit --duration 60s").starts_with(
        "error: invalid value '60s' for '--duration <TIME>': this means 60000000000 packets"
    ));
    assert_eq!(
        usage_error("compare --size 1B --flows 1000 --seeds 10000"),
        "error: invalid value '10000' for '--seeds <N>': 30000000 flows over all controllers and \
         seeds are too many; at most 1000000 are simulated: give fewer seeds, flows or controllers"
    );
}

#[test]
fn flags_and_words_that_do_not_exist() {
    let flag = usage_error("compare --los 1%");
    assert!(flag.starts_with("error: unexpected argument '--los' found"), "{flag}");
    assert!(flag.contains("a similar argument exists: '--loss'"), "{flag}");
    let place = usage_error("compare --loss-position middle");
    assert!(place.starts_with("error: invalid value 'middle' for '--loss-position <PLACE>'\n  [possible values: after, before]"), "{place}");
    let format = usage_error("compare --format xml");
    assert!(format.contains("[possible values: human, json, csv]"), "{format}");
    let command = usage_error("compaer");
    assert!(command.contains("similar subcommands exist: 'completions', 'compare'"), "{command}");
    assert_eq!(
        usage_error("man everything"),
        "error: invalid value 'everything' for '[COMMAND]...': write compare, lab, emu, policy, serve, play, completions or man"
    );
    assert_eq!(
        usage_error("man lab ran"),
        "error: invalid value 'lab ran' for '[COMMAND]...': write list, show, run, agree or merge"
    );
}

#[test]
fn text_that_is_no_unicode() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = common::command("compare --rate");
    command.arg(std::ffi::OsStr::from_bytes(b"\xff\xfe20mbit"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
