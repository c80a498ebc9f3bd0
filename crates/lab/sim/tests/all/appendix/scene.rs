//! One BBRv3 flow on a path that a test observes and changes.

use uncork_path::{Buffer, LossPosition, LossSpec, PathSpec};
use uncork_sim::{FlowSpec, FlowView, MSS_BYTES, PACKET_BYTES, RunSpec, Simulation, Workload};
use uncork_units::{Rate, Ratio, Time, TimeDelta};

use crate::appendix::grid::{MIN_BUFFER, Point};

/// Longer than any case.
const END: Time = Time::from_nanos(100_000 * 1_000_000_000);

pub(crate) struct Scene<'a> {
    simulation: Simulation<'a>,
    pub(crate) point: Point,
    writer: Option<Writer>,
}

/// An application that writes on a schedule.
#[derive(Clone, Copy)]
struct Writer {
    next: Time,
    every: TimeDelta,
    segments: u64,
}

impl<'a> Scene<'a> {
    /// A path without loss, with a buffer in thousandths of the BDP.
    pub(crate) fn spec(point: &Point, buffer: u64) -> RunSpec {
        let bdp = point.rate.bytes_in(point.rtt);
        let packets = bdp.saturating_mul(buffer) / 1_000 / u64::from(PACKET_BYTES);
        let bbr3 = "bbr3".parse().expect("a controller");
        RunSpec::over(
            PathSpec {
                loss_position: LossPosition::Before,
                ..PathSpec::new(point.rate, point.rtt, Buffer::Packets(packets.max(MIN_BUFFER)))
            },
            vec![FlowSpec::new(bbr3, Workload::Until(END))],
            1,
            END,
        )
    }

    /// The run up to the end of the handshake.
    pub(crate) fn begin(spec: &'a RunSpec, point: Point) -> Result<Self, String> {
        let mut simulation = Simulation::new(spec);
        while simulation.view(0).is_none() {
            if !simulation.step() {
                return Err("no connection".into());
            }
        }
        Ok(Self { simulation, point, writer: None })
    }

    pub(crate) fn now(&self) -> Time {
        self.simulation.now()
    }

    pub(crate) fn view(&self) -> FlowView {
        self.simulation.view(0).expect("the connection is established")
    }

    /// Runs until `done`, for at most `within`.
    pub(crate) fn run_until(
        &mut self,
        within: TimeDelta,
        mut done: impl FnMut(&FlowView) -> bool,
    ) -> Option<FlowView> {
        let until = self.now() + within;
        while self.advance(until) {
            let view = self.view();
            if done(&view) {
                return Some(view);
            }
        }
        None
    }

    pub(crate) fn run_for(&mut self, span: TimeDelta) -> FlowView {
        self.run_until(span, |_| false);
        self.view()
    }

    /// Time limit for events that should happen without intervention.
    pub(crate) fn patience(&self) -> TimeDelta {
        TimeDelta::from_secs(40) + self.point.round().times(40)
    }

    /// Runs until the flow enters `state`.
    pub(crate) fn reach(&mut self, state: &str) -> Result<FlowView, String> {
        let within = self.patience();
        let reached = self.run_until(within, |view| view.snapshot.state == state);
        reached.ok_or_else(|| format!("never in {state}, but in {}", self.view().snapshot.state))
    }

    /// Runs until the flow leaves the state it is in.
    pub(crate) fn leave(&mut self) -> Result<FlowView, String> {
        let state = self.view().snapshot.state;
        let within = self.patience();
        let left = self.run_until(within, |view| view.snapshot.state != state);
        left.ok_or_else(|| format!("forever in {state}"))
    }

    /// Runs until Startup is over; there may be a ProbeRTT in between.
    pub(crate) fn leave_startup(&mut self) -> Result<FlowView, String> {
        let within = self.patience();
        let left = self.run_until(within, |view| !in_startup(view));
        left.ok_or_else(|| "forever in Startup".into())
    }

    /// Runs until Startup is over and its losses are repaired, because a flow with retransmissions
    /// waiting is not application-limited.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        self.leave_startup()?;
        let Point { rtt, .. } = self.point;
        self.run_for(TimeDelta::from_secs(1) + rtt.times(5) + self.point.packet_time().times(60));
        Ok(())
    }

    /// Handles the next event or the application's next write. Returns false at `until`.
    fn advance(&mut self, until: Time) -> bool {
        let Some(writer) = self.writer.filter(|writer| writer.next <= until) else {
            return self.simulation.step_until(until);
        };
        if !self.simulation.step_until(writer.next) {
            self.simulation.write(0, writer.segments);
            self.writer = Some(Writer { next: writer.next + writer.every, ..writer });
        }
        true
    }

    /// From now on the application writes at `share` of the link's rate: at least a segment at a
    /// time, and eight times per round trip if that is enough for a segment.
    pub(crate) fn trickle(&mut self, share: Ratio) {
        let rate = self.point.payload_rate().scaled(share);
        let segment = u64::from(MSS_BYTES);
        let every = self.point.rtt.divided_by(8).max(rate.time_for(segment));
        let segments = (rate.bytes_in(every) / segment).max(1);
        self.simulation.pause(0);
        self.writer = Some(Writer { next: self.now(), every, segments });
    }

    /// The application pauses.
    pub(crate) fn pause(&mut self) {
        self.writer = None;
        self.simulation.pause(0);
    }

    /// The application has unlimited data to send.
    pub(crate) fn resume(&mut self) {
        self.writer = None;
        self.simulation.write(0, u64::MAX);
    }

    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.simulation.set_rate(rate);
    }

    /// Loses every n-th packet; none if `n` is 0.
    pub(crate) fn lose_every(&mut self, n: u64) {
        self.simulation.set_loss(LossSpec::EveryNth(n));
    }

    pub(crate) fn aggregate_acks(&mut self, slot: TimeDelta) {
        self.simulation.aggregate_acks(slot);
    }

    /// Goodput over `span` in percent of the link's payload rate.
    pub(crate) fn utilisation(&mut self, span: TimeDelta) -> f64 {
        let before = self.view().delivered_bytes;
        let after = self.run_for(span).delivered_bytes;
        let capacity = self.point.payload_rate().bytes_in(span);
        (after - before) as f64 * 100.0 / capacity as f64
    }
}

/// Startup, or a ProbeRTT during it.
pub(crate) fn in_startup(view: &FlowView) -> bool {
    ["Startup", "ProbeRTT"].contains(&view.snapshot.state)
}

/// The states after a probe. DOWN may end with the ACK that began it: to CRUISE if little is in
/// flight, or to REFILL if the BDP is so small that one or two rounds between probes suffice
/// (§5.3.3.8.3).
pub(crate) const DOWN: [&str; 3] = ["ProbeBW_DOWN", "ProbeBW_CRUISE", "ProbeBW_REFILL"];

/// Fails with the text unless `condition` holds.
pub(crate) fn ensure(condition: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(text()) }
}

/// The flow's estimate of the BDP: BBR.bdp.
pub(crate) fn bdp(view: &FlowView) -> u64 {
    let snapshot = &view.snapshot;
    let (Some(bw), Some(min_rtt)) = (snapshot.bw, snapshot.min_rtt) else { return 0 };
    bw.bytes_in(min_rtt)
}

/// Inflight(1.0), plus what one event may put in flight after the check.
pub(crate) fn one_bdp(view: &FlowView) -> u64 {
    let floor = 4 * u64::from(MSS_BYTES);
    bdp(view).max(view.control.send_quantum).max(floor) + view.control.send_quantum
}

/// BBR.max_bw in percent of `rate`.
pub(crate) fn percent(view: &FlowView, rate: Rate) -> f64 {
    let max_bw = view.snapshot.max_bw.unwrap_or(Rate::ZERO);
    max_bw.bytes_per_sec() as f64 * 100.0 / rate.bytes_per_sec() as f64
}

/// Checks that max_bw is within two percent.
pub(crate) fn ensure_max_bw(view: &FlowView, rate: Rate) -> Result<(), String> {
    let percent = percent(view, rate);
    ensure((98.0..=102.0).contains(&percent), || format!("max_bw is {percent:.1} % of the rate"))
}
