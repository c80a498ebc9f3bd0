//! A pacer that hosts may use: bursts of at most the send quantum, at the pacing rate.

use uncork_units::{Rate, Time, TimeDelta};

use crate::Control;

/// One packet per second: no controller paces slower, so that an ACK can correct any estimate of the path, also
/// one that a clock or a host got wrong.
pub(crate) fn slowest(mss: u64) -> Rate {
    Rate::from_bytes_per_sec(mss)
}

/// Spaces bursts so that their average rate is the pacing rate (draft-ietf-ccwg-bbr-06 §5.6.2,
/// applied to a quantum instead of a packet, so that the host needs only one timer per quantum).
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// C.next_send_time: when the next burst may begin.
    next: Time,
    /// Bytes the current burst may still hold.
    left: u64,
    /// Whether a burst that leaves late shortens the time to the next.
    catches_up: bool,
    /// How late the current burst left, less what was made up for.
    late: TimeDelta,
}

impl Pacer {
    /// A pacer that makes up for late bursts as Linux does (`tcp_update_skb_after_send`): the time to the next is
    /// shorter by how late it was, at most by half. So the pacing rate is kept although timers are late, or the
    /// window opens late.
    pub fn catching_up() -> Self {
        Self { catches_up: true, ..Self::default() }
    }

    /// When the next packet may leave, now at the earliest.
    pub fn release(&mut self, now: Time, control: &Control) -> Time {
        if control.pacing_rate.is_none() || self.left > 0 {
            return now;
        }
        if self.next <= now {
            self.left = control.send_quantum.max(1);
            self.late = now.since(self.next);
            return now;
        }
        self.next
    }

    /// A packet of `bytes` left; call after [`Self::release`] returned `now`.
    //= bbr-06 5.6.2-1
    pub fn on_sent(&mut self, now: Time, bytes: u64, control: &Control) {
        let Some(rate) = control.pacing_rate else {
            return;
        };
        self.left = self.left.saturating_sub(bytes);
        self.next = self.next.max(now) + self.shorten(rate.time_for(bytes));
    }

    /// Time of a packet, less the delay that it makes up for.
    fn shorten(&mut self, takes: TimeDelta) -> TimeDelta {
        if !self.catches_up {
            return takes;
        }
        let earlier = takes.divided_by(2).min(self.late);
        self.late = self.late - earlier;
        takes - earlier
    }

    /// The sender has no more data or window: ends the burst and discards its unused quantum.
    pub fn end_burst(&mut self) {
        self.left = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 MB/s in bursts of 2000 bytes: 2 ms each.
    const CONTROL: Control = Control {
        cwnd: u64::MAX,
        pacing_rate: Some(Rate::from_bytes_per_sec(1_000_000)),
        send_quantum: 2_000,
    };

    fn ms(n: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(n)
    }

    /// Sends packets of 1000 bytes as soon as the pacer allows; returns when the last one left.
    fn send(pacer: &mut Pacer, packets: usize, mut now: Time) -> Time {
        for _ in 0..packets {
            now = pacer.release(now, &CONTROL);
            assert_eq!(pacer.release(now, &CONTROL), now);
            pacer.on_sent(now, 1_000, &CONTROL);
        }
        now
    }

    #[test]
    fn quantum_leaves_at_once_and_the_next_when_due() {
        let mut pacer = Pacer::default();
        assert_eq!(send(&mut pacer, 2, ms(5)), ms(5));
        assert_eq!(pacer.release(ms(5), &CONTROL), ms(7));
        assert_eq!(pacer.release(ms(7), &CONTROL), ms(7));
    }

    #[test]
    //= bbr-06 5.6.2-1 test
    fn average_rate_is_the_pacing_rate() {
        let mut pacer = Pacer::default();
        assert_eq!(send(&mut pacer, 1_000, ms(0)), ms(998));
    }

    #[test]
    //= bbr-06 5.6.2-1 test
    fn late_host_gets_no_credit() {
        let mut pacer = Pacer::default();
        send(&mut pacer, 2, ms(0));
        assert_eq!(send(&mut pacer, 2, ms(100)), ms(100));
        assert_eq!(pacer.release(ms(100), &CONTROL), ms(102));
    }

    /// Bursts of 2 ms. The second is 1 ms late.
    #[test]
    fn pacer_that_catches_up_halves_the_next_gaps() {
        let mut pacer = Pacer::catching_up();
        send(&mut pacer, 2, ms(5));
        let start = pacer.release(ms(5), &CONTROL);
        assert_eq!(
            send(&mut pacer, 2, start + TimeDelta::from_micros(500)),
            start + TimeDelta::from_micros(500)
        );
        assert_eq!(
            pacer.release(ms(5), &CONTROL),
            start + ms(2).since(Time::ZERO),
            "as if it had not been late"
        );
        assert_eq!(send(&mut pacer, 2, ms(100)), ms(100));
        assert_eq!(pacer.release(ms(100), &CONTROL), ms(101), "but at least half of the time");
    }

    #[test]
    fn unused_quantum_is_not_carried_over() {
        let mut pacer = Pacer::default();
        send(&mut pacer, 1, ms(0));
        pacer.end_burst();
        assert_eq!(pacer.release(ms(0), &CONTROL), ms(1), "the one packet takes 1 ms");
    }

    #[test]
    fn without_a_pacing_rate_everything_leaves_at_once() {
        let unpaced = Control { pacing_rate: None, ..CONTROL };
        let mut pacer = Pacer::default();
        for _ in 0..10 {
            assert_eq!(pacer.release(ms(3), &unpaced), ms(3));
            pacer.on_sent(ms(3), 1_000, &unpaced);
        }
        assert_eq!(pacer.release(ms(3), &CONTROL), ms(3), "and no debt remains");
    }

    #[test]
    fn tiny_rate_and_zero_quantum_saturate() {
        let slow =
            Control { pacing_rate: Some(Rate::from_bytes_per_sec(1)), send_quantum: 0, ..CONTROL };
        let mut pacer = Pacer::default();
        assert_eq!(pacer.release(ms(0), &slow), ms(0), "one packet at a time");
        pacer.on_sent(ms(0), u64::MAX, &slow);
        assert_eq!(pacer.release(ms(0), &slow), Time::NEVER);
    }
}
