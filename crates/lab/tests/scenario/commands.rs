//! Programs as traffic.

use uncork_lab::Engine;
use uncork_sim::{CommandSpec, Workload};
use uncork_units::TimeDelta;

use crate::common::{EXAMPLE, scenario};

#[test]
fn commands_are_a_workload_like_others() {
    let text = EXAMPLE.replace(
        "bulk = \"10s\"",
        "command = { server = \"iperf3 -s\", client = \"iperf3 -c $UNCORK_FAR\", for = \"9s\" }",
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
    };
    assert_eq!(run.commands, [command]);
    let refused = Engine::Sim.check(&scenario).unwrap_err();
    assert!(!refused.is_of_machine && refused.message.contains("'cross' is a command"));
    assert!(refused.message.contains("--on netns"), "{refused}");
    assert_eq!(Engine::Netns.check(&scenario), Ok(()));
}
