//! A scripted host that handles one packet at a time.

extern crate std;

use std::vec::Vec;

use uncork_units::{Time, TimeDelta};

use super::super::Bbr3;
use super::super::deviations::Deviations;
use crate::link::MSS;
use crate::{Acked, AppState, Controller, Feedback, Lost, RttSample, SentPacket, Timeout, Token};

/// A host: the test controls its packets, ACKs and losses.
pub(super) struct Script {
    pub(super) bbr: Bbr3,
    pub(super) now: Time,
    flight: Vec<Token>,
    /// Every packet that was declared lost.
    pub(super) lost: Vec<Lost>,
    /// Whether ACKs carry RTT samples.
    pub(super) measures_rtt: bool,
}

impl Script {
    pub(super) fn new(deviations: Deviations) -> Self {
        let bbr = super::bbr(deviations);
        Self { bbr, now: Time::ZERO, flight: Vec::new(), lost: Vec::new(), measures_rtt: true }
    }

    pub(super) fn wait(&mut self, span: TimeDelta) -> &mut Self {
        self.now += span;
        self
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.flight.len() as u64 * u64::from(MSS)
    }

    /// Sends `n` packets; the application always has more data.
    pub(super) fn send(&mut self, n: usize) -> &mut Self {
        self.send_as(n, AppState::Backlogged)
    }

    pub(super) fn send_as(&mut self, n: usize, app: AppState) -> &mut Self {
        for _ in 0..n {
            let in_flight = self.in_flight() + u64::from(MSS);
            let packet = SentPacket { bytes: MSS, in_flight, unacked: in_flight };
            self.flight.push(self.bbr.on_sent(self.now, packet, app));
        }
        self
    }

    /// Sends an application-limited packet, without limiting later ones.
    pub(super) fn send_limited(&mut self) -> &mut Self {
        let mut aside = self.bbr.clone();
        self.send(1);
        aside.sampler.mark_app_limited();
        let in_flight = self.in_flight();
        let packet = SentPacket { bytes: MSS, in_flight, unacked: in_flight };
        self.flight.pop();
        self.flight.push(aside.sampler.on_sent(self.now, packet, AppState::Backlogged, None));
        self
    }

    /// Acknowledges the `n` oldest packets at once.
    pub(super) fn ack(&mut self, n: usize) -> &mut Self {
        self.ack_and_lose(n, &[])
    }

    /// Declares the `n` oldest packets lost as one range, without any ACK.
    pub(super) fn lose(&mut self, n: usize) -> &mut Self {
        let contiguity: Vec<bool> = (0..n).map(|i| i > 0).collect();
        self.ack_and_lose(0, &contiguity)
    }

    /// Declares the oldest packets lost, each contiguous with the previous one or not, and
    /// acknowledges the `acked` packets after them.
    pub(super) fn ack_and_lose(&mut self, acked: usize, contiguity: &[bool]) -> &mut Self {
        let lost: Vec<Lost> = contiguity
            .iter()
            .zip(self.flight.drain(..contiguity.len()))
            .map(|(&contiguous, token)| Lost { token, bytes: MSS, contiguous })
            .collect();
        let acked: Vec<Acked> =
            self.flight.drain(..acked).map(|token| Acked { token, bytes: MSS }).collect();
        self.lost.extend(&lost);
        self.report(&acked, &lost)
    }

    fn report(&mut self, acked: &[Acked], lost: &[Lost]) -> &mut Self {
        let newest = acked.last().filter(|_| self.measures_rtt);
        let rtt = newest.map(|packet| {
            let latest = self.now.since(packet.token.send_time());
            RttSample { latest, smoothed: latest, min: latest }
        });
        let feedback = Feedback {
            acked,
            lost,
            rtt,
            ce_packets: 0,
            in_flight: self.in_flight(),
            unacked: self.in_flight(),
            una_advanced: true,
            oldest_sent: Time::NEVER,
            repaired_by_probe: false,
        };
        self.bbr.on_feedback(self.now, &feedback);
        self
    }

    pub(super) fn time_out(&mut self, timeout: Timeout) -> &mut Self {
        self.bbr.on_timeout(self.now, timeout);
        self
    }
}
