//! A constant-rate link with one outage that serves a client, simple enough for closed forms.

use uncork_apps::{Action, Client, ClientReport, ClientSpec};
use uncork_units::{Rate, Rng, Time, TimeDelta};

pub(crate) struct Link {
    pub(crate) rate: Rate,
    /// Start and length of the outage.
    pub(crate) latency: TimeDelta,
    /// Packet size in bytes.
    pub(crate) outage: (Time, TimeDelta),
    /// Bytes arrive in packets of this size.
    pub(crate) packet: u64,
}

impl Link {
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            rate,
            latency: TimeDelta::ZERO,
            outage: (Time::NEVER, TimeDelta::ZERO),
            packet: 1000,
        }
    }

    /// Serves a client started at time 0 until it is done. Returns its report and the end time.
    pub(crate) fn serve(&self, spec: ClientSpec) -> (ClientReport, Time) {
        let mut client = Client::new(spec, Time::ZERO, Rng::new(1, 0)).expect("a valid client");
        let mut now = Time::ZERO;
        // The body's size, how much of it has arrived, and when the server began, in link time.
        let mut body: Option<(u64, u64, Time)> = None;
        loop {
            let wake = match client.poll(now) {
                Action::Request { bytes } => {
                    assert!(body.is_none(), "one request at a time");
                    body = Some((bytes, 0, self.link_clock(now) + self.latency));
                    continue;
                }
                Action::WaitUntil(then) => {
                    assert!(then > now, "a wait of zero length");
                    then
                }
                Action::WaitForData => Time::NEVER,
                Action::Done => return (client.report(now), now),
            };
            let arrival = body.map_or(Time::NEVER, |(bytes, arrived, since)| {
                let through = (arrived + self.packet).min(bytes);
                self.wall_clock(since + self.rate.time_for(through))
            });
            assert!(arrival.min(wake) < Time::NEVER, "deadlock: both ends wait");
            now = arrival.min(wake);
            if let Some((bytes, arrived, since)) = body.filter(|_| arrival == now) {
                let packet = self.packet.min(bytes - arrived);
                client.on_body(now, packet);
                let left = arrived + packet < bytes;
                body = left.then_some((bytes, arrived + packet, since));
            }
        }
    }

    /// Time excluding the outage.
    fn link_clock(&self, wall: Time) -> Time {
        let (start, length) = self.outage;
        if wall <= start { wall } else { start.max(Time::ZERO + (wall.since(Time::ZERO) - length)) }
    }

    fn wall_clock(&self, link: Time) -> Time {
        let (start, length) = self.outage;
        if link <= start { link } else { link + length }
    }
}
