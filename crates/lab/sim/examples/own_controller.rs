//! A custom controller and CUBIC share a path.

use uncork_cc::{
    AppState, CcSpec, Control, Controller, ControllerSpec, Either, Feedback, PathEvent, SentPacket,
    Settings, Snapshot, Timeout, Token,
};
use uncork_flow::FlowRecord;
use uncork_path::{Buffer, PathSpec};
use uncork_sim::{FlowSpec, RunSpec, Simulation, Workload};
use uncork_units::{Rate, Time, TimeDelta};

/// Scalable TCP: the window grows by 1 % of the bytes acknowledged and shrinks by 1/8 on a loss.
#[derive(Clone, Copy, Debug)]
struct Scalable(u64);

impl Controller for Scalable {
    fn on_sent(&mut self, now: Time, _: SentPacket, _: AppState) -> Token {
        Token::from_words([now.as_nanos(), 0, 0, 0, 0, 0])
    }
    fn on_feedback(&mut self, _: Time, feedback: &Feedback<'_>) {
        self.0 += feedback.acked_bytes() / 100;
        self.0 = if feedback.lost_bytes() > 0 { (self.0 * 7 / 8).max(3_000) } else { self.0 };
    }
    fn on_timeout(&mut self, _: Time, _: Timeout) {}
    fn on_path(&mut self, _: Time, _: PathEvent) {}
    fn control(&self) -> Control {
        Control::new(self.0)
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot::of_state("Scalable")
    }
}

impl ControllerSpec for Scalable {
    type Controller = Self;
    fn name(&self) -> impl std::fmt::Display {
        "scalable"
    }
    fn build(&self, settings: &Settings) -> Self {
        Self(settings.initial_window)
    }
}

/// One bulk flow of each over 50 Mbit/s and 50 ms.
fn flows() -> Vec<FlowRecord> {
    let (rate, rtt) = (Rate::from_mbit(50), TimeDelta::from_millis(50));
    let end = Time::ZERO + TimeDelta::from_secs(60);
    let cubic: CcSpec = "cubic".parse().expect("a controller of uncork-cc");
    let flow = |cc| FlowSpec::new(cc, Workload::Until(end));
    let flows = [Either::A(Scalable(0)), Either::B(cubic)].map(flow).to_vec();
    let run = RunSpec::over(PathSpec::new(rate, rtt, Buffer::MilliBdp(1000)), flows, 1, end);
    Simulation::new(&run).run().flows
}

fn main() {
    for flow in flows() {
        let (mb, lost) = (flow.bytes_delivered / 1_000_000, flow.packets_lost);
        println!("{}: {mb} MB, {lost} packets lost", flow.cc);
    }
}

#[test]
fn custom_and_built_in_controllers_share_a_path() {
    let flows = flows();
    assert_eq!([&flows[0].cc, &flows[1].cc], ["scalable", "cubic"]);
    let sum: u64 = flows.iter().map(|flow| flow.bytes_delivered).sum();
    assert!(sum > 320_000_000 && flows.iter().all(|it| it.bytes_delivered > 1_000_000), "{sum}");
}
