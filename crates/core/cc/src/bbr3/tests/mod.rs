//! Tests of the whole state machine: scripted events, and closed loops over a simple link.

extern crate std;

mod ack_frequency;
mod appendix;
mod control;
mod cycle;
mod deviations;
mod differences;
mod ecn;
mod events;
mod profile;
mod properties;
mod random_loss;
mod rtt_fair;
mod rules;
mod script;

use uncork_units::{Rate, Time, TimeDelta};

use super::Bbr3;
use super::deviations::Deviations;
use super::profile::Profile;
use super::state::State;
use crate::Settings;
use crate::link::{Loop, MSS, Path};

fn settings() -> Settings {
    Settings {
        mss: MSS,
        initial_window: 10 * u64::from(MSS),
        initial_rtt: None,
        paced: false,
        segmentation_offload: false,
        scalable_marks: false,
        clock_granularity: TimeDelta::ZERO,
        inherited: None,
        seed: 1,
        now: Time::ZERO,
    }
}

fn bbr(deviations: Deviations) -> Bbr3 {
    Bbr3::with(&settings(), Profile::V3, deviations)
}

fn secs(n: u64) -> Time {
    Time::ZERO + TimeDelta::from_secs(n)
}

fn ms(n: u64) -> TimeDelta {
    TimeDelta::from_millis(n)
}

/// A flow over a FIFO link of `mbit` and 40 ms, with a buffer in thousandths of the BDP.
fn flow(mbit: u64, buffer_millibdp: u64, deviations: Deviations) -> Loop<Bbr3> {
    let path = Path::new(Rate::from_mbit(mbit), ms(40), buffer_millibdp);
    Loop::new(bbr(deviations), path, 1)
}

impl Loop<Bbr3> {
    /// Runs until the flow enters `state`; fails after a minute.
    fn reach(&mut self, state: State) {
        let until = self.now + TimeDelta::from_secs(60);
        assert!(self.run_until(until, |flow| flow.cc.state == state), "never in {state:?}");
    }

    fn run_for(&mut self, span: TimeDelta) {
        self.run(self.now + span, |_| {});
    }

    fn max_bw(&self) -> u64 {
        self.cc.max_bw.get().bytes_per_sec()
    }
}

/// Whether `value` is within `percent` of `of`.
fn is_close(value: u64, of: u64, percent: u64) -> bool {
    value.abs_diff(of) * 100 <= of * percent
}
