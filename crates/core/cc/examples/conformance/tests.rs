use super::*;

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/traces")
}

fn read(name: &str) -> String {
    fs::read_to_string(committed().join(name)).expect("a committed trace")
}

#[test]
fn committed_traces_are_what_write_generates() {
    let names: Vec<String> = traces()
        .map(|(name, trace)| {
            assert!(read(&name) == trace, "{name} has changed: run `conformance write`");
            name
        })
        .collect();
    let files = trace_files(&committed()).expect("traces");
    assert_eq!(files.len(), names.len(), "files that no scenario generates");
}

#[test]
fn committed_traces_stay_below_two_and_a_half_megabytes() {
    let files = trace_files(&committed()).expect("traces");
    let bytes: u64 = files.iter().map(|path| path.metadata().expect("a file").len()).sum();
    assert!(bytes <= 2_500_000, "{bytes}");
}

#[test]
fn check_accepts_every_committed_trace() {
    assert!(check(&committed()).is_ok_and(|report| report.ends_with("traces agree")));
}

/// Every number of the recorded decisions is checked, not only the window.
#[test]
fn check_reports_the_line_of_a_changed_decision() {
    let trace = read("bbr3-startup.jsonl");
    for decision in ["cwnd", "pacing_rate", "max_bw", "round_count"] {
        let key = format!("\"{decision}\":");
        let place = trace.rfind(&key).expect("it changes") + key.len();
        let line = trace[..place].lines().count();
        let changed = format!("{}9{}", &trace[..place], &trace[place..]);
        let error = replay::check(&changed).expect_err("another decision");
        assert!(error.starts_with(&format!("line {line}: ")), "{error}");
    }
}

#[test]
fn check_names_the_line_of_bad_input() {
    let trace = read("reno-loss.jsonl");
    let header = trace.lines().next().expect("a header");
    for (tail, message) in [
        ("nonsense", "line 2: expected"),
        (r#"{"t":1,"on":"guess"}"#, "line 2: unknown variant `guess`"),
        (r#"{"t":1,"on":"spurious","packets":[3]}"#, "line 2: packet 3 is unknown"),
    ] {
        let error = replay::check(&format!("{header}\n{tail}\n")).expect_err("bad input");
        assert!(error.starts_with(message), "{error}");
    }
    assert!(replay::check("").is_err());
    let other = header.replace("trace/1", "trace/2");
    assert!(replay::check(&other).is_err_and(|error| error.contains("schema")));
}

/// Each trace contains the behaviour it is named after.
#[test]
fn scenarios_show_the_behaviour_they_are_named_after() {
    for (name, shows) in [
        ("bbr1-probe_rtt", "\"ProbeRTT\""),
        ("bbr2-probe_rtt", "\"ProbeRTT\""),
        ("bbr3-probe_rtt", "\"ProbeRTT\""),
        ("bbr3-app_limited", "\"drained\":true"),
        ("reno-ecn", "\"ce_packets\":"),
        ("reno-rto", "\"retransmission\""),
        ("reno-persistent", "\"persistent\""),
        ("reno-spurious", "\"spurious\""),
        ("cubic-migration", "\"migrated\""),
        ("cubic-resume", "\"unvalidated\""),
        ("bbr3-resume", "\"unvalidated\""),
        ("cubic-loss", "\"Recovery\""),
    ] {
        let shown = read(&format!("{name}.jsonl")).lines().skip(1).any(|line| line.contains(shows));
        assert!(shown, "{name} does not show {shows}");
    }
}

/// A NewReno in Python, written from the RFCs, makes the same decisions: the format does not depend
/// on Rust.
#[test]
fn a_newreno_in_python_agrees_with_the_traces() {
    let script = committed().with_file_name("newreno.py");
    let run = |dir: &Path| std::process::Command::new("python3").arg(&script).arg(dir).output();
    let output = match run(&committed()) {
        Ok(output) => output,
        Err(error) => {
            let why = format!("python3: {error}");
            return uncork_testkit::not_run(uncork_testkit::Capability::Programs, &why);
        }
    };
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}{}", String::from_utf8_lossy(&output.stderr));
    assert!(report.contains("10 traces agree"), "{report}");

    let changed = uncork_testkit::Scratch::new("conformance");
    let trace = read("reno-loss.jsonl").replacen("\"ssthresh\":1", "\"ssthresh\":2", 1);
    changed.write("reno-loss.jsonl", trace);
    let output = run(&changed.path("")).expect("it ran before");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
