//! Samples on a clock whose ticks are not much shorter than the round trip.
//!
//! An RTT of 300 µs reads 0 or 1 ms on a clock of 1 ms, and what the path delivered in one RTT seems to
//! have taken a whole tick. BBR would pace at that rate, deliver less, and measure less again. So with such
//! a clock a delivery rate covers at least [`MIN_TICKS`] ticks, and an RTT counts as one tick longer than
//! it reads, which it may be.

use uncork_units::{Time, TimeDelta};

use crate::controller::Settings;
use crate::event::{Acked, Token};

/// Ticks that a delivery rate covers at least: its error is at most one in so many.
const MIN_TICKS: u64 = 8;
/// RTT samples of zero in a row after which the clock is known to be coarse. A host that takes one time
/// for a whole batch of packets may report a few.
const MAX_ZEROS: u8 = 8;

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

/// What the sampler had counted when a span began (the draft's per-packet state P).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
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

    /// The flight before this packet, as the draft samples it.
    fn of(token: &Token) -> Self {
        let limit = if token.is_app_limited() { APP_LIMITED } else { 0 };
        Self {
            first_send_time: Time::ZERO + token.send_time.since(Time::ZERO + token.send_elapsed),
            delivered_time: token.delivered_time,
            delivered_and_limit: token.delivered.min(APP_LIMITED - 1) | limit,
        }
    }

    /// C.delivered, in bytes.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered_and_limit & !APP_LIMITED
    }

    /// Whether the application limited the sender since then.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.delivered_and_limit & APP_LIMITED != 0
    }

    /// The longer of how long it took to send and to deliver.
    //= bbr-06 4.1.1.2-3
    pub(crate) fn interval(&self, send_time: Time, delivered_time: Time) -> TimeDelta {
        send_time.since(self.first_send_time).max(delivered_time.since(self.delivered_time))
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
        self.tick
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
        let own = newest.map_or(TimeDelta::ZERO, |newest| now.since(newest.token.send_time));
        let latest = if latest.is_zero() { own } else { latest };
        if latest.is_zero() {
            self.zeros = self.zeros.saturating_add(1);
            if self.zeros >= MAX_ZEROS && self.tick.is_zero() && self.min_rtt != TimeDelta::MAX {
                self.tick = self.min_rtt;
            }
            return (!self.tick.is_zero()).then_some(self.tick);
        }
        self.zeros = 0;
        self.min_rtt = self.min_rtt.min(latest);
        // Two times of a coarse clock are at least a tick apart.
        self.tick = self.tick.min(latest);
        Some(latest + self.tick)
    }

    /// What the newest packet delivered is a sample of, and whether that is long enough to give a rate.
    /// Below the shortest RTT the acknowledgement was that of an earlier transmission (§4.1.2.3).
    //= bbr-06 4.1.2.3-7 4.1.2.3-8
    pub(crate) fn span(&mut self, newest: &Token, now: Time) -> (Span, bool) {
        let own = Span::of(newest);
        let interval = own.interval(newest.send_time, now);
        let needed = self.tick.times(MIN_TICKS);
        if interval >= needed {
            (self.young, self.old) = (own, own);
            let is_reliable = interval >= self.min_rtt || self.min_rtt == TimeDelta::MAX;
            return (own, is_reliable);
        }
        let limit = own.delivered_and_limit & APP_LIMITED;
        self.young.delivered_and_limit |= limit;
        self.old.delivered_and_limit |= limit;
        let old = self.old;
        if self.young.interval(newest.send_time, now) >= needed {
            self.old = self.young;
            self.young = own;
        }
        (old, old.interval(newest.send_time, now) >= needed)
    }
}
