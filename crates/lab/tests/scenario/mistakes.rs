//! Every way to write a scenario wrongly is told with its place and with what to do.

use crate::common::{EXAMPLE, parse};
use crate::texts::{Case, case};
use uncork_lab::{ScenarioError, Source};

/// What stands before the first quantity of `[path]`, to put something beside it.
const RTT: &str = "rtt = \"50ms\"";
const MAIN: &str = "transfer = \"10MB\"";

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Names.
    case("[run]", "[ruun]", "unknown key `ruun` in a scenario", "ruun", "did you mean `run`?"),
    case("rate = ", "rte = ", "unknown key `rte` in [path]", "rte", "did you mean `rate`?"),
    case("seeds = 3", "seedz = 3", "unknown key `seedz` in [run]", "seedz", "did you mean `seeds`?"),
    case(MAIN, "transfr = \"1MB\"", "unknown key `transfr`", "transfr", "did you mean `transfer`?"),
    case("\"reno\"]", "\"bbr4\"]", "unknown controller `bbr4`", "\"bbr4\"", "did you mean `bbr"),
    case("\"reno\"]", "\"bbr3:los_floor\"]", "bbr3 has no option `los_floor`", "\"bbr3:los_floor\"", "did you mean `loss_floor`?"),
    case("count = 2", "path = \"pat\"", "there is no path `pat`", "\"pat\"", "did you mean `path`?"),
    case(RTT, "rtt = \"50ms\"\nvia = [\"core\"]", "there is no link `core`", "\"core\"", ""),
    case(RTT, "rtt = \"50ms\"\nqueue = \"codl\"", "there is no queue discipline codl", "\"codl\"", "write droptail"),
    case(RTT, "rtt = \"50ms\"\nqueue = \"codel:targt=5ms\"", "codel has no parameter", "\"codel:targt=5ms\"", "did you mean `target`?"),
    case(RTT, "rtt = \"50ms\"\nloss_position = \"behind\"", "unknown place of loss `behind`", "\"behind\"", "after"),
    case("count = 2", "ecn = \"ect2\"", "unknown codepoint of ECN `ect2`", "\"ect2\"", "did you mean `ect"),
    // Types and units.
    case("seeds = 3", "seeds = \"3\"", "a string where a whole number belongs", "\"3\"", ""),
    case(RTT, "rtt = 50", "a span of time needs a unit", "50", "write 50ms"),
    case("\"20mbit\"", "20", "a rate needs a unit", "20", "write 20mbit"),
    case("\"20mbit\"", "\"20Mb\"", "the unit has two meanings", "\"20Mb\"", "write 20mbit or 20MB/s"),
    case("buffer = \"1bdp\"", "buffer = 100", "a buffer is a size with a unit", "100", "write 1bdp"),
    case("\"0%\", \"0.5%\"", "\"0%\", 0.01", "a probability is written in percent", "0.01", "write 0.01%, or 1% for 0.01 of 1"),
    case("background = true", "background = \"yes\"", "a string where true or false belongs", "\"yes\"", ""),
    case(RTT, "rtt = [\"50ms\"]", "a list where a string belongs", "[\"50ms\"]", ""),
    case("[run]", "[[run]]", "a list where a table belongs", "run", ""),
    // Ranges.
    case("\"20mbit\"", "\"-1mbit\"", "a rate is never negative", "\"-1mbit\"", "write 20mbit"),
    case("\"20mbit\"", "\"1kbit\"", "1kbit is not possible here", "\"1kbit\"", "give 8kbit to 400gbit"),
    case(RTT, "rtt = \"2min\"", "120s is not possible here", "\"2min\"", "give 10us to 60s"),
    case("count = 2", "count = 0", "0 is not possible here", "0", "give a whole number from 1 to 10000"),
    case("seeds = 3", "seeds = 0", "0 is not possible here", "0", "give a whole number from 1"),
    case("seeds = 3", "seeds = -1", "-1 is not possible here", "-1", "give a whole number from 1"),
    case("loss = \"1%\"\n", "loss = \"100%\"\n", "", "", ""),
    case("\"0%\", \"0.5%\"", "\"0%\", \"100%\"", "nothing arrives when every packet is lost", "\"100%\"", "give less than 100%"),
    case("buffer = \"1bdp\"", "buffer = \"1kB\"", "a buffer of 1000 B cannot hold one packet", "\"1kB\"", "give at least 1p"),
    case(RTT, "rtt = \"50ms\"\npolicer = \"5mbit:1kB\"", "a policer's burst of 1000 B", "\"5mbit:1kB\"", ""),
    case("count = 2", "receive_window = \"1kB\"", "a receive window of 1kB holds no packet", "\"1kB\"", "give at least 1500B"),
    case("seeds = 3", "warmup = \"3min\"", "the warm-up of 180s leaves nothing of a run of 120s", "warmup", ""),
    case(RTT, "rtt = \"50ms\"\nrate_steps = [[\"9s\", \"5mbit\"], [\"3s\", \"1mbit\"]]", "a change at 3s does not come after 9s", "\"3s\"", "in the order of time"),
    case(MAIN, "transfer = \"0B\"", "nothing to transfer", "\"0B\"", "give at least 1B"),
    case("bulk = \"10s\"", "bulk = \"0s\"", "no time at all", "\"0s\"", "give more than 0s"),
    case("bulk = \"10s\"", "arrivals = { rate = \"10000/s\", size = \"1kB\", for = \"100s\" }", "flows in a run", "cross", "at most 10000"),
    case("bulk = \"10s\"", "bulk = \"100s\"\nreceive_window = \"9kB\"\n[flow.more]\ncc = \"cubic\"\ncount = 3000\nmedia = { rate = \"8kbit\", for = \"100s\" }", "time series of up to", "\"100ms\"", "sample less often"),
    // Commands.
    case("bulk = \"10s\"", "command = { server = \"iperf3 -s\" }", "command has no `client`", "command", "write client = "),
    case("bulk = \"10s\"", "command = { for = \"9s\" }", "command has no `client`", "command", "write client = "),
    case("bulk = \"10s\"", "command = \"iperf3 -R -c $UNCORK_FAR\"", "a string where a table belongs", "\"iperf3 -R -c $UNCORK_FAR\"", "keys of its own"),
    case("bulk = \"10s\"", "command = { client = \" \" }", "there is nothing to run", "\" \"", "what a shell shall run"),
    case("bulk = \"10s\"", "command = { server = \"\", client = \"curl\" }", "there is nothing to run", "\"\"", "what a shell shall run"),
    case("bulk = \"10s\"", "command = { client = \"a\\u0000b\" }", "a command cannot hold a zero byte", "\"a\\u0000b\"", "leave it out"),
    case("bulk = \"10s\"", "command = { client = [\"curl\"] }", "a list where a string belongs", "[\"curl\"]", ""),
    case("bulk = \"10s\"", "command = { clint = \"curl\" }", "unknown key `clint` in command", "clint", "did you mean `client`?"),
    case("bulk = \"10s\"", "command = { client = \"curl\", for = \"0s\" }", "no time at all", "\"0s\"", "give more than 0s"),
    case("bulk = \"10s\"", "command = { client = \"curl\", for = 9 }", "a span of time needs a unit", "9", "write 9"),
    case("bulk = \"10s\"", "host = 1\ncommand = { client = \"curl\" }", "`host` has no meaning here", "host", "leave it out"),
    case("bulk = \"10s\"", "receive_window = \"1MB\"\ncommand = { client = \"curl\" }", "`receive_window` has no meaning here", "receive_window", "leave it out"),
    case("bulk = \"10s\"", "command = { client = \"curl\" }\nmedia = { rate = \"1mbit\" }", "[flow.cross] has two of workload", "command", "give one of"),
    case("\"path.loss\" = [", "\"flow.cross.command.sever\" = [\"nginx\"]\n\"path.loss\" = [", "there is no `flow.cross.command.sever`", "\"flow.cross.command.sever\"", "did you mean `flow.cross.command.server`?"),
    // What belongs together.
    case(MAIN, "transfer = \"1MB\"\nbulk = \"9s\"", "[flow.main] has two of workload: `transfer` and `bulk`", "bulk", "give one of"),
    case(MAIN, "", "[flow.main] has no workload", "main", "`transfer`"),
    case("rate = \"20mbit\"", "", "[path] has no rate", "path", "`rate`"),
    case("cc = \"bbr3\"\n", "", "", "", ""),
    case(RTT, "", "[path] has no `rtt`", "path", "write rtt = \"50ms\""),
    case(RTT, "rtt = { quantiles = [[\"0%\", \"1ms\"], [\"100%\", \"9ms\"]] }", "`rtt` is drawn for each flow, but the flows of [path] share it", "rtt", "own_per_flow = true"),
    case(RTT, "own_per_flow = true\nrtt = { quantiles = [[\"0%\", \"9ms\"], [\"100%\", \"1ms\"]] }", "this value is less than the one before", "[\"100%\", \"1ms\"]", "ascend"),
    case(RTT, "own_per_flow = true\nrtt = { quantiles = [[\"5%\", \"1ms\"], [\"100%\", \"9ms\"]] }", "these shares are no distribution", "[[\"5%\", \"1ms\"], [\"100%\", \"9ms\"]]", "from 0% to 100%"),
    case("count = 2", "count = 3\npaired = true", "3 flows cannot be paired among 2 controllers", "count", "multiple of 2"),
    case(RTT, "rtt = \"50ms\"\nreorder = true", "`reorder` has no meaning here", "reorder", "leave it out"),
    case("[path]\n", "[link.core]\nrate = \"1gbit\"\n[path]\nvia = [\"core\", \"core\"]\n", "the path crosses `core` twice", "\"core\"", "once"),
    // The matrix.
    case("\"path.loss\" = [", "\"path.lss\" = [", "there is no `path.lss` in a scenario", "\"path.lss\"", "did you mean `path.loss`?"),
    case("\"path.loss\" = [", "\"loss\" = [", "there is no `loss` in a scenario", "\"loss\"", "did you mean `path.loss`?"),
    case("\"flow.main.cc\" = [", "\"flow.mian.cc\" = [", "there is no `flow.mian.cc`", "\"flow.mian.cc\"", "did you mean `flow.main.cc`?"),
    case("\"path.loss\" = [\"0%\", \"0.5%\", \"1%\"]", "\"path.loss\" = []", "the axis `path.loss` has no values", "[]", "one at least"),
    case("\"0%\", \"0.5%\"", "\"0%\", \"0.5\"", "a probability is written in percent", "\"0.5\"", "write 0.5%"),
    case("\"0%\", \"0.5%\"", "\"0%\", \"0%\"", "the axis `path.loss` has `0%` twice", "\"0%\"", "once"),
    case("\"path.loss\" = [", "path.loss = [", "`path` in [matrix] is a table", "path", "quotes"),
    case("\"path.loss\" = [", "\"run.seeds\" = [", "`run.seeds` is the same in all cells", "\"run.seeds\"", "run.end"),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ name = \"home\", values = [\"9mbit\"] }]\n\"path.loss\" = [", "this axis varies 2 places together", "[\"9mbit\"]", "as a list of 2, or as { name = "),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [[\"9mbit\"]]\n\"path.loss\" = [", "this axis varies 2 places together", "[\"9mbit\"]", "as a list of 2"),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ values = [\"9mbit\", \"9ms\"] }]\n\"path.loss\" = [", "a named value has no `name`", "{ values = [\"9mbit\", \"9ms\"] }", "write name = "),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ name = \"home\" }]\n\"path.loss\" = [", "a named value has no `values`", "{ name = \"home\" }", "write values = "),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ name = \" \", values = [\"9mbit\", \"9ms\"] }]\n\"path.loss\" = [", "this name is empty", "\" \"", "in a word or two"),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ nam = \"home\", values = [\"9mbit\", \"9ms\"] }]\n\"path.loss\" = [", "unknown key `nam` in a named value", "nam", "did you mean `name`?"),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ name = \"home\", values = [\"9mbit\", \"9ms\"] }, { name = \"home\", values = [\"5mbit\", \"9ms\"] }]\n\"path.loss\" = [", "has `home` twice", "{ name = \"home\", values = [\"5mbit\", \"9ms\"] }", "a name of its own"),
    case("\"path.loss\" = [", "\"path.rate,path.rtt\" = [{ name = \"home\", values = [\"9mbit\", \"9ms\"] }, [\"9mbit\", \"9ms\"]]\n\"path.loss\" = [", "has `9mbit, 9ms` twice", "[\"9mbit\", \"9ms\"]", "give each value once"),
    case("\"0%\", \"0.5%\"", "\"0%\", { name = \"half\", values = \"0.5%\" }", "this axis varies one place", "\"0.5%\"", "as a list of 1"),
    // Questions.
    case("\"goodput.p50\"", "\"goodpt.p50\"", "unknown metric `goodpt`", "\"goodpt.p50\"", "did you mean `goodput`?"),
    case("\"goodput.p50\"", "\"goodput.median\"", "unknown statistic `median`", "\"goodput.median\"", "write p50"),
    case("\"goodput.p50\"", "\"goodput\"", "does not say which number", "\"goodput\"", "goodput.p50"),
    case("max = \"30s\"\n", "", "this threshold has no bound", "[[threshold]]", "max or min"),
    case("max = \"30s\"", "max = \"30mbit\"", "a span of time has no such unit", "\"30mbit\"", "write 25ms"),
    case("max = \"30s\"", "max = 30", "a span of time needs a unit", "30", "write 30ms"),
    case("min = 0.5", "min = \"50%\"", "a string where a number belongs", "\"50%\"", ""),
    case("\"path.loss\" = \"1%\", \"flow.main.cc\" = \"bbr3\"", "\"path.loss\" = \"3%\"", "the axis `path.loss` has no value `3%`", "\"3%\"", "did you mean"),
    case("\"path.loss\" = \"1%\", \"flow.main.cc\" = \"bbr3\"", "\"path.los\" = \"1%\"", "the matrix has no axis `path.los`", "\"path.los\"", "did you mean `path.loss`?"),
    case("flow = \"main\"", "flow = \"mian\"", "there is no class of traffic `mian`", "\"mian\"", "did you mean `main`?"),
    case("flow = \"main\"", "cc = \"bbr2\"", "no flow has the controller `bbr2`", "\"bbr2\"", "did you mean `bbr"),
    case("kind = \"heatmap\"", "kind = \"heat\"", "unknown kind of figure `heat`", "\"heat\"", ""),
    case("sample = \"100ms\"", "[[figure]]\nkind = \"series\"\ntitle = \"Inside\"", "nothing is written down over time", "kind", "write sample"),
    case("\ny = \"flow.main.cc\"", "\ny = \"path.loss\"", "columns and rows are the same axis", "y", "two axes"),
    case("\ny = \"flow.main.cc\"", "\ny = \"flow.main.cc\"\nlog_x = true", "`log_x` has no meaning here", "log_x", "leave it out"),
    case("source = \"LiteSpeed 2019, Table 1\"\n", "", "[[published]] has no `source`", "[[published]]", "write source = "),
    case("\"8.6s\"]]", "\"8.6mbit\"]]", "a span of time has no such unit", "\"8.6mbit\"", "write 25ms"),
    // What the traffic does not have.
    case("\"goodput.p50\"", "\"stutters.mean\"", "`stutters` cannot be measured of main", "\"stutters.mean\"", "what can be is completion, first_byte, goodput, bandwidth"),
    case("\"goodput.p50\"", "\"jain.mean\"", "`jain` cannot be measured of main", "\"jain.mean\"", "what can be is"),
    case("\"goodput.p50\"\nflow = \"main\"", "\"completion.p50\"\nflow = \"cross\"", "`completion` cannot be measured of cross", "\"completion.p50\"", "what can be is goodput, utilisation, share, rtt, queue_delay, retransmitted, dropped, timeouts, jain"),
    case("\"goodput.p50\"\nflow = \"main\"\nover = { \"flow.main.cc\" = \"cubic\" }", "\"completion.p50\"\nover = { flow = \"cross\" }", "`completion` cannot be measured of cross", "{ flow = \"cross\" }", "what can be is goodput"),
    case("kind = \"lines\"\ntitle = \"Completion\"\nx = \"path.loss\"\nby = \"flow.main.cc\"\nmetric = \"completion.p50\"\npublished = [[\"LiteSpeed 2019\", \"1%\", \"8.6s\"]]", "kind = \"cdf\"\ntitle = \"Latency\"\nmetric = \"playback_latency\"", "`playback_latency` cannot be measured of the traffic here", "\"playback_latency\"", "what can be is completion"),
    case("metric = \"goodput.mean\"\nover = { \"flow.main.cc\" = \"cubic\" }", "metric = \"switches.mean\"", "`switches` cannot be measured of the traffic here", "\"switches.mean\"", "what can be is completion"),
    case("value = \"8.6 s\"\nsource = \"LiteSpeed 2019, Table 1\"\nmetric = \"completion.p50\"", "value = \"8.6 s\"\nsource = \"LiteSpeed 2019, Table 1\"\nmetric = \"completion.p50\"\nflow = \"cross\"", "`completion` cannot be measured of cross", "\"completion.p50\"", "what can be is goodput"),
    case("transfer = \"10MB\"\n\n[flow.cross]\ncc = [\"cubic\", \"reno\"]\ncount = 2\nbulk = \"10s\"\nbackground = true", "command = { client = \"curl\" }\n[[threshold]]\nmetric = \"first_byte.p50\"\nmax = \"1s\"", "`first_byte` cannot be measured of", "\"first_byte.p50\"", "what can be is completion, goodput, share"),
    case("\"goodput.p50\"", "\"rtt.p99\"", "`p99` of `rtt` is not kept", "\"rtt.p99\"", "rtt.p50 or rtt.p95"),
    case("kind = \"heatmap\"\ntitle = \"Gain\"\nx = \"path.loss\"\ny = \"flow.main.cc\"\nmetric = \"goodput.mean\"\nover = { \"flow.main.cc\" = \"cubic\" }", "kind = \"bars\"\ntitle = \"Queue\"\nmetric = \"queue_delay\"\nstatistics = [\"p50\", \"mean\"]", "`mean` of `queue_delay` is not kept", "\"mean\"", "queue_delay.p50 or queue_delay.p95"),
    // Files beside it.
    case("bulk = \"10s\"", "arrivals = { trace = \"arivals.txt\" }", "cannot read the file `arivals.txt`", "\"arivals.txt\"", "beside the scenario"),
    case("rate = \"20mbit\"", "trace = \"fcc-2016-9\"", "cannot read the file `fcc-2016-9`", "\"fcc-2016-9\"", "did you mean `fcc-2016-"),
    case("bulk = \"10s\"", "requests = { count = 3, sizes = \"web-serch\" }", "`web-serch` names no sizes", "\"web-serch\"", "web-search"),
    // TOML's own.
    case("seeds = 3", "seeds = 3\nseeds = 4", "not valid TOML: duplicate key", "seeds", ""),
    case("rate = \"20mbit\"", "rate = 20mbit", "not valid TOML", "", ""),
    case("[path]", "[path", "not valid TOML", "", ""),
];

fn refused(text: &str, set: &[&str], what: &str) -> ScenarioError {
    match parse(text, set) {
        Ok(_) => panic!("{what} was taken"),
        Err(error) => error,
    }
}

#[test]
fn each_mistake_is_told_where_it_is_and_what_to_do() {
    for case in CASES.iter().filter(|case| !case.message.is_empty()) {
        let text = case.within(EXAMPLE);
        case.assert_told(&text, &refused(&text, &[], case.new));
    }
}

/// A value that the matrix replaces in every cell is no mistake: nothing ever sees it.
#[test]
fn what_the_matrix_replaces_need_not_be_there() {
    for case in CASES.iter().filter(|case| case.message.is_empty()) {
        assert!(parse(&case.within(EXAMPLE), &[]).is_ok(), "{}", case.new);
    }
}

/// The buffer of a shared link has to do for whatever round trips are drawn, not for the first of them.
#[test]
fn a_shared_buffer_must_do_for_all_that_is_drawn() {
    let text = "[link.core]\nrate = \"100mbit\"\nbuffer = \"1bdp\"\n\
                [path]\nrate = \"20mbit\"\nbuffer = \"100kB\"\nvia = [\"core\"]\nown_per_flow = true\n\
                rtt = { choice = [[\"50ms\", 1], [\"10us\", 1]] }\n\
                [flow.x]\ncc = \"reno\"\nbulk = \"1s\"\n";
    let error = refused(text, &[], "a buffer of 125 B");
    assert!(error.message().contains("a buffer of 125 B cannot hold one packet"), "{error:?}");
    assert_eq!(&text[error.place().span.clone()], "\"1bdp\"");
}

#[test]
fn what_is_missing_altogether() {
    for (text, message) in [
        ("", "the scenario has no path"),
        ("[path]\nrate = \"9mbit\"\nrtt = \"9ms\"", "the scenario has no traffic"),
        ("[flow.a]\ncc = \"reno\"\nbulk = \"1s\"", "the scenario has no path"),
        ("[path]\nrate = \"9mbit\"\nrtt = \"9ms\"\n[flow]\ncc = \"reno\"", "`cc` stands in [flow]"),
        (
            "[path.a]\nrate = \"9mbit\"\nrtt = \"9ms\"\n[path.b]\nrate = \"9mbit\"\nrtt = \"9ms\"\n\
          [flow.x]\ncc = \"reno\"\nbulk = \"1s\"",
            "[flow.x] does not say which path it takes",
        ),
    ] {
        let error = refused(text, &[], message);
        assert!(error.message().contains(message), "{}", error.render("test.toml", false));
        assert!(error.suggestion().is_some(), "{message}");
    }
}

/// 400 Gbit/s for 10 s are 333 million packets.
#[test]
fn what_would_take_hours_is_refused_with_its_figures() {
    let text =
        EXAMPLE.replacen("\"20mbit\"", "\"400gbit\"", 1).replacen("seeds = 3", "seeds = 30", 1);
    let error = refused(&text, &[], "hours");
    let shown = error.render("test.toml", false);
    assert!(shown.contains("this means about 90,001,8"), "{shown}");
    assert!(shown.contains("packets over 9 cells and 30 seeds, 8 processor hours"), "{shown}");
    assert_eq!(&text[error.place().span.clone()], "cross", "{shown}");
}

#[test]
fn parse_refuses_a_place_that_is_set_twice() {
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
fn parse_takes_a_run_of_a_day() {
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
fn parse_names_the_whole_place_of_an_axis() {
    let figure =
        "[[figure]]\nkind = \"cdf\"\ntitle = \"F\"\nmetric = \"completion\"\nby = \"cc\"\n";
    let error = refused(&format!("{EXAMPLE}\n{figure}"), &[], "by = cc");
    assert!(error.message().contains("the matrix has no axis `cc`"), "{}", error.message());
    assert_eq!(error.suggestion(), Some("did you mean `flow.main.cc`?"));
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
fn a_line_of_a_file_is_shown_there() {
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
fn what_is_set_is_shown_as_it_was_set() {
    for (set, message, help) in [
        ("path.lss=2%", "there is no `path.lss`", "did you mean `path.loss`?"),
        ("loss=2%", "there is no `loss`", "did you mean `path.loss`?"),
        ("flow.mian.count=2", "there is no `flow.mian.count`", "did you mean `flow.main.count`?"),
        ("path.rtt=50", "a span of time needs a unit", "write 50ms"),
        ("path.loss=2", "a probability needs a unit", "write 2%"),
        ("flow.main.cc=bbr4", "unknown controller `bbr4`", "did you mean `bbr"),
        ("matrix.\"path.loss\"=1%", "an axis of the matrix is a place and a list", "write matrix"),
        ("matrix.\"path.rte\"=[\"1mbit\"]", "there is no `path.rte`", "did you mean `path.rate`?"),
        ("path=3", "the matrix varies `path.loss`, so that `path` cannot be set", "set matrix"),
        ("=1", "there is no ``", ""),
    ] {
        let error = refused(EXAMPLE, &[set], set);
        let shown = error.render("test.toml", false);
        assert!(error.message().contains(message), "{set}: {shown}");
        assert!(error.suggestion().unwrap_or_default().contains(help), "{set}: {shown}");
        assert_eq!(error.place().source, Source::Set(0), "{shown}");
        assert!(shown.contains("--set:1:"), "{shown}");
    }
}

#[test]
fn an_error_in_a_cell_tells_which() {
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
fn colour_is_the_caller_s_choice() {
    let error = refused("[pth]", &[], "[pth]");
    assert!(error.render("a.toml", true).contains('\u{1b}'));
    assert!(!error.render("a.toml", false).contains('\u{1b}'));
    assert_eq!(error.to_string(), "unknown key `pth` in a scenario; did you mean `path`?");
}
