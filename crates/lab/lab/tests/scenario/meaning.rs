//! The meaning of scenario files.

use crate::common::{EXAMPLE, scenario};
use uncork_lab::{Engine, Expectation, FigureKind, Metric, Quantity, Scenario, Statistic};
use uncork_path::{Buffer, LossSpec};
use uncork_sim::{RunSpec, Workload};
use uncork_units::{Rate, Time, TimeDelta};

/// A scenario with one path and one class that have these lines.
fn small(path: &str, flow: &str) -> Scenario {
    scenario(&text(path, flow), &[])
}

fn text(path: &str, flow: &str) -> String {
    format!("[path]\nrate = \"20mbit\"\nrtt = \"50ms\"\n{path}\n[flow.main]\n{flow}\n")
}

fn secs(span: f64) -> Time {
    Time::from_nanos((span * 1e9) as u64)
}

fn loss(run: &RunSpec) -> LossSpec {
    run.paths[0].loss
}

#[test]
fn minimal_scenario_uses_defaults() {
    let scenario = small("", "cc = \"bbr3\"\ntransfer = \"10MB\"");
    assert_eq!((scenario.seeds, scenario.first_seed), (10, 1));
    assert_eq!((scenario.warmup, scenario.sample_every), (TimeDelta::ZERO, None));
    assert_eq!(scenario.cells.len(), 1);
    assert_eq!(scenario.cells[0].end, secs(600.0));
    let run = scenario.instance(0, 7).run;
    assert_eq!((run.seed, run.end, run.paths.len(), run.flows.len()), (7, secs(600.0), 1, 1));
    let path = &run.paths[0];
    assert_eq!(
        (path.link.nominal_rate(), path.rtt),
        (Rate::from_mbit(20), TimeDelta::from_millis(50))
    );
    assert_eq!(path.link.buffer, Buffer::MilliBdp(1000));
    let flow = &run.flows[0];
    assert_eq!((flow.start, flow.workload), (Time::ZERO, Workload::Transfer(10_000_000)));
    assert_eq!((flow.cc.to_string().as_str(), flow.rtt, flow.host), ("bbr3", None, None));
}

#[test]
fn cells_are_all_combinations_with_the_last_axis_fastest() {
    let scenario = scenario(EXAMPLE, &[]);
    assert_eq!(scenario.axes[1].key, "flow.main.cc");
    assert_eq!(scenario.axes[0].values, ["0%", "0.5%", "1%"]);
    let points: Vec<&[usize]> = scenario.cells.iter().map(|cell| &*cell.point).collect();
    assert_eq!(points.len(), 9);
    assert_eq!(points[..4], [[0, 0], [0, 1], [0, 2], [1, 0]]);
    for (index, cell) in scenario.cells.iter().enumerate() {
        let run = scenario.instance(index, 1).run;
        let [at_loss, at_cc] = [cell.point[0], cell.point[1]];
        let expected = LossSpec::Bernoulli(scenario.axes[0].values[at_loss].parse().unwrap());
        assert_eq!(loss(&run), expected);
        assert_eq!(run.flows[0].cc.to_string(), scenario.axes[1].values[at_cc]);
        assert_eq!(cell.classes[0].ccs, [scenario.axes[1].values[at_cc].clone()]);
    }
}

#[test]
fn classes_come_in_the_order_of_the_file_and_share_the_path() {
    let scenario = scenario(EXAMPLE, &[]);
    let classes = &scenario.cells[0].classes;
    assert_eq!((classes[0].name.as_str(), classes[0].background), ("main", false));
    assert_eq!((classes[1].name.as_str(), classes[1].background), ("cross", true));
    let instance = scenario.instance(0, 1);
    assert_eq!(instance.class_of_flow, [0, 1, 1]);
    let flows = &instance.run.flows;
    assert!(flows.iter().all(|flow| flow.path == 0 && flow.start < secs(0.1)));
    assert!(flows.windows(2).all(|pair| pair[0].start != pair[1].start));
    let ccs: Vec<String> = flows.iter().map(|flow| flow.cc.to_string()).collect();
    assert_eq!(ccs, ["cubic", "cubic", "reno"]);
    assert_eq!(flows[1].workload, Workload::Until(flows[1].start + TimeDelta::from_secs(10)));
}

#[test]
fn only_the_first_seed_is_sampled() {
    let scenario = scenario(EXAMPLE, &[]);
    assert_eq!(scenario.instance(0, 1).run.sample_every, Some(TimeDelta::from_millis(100)));
    assert_eq!(scenario.instance(0, 2).run.sample_every, None);
}

#[test]
fn thresholds_use_the_unit_of_the_metric() {
    let scenario = scenario(EXAMPLE, &[]);
    let [first, second] = [&scenario.thresholds[0], &scenario.thresholds[1]];
    assert_eq!(first.of.at, [(0, 2), (1, 2)]);
    assert_eq!(first.expected, Expectation { min: None, max: Some(30.0) });
    let median = Statistic::Quantile(0.5);
    assert_eq!(first.quantity, Quantity { metric: Metric::Completion, statistic: median });
    assert_eq!((&*first.measures, &*first.max_text), ("completion.p50", "30s"));
    assert_eq!(second.over.as_ref().unwrap().at, [(1, 0)]);
    assert_eq!(second.measures, "goodput.p50 / cubic's");
    let published = &scenario.published[0];
    let range = published.range.as_ref().expect("it has bounds");
    assert_eq!(range.bounds, Expectation { min: Some(4.0), max: Some(20.0) });
    assert_eq!(range.from, "half to twice");
}

#[test]
fn figures_refer_to_axes() {
    let scenario = scenario(EXAMPLE, &[]);
    let FigureKind::Lines { x, by, published, .. } = &scenario.figures[0].kind else { panic!() };
    assert_eq!((*x, *by), (0, Some(1)));
    assert_eq!(*published, [("LiteSpeed 2019".to_owned(), 2, 8.6)]);
    let FigureKind::HeatMap { x, y, over, .. } = &scenario.figures[1].kind else { panic!() };
    assert_eq!((*x, *y, over.as_ref().unwrap().at.as_slice()), (0, 1, &[(1, 0)][..]));
}

#[test]
fn several_keys_can_vary_together() {
    let matrix =
        "[matrix]\n\"path.rate,path.rtt\" = [[\"1mbit\", \"100ms\"], [\"9mbit\", \"9ms\"]]";
    let scenario = small("", &format!("cc = \"bbr3\"\ntransfer = \"1MB\"\n{matrix}"));
    assert_eq!(scenario.axes[0].values, ["1mbit, 100ms", "9mbit, 9ms"]);
    let path = &scenario.instance(1, 1).run.paths[0];
    assert_eq!(
        (path.link.nominal_rate(), path.rtt),
        (Rate::from_mbit(9), TimeDelta::from_millis(9))
    );
}

/// A scenario with two paths, evaluations, and this matrix.
fn named(matrix: &str) -> String {
    format!(
        "[path]\nrate = \"20mbit\"\nrtt = \"50ms\"\n[flow.main]\ncc = \"bbr3\"\ntransfer = \"1MB\"\n\
         [matrix]\n{matrix}\n\
         [[threshold]]\nmetric = \"completion.p50\"\nmax = \"9s\"\n\
         where = {{ \"path.rate,path.rtt\" = \"home\" }}\n\
         [[threshold]]\nmetric = \"completion.p50\"\nmax = \"9s\"\n\
         where = {{ \"path.rate,path.rtt\" = [\"9mbit\", \"9ms\"] }}\n"
    )
}

const HOME: &str = "\"path.rate,path.rtt\" = [{ name = \"home\", values = [\"1mbit\", \"100ms\"] }, \
                    [\"9mbit\", \"9ms\"]]";

#[test]
fn axis_values_can_have_names() {
    let text = named(HOME);
    let scenario = scenario(&text, &[]);
    assert_eq!(scenario.axes[0].name, "rate and rtt");
    assert_eq!(scenario.axes[0].values, ["home", "9mbit, 9ms"]);
    let at: Vec<_> = scenario.thresholds.iter().map(|threshold| threshold.of.at[0]).collect();
    assert_eq!(at, [(0, 0), (0, 1)]);
    let path = &scenario.instance(0, 1).run.paths[0];
    assert_eq!(path.link.nominal_rate(), Rate::from_mbit(1));
    let set = ["matrix.\"path.rate,path.rtt\"=[[\"9mbit\", \"9ms\"]]"];
    let narrowed = crate::common::scenario(&text, &set);
    assert_eq!(narrowed.thresholds.len(), 1, "evaluations of home are removed");
    let drawn = "\"path.rtt\" = [\"40ms\", { name = \"far\", values = [\"90ms\"] }]";
    let one = small("", &format!("cc = \"bbr3\"\ntransfer = \"1MB\"\n[matrix]\n{drawn}"));
    assert_eq!(one.axes[0].values, ["40ms", "far"]);
    assert_eq!(one.instance(1, 1).run.paths[0].rtt, TimeDelta::from_millis(90));
}

#[test]
fn equal_keys_are_named_once() {
    let flow = |name: &str| format!("[flow.{name}]\ncc = \"bbr3\"\ntransfer = \"1MB\"\n");
    let text = format!(
        "[path]\nrate = \"20mbit\"\nrtt = \"50ms\"\n{}{}[matrix]\n\
         \"flow.a.cc,flow.b.cc,flow.b.start\" = [[\"reno\", \"reno\", \"0s\"], \
         [\"reno\", \"cubic\", \"5s\"]]\n\"flow.a.count,flow.b.count\" = [[1, 1], [4, 4]]\n",
        flow("a"),
        flow("b")
    );
    let axes = scenario(&text, &[]).axes;
    assert_eq!((axes[0].name.as_str(), axes[1].name.as_str()), ("cc and start", "count"));
    assert_eq!(axes[0].values, ["reno, 0s", "reno/cubic, 5s"]);
    assert_eq!(axes[1].values, ["1", "4"]);
}

#[test]
fn set_value_replaces_that_of_the_file() {
    let scenario = scenario(EXAMPLE, &["path.rate=5mbit", "run.seeds=2", "flow.cross.count=4"]);
    assert_eq!(scenario.seeds, 2);
    let run = scenario.instance(0, 1).run;
    assert_eq!((run.paths[0].link.nominal_rate(), run.flows.len()), (Rate::from_mbit(5), 5));
    assert!(scenario.text.contains("rate = \"5mbit\" # of the wire"), "{}", scenario.text);
    assert!(scenario.text.contains("seeds = 2 # few"), "{}", scenario.text);
}

#[test]
fn setting_an_axis_leaves_one_value() {
    let scenario = scenario(EXAMPLE, &["path.loss=2%"]);
    assert_eq!(scenario.axes[0].values, ["2%"]);
    assert_eq!(scenario.cells.len(), 3);
    // The first threshold, the lines and the published result refer to 1 %.
    let left = (scenario.thresholds.len(), scenario.figures.len(), scenario.published.len());
    assert_eq!(left, (1, 1, 0));
    assert!(scenario.text.contains("\"path.loss\" = [\"2%\"] # of packets"), "{}", scenario.text);
    let list = crate::common::scenario(EXAMPLE, &["matrix.\"path.loss\"=[\"0%\", \"1%\"]"]);
    assert_eq!((list.cells.len(), list.thresholds.len()), (6, 2));
    let new = crate::common::scenario(EXAMPLE, &["matrix.path.rtt=[\"10ms\", \"90ms\"]"]);
    assert_eq!((new.cells.len(), new.axes[2].key.as_str()), (18, "path.rtt"));
}

/// Everything of a scenario except its text.
fn everything(scenario: &Scenario) -> String {
    let Scenario { name, title, about, assumptions, axes, thresholds, .. } = scenario;
    let runs: Vec<String> = (0..scenario.cells.len())
        .map(|cell| format!("{:?}", scenario.instance(cell, scenario.first_seed)))
        .collect();
    let Scenario { figures, published, warmup, sample_every, seeds, .. } = scenario;
    format!(
        "{name} {title} {about} {assumptions:?} {axes:?} {thresholds:?} {runs:?} {figures:?} \
         {published:?} {warmup:?} {sample_every:?} {seeds}"
    )
}

#[test]
fn text_parses_as_the_same_scenario() {
    for set in [
        &[][..],
        &["path.loss=2%"],
        &["flow.main.cc=\"bbr1\"", "path.buffer=100p"],
        &["path.uplink.rate=1mbit", "path.uplink.buffer=20p", "title=Another one"],
        &["path.uplink={rate=\"1mbit\"}", "path.uplink.queue=droptail"],
        &["flow.cross.cc=[\"bbr1\", \"bbr2\"]", "run.end=60s"],
        &["matrix.\"path.loss\"=[\"0%\"]", "flow.main.start=1s", "run.first_seed=5"],
    ] {
        let first = scenario(EXAMPLE, set);
        let again = scenario(&first.text, &[]);
        assert_eq!(everything(&again), everything(&first), "{set:?}\n{}", first.text);
        assert_eq!(again.text, first.text);
        assert!(first.text.starts_with("# A lossy last mile."));
    }
    assert_eq!(scenario(EXAMPLE, &[]).text, EXAMPLE);
}

#[test]
fn shared_links_and_named_paths() {
    let text = "[link.core]\nrate = \"1gbit\"\n\
                [path.near]\nrate = \"100mbit\"\nrtt = \"10ms\"\nvia = [\"core\"]\n\
                [path.far]\nrate = \"20mbit\"\nrtt = \"90ms\"\nvia = [\"core\"]\nloss = \"every:50\"\n\
                uplink = { rate = \"1mbit\", buffer = \"100p\" }\n\
                [flow.a]\npath = \"near\"\ncc = \"cubic\"\nbulk = \"end\"\n\
                [flow.b]\npath = \"far\"\ncc = \"bbr3\"\nbulk = \"end\"\nhost = 3\nrtt = \"20ms\"\n\
                ecn = \"ect1\"\nreceive_window = \"64KiB\"\nstart = \"2s\"\nspread = \"0s\"\n";
    let run = scenario(text, &[]).instance(0, 1).run;
    assert_eq!((run.links.len(), run.paths.len()), (1, 2));
    assert_eq!(run.links[0].nominal_rate(), Rate::from_mbit(1000));
    assert!(run.paths.iter().all(|path| path.via == [0]));
    assert_eq!(run.paths[1].loss, LossSpec::EveryNth(50));
    assert_eq!(run.paths[1].uplink.as_ref().unwrap().buffer, Buffer::Packets(100));
    let [a, b] = [&run.flows[0], &run.flows[1]];
    assert_eq!((a.path, b.path, b.host, b.start), (0, 1, Some(3), secs(2.0)));
    assert_eq!(b.workload, Workload::Until(secs(600.0)));
    assert_eq!((b.rtt, b.receive_window), (Some(TimeDelta::from_millis(20)), 65_536));
    // Bulk flows that share the core link: one without a start time starts within 2 s...
    assert!(a.start > secs(0.1) && a.start < secs(2.0), "{:?}", a.start);
    // ...and within 100 ms if other traffic shares it.
    let transfer = format!("{text}[flow.c]\npath = \"near\"\ncc = \"cubic\"\ntransfer = \"1MB\"\n");
    let a = scenario(&transfer, &[]).instance(0, 1).run.flows[0];
    assert!(a.start > Time::ZERO && a.start < secs(0.1), "{:?}", a.start);
}

const POPULATION: &str = "own_per_flow = true\nrtt = \"50ms\"\n\
    loss = { choice = [[\"0%\", 0.7], [\"1%\", 0.3]] }\n\
    rate = { quantiles = [[\"0%\", \"1mbit\"], [\"50%\", \"8mbit\"], [\"100%\", \"50mbit\"]] }\n";

fn population(flow: &str) -> RunSpec {
    let text = format!("[path]\n{POPULATION}\n{flow}");
    scenario(&text, &[]).instance(0, 1).run
}

#[test]
fn steps_of_a_path_are_one_syntax() {
    let keys = "rtt_steps = [[\"1s\", \"80ms\"], [\"2s\", \"30ms\"]]\n\
                loss_steps = [[\"1s\", \"100%\"], [\"2s\", \"0%\"]]";
    let scenario = small(keys, "cc = \"bbr3\"\ntransfer = \"1MB\"");
    let path = &scenario.instance(0, 1).run.paths[0];
    let rtts: Vec<_> = path.rtt_steps.iter().map(|step| (step.at, step.value)).collect();
    let millis = TimeDelta::from_millis;
    assert_eq!(rtts, [(secs(1.0), millis(80)), (secs(2.0), millis(30))]);
    assert_eq!(
        path.loss_steps.iter().map(|step| step.at).collect::<Vec<_>>(),
        [secs(1.0), secs(2.0)]
    );
    let engines = Engine::ALL.map(|engine| engine.check(&scenario));
    assert_eq!(engines, [Ok(()), Ok(()), Ok(()), Ok(())], "an emulated path has them, too");
    let own = text(keys, "cc = \"bbr3\"\nrtt = \"9ms\"\ntransfer = \"1MB\"");
    let refused = crate::common::parse(&own, &[]).unwrap_err();
    assert!(refused.message().contains("an RTT of its own"), "{refused}");
}

#[test]
fn engines_refuse_what_their_hosts_or_paths_cannot_do() {
    for (path, flow, able) in [
        ("duplicates = \"1%\"", "", &[Engine::Sim, Engine::QuicSim][..]),
        ("max_packet = \"1400B\"", "", &[Engine::QuicSim][..]),
        ("", "migrations = [[\"1s\", \"port\"]]\n", &[Engine::QuicSim][..]),
        ("", "accecn = \"counter\"\n", &[Engine::Sim, Engine::QuicSim][..]),
        ("", "ack_every = 4\n", &[Engine::Sim, Engine::QuicSim][..]),
        ("", "ack_delay = \"20ms\"\n", &[Engine::Sim, Engine::QuicSim][..]),
        ("", "receive_window_steps = [[\"1s\", \"1MB\"]]\n", &[Engine::Sim, Engine::QuicSim][..]),
        ("", "initial_window = \"32p\"\n", &[Engine::Sim, Engine::QuicSim][..]),
        (
            "",
            "resume = { window = \"1MB\", rtt = \"50ms\" }\n",
            &[Engine::Sim, Engine::QuicSim][..],
        ),
        ("ecn = \"bleach\"\necn_position = \"after\"\nuplink_loss = \"1%\"", "", &Engine::ALL[..]),
    ] {
        let scenario = small(path, &format!("cc = \"bbr3\"\ntransfer = \"1MB\"\n{flow}"));
        for engine in Engine::ALL {
            let checked = engine.check(&scenario);
            assert_eq!(
                checked.is_ok(),
                able.contains(&engine),
                "{engine}: {path}{flow} {checked:?}"
            );
            let key = format!("{path}{flow}");
            let key = key.split(' ').next().unwrap_or_default();
            assert!(checked.err().is_none_or(|error| error.message.contains(key)), "{key}");
        }
    }
}

/// The kernel's hosts are in network namespaces, which have none.
#[test]
fn a_card_is_of_simulated_hosts_only() {
    let text = text("", "cc = \"bbr3\"\ntransfer = \"1MB\"") + "[run]\ncard = \"1gbit\"\n";
    let scenario = scenario(&text, &[]);
    assert_eq!(scenario.instance(0, 1).run.card, Some(Rate::from_mbit(1000)));
    for engine in Engine::ALL {
        let refused = engine.check(&scenario).err().map(|error| error.message);
        assert_eq!(refused.is_some(), engine.is_in_real_time(), "{engine}");
        let says = |text: &str| refused.as_ref().is_none_or(|message| message.contains(text));
        assert!(says("`run.card`") && says("--on sim"), "{refused:?}");
    }
}

#[test]
fn clients_of_a_population_have_separate_links() {
    let run = population("[flow.main]\ncc = \"bbr3\"\ncount = 1000\ntransfer = \"1MB\"\n");
    assert_eq!((run.paths.len(), run.flows.len()), (1000, 1000));
    assert!((0..).zip(&run.flows).all(|(index, flow)| flow.path == index));
    assert!(run.flows.iter().all(|flow| flow.start == Time::ZERO));
    let below =
        run.paths.iter().filter(|path| path.link.nominal_rate() < Rate::from_mbit(8)).count();
    // Four standard deviations of a binomial: 4 · sqrt(1000 · 0.25) = 63; 4 · sqrt(210) = 58.
    assert!(below.abs_diff(500) < 63, "{below}");
    let lossy =
        run.paths.iter().filter(|path| path.loss != LossSpec::Bernoulli("0%".parse().unwrap()));
    let lossy = lossy.count();
    assert!(lossy.abs_diff(300) < 58, "{lossy}");
}

#[test]
fn added_class_or_controller_does_not_affect_other_clients() {
    let class = "cc = \"bbr3\"\ncount = 20\ntransfer = \"1MB\"\nspread = \"1s\"\n";
    let alone = population(&format!("[flow.main]\n{class}"));
    let together = population(&format!("[flow.other]\n{class}[flow.main]\n{class}"));
    let starts = |run: &RunSpec| run.flows.iter().map(|flow| flow.start).collect::<Vec<_>>();
    assert_eq!(together.paths[20..], alone.paths[..]);
    assert_eq!(starts(&together)[20..], starts(&alone)[..]);
    assert_ne!(together.paths[..20], alone.paths[..]);
    let cubic = population(&format!("[flow.main]\n{}", class.replace("bbr3", "cubic")));
    assert_eq!(cubic.paths, alone.paths);
}

#[test]
fn paired_clients_draw_the_same() {
    let class = "[flow.main]\ncc = [\"cubic\", \"bbr3\"]\ncount = 10\ntransfer = \"1MB\"\n";
    let run = population(&format!("{class}paired = true\nspread = \"5s\""));
    for pair in run.flows.chunks(2) {
        assert_ne!(pair[0].path, pair[1].path);
        assert_eq!(run.paths[pair[0].path], run.paths[pair[1].path]);
        assert_eq!(pair[0].start, pair[1].start);
        assert_eq!(pair[0].cc.to_string(), "cubic");
        assert_eq!(pair[1].cc.to_string(), "bbr3");
    }
    let unpaired = population(class);
    assert_ne!(unpaired.paths[0], unpaired.paths[1]);
}

#[test]
fn arrivals_are_separate_connections() {
    let flow = "cc = [\"cubic\", \"bbr3\"]\ncount = 2\n\
                arrivals = { rate = \"50/s\", size = \"10kB\", for = \"10s\" }";
    let run = small("", flow).instance(0, 1).run;
    // Twice 500 on average; four standard deviations are 126.
    assert!(run.flows.len().abs_diff(1000) < 126, "{}", run.flows.len());
    assert!(run.flows.iter().all(|flow| flow.workload == Workload::Transfer(10_000)));
    assert!(run.flows.iter().all(|flow| flow.start < secs(10.0)));
    let hosts: std::collections::BTreeSet<_> = run.flows.iter().map(|flow| flow.host).collect();
    assert_eq!(hosts.len(), 2);
    let ccs: Vec<String> = run.flows.iter().map(|flow| flow.cc.to_string()).take(3).collect();
    assert_eq!(ccs, ["cubic", "bbr3", "cubic"]);
    let paired = small("", &format!("{flow}\npaired = true")).instance(0, 1).run;
    let half = paired.flows.len() / 2;
    let [one, other] = [&paired.flows[..half], &paired.flows[half..]];
    assert!(one.iter().all(|flow| flow.cc.to_string() == "cubic"));
    let starts =
        |flows: &[uncork_sim::FlowSpec]| flows.iter().map(|flow| flow.start).collect::<Vec<_>>();
    assert_eq!(starts(one), starts(other));
}

#[test]
fn arrivals_can_be_recorded() {
    let flow = "cc = \"bbr3\"\nstart = \"1s\"\narrivals = { trace = \"arrivals.txt\" }";
    let run = small("", flow).instance(0, 1).run;
    let flows: Vec<_> = run.flows.iter().map(|flow| (flow.start, flow.workload)).collect();
    let expected = [(1.0, 1000), (1.5, 2000), (2.25, 3000)];
    assert_eq!(flows, expected.map(|(at, bytes)| (secs(at), Workload::Transfer(bytes))));
}

#[test]
fn equal_seeds_give_equal_runs() {
    let scenario = scenario(EXAMPLE, &[]);
    let run = |seed| format!("{:?}", scenario.instance(4, seed));
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

/// Every kind of traffic reaches the engine unchanged and delivers data.
#[test]
fn every_workload_runs() {
    let flows = [
        ("transfer", "transfer = \"1MB\""),
        ("bulk", "bulk = \"end\""),
        ("requests", "count = 2\nrequests = { size = \"100kB\", for = \"5s\" }"),
        ("arrivals", "arrivals = { rate = \"5/s\", sizes = \"web\", for = \"5s\" }"),
        ("media", "media = { rate = \"1mbit\" }"),
        ("audio", "audio = { duration = \"30s\" }"),
        ("video", "video = { duration = \"30s\", abr = \"throughput\" }"),
    ];
    let flows = flows.map(|(name, work)| format!("[flow.{name}]\ncc = \"cubic\"\n{work}\n"));
    let text = format!(
        "[run]\nend = \"10s\"\nwarmup = \"1s\"\n[path]\nrate = \"20mbit\"\nrtt = \"50ms\"\n{}",
        flows.concat()
    );
    let scenario = scenario(&text, &[]);
    let lasts: Vec<_> = scenario.cells[0].classes.iter().map(|class| class.lasts).collect();
    assert_eq!(lasts[..3], [None, None, Some(TimeDelta::from_secs(5))]);
    let uncork_lab::Instance { run, class_of_flow, .. } = scenario.instance(0, 1);
    assert_eq!((run.clients.len(), run.warmup), (4, secs(1.0)));
    let records = uncork_sim::run(&run).flows;
    assert_eq!(records.len(), class_of_flow.len());
    for class in 0..7 {
        let of_class = records.iter().zip(&class_of_flow).filter(|(_, of)| **of == class);
        let bytes: u64 = of_class.map(|(record, _)| record.bytes_delivered).sum();
        assert!(bytes > 10_000, "class {class}: {bytes}");
    }
}
