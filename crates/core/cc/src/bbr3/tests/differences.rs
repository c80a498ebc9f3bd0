//! A deviation changes only what it should: it has no effect before the situation it is meant for.
//! Two runs that differ in one deviation are compared event by event, over the controller's entire
//! state.

extern crate std;

use std::format;
use std::string::String;
use std::vec::Vec;

use super::script::Script;
use super::*;
use crate::bbr3::ack_aggregation::AckArrival;
use crate::bbr3::deviations::Deviation;

const SWITCHES: [Deviation; 10] = [
    Deviation::AckFlight,
    Deviation::LossSample,
    Deviation::UndoPerEpisode,
    Deviation::PacingFromFirstRtt,
    Deviation::SkipInvalid,
    Deviation::ProbeRepair,
    Deviation::BoundExtraAcked,
    Deviation::DrainThreeRounds,
    Deviation::AdvanceEveryCycle,
    Deviation::InflightBeforeAck,
];

/// The controller's entire state, without its deviations.
fn inside(bbr: &Bbr3) -> String {
    format!("{:?}", Bbr3 { deviations: Deviations::ALL, ..bbr.clone() })
}

/// 8 s at 10 Mbit/s and 40 ms (RTT known from the handshake). The BDP is 34 packets, so a single
/// loss exceeds 2 %.
fn history(buffer_millibdp: u64, loss_ppm: u64, deviations: Deviations) -> Vec<String> {
    let settings = Settings { initial_rtt: Some(ms(40)), ..settings() };
    let path = Path::new(Rate::from_mbit(10), ms(40), buffer_millibdp);
    let mut flow = Loop::new(Bbr3::with(&settings, Profile::V3, deviations), path, 1);
    flow.path.loss_ppm = loss_ppm;
    let mut history = Vec::new();
    flow.run(secs(8), |flow| history.push(inside(&flow.cc)));
    assert!(history.len() > 10_000);
    history
}

#[test]
fn no_deviation_has_an_effect_on_a_clean_path() {
    let cured = history(2_000, 0, Deviations::ALL);
    assert!(
        cured.iter().any(|event| event.contains("state: ProbeRtt")),
        "the run covers a whole cycle"
    );
    for deviation in SWITCHES {
        let literal = history(2_000, 0, Deviations::ALL.without(deviation));
        assert!(cured == literal, "{deviation:?}");
    }
}

#[test]
fn deviations_unrelated_to_loss_have_no_effect_on_a_lossy_path() {
    let cured = history(500, 5_000, Deviations::ALL);
    assert!(cured.iter().any(|event| event.contains("is_loss_in_round: true")));
    for deviation in [
        Deviation::PacingFromFirstRtt,
        Deviation::SkipInvalid,
        Deviation::ProbeRepair,
        Deviation::BoundExtraAcked,
        Deviation::DrainThreeRounds,
    ] {
        let literal = history(500, 5_000, Deviations::ALL.without(deviation));
        assert!(cured == literal, "{deviation:?}");
    }
}

/// Two runs, with and without a deviation, identical so far.
struct Pair {
    cured: Loop<Bbr3>,
    literal: Loop<Bbr3>,
}

impl Pair {
    fn new(deviation: Deviation, flow: impl Fn(Deviations) -> Loop<Bbr3>) -> Self {
        let literal = Deviations::ALL.without(deviation);
        Self { cured: flow(Deviations::ALL), literal: flow(literal) }
    }

    fn differ(&self) -> bool {
        inside(&self.cured.cc) != inside(&self.literal.cc)
    }

    fn both(&mut self, mut act: impl FnMut(&mut Loop<Bbr3>)) -> &mut Self {
        act(&mut self.cured);
        act(&mut self.literal);
        self
    }

    fn reach(&mut self, state: State) -> &mut Self {
        self.both(|flow| flow.reach(state));
        assert!(!self.differ(), "before {state:?}");
        self
    }

    /// Runs until the first event after which the two differ, and returns the controller before
    /// that event.
    fn until_they_differ(&mut self) -> Bbr3 {
        for _ in 0..200_000 {
            let before = self.cured.cc.clone();
            let far = self.cured.now + TimeDelta::from_secs(60);
            self.both(|flow| {
                flow.run_until(far, |_| true);
            });
            assert_eq!(self.cured.now, self.literal.now);
            if self.differ() {
                return before;
            }
        }
        panic!("they never differ");
    }

    fn states(&self) -> (State, State) {
        (self.cured.cc.state, self.literal.cc.state)
    }
}

#[test]
fn a_first_differs_when_loss_should_end_startup() {
    let mut pair = Pair::new(Deviation::AckFlight, |deviations| flow(100, 100, deviations));
    let before = pair.until_they_differ();
    assert!(before.signals.is_loss_in_round && !before.full_pipe.reached());
    assert_eq!(pair.states(), (State::Drain, State::Startup));
}

/// Every ACK of this script also declares a loss. The first ACK of a round reports the plateau.
#[test]
fn b_first_differs_at_an_ack_that_declares_a_loss_and_begins_a_round() {
    let script = |deviations| {
        let mut script = Script::new(deviations);
        deviations::probe_without_growth(&mut script);
        let mut history = Vec::new();
        for _ in 0..4 {
            script.wait(ms(40)).ack_and_lose(99, &[false]).send_limited().send(99);
            history.push((inside(&script.bbr), script.bbr.round.started()));
        }
        history
    };
    let cured = script(Deviations::ALL);
    let literal = script(Deviations::ALL.without(Deviation::LossSample));
    let differs = cured.iter().zip(&literal).position(|(cured, literal)| cured.0 != literal.0);
    assert_eq!(differs, cured.iter().position(|(_, started)| *started));
    assert!(differs.is_some());
}

#[test]
fn h_first_differs_at_a_second_round_of_loss_in_an_episode() {
    let mut pair = Pair::new(Deviation::UndoPerEpisode, |deviations| flow(100, 400, deviations));
    let before = pair.until_they_differ();
    assert!(before.recovery.is_active() && !before.signals.is_loss_in_round);
    assert!(pair.cured.cc.recovery.is_active() && pair.cured.cc.signals.is_loss_in_round);
}

#[test]
fn i_first_differs_at_the_first_rtt_sample() {
    let flow = |deviations| flow(10, 2_000, deviations);
    let mut pair = Pair::new(Deviation::PacingFromFirstRtt, flow);
    let before = pair.until_they_differ();
    assert!(before.min_rtt.get().is_none() && pair.cured.cc.min_rtt.get().is_some());
    assert!(pair.cured.cc.pacing_rate < pair.literal.cc.pacing_rate);
}

#[test]
fn j_first_differs_at_a_sample_without_a_rate() {
    let script = |deviations| {
        let mut script = Script::new(deviations);
        let mut history = Vec::new();
        script.send(10).wait(ms(40)).ack(10).send(10).wait(ms(40)).ack(10);
        history.push(inside(&script.bbr));
        script.measures_rtt = false;
        script.send(1).wait(ms(1)).ack(1);
        history.push(inside(&script.bbr));
        history
    };
    let cured = script(Deviations::ALL);
    let literal = script(Deviations::ALL.without(Deviation::SkipInvalid));
    assert!(cured[0] == literal[0] && cured[1] != literal[1]);
}

#[test]
fn k_first_differs_at_the_ack_that_reports_a_repaired_loss() {
    let mut pair = Pair::new(Deviation::ProbeRepair, |deviations| flow(10, 2_000, deviations));
    pair.reach(State::ProbeBwUp).both(|flow| flow.repaired = true);
    pair.until_they_differ();
    assert!(!pair.cured.repaired && !pair.literal.repaired, "it has just been reported");
    assert_eq!(pair.states(), (State::ProbeBwDown, State::ProbeBwUp));
}

#[test]
fn k_first_differs_when_aggregation_exceeds_100_ms() {
    let mut pair = Pair::new(Deviation::BoundExtraAcked, |deviations| flow(10, 2_000, deviations));
    pair.reach(State::ProbeBwCruise).both(|flow| {
        flow.cc.aggregation.update(AckArrival {
            now: flow.now,
            newly_acked: 300_000,
            bw: flow.cc.bw,
            cwnd: u64::MAX,
            round: flow.cc.round.count(),
            window: 10,
        });
    });
    let bound = pair.cured.cc.bw.bytes_in(ms(100));
    assert!(pair.cured.cc.aggregation.extra_acked() > bound);
    pair.until_they_differ();
    // The window grows with the bytes acknowledged up to the bound; only then do the runs differ.
    let cured = &pair.cured.cc;
    assert_eq!(cured.cwnd, cured.max_inflight());
    assert!(pair.literal.cc.cwnd > cured.cwnd);
}

#[test]
fn m_first_differs_after_three_rounds_of_drain() {
    let mut pair =
        Pair::new(Deviation::DrainThreeRounds, |deviations| flow(100, 2_000, deviations));
    pair.reach(State::Drain);
    let round = pair.cured.cc.round.count();
    pair.both(|flow| flow.path.steps = std::vec![(flow.now, Rate::from_mbit(10))]);
    pair.until_they_differ();
    assert_eq!(pair.states(), (State::ProbeBwDown, State::Drain));
    assert_eq!(pair.literal.cc.round.count() - round, 3);
}

#[test]
fn n_first_differs_on_exit_from_a_probe_rtt_that_cut_a_probe_short() {
    let mut pair =
        Pair::new(Deviation::AdvanceEveryCycle, |deviations| flow(100, 2_000, deviations));
    pair.reach(State::ProbeRtt).reach(State::ProbeBwUp);
    pair.both(|flow| flow.cc.min_rtt.schedule_probe(Time::ZERO));
    let before = pair.until_they_differ();
    assert_eq!(before.state, State::ProbeRtt);
    assert_eq!(pair.states(), (State::ProbeBwCruise, State::ProbeBwCruise));
}

#[test]
fn o_first_differs_when_a_cautious_probe_reaches_the_bound() {
    let mut pair =
        Pair::new(Deviation::InflightBeforeAck, |deviations| flow(100, 2_000, deviations));
    pair.reach(State::ProbeBwUp).both(|flow| flow.path.loss_ppm = 100_000);
    pair.reach(State::ProbeBwDown).both(|flow| {
        flow.path.loss_ppm = 0;
        flow.cc.min_rtt.schedule_probe(flow.now); // no ProbeRTT meanwhile
    });
    let before = pair.until_they_differ();
    assert!(before.cycle.prev_probe_too_high);
    assert_eq!(pair.states(), (State::ProbeBwDown, State::ProbeBwUp));
}
