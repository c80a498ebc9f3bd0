//! Programs as traffic.

use uncork_lab::Engine;
use uncork_sim::{CommandSpec, Workload};
use uncork_units::TimeDelta;

use crate::common::{EXAMPLE, parse, scenario};

#[test]
fn commands_are_a_workload() {
    let text = EXAMPLE.replace(
        "bulk = \"10s\"",
        "command = { server = \"iperf3 -s\", client = \"iperf3 -c $UNCORK_FAR\", for = \"9s\", own_cc = true }",
    );
    let set = "matrix.\"flow.cross.command.server\"=[\"iperf3 -s\", \"nginx\"]";
    let scenario = scenario(&text, &[set]);
    assert_eq!(scenario.cells.len(), 18);
    let run = scenario.instance(1, 1).run;
    let flows: Vec<Workload> = run.flows.iter().map(|flow| flow.workload).collect();
    assert_eq!(flows[1..], [Workload::Command(0); 2]);
    let command = CommandSpec {
        name: "cross".into(),
        server: Some("nginx".into()),
        client: "iperf3 -c $UNCORK_FAR".into(),
        limit: Some(TimeDelta::from_secs(9)),
        records: None,
        own_cc: true,
    };
    assert_eq!(run.commands, [command]);
    let refused = Engine::Sim.check(&scenario).unwrap_err();
    assert!(!refused.is_of_machine && refused.message.contains("'cross' is a command"));
    assert!(refused.message.contains("--on netns"), "{refused}");
    assert_eq!(Engine::Netns.check(&scenario), Ok(()));
}

/// Only metrics recorded by programs can be evaluated; the simulator does not run programs.
#[test]
fn commands_may_write_records() {
    let with = |records: &str| {
        let command = format!("command = {{ client = \"play\"{records} }}");
        EXAMPLE.replace("bulk = \"10s\"", &command)
    };
    let asks = |metric: &str, min: &str| {
        format!("\n[[threshold]]\nmetric = \"{metric}\"\nflow = \"cross\"\nmin = {min}\n")
    };
    let (objects, audio) = (", records = \"objects\"", ", records = \"audio\"");
    for (records, metric, min, can) in [
        ("", "stutters.mean", "0", false),
        (objects, "stutters.mean", "0", false),
        (audio, "stutters.mean", "0", true),
        (audio, "bandwidth.p50", "\"1kbit\"", true),
        (objects, "bandwidth.p50", "\"1kbit\"", true),
        ("", "bandwidth.p50", "\"1kbit\"", false),
        (objects, "utilisation.mean", "\"1%\"", false),
    ] {
        let read = parse(&(with(records) + &asks(metric, min)), &[]);
        assert_eq!(read.is_ok(), can, "{records} {metric}: {:?}", read.err());
        if let Ok(scenario) = read {
            let (sim, netns) = (Engine::Sim.check(&scenario), Engine::Netns.check(&scenario));
            assert!(sim.is_err() && netns.is_ok());
        }
    }
}
