//! BBRv1's states over a FIFO link of 40 ms.

use super::std::vec;
use super::std::vec::Vec;

use uncork_units::{Rate, Ratio, Time, TimeDelta};

use crate::bbr1::ack_aggregation::AckBurst;
use crate::bbr1::{Bbr1, Mode, params};
use crate::link::{Loop, MSS, Path};
use crate::{Controller, Settings};

const RTT: TimeDelta = TimeDelta::from_millis(40);
const MSS_BYTES: u64 = MSS as u64;

fn settings(initial_rtt: Option<TimeDelta>) -> Settings {
    let initial_window = 10 * MSS_BYTES;
    Settings { initial_window, initial_rtt, ..Settings::new(MSS, 1, Time::ZERO) }
}

/// A flow over `mbit` with a buffer of two BDP, enough for Startup not to overflow it.
fn flow(mbit: u64) -> Loop<Bbr1> {
    flow_over(mbit, RTT)
}

fn flow_over(mbit: u64, rtt: TimeDelta) -> Loop<Bbr1> {
    let path = Path::new(Rate::from_mbit(mbit), rtt, 2_200);
    Loop::new(Bbr1::new(&settings(Some(rtt))), path, 1)
}

fn secs(n: u64) -> TimeDelta {
    TimeDelta::from_secs(n)
}

fn ms(n: u64) -> TimeDelta {
    TimeDelta::from_millis(n)
}

/// Whether `rate` is within one percent of `of`.
fn is_close(rate: Rate, of: Rate) -> bool {
    rate.bytes_per_sec().abs_diff(of.bytes_per_sec()) * 100 <= of.bytes_per_sec()
}

impl Loop<Bbr1> {
    fn run_for(&mut self, span: TimeDelta) {
        self.run(self.now + span, |_| {});
    }

    fn reach(&mut self, what: impl FnMut(&Self) -> bool) {
        assert!(self.run_until(self.now + secs(60), what), "not within a minute");
    }

    fn reach_mode(&mut self, mode: Mode) {
        self.reach(|flow| flow.cc.mode == mode);
    }

    fn cwnd(&self) -> u64 {
        self.cc.control().cwnd
    }

    fn pacing_rate(&self) -> Rate {
        self.cc.control().pacing_rate.expect("BBR paces")
    }

    /// The application writes two more packets and then stops.
    fn run_dry(&mut self) {
        self.limit = self.stats.acked_bytes + self.in_flight() + 2 * MSS_BYTES;
    }

    /// Pacing gain and duration of the next `n` phases. The phase already in progress is skipped.
    fn phases(&mut self, n: usize) -> Vec<(Ratio, TimeDelta)> {
        let mut changes = vec![(self.cc.pacing_gain(), self.now)];
        self.reach(|flow| {
            let gain = flow.cc.pacing_gain();
            if changes.last().is_some_and(|(last, _)| *last != gain) {
                changes.push((gain, flow.now));
            }
            changes.len() == n + 2
        });
        changes.windows(2).skip(1).map(|pair| (pair[0].0, pair[1].1.since(pair[0].1))).collect()
    }
}

/// 10 packets per 40 ms at 2.885, less a margin of 1 %.
#[test]
fn paces_the_initial_window_over_the_handshake_rtt() {
    let bbr = Bbr1::new(&settings(Some(RTT)));
    let rate = bbr.control().pacing_rate.expect("BBR paces").bytes_per_sec();
    assert_eq!(rate, 10 * MSS_BYTES * 25 * 2_885 / 1_000 * 99 / 100);
}

#[test]
fn first_rtt_sample_replaces_the_nominal_pacing_rate() {
    let path = Path::new(Rate::from_mbit(100), RTT, 2_000);
    let mut flow = Loop::new(Bbr1::new(&settings(None)), path, 1);
    let made_up = flow.pacing_rate();
    assert_eq!(made_up.bytes_per_sec(), 10 * MSS_BYTES * 1_000 * 2_885 / 1_000 * 99 / 100);
    flow.reach(|flow| flow.stats.acked_bytes > 0);
    let measured = made_up.scaled(Ratio::new(1, 40));
    assert!(flow.pacing_rate() <= measured.scaled(Ratio::new(101, 100)));
    assert!(flow.pacing_rate() >= measured.scaled(Ratio::new(99, 100)));
}

#[test]
fn startup_ends_three_rounds_after_the_bandwidth_stops_growing() {
    for mbit in [10, 100, 1_000] {
        let mut flow = flow(mbit);
        let link = flow.path.rate;
        let last_growth = link.scaled(Ratio::new(4, 5));
        flow.reach(|flow| flow.cc.max_bw() > last_growth);
        let plateau = flow.cc.round.count();
        flow.reach_mode(Mode::Drain);
        let rounds = flow.cc.round.count() - plateau;
        assert!((3..=4).contains(&rounds), "{mbit} Mbit/s: {rounds} rounds");
        assert!(is_close(flow.cc.max_bw(), link), "{mbit} Mbit/s: {:?}", flow.cc.max_bw());
        assert_eq!(flow.stats.lost, 0);
    }
}

#[test]
fn startup_never_slows_down() {
    let mut flow = flow(100);
    let mut fastest = flow.pacing_rate();
    flow.reach(|flow| {
        let is_startup = flow.cc.mode == Mode::Startup;
        assert!(!is_startup || flow.pacing_rate() >= fastest);
        fastest = fastest.max(flow.pacing_rate());
        !is_startup
    });
    assert!(fastest > flow.path.rate.scaled(Ratio::new(28, 10)));
}

#[test]
fn drain_empties_the_queue_within_a_few_round_trips() {
    for mbit in [10, 100, 1_000] {
        let mut flow = flow(mbit);
        flow.reach_mode(Mode::Drain);
        let entered = flow.now;
        assert!(flow.in_flight() > 2 * flow.path.bdp(), "{mbit} Mbit/s");
        flow.reach_mode(Mode::ProbeBw);
        assert!(flow.now.since(entered) <= RTT.times(5), "{mbit} Mbit/s");
        // The target allows for three quanta. Three more arrive while the pacer, at a gain of 1/3,
        // waits to send the next.
        let left = flow.in_flight().saturating_sub(flow.path.bdp());
        assert!(left <= 6 * flow.cc.send_quantum() + 2 * MSS_BYTES, "{mbit} Mbit/s: {left} bytes");
    }
}

#[test]
fn gain_cycle_is_up_down_and_six_round_trips_of_cruise() {
    let mut flow = flow(100);
    flow.reach_mode(Mode::ProbeBw);
    flow.run_for(secs(1));
    flow.reach(|flow| flow.cc.pacing_gain() == params::PROBE_UP_GAIN);
    flow.reach(|flow| flow.cc.pacing_gain() == Ratio::ONE);
    let phases = flow.phases(6);
    for cycle in phases.chunks(3) {
        let [(up, up_time), (down, down_time), (level, level_time)] = cycle else {
            panic!("three phases of different gain");
        };
        assert_eq!((*up, *down, *level), (Ratio::new(5, 4), Ratio::new(3, 4), Ratio::ONE));
        assert!((RTT..RTT.times(3)).contains(up_time), "{up_time:?}");
        assert!(*down_time <= ms(50), "{down_time:?}");
        assert!((RTT.times(6)..RTT.times(7)).contains(level_time), "{level_time:?}");
    }
}

#[test]
fn cycle_fills_the_link_and_keeps_the_queue_below_a_quarter_bdp() {
    let mut flow = flow(100);
    flow.reach_mode(Mode::ProbeBw);
    flow.run_for(secs(1));
    let (from, acked) = (flow.now, flow.stats.acked_bytes);
    let mut longest = TimeDelta::ZERO;
    flow.run(from + secs(5), |flow| longest = longest.max(flow.queue_delay()));
    let rate = Rate::of(flow.stats.acked_bytes - acked, secs(5));
    assert!(rate >= flow.path.rate.scaled(Ratio::new(98, 100)), "{rate:?}");
    assert!(longest <= ms(15), "{longest:?}");
}

#[test]
fn doubled_bandwidth_is_found_in_four_cycles() {
    let mut flow = flow(50);
    flow.reach_mode(Mode::ProbeBw);
    flow.run_for(secs(1));
    flow.path.rate = Rate::from_mbit(100);
    let stepped = flow.now;
    flow.reach(|flow| is_close(flow.cc.max_bw(), Rate::from_mbit(100)));
    assert!(flow.now.since(stepped) <= RTT.times(5 * 9), "{:?}", flow.now.since(stepped));
}

#[test]
fn halved_bandwidth_is_accepted_after_ten_rounds() {
    let mut flow = flow(100);
    flow.reach_mode(Mode::ProbeBw);
    flow.run_for(secs(1));
    flow.path.rate = Rate::from_mbit(50);
    let stepped = flow.cc.round.count();
    flow.reach(|flow| flow.cc.max_bw() < Rate::from_mbit(51));
    let rounds = flow.cc.round.count() - stepped;
    assert!((10..=13).contains(&rounds), "{rounds} rounds");
}

/// The RTT equals min_rtt in every cycle, but that does not postpone ProbeRTT.
#[test]
fn probe_rtt_comes_every_ten_seconds_and_holds_four_packets_for_200_ms() {
    let mut flow = flow(100);
    flow.reach_mode(Mode::ProbeBw);
    let max_bw = flow.cc.max_bw();
    flow.reach_mode(Mode::ProbeRtt);
    let (entered, before) = (flow.now, flow.cc.prior_cwnd);
    assert!((secs(10)..secs(11)).contains(&entered.since(Time::ZERO)), "{entered:?}");
    assert_eq!(flow.cwnd(), 4 * MSS_BYTES);
    flow.reach(|flow| flow.in_flight() <= 4 * MSS_BYTES);
    let low = flow.now;
    flow.reach(|flow| flow.cc.mode != Mode::ProbeRtt);
    assert_eq!(flow.cc.mode, Mode::ProbeBw);
    assert!((ms(200)..ms(200) + RTT.times(2)).contains(&flow.now.since(low)));
    assert!(flow.cwnd() >= before);
    assert!(
        flow.cc.max_bw() >= max_bw.scaled(Ratio::new(99, 100)),
        "four packets are not a bandwidth sample"
    );
    let left = flow.now;
    flow.reach_mode(Mode::ProbeRtt);
    assert!((secs(10)..secs(11)).contains(&flow.now.since(left)));
}

/// Twenty round trips of 10 ms with four packets each would expire max_bw if they counted.
#[test]
fn probe_rtt_lasts_200_ms_or_a_round_and_keeps_max_bw() {
    for (rtt, least) in [(ms(10), ms(200)), (ms(400), ms(400))] {
        let mut flow = flow_over(20, rtt);
        flow.reach_mode(Mode::ProbeRtt);
        let max_bw = flow.cc.max_bw();
        flow.reach(|flow| flow.in_flight() <= 4 * MSS_BYTES);
        let low = flow.now;
        flow.reach(|flow| flow.cc.mode != Mode::ProbeRtt);
        let lasted = flow.now.since(low);
        assert!((least..least + rtt.times(3)).contains(&lasted), "{rtt:?}: {lasted:?}");
        assert!(is_close(flow.cc.max_bw(), max_bw), "{rtt:?}: {:?}", flow.cc.max_bw());
    }
}

#[test]
fn probe_rtt_in_startup_returns_to_startup() {
    let mut flow = flow(100);
    flow.limit = 0;
    let mut states = Vec::new();
    // Ten packets every 200 ms: application-limited, so the pipe never counts as full.
    for _ in 0..60 {
        flow.write(10 * MSS_BYTES);
        let end = flow.now + ms(200);
        flow.run(end, |flow| {
            if states.last() != Some(&flow.cc.mode) {
                states.push(flow.cc.mode);
            }
        });
    }
    assert!(states.iter().all(|mode| matches!(mode, Mode::Startup | Mode::ProbeRtt)), "{states:?}");
    assert_eq!(states.last(), Some(&Mode::Startup));
}

#[test]
fn min_rtt_follows_an_increased_path_delay() {
    let mut flow = flow(20);
    flow.reach_mode(Mode::ProbeBw);
    flow.path.rtt = RTT.times(2);
    flow.run_for(secs(5));
    assert!(flow.cc.min_rtt.get().is_some_and(|rtt| rtt < ms(42)));
    flow.run_for(secs(8));
    assert!(flow.cc.min_rtt.get().is_some_and(|rtt| (ms(80)..ms(82)).contains(&rtt)));
}

#[test]
fn restart_from_idle_paces_at_the_estimated_bandwidth() {
    let mut flow = flow(100);
    flow.reach_mode(Mode::ProbeBw);
    flow.run_for(secs(1));
    flow.reach(|flow| flow.cc.pacing_gain() == params::PROBE_UP_GAIN);
    flow.run_dry();
    flow.run_for(secs(15));
    assert!(flow.pacing_rate() > flow.path.rate.scaled(Ratio::new(12, 10)));
    flow.write(1_000 * MSS_BYTES);
    assert_eq!(flow.pacing_rate(), flow.cc.max_bw().scaled(params::PACING_MARGIN));
    // The queue drained while idle: no ProbeRTT is needed, although min_rtt has expired.
    flow.run(flow.now + ms(300), |flow| assert_eq!(flow.cc.mode, Mode::ProbeBw));
}

/// The window is two BDP plus the ACK-aggregation allowance of at most 100 ms.
#[test]
fn ack_bursts_grow_the_window_by_at_most_100_ms() {
    let mut flow = flow(100);
    flow.reach_mode(Mode::ProbeBw);
    flow.run_for(secs(1));
    let bw = flow.cc.max_bw();
    let burst = AckBurst {
        acked: 1 << 30,
        round_started: false,
        bw,
        cwnd: u64::MAX,
        epoch_limit: u64::MAX,
    };
    flow.cc.aggregation.update(flow.now, burst);
    flow.run_for(ms(150));
    let wide = 2 * bw.bytes_in(RTT) + bw.bytes_in(ms(100));
    assert!((wide..wide + 35 * MSS_BYTES).contains(&flow.cwnd()), "{} of {wide}", flow.cwnd());
}

#[test]
fn application_limited_samples_do_not_lower_the_estimate() {
    let mut flow = flow(100);
    flow.reach_mode(Mode::ProbeBw);
    flow.run_for(secs(1));
    let max_bw = flow.cc.max_bw();
    flow.run_dry();
    flow.run_for(ms(500));
    let rounds = flow.cc.round.count();
    for _ in 0..40 {
        flow.write(2 * MSS_BYTES);
        flow.run_for(ms(100));
    }
    assert!(flow.cc.round.count() >= rounds + 30);
    assert_eq!(flow.cc.max_bw(), max_bw);
}

#[test]
fn one_percent_of_random_loss_costs_one_percent() {
    let mut flow = flow(100);
    flow.path.loss_ppm = 10_000;
    flow.run_for(secs(2));
    let acked = flow.stats.acked_bytes;
    flow.run_for(secs(7));
    let rate = Rate::of(flow.stats.acked_bytes - acked, secs(7));
    assert!(rate >= flow.path.rate.scaled(Ratio::new(96, 100)), "{rate:?}");
}
