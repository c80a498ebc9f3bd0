//! Samples on a coarse clock: its ticks are not much shorter than the round trip.
//!
//! An RTT of 300 µs reads 0 or 1 ms on a clock of 1 ms, and what the path delivered in one RTT seems to
//! have taken a whole tick. BBR would pace at that rate, deliver less, and measure less again. So with such
//! a clock a delivery rate covers at least [`MIN_TICKS`] ticks, and an RTT counts as one tick longer than
//! it reads: the true RTT may be that long.

use uncork_units::{Time, TimeDelta};

use crate::controller::Settings;
use crate::event::{Acked, Token};

/// Minimum number of ticks that a delivery rate covers. Its relative error is at most the inverse.
const MIN_TICKS: u64 = 8;
/// RTT samples of zero in a row after which the clock is known to be coarse. A host that takes one time
/// for a whole batch of packets may report a few.
const MAX_ZEROS: u8 = 8;
/// A kernel's clock counts nanoseconds, and its verifier all branches.
const MAY_BE_COARSE: bool = cfg!(not(target_arch = "bpf"));

/// The clock's tick, and the spans of time that samples cover because of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    /// Zero for a clock fine enough to measure each packet by itself.
    tick: TimeDelta,
    /// Shortest RTT above zero; a lower bound of an interval between sending and acknowledgement.
    min_rtt: TimeDelta,
    /// RTT samples of zero in a row.
    zeros: u8,
    /// The spans that began last and last but one.
    young: Span,
    old: Span,
}

/// The sampler's counts at the start of a span (the draft's per-packet state P).
#[derive(Clone, Copy, Debug)]
struct Span {
    /// C.first_send_time.
    first_send_time: Time,
    /// C.delivered_time.
    delivered_time: Time,
    /// C.delivered, and the top bit if the application limited the sender since then.
    delivered_and_limit: u64,
}

const APP_LIMITED: u64 = 1 << 63;

impl Span {
    fn beginning(now: Time) -> Self {
        Self { first_send_time: now, delivered_time: now, delivered_and_limit: 0 }
    }

    /// The flight before this packet.
    fn of(token: &Token) -> Self {
        let limit = if token.is_app_limited() { APP_LIMITED } else { 0 };
        Self {
            first_send_time: Time::ZERO + token.send_time.since(Time::ZERO + token.send_elapsed),
            delivered_time: token.delivered_time,
            delivered_and_limit: token.delivered.min(APP_LIMITED - 1) | limit,
        }
    }

    /// As far as a packet that was sent at `sent` and is delivered now.
    fn until(&self, sent: Time, now: Time) -> Covered {
        Covered {
            prior_delivered: self.delivered_and_limit & !APP_LIMITED,
            is_app_limited: self.delivered_and_limit & APP_LIMITED != 0,
            interval: sent.since(self.first_send_time).max(now.since(self.delivered_time)),
        }
    }
}

/// The span that a rate sample covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Covered {
    /// C.delivered when it began.
    pub(crate) prior_delivered: u64,
    /// Whether the application limited the sender in it.
    pub(crate) is_app_limited: bool,
    /// The longer of how long it took to send and to deliver.
    pub(crate) interval: TimeDelta,
}

impl Covered {
    /// The flight before the packet, as the draft samples it.
    //= bbr-06 4.1.1.2-3
    fn by(newest: &Token, now: Time) -> Self {
        Self {
            prior_delivered: newest.delivered,
            is_app_limited: newest.is_app_limited(),
            interval: newest.send_elapsed.max(now.since(newest.delivered_time)),
        }
    }
}

impl Ticks {
    pub(crate) fn new(settings: &Settings) -> Self {
        let measured = settings.initial_rtt.filter(|rtt| !rtt.is_zero());
        let span = Span::beginning(settings.now);
        Self {
            tick: settings.clock_granularity,
            min_rtt: measured.unwrap_or(TimeDelta::MAX),
            zeros: 0,
            young: span,
            old: span,
        }
    }

    /// The clock's tick; zero for a fine clock.
    pub(crate) fn tick(&self) -> TimeDelta {
        if MAY_BE_COARSE { self.tick } else { TimeDelta::ZERO }
    }

    /// The RTT that a sample stands for. One of zero alone says nothing, unless the packet's own times say
    /// more: a host may round its RTTs and not its times. Several in a row say that the shortest other RTT
    /// is a tick.
    pub(crate) fn rtt(
        &mut self,
        now: Time,
        latest: TimeDelta,
        newest: Option<&Acked>,
    ) -> Option<TimeDelta> {
        let latest = if latest.is_zero() && MAY_BE_COARSE {
            newest.map_or(TimeDelta::ZERO, |newest| now.since(newest.token.send_time))
        } else {
            latest
        };
        if latest.is_zero() {
            return self.learn_from_zero();
        }
        self.zeros = 0;
        self.min_rtt = self.min_rtt.min(latest);
        // Two times of a coarse clock are at least a tick apart.
        self.tick = self.tick().min(latest);
        Some(latest + self.tick())
    }

    fn learn_from_zero(&mut self) -> Option<TimeDelta> {
        if !MAY_BE_COARSE {
            return None;
        }
        self.zeros = self.zeros.saturating_add(1);
        if self.zeros >= MAX_ZEROS && self.tick.is_zero() && self.min_rtt != TimeDelta::MAX {
            self.tick = self.min_rtt;
        }
        Some(self.tick()).filter(|tick| !tick.is_zero())
    }

    /// The span that the newest delivered packet samples, and whether it is long enough to give a rate.
    /// Below the shortest RTT the acknowledgement was that of an earlier transmission (§4.1.2.3).
    //= bbr-06 4.1.2.3-7 4.1.2.3-8
    pub(crate) fn covered(&mut self, newest: &Token, now: Time) -> (Covered, bool) {
        let own = Covered::by(newest, now);
        if self.tick().is_zero() {
            let is_reliable = own.interval >= self.min_rtt || self.min_rtt == TimeDelta::MAX;
            return (own, is_reliable);
        }
        self.covered_in_ticks(newest, own, now)
    }

    fn covered_in_ticks(&mut self, newest: &Token, own: Covered, now: Time) -> (Covered, bool) {
        let (span, needed) = (Span::of(newest), self.tick.times(MIN_TICKS));
        if own.interval >= needed {
            (self.young, self.old) = (span, span);
            return (own, own.interval >= self.min_rtt || self.min_rtt == TimeDelta::MAX);
        }
        let limit = span.delivered_and_limit & APP_LIMITED;
        self.young.delivered_and_limit |= limit;
        self.old.delivered_and_limit |= limit;
        let covered = self.old.until(newest.send_time, now);
        if self.young.until(newest.send_time, now).interval >= needed {
            self.old = self.young;
            self.young = span;
        }
        (covered, covered.interval >= needed)
    }
}
