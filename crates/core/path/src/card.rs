//! The network card of a server.

use uncork_units::{Rate, Time, TimeDelta};

use crate::delay::DelayLine;
use crate::{LinkRate, Packet};

/// A card that sends the packets of its host one after the other at its rate. It holds them in memory of
/// the host and drops none; a sender that asks [`Self::idle_from`] hands it one burst at a time.
#[derive(Clone, Debug)]
pub(crate) struct Card<T> {
    rate: LinkRate,
    idle_from: Time,
    /// Packets by the time at which their last bit has left.
    leaving: DelayLine<Packet<T>>,
}

impl<T> Card<T> {
    pub(crate) fn new(rate: Rate) -> Self {
        let leaving = DelayLine::new(TimeDelta::ZERO);
        Self { rate: LinkRate::constant(rate), idle_from: Time::ZERO, leaving }
    }

    /// The host hands over a packet. Returns when it will have left if the card was idle.
    pub(crate) fn send(&mut self, now: Time, packet: Packet<T>) -> Option<Time> {
        let bytes = packet.bytes;
        self.idle_from = self.rate.finish(now, bytes);
        self.leaving.enter(self.idle_from, packet, bytes)
    }

    /// When it will have sent everything it has.
    pub(crate) fn idle_from(&self) -> Time {
        self.idle_from
    }

    /// The packet that has left by `now`.
    pub(crate) fn depart(&mut self, now: Time) -> Option<Packet<T>> {
        self.leaving.arrive(now)
    }

    /// When the next packet will have left; [`Time::NEVER`] if there is none.
    pub(crate) fn next_departure(&self) -> Time {
        self.leaving.next_arrival()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;

    /// 1 Gbit/s is a packet of 1500 bytes in 12 us.
    #[test]
    fn a_burst_leaves_at_the_rate_of_the_card() {
        let at = |micros: u64| Time::from_nanos(micros * 1000);
        let packet = |body| Packet { flow: 0, host: 0, bytes: 1500, ecn: Ecn::NotEct, body };
        let mut card = Card::new(Rate::from_mbit(1000));
        assert_eq!(card.send(at(100), packet('a')), Some(at(112)));
        assert_eq!(card.send(at(100), packet('b')), None, "the card is busy");
        assert_eq!((card.idle_from(), card.next_departure()), (at(124), at(112)));
        assert_eq!(card.depart(at(111)), None);
        assert_eq!(card.depart(at(112)), Some(packet('a')));
        assert_eq!(card.depart(at(124)), Some(packet('b')));
        assert_eq!(card.next_departure(), Time::NEVER);
        assert_eq!(card.send(at(500), packet('c')), Some(at(512)), "it saved up nothing");
    }
}
