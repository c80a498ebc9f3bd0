//! Interventions during a run that depend on a flow's state.

use uncork_cc::ControllerSpec;
use uncork_path::LossSpec;
use uncork_units::{Rate, TimeDelta};

use crate::flow::Flow;
use crate::run::Simulation;

impl<S: ControllerSpec> Simulation<'_, S> {
    /// Sets the rate of the first path's own link from now on.
    pub fn set_rate(&mut self, rate: Rate) {
        self.network.set_rate(0, rate);
    }

    /// Replaces the random loss of all flows, including flows that start later.
    pub fn set_loss(&mut self, loss: LossSpec) {
        self.network.set_loss(loss);
    }

    /// Aggregates ACKs to the server to multiples of `slot` from now on; zero disables this.
    pub fn aggregate_acks(&mut self, slot: TimeDelta) {
        self.network.aggregate(slot);
    }

    /// Changes the controller of an established flow, which sends at once what it then allows.
    pub fn change_controller(&mut self, flow: u32, change: impl FnOnce(&mut S::Controller)) {
        if let Some(sender) = self.flows.get_mut(flow).and_then(Flow::sender_mut) {
            sender.change_controller(change);
        }
        self.pump(flow);
    }

    /// The application of an established [`crate::Workload::Until`] flow stops after one last
    /// segment; losses are still repaired.
    pub fn pause(&mut self, flow: u32) {
        if let Some(sender) = self.flows.get_mut(flow).and_then(Flow::sender_mut) {
            sender.pause();
        }
    }

    /// The application of a paused flow writes `segments` full segments; [`u64::MAX`] ends the pause.
    pub fn write(&mut self, flow: u32, segments: u64) {
        if let Some(sender) = self.flows.get_mut(flow).and_then(Flow::sender_mut) {
            sender.write(segments);
        }
        self.pump(flow);
    }
}

#[cfg(test)]
mod tests {
    use uncork_path::{Buffer, PathSpec};
    use uncork_units::Time;

    use super::*;
    use crate::{FlowSpec, FlowView, MSS_BYTES, RunSpec, Workload};

    /// One Reno flow over 20 ms and 12 Mbit/s, a packet per millisecond.
    fn spec() -> RunSpec {
        let end = Time::ZERO + TimeDelta::from_secs(100);
        let reno = "reno".parse().expect("a controller");
        RunSpec::over(
            PathSpec::new(Rate::from_mbit(12), TimeDelta::from_millis(20), Buffer::Packets(100)),
            vec![FlowSpec::new(reno, Workload::Until(end))],
            1,
            end,
        )
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(millis)
    }

    fn run_to(simulation: &mut Simulation<'_>, millis: u64) -> FlowView {
        while simulation.step_until(at(millis)) {}
        assert_eq!(simulation.now(), at(millis));
        simulation.view(0).expect("established")
    }

    #[test]
    fn paused_flow_sends_only_what_is_written() {
        let spec = spec();
        let mut simulation = Simulation::new(&spec);
        let begun = run_to(&mut simulation, 45);
        assert_eq!(begun.in_flight, 10 * u64::from(MSS_BYTES), "the initial window");
        simulation.pause(0);
        let paused = run_to(&mut simulation, 1000);
        let last = begun.in_flight + u64::from(MSS_BYTES);
        assert_eq!((paused.in_flight, paused.delivered_bytes), (0, last));
        simulation.write(0, 3);
        let resumed = run_to(&mut simulation, 2000);
        assert_eq!(resumed.delivered_bytes - paused.delivered_bytes, 3 * u64::from(MSS_BYTES));
    }

    #[test]
    fn changed_controller_sends_at_once_what_it_allows() {
        let spec = spec();
        let mut simulation = Simulation::new(&spec);
        let begun = run_to(&mut simulation, 45);
        let settings = uncork_cc::Settings::new(MSS_BYTES, 1, simulation.now());
        let bbr: uncork_cc::CcSpec = "bbr1".parse().expect("a controller");
        let bbr = bbr.build(&settings.with_initial_window(2 * begun.control.cwnd));
        simulation.change_controller(0, |controller| *controller = bbr);
        let changed = simulation.view(0).expect("established");
        assert_eq!(changed.control.cwnd, 2 * begun.control.cwnd);
        assert!(changed.in_flight > begun.in_flight);
        assert_eq!(changed.snapshot.state, "Startup");
        assert!(simulation.controller(0).is_some());
    }

    #[test]
    fn link_uses_its_new_rate_and_loss() {
        let spec = spec();
        let mut simulation = Simulation::new(&spec);
        let before = run_to(&mut simulation, 2000);
        simulation.set_rate(Rate::from_mbit(6));
        let after = run_to(&mut simulation, 4000);
        let packets = (after.delivered_bytes - before.delivered_bytes) / u64::from(MSS_BYTES);
        assert!((990..=1010).contains(&packets), "{packets} packets in 2 s");
        simulation.set_loss(LossSpec::EveryNth(1));
        let dead = run_to(&mut simulation, 10_000);
        assert!(dead.delivered_bytes - after.delivered_bytes <= 20 * u64::from(MSS_BYTES));
        assert!(dead.timeouts > 0);
    }

    #[test]
    fn aggregated_acks_release_whole_windows() {
        let spec = spec();
        let mut simulation = Simulation::new(&spec);
        simulation.aggregate_acks(TimeDelta::from_millis(50));
        let mut changes = Vec::new();
        let mut last = 0;
        while simulation.step_until(at(1000)) {
            let cwnd = simulation.view(0).map_or(0, |view| view.control.cwnd);
            if cwnd > last && last > 0 {
                changes.push(simulation.now());
            }
            last = cwnd;
        }
        assert!(changes.len() > 20);
        let in_slots = |time: &Time| time.as_nanos().is_multiple_of(50_000_000);
        assert!(changes.iter().all(in_slots), "{changes:?}");
    }
}
