//! Errors in scenario files: the marked location and the messages (`tests/messages.txt`).

use crate::common::{EXAMPLE, parse};
use crate::texts::{Case, case, message};
use uncork_lab::{ScenarioError, Source};
use uncork_testkit::assert_message;

/// The text before the first quantity of `[path]`, where other lines are inserted.
const RTT: &str = "rtt = \"50ms\"";
const MAIN: &str = "transfer = \"10MB\"";

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Names.
    case("[run]", "[ruun]", "ruun"),
    case("rate = ", "rte = ", "rte"),
    case("seeds = 3", "seedz = 3", "seedz"),
    case(MAIN, "transfr = \"1MB\"", "transfr"),
    case("\"reno\"]", "\"bbr4\"]", "\"bbr4\""),
    case("\"reno\"]", "\"bbr3:los_floor\"]", "\"bbr3:los_floor\""),
    case("count = 2", "count = 2\npath = \"pat\"", "\"pat\""),
    case(RTT, "rtt = \"50ms\"\nvia = [\"core\"]", "\"core\""),
    case(RTT, "rtt = \"50ms\"\nqueue = \"codl\"", "\"codl\""),
    case(RTT, "rtt = \"50ms\"\nqueue = \"codel:targt=5ms\"", "\"codel:targt=5ms\""),
    case(RTT, "rtt = \"50ms\"\nloss_position = \"behind\"", "\"behind\""),
    case("count = 2", "count = 2\necn = \"ect2\"", "\"ect2\""),
    case("count = 2", "count = 2\naccecn = \"ace\"", "\"ace\""),
    // Types and units.
    case("seeds = 3", "seeds = \"3\"", "\"3\""),
    case(RTT, "rtt = 50", "50"),
    case("\"20mbit\"", "20", "20"),
    case("\"20mbit\"", "\"20Mb\"", "\"20Mb\""),
    case("buffer = \"1bdp\"", "buffer = 100", "100"),
    case("\"0%\", \"0.5%\"", "\"0%\", 0.01", "0.01"),
    case("background = true", "background = \"yes\"", "\"yes\""),
    case(RTT, "rtt = [\"50ms\"]", "[\"50ms\"]"),
    case("[run]", "[[run]]", "run"),
    // Ranges.
    case("\"20mbit\"", "\"-1mbit\"", "\"-1mbit\""),
    case("\"20mbit\"", "\"1kbit\"", "\"1kbit\""),
    case(RTT, "rtt = \"2min\"", "\"2min\""),
    case("count = 2", "count = 0", "0"),
    case("seeds = 3", "seeds = 0", "0"),
    case("seeds = 3", "seeds = -1", "-1"),
    case("\"0%\", \"0.5%\"", "\"0%\", \"100%\"", "\"100%\""),
    case("buffer = \"1bdp\"", "buffer = \"1kB\"", "\"1kB\""),
    case(RTT, "rtt = \"50ms\"\npolicer = \"5mbit:1kB\"", "\"5mbit:1kB\""),
    case("count = 2", "count = 2\nreceive_window = \"1kB\"", "\"1kB\""),
    case("seeds = 3", "warmup = \"3min\"", "warmup"),
    case(RTT, "rtt = \"50ms\"\nrate_steps = [[\"9s\", \"5mbit\"], [\"3s\", \"1mbit\"]]", "\"3s\""),
    case(RTT, "rtt = \"50ms\"\nrtt_steps = [[\"9s\", \"5us\"]]", "\"5us\""),
    case(RTT, "rtt = \"50ms\"\nloss_steps = [[\"9s\", \"100%\"], [\"9s\", \"0%\"]]", "\"9s\""),
    case(RTT, "rtt = \"50ms\"\necn = \"ect1\"", "\"ect1\""),
    case(RTT, "rtt = \"50ms\"\necn = \"ce:1\"", "\"ce:1\""),
    case(RTT, "rtt = \"50ms\"\necn_position = \"after\"", "ecn_position"),
    case(RTT, "rtt = \"50ms\"\nuplink_loss = \"100%\"", "\"100%\""),
    case("count = 2", "count = 2\nreceive_window_steps = [[\"9s\", \"1kB\"]]", "\"1kB\""),
    case("count = 2", "count = 2\ninitial_window = \"32\"", "\"32\""),
    case("count = 2", "count = 2\ninitial_window = \"2000p\"", "\"2000p\""),
    case("count = 2", "count = 2\nresume = { window = \"1MB\" }", "resume"),
    case("count = 2", "count = 2\nresume = { window = \"1MB\", rtt = \"50ms\", age = \"1h\" }", "age"),
    case("count = 2", "count = 2\nmigrations = [[\"9s\", \"host\"]]", "\"host\""),
    case("count = 2", "count = 2\nmigrations = [[\"9s\", \"port\"], [\"8s\", \"port\"]]", "\"8s\""),
    case("count = 2", "count = 2\nack_every = 0", "0"),
    case("count = 2", "count = 2\nack_delay = \"2s\"", "\"2s\""),
    case(RTT, "rtt = \"50ms\"\nmax_packet = \"1kB\"", "\"1kB\""),
    case("seeds = 3", "seeds = 3\ncard = \"1kbit\"", "\"1kbit\""),
    case(MAIN, "transfer = \"0B\"", "\"0B\""),
    case("bulk = \"10s\"", "bulk = \"0s\"", "\"0s\""),
    case("bulk = \"10s\"", "arrivals = { rate = \"10000/s\", size = \"1kB\", for = \"100s\" }", "cross"),
    case("bulk = \"10s\"", "bulk = \"100s\"\nreceive_window = \"9kB\"\n[flow.more]\ncc = \"cubic\"\ncount = 3000\nmedia = { rate = \"8kbit\", for = \"100s\" }", "\"100ms\""),
    // Commands.
    case("bulk = \"10s\"", "command = { server = \"iperf3 -s\" }", "command"),
    case("bulk = \"10s\"", "command = { for = \"9s\" }", "command"),
    case("bulk = \"10s\"", "command = \"iperf3 -R -c $UNCORK_FAR\"", "\"iperf3 -R -c $UNCORK_FAR\""),
    case("bulk = \"10s\"", "command = { client = \" \" }", "\" \""),
    case("bulk = \"10s\"", "command = { server = \"\", client = \"curl\" }", "\"\""),
    case("bulk = \"10s\"", "command = { client = \"a\\u0000b\" }", "\"a\\u0000b\""),
    case("bulk = \"10s\"", "command = { client = [\"curl\"] }", "[\"curl\"]"),
    case("bulk = \"10s\"", "command = { clint = \"curl\" }", "clint"),
    case("bulk = \"10s\"", "command = { client = \"curl\", for = \"0s\" }", "\"0s\""),
    case("bulk = \"10s\"", "command = { client = \"curl\", for = 9 }", "9"),
    case("bulk = \"10s\"", "host = 1\ncommand = { client = \"curl\" }", "host"),
    case("bulk = \"10s\"", "initial_window = \"20p\"\ncommand = { client = \"curl\" }", "initial_window"),
    case("bulk = \"10s\"", "receive_window = \"1MB\"\ncommand = { client = \"curl\" }", "receive_window"),
    case("bulk = \"10s\"", "command = { client = \"curl\" }\nmedia = { rate = \"1mbit\" }", "command"),
    case("\"path.loss\" = [", "\"flow.cross.command.sever\" = [\"nginx\"]\n\"path.loss\" = [", "\"flow.cross.command.sever\""),
    // Combinations.
    case(MAIN, "transfer = \"1MB\"\nbulk = \"9s\"", "bulk"),
    case(MAIN, "", "main"),
    case("rate = \"20mbit\"", "", "path"),
    case(RTT, "", "path"),
    case(RTT, "rtt = { quantiles = [[\"0%\", \"1ms\"], [\"100%\", \"9ms\"]] }", "rtt"),
    case(RTT, "own_per_flow = true\nrtt = { quantiles = [[\"0%\", \"9ms\"], [\"100%\", \"1ms\"]] }", "[\"100%\", \"1ms\"]"),
    case(RTT, "own_per_flow = true\nrtt = { quantiles = [[\"5%\", \"1ms\"], [\"100%\", \"9ms\"]] }", "[[\"5%\", \"1ms\"], [\"100%\", \"9ms\"]]"),
    case("count = 2", "count = 3\npaired = true", "count"),
    case("count = 2", "count = 1", "[\"cubic\", \"reno\"]"),
    case(RTT, "rtt = \"50ms\"\nreorder = true", "reorder"),
    case("[path]\n", "[link.core]\nrate = \"1gbit\"\n[path]\nvia = [\"core\", \"core\"]\n", "\"core\""),
    // The matrix.
    case("\"path.loss\" = [", "\"path.lss\" = [", "\"path.lss\""),
    case("\"path.loss\" = [", "\"loss\" = [", "\"loss\""),
    case("\"flow.main.cc\" = [", "\"flow.mian.cc\" = [", "\"flow.mian.cc\""),
    case("\"path.loss\" = [\"0%\", \"0.5%\", \"1%\"]", "\"path.loss\" = []", "[]"),
    case("\"0%\", \"0.5%\"", "\"0%\", \"0.5\"", "\"0.5\""),
    case("\"0%\", \"0.5%\"", "\"0%\", \"0%\"", "\"0%\""),
    case("\"path.loss\" = [", "path.loss = [", "path"),
    case("\"path.loss\" = [", "\"run.seeds\" = [", "\"run.seeds\""),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ name = \"home\", values = [\"9mbit\"] }]\n\"path.loss\" = [", "[\"9mbit\"]"),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [[\"9mbit\"]]\n\"path.loss\" = [", "[\"9mbit\"]"),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ values = [\"9mbit\", \"9ms\"] }]\n\"path.loss\" = [", "{ values = [\"9mbit\", \"9ms\"] }"),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ name = \"home\" }]\n\"path.loss\" = [", "{ name = \"home\" }"),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ name = \" \", values = [\"9mbit\", \"9ms\"] }]\n\"path.loss\" = [", "\" \""),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ nam = \"home\", values = [\"9mbit\", \"9ms\"] }]\n\"path.loss\" = [", "nam"),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ name = \"home\", values = [\"9mbit\", \"9ms\"] }, { name = \"home\", values = [\"5mbit\", \"9ms\"] }]\n\"path.loss\" = [", "{ name = \"home\", values = [\"5mbit\", \"9ms\"] }"),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ name = \"home\", values = [\"9mbit\", \"9ms\"] }, [\"9mbit\", \"9ms\"]]\n\"path.loss\" = [", "[\"9mbit\", \"9ms\"]"),
    case("\"0%\", \"0.5%\"", "\"0%\", { name = \"half\", values = \"0.5%\" }", "\"0.5%\""),
    // Evaluations.
    case("\"goodput.p50\"", "\"goodpt.p50\"", "\"goodpt.p50\""),
    case("\"goodput.p50\"", "\"goodput.median\"", "\"goodput.median\""),
    case("\"goodput.p50\"", "\"goodput\"", "\"goodput\""),
    case("max = \"30s\"\n", "", "[[threshold]]"),
    case("max = \"30s\"", "max = \"30mbit\"", "\"30mbit\""),
    case("max = \"30s\"", "max = 30", "30"),
    case("min = 0.5", "min = \"50%\"", "\"50%\""),
    case("\"path.loss\" = \"1%\", \"flow.main.cc\" = \"bbr3\"", "\"path.loss\" = \"3%\"", "\"3%\""),
    case("\"path.loss\" = \"1%\", \"flow.main.cc\" = \"bbr3\"", "\"path.los\" = \"1%\"", "\"path.los\""),
    case("flow = \"main\"", "flow = \"mian\"", "\"mian\""),
    case("flow = \"main\"", "cc = \"bbr2\"", "\"bbr2\""),
    case("kind = \"heatmap\"", "kind = \"heat\"", "\"heat\""),
    case("sample = \"100ms\"", "[[figure]]\nkind = \"series\"\ntitle = \"Inside\"", "kind"),
    case("\ny = \"flow.main.cc\"", "\ny = \"path.loss\"", "y"),
    case("\ny = \"flow.main.cc\"", "\ny = \"flow.main.cc\"\nlog_x = true", "log_x"),
    case("source = \"LiteSpeed 2019, Table 1\"\n", "", "[[published]]"),
    case("range_from = \"half to twice\"\n", "", "[[published]]"),
    case("min = \"4s\"\nmax = \"20s\"\nrange_from", "range_from", "range_from"),
    case("\"8.6s\"]]", "\"8.6mbit\"]]", "\"8.6mbit\""),
    // Metrics that the traffic does not have.
    case("\"goodput.p50\"", "\"stutters.mean\"", "\"stutters.mean\""),
    case("\"goodput.p50\"", "\"jain.mean\"", "\"jain.mean\""),
    case("\"goodput.p50\"\nflow = \"main\"", "\"completion.p50\"\nflow = \"cross\"", "\"completion.p50\""),
    case("\"goodput.p50\"\nflow = \"main\"\nover = { \"flow.main.cc\" = \"cubic\" }", "\"completion.p50\"\nover = { flow = \"cross\" }", "{ flow = \"cross\" }"),
    case("kind = \"lines\"\ntitle = \"Completion\"\nx = \"path.loss\"\nby = \"flow.main.cc\"\nmetric = \"completion.p50\"\npublished = [[\"LiteSpeed 2019\", \"1%\", \"8.6s\"]]", "kind = \"cdf\"\ntitle = \"Latency\"\nmetric = \"playback_latency\"", "\"playback_latency\""),
    case("metric = \"goodput.mean\"\nover = { \"flow.main.cc\" = \"cubic\" }", "metric = \"switches.mean\"", "\"switches.mean\""),
    case("value = \"8.6 s\"\nsource = \"LiteSpeed 2019, Table 1\"\nmetric = \"completion.p50\"", "value = \"8.6 s\"\nsource = \"LiteSpeed 2019, Table 1\"\nmetric = \"completion.p50\"\nflow = \"cross\"", "\"completion.p50\""),
    case("transfer = \"10MB\"\n\n[flow.cross]\ncc = [\"cubic\", \"reno\"]\ncount = 2\nbulk = \"10s\"\nbackground = true", "command = { client = \"curl\" }\n[[threshold]]\nmetric = \"first_byte.p50\"\nmax = \"1s\"", "\"first_byte.p50\""),
    case("\"goodput.p50\"", "\"rtt.p99\"", "\"rtt.p99\""),
    case("kind = \"heatmap\"\ntitle = \"Gain\"\nx = \"path.loss\"\ny = \"flow.main.cc\"\nmetric = \"goodput.mean\"\nover = { \"flow.main.cc\" = \"cubic\" }", "kind = \"bars\"\ntitle = \"Queue\"\nmetric = \"queue_delay\"\nstatistics = [\"p50\", \"mean\"]", "\"mean\""),
    // The scenario's files.
    case("bulk = \"10s\"", "arrivals = { trace = \"arivals.txt\" }", "\"arivals.txt\""),
    case("rate = \"20mbit\"", "trace = \"fcc-2016-9\"", "\"fcc-2016-9\""),
    case("bulk = \"10s\"", "requests = { count = 3, sizes = \"web-serch\" }", "\"web-serch\""),
    // TOML syntax.
    case("seeds = 3", "seeds = 3\nseeds = 4", "seeds"),
    case("rate = \"20mbit\"", "rate = 20mbit", ""),
    case("[path]", "[path", ""),
];

/// Values that the matrix replaces in every cell.
#[rustfmt::skip]
const REPLACED: &[Case] = &[
    case("loss = \"1%\"\n", "loss = \"100%\"\n", ""),
    case("cc = \"bbr3\"\n", "", ""),
];

fn refused(text: &str, set: &[&str], what: &str) -> ScenarioError {
    match parse(text, set) {
        Ok(_) => panic!("{what} was taken"),
        Err(error) => error,
    }
}

#[test]
fn errors_are_marked_and_explained() {
    for case in CASES {
        let text = case.within(EXAMPLE);
        let error = refused(&text, &[], case.new);
        case.assert_marked(&text, &error);
        assert_message!(case.name(), message(&error));
    }
}

#[test]
fn values_that_the_matrix_replaces_may_be_absent() {
    for case in REPLACED {
        assert!(parse(&case.within(EXAMPLE), &[]).is_ok(), "{}", case.new);
    }
}

/// The buffer of a shared link must suffice for every RTT that may be drawn, not only the first.
#[test]
fn shared_buffer_must_suffice_for_all_draws() {
    let text = "[link.core]\nrate = \"100mbit\"\nbuffer = \"1bdp\"\n\
                [path]\nrate = \"20mbit\"\nbuffer = \"100kB\"\nvia = [\"core\"]\nown_per_flow = true\n\
                rtt = { choice = [[\"50ms\", 1], [\"10us\", 1]] }\n\
                [flow.x]\ncc = \"reno\"\nbulk = \"1s\"\n";
    let error = refused(text, &[], "a buffer of 125 B");
    assert_message!("a buffer of 125 B", message(&error));
    assert_eq!(&text[error.place().span.clone()], "\"1bdp\"");
}

#[test]
fn missing_parts_are_named() {
    for text in [
        "",
        "[path]\nrate = \"9mbit\"\nrtt = \"9ms\"",
        "[flow.a]\ncc = \"reno\"\nbulk = \"1s\"",
        "[path]\nrate = \"9mbit\"\nrtt = \"9ms\"\n[flow]\ncc = \"reno\"",
        "[path.a]\nrate = \"9mbit\"\nrtt = \"9ms\"\n[path.b]\nrate = \"9mbit\"\nrtt = \"9ms\"\n\
         [flow.x]\ncc = \"reno\"\nbulk = \"1s\"",
    ] {
        let error = refused(text, &[], text);
        assert!(error.suggestion().is_some(), "{text}");
        assert_message!(text, message(&error));
    }
}

/// 400 Gbit/s for 10 s are 333 million packets.
#[test]
fn overlong_computations_are_rejected_with_figures() {
    let text =
        EXAMPLE.replacen("\"20mbit\"", "\"400gbit\"", 1).replacen("seeds = 3", "seeds = 30", 1);
    let error = refused(&text, &[], "hours");
    let shown = error.render("test.toml", false);
    assert_message!("400gbit", message(&error));
    assert_eq!(&text[error.place().span.clone()], "cross", "{shown}");
}

#[test]
fn parse_rejects_a_key_set_twice() {
    for pairs in [
        ["path.rate=20mbit", "path.rate=30mbit"],
        ["path.\"rate\"=20mbit", "path . rate=20mbit"],
        ["run.seeds=3", "run.seeds=4"],
    ] {
        let error = refused(EXAMPLE, &pairs, "twice");
        assert!(error.message().ends_with("is set twice"), "{}", error.message());
        assert_eq!(error.place().source, uncork_lab::Source::Set(1));
    }
}

#[test]
fn parse_accepts_a_run_of_a_day() {
    let text = EXAMPLE.replacen("end = \"120s\"", "end = \"24h\"", 1).replacen(
        "sample = \"100ms\"\n",
        "",
        1,
    );
    assert_ne!(text, EXAMPLE);
    let scenario = parse(&text, &[]).expect("24 hours, as documented");
    assert_eq!(scenario.cells[0].end.as_nanos(), 86_400_000_000_000);
}

#[test]
fn parse_names_the_full_key_of_an_axis() {
    let figure =
        "[[figure]]\nkind = \"cdf\"\ntitle = \"F\"\nmetric = \"completion\"\nby = \"cc\"\n";
    let error = refused(&format!("{EXAMPLE}\n{figure}"), &[], "by = cc");
    assert_message!("cc", message(&error));
}

#[test]
fn warnings_name_transfers_that_cannot_finish() {
    let text = "[run]\nend = \"600s\"\n[path]\nrate = \"8mbit\"\nrtt = \"20ms\"\n\
                [flow.huge]\ncc = \"cubic\"\ntransfer = \"10TB\"\n\
                [flow.small]\ncc = \"cubic\"\ntransfer = \"1MB\"\n\
                [matrix]\n\"flow.huge.cc\" = [\"cubic\", \"bbr3\"]\n";
    let warnings = parse(text, &[]).expect("a scenario").warnings();
    // 10 TB and 52 bytes for each 1448: 10,359,116 s of 1 MB.
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    for part in ["[flow.huge]", "10TB at 8mbit takes 10,359,11", "600s", "run.end"] {
        assert!(warning.contains(part), "{warning}");
    }
    assert_eq!(parse(EXAMPLE, &[]).expect("a scenario").warnings(), [""; 0]);
}

#[test]
fn error_in_a_file_shows_its_line() {
    let text = EXAMPLE.replacen("bulk = \"10s\"", "arrivals = { trace = \"bad.txt\" }", 1);
    let error = refused(&text, &[], "a bad trace");
    assert_eq!(error.line(), 2);
    let shown = error.render("test.toml", false);
    assert!(shown.contains("bad.txt:2:") && shown.contains("soon 2000"), "{shown}");
    let text = EXAMPLE.replacen("rate = \"20mbit\"", "trace = \"bad.txt\"", 1);
    let error = refused(&text, &[], "a bad trace");
    let shown = error.render("test.toml", false);
    assert!(shown.contains("bad.txt:2:") && shown.contains("soon 2000"), "{shown}");
}

#[test]
fn errors_in_settings_show_the_setting() {
    for set in [
        "path.lss=2%",
        "loss=2%",
        "flow.mian.count=2",
        "path.rtt=50",
        "path.loss=2",
        "flow.main.cc=bbr4",
        "matrix.\"path.loss\"=1%",
        "matrix.\"path.rte\"=[\"1mbit\"]",
        "path=3",
        "=1",
    ] {
        let error = refused(EXAMPLE, &[set], set);
        let shown = error.render("test.toml", false);
        assert_eq!(error.place().source, Source::Set(0), "{shown}");
        assert!(shown.contains("--set:1:"), "{shown}");
        assert_message!(set, message(&error));
    }
}

/// `run.offload` was true or false in earlier scenarios.
#[test]
fn a_choice_of_another_type_names_the_choices() {
    let error = refused(EXAMPLE, &["run.offload=true"], "a flag");
    assert_message!("run.offload=true", message(&error));
}

#[test]
fn error_in_a_cell_names_the_cell() {
    let axis = "\"path.rate\" = [\"20mbit\", \"8kbit\"]\n\"path.loss\" = [";
    let text = EXAMPLE.replacen("\"path.loss\" = [", axis, 1);
    let error = refused(&text, &[], "no buffer");
    let shown = error.render("test.toml", false);
    assert_eq!(&text[error.place().span.clone()], "\"1bdp\"", "{shown}");
    assert!(shown.contains("note: where path.rate = 8kbit\n"), "{shown}");
    let everywhere = EXAMPLE.replacen("\"20mbit\"", "20", 1);
    let shown = refused(&everywhere, &[], "no unit").render("test.toml", false);
    assert!(!shown.contains("note:"), "{shown}");
}

#[test]
fn colour_is_chosen_by_the_caller() {
    let error = refused("[pth]", &[], "[pth]");
    assert!(error.render("a.toml", true).contains('\u{1b}'));
    assert!(!error.render("a.toml", false).contains('\u{1b}'));
    assert_message!("pth", error);
}
