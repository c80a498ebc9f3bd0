//! What a wrong verdict costs, in steady state.

use uncork_cc::{Algorithm, CcSpec};
use uncork_path::Ecn;
use uncork_sim::{FlowSpec, RunSpec, Workload, run};
use uncork_units::{Time, TimeDelta};

use crate::l4s::access::AccessNetwork;

/// Long enough for several cycles of CUBIC on most networks.
const LENGTH: TimeDelta = TimeDelta::from_secs(40);

/// A classic network that is called one for L4S.
#[derive(Clone, Copy, Debug)]
pub struct ClassicCost {
    /// CUBIC's share next to a flow that begins with ECT(1) and has its own test.
    pub cubic_next_to_l4s: f64,
    /// CUBIC's share next to a flow that begins as the right verdict says.
    pub cubic_next_to_classic: f64,
}

/// A network for L4S that is called classic.
#[derive(Clone, Copy, Debug)]
pub struct L4sCost {
    /// Queueing delay of a flow that begins with ECT(1), in milliseconds: median and 95th percentile.
    pub l4s_ms: (f64, f64),
    /// Queueing delay of a flow that begins as the wrong verdict says.
    pub classic_ms: (f64, f64),
}

/// The share of a CUBIC flow with ECN, from its start to the end.
pub fn classic_cost(network: &AccessNetwork) -> ClassicCost {
    let share = |ecn| {
        let result =
            run(&spec(network, &[(Algorithm::Prague, ecn), (Algorithm::Cubic, Ecn::Ect0)]));
        let [own, cubic] = [0, 1].map(|flow| result.flows[flow].bytes_delivered as f64);
        cubic / (own + cubic)
    };
    ClassicCost { cubic_next_to_l4s: share(Ecn::Ect1), cubic_next_to_classic: share(Ecn::Ect0) }
}

/// The queueing delay of one flow alone.
pub fn l4s_cost(network: &AccessNetwork) -> L4sCost {
    let waited = |ecn| {
        let result = run(&spec(network, &[(Algorithm::Prague, ecn)]));
        let queue = result.flows[0].lab.and_then(|lab| lab.queue_ms);
        queue.map_or((0.0, 0.0), |queue| (queue.p50, queue.p95))
    };
    L4sCost { l4s_ms: waited(Ecn::Ect1), classic_ms: waited(Ecn::Ect0) }
}

fn spec(network: &AccessNetwork, flows: &[(Algorithm, Ecn)]) -> RunSpec {
    let end = Time::ZERO + LENGTH;
    let flow = |&(algorithm, ecn): &(Algorithm, Ecn)| FlowSpec {
        ecn,
        ..FlowSpec::new(CcSpec::new(algorithm), Workload::Until(end))
    };
    RunSpec::over(network.path.clone(), flows.iter().map(flow).collect(), network.seed, end)
}
