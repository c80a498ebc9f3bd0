//! Determines what limits the rate of a connection.

use uncork_units::{Rate, TimeDelta};

use crate::sample::SocketSample;

/// A sender with at least this share of its pacing cap is limited by it. The share is less than 1
/// because the cap counts headers, too, and a sender needs some time to reach it.
const AT_CAP: f64 = 0.85;

/// What limits a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// The application: it has no data to send, or less than the network can carry.
    Application,
    /// The receiver's window.
    Receiver,
    /// The send buffer.
    SendBuffer,
    /// The application's pacing cap (`SO_MAX_PACING_RATE`).
    PacingCap,
    /// The network, through the congestion control: its rate, its losses, its queue.
    Network,
}

impl Limit {
    /// All limits.
    pub const ALL: [Self; 5] =
        [Self::Application, Self::Receiver, Self::SendBuffer, Self::PacingCap, Self::Network];

    /// Its name, one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Receiver => "receiver",
            Self::SendBuffer => "send-buffer",
            Self::PacingCap => "pacing-cap",
            Self::Network => "network",
        }
    }
}

/// How long each limit was active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// By [`Limit`], in the order of [`Limit::ALL`].
    times: [TimeDelta; 5],
    /// The part of the application's time with data in flight or waiting to be sent.
    pub application_busy: TimeDelta,
}

impl Limits {
    /// Divides the time `elapsed` between two samples of a connection among the limits. `before` is
    /// `None` for the first sample of a connection that began after the last pass.
    ///
    /// The kernel reports how long data was in flight or waiting (`busy_time`), and how much of
    /// that the receiver's window and the send buffer limited (`tcp_chrono`). In the rest of the
    /// time there was no data to send: the application. The rest of the busy time is attributed to
    /// - the receiver, if its window has no room for another segment, data waits, and the congestion window is not smaller:
    ///   a sender that paces (BBR) settles at the window's rate, and the kernel counts only the part of the time in which it
    ///   would have sent at once;
    /// - the pacing cap, if the connection sent about as fast as the cap allows;
    /// - the send buffer, if the sender ran out of data although the buffer was full, and the congestion window was not;
    /// - the application, if the delivery rate is application-limited and less than a segment waits (BBR marks
    ///   samples as application-limited while it probes the round-trip time: then more waits), or if data trickles at
    ///   both ends of the period;
    /// - the network otherwise.
    pub fn between(before: Option<&SocketSample>, now: &SocketSample, elapsed: TimeDelta) -> Self {
        let figures = match before {
            Some(before) => now.figures.since(&before.figures),
            None => now.figures,
        };
        let receiver = figures.rwnd_limited.unwrap_or_default();
        let send_buffer = figures.sndbuf_limited.unwrap_or_default();
        let rest = figures.busy - receiver - send_buffer;
        let mut limits = Self::default();
        limits.set(Limit::Application, elapsed - figures.busy);
        limits.set(Limit::Receiver, receiver);
        limits.set(Limit::SendBuffer, send_buffer);
        let at_cap = now.pacing_cap.is_some_and(|cap| {
            let sent = Rate::of(figures.bytes_sent, rest).bytes_per_sec();
            sent as f64 >= AT_CAP * cap.bytes_per_sec() as f64
        });
        let ran_dry = now.is_app_limited || !send_buffer.is_zero();
        let has_window = now.in_flight_bytes < now.cwnd_bytes;
        let by_window = fills_window(now)
            || (!receiver.is_zero()
                && (before.is_some_and(fills_window) || is_model_of_window(now)));
        if at_cap {
            limits.set(Limit::PacingCap, rest);
        } else if by_window {
            limits.set(Limit::Receiver, receiver + rest);
        } else if ran_dry && now.is_send_buffer_full && has_window {
            limits.set(Limit::SendBuffer, send_buffer + rest);
        } else if is_application(before, now) {
            limits.set(Limit::Application, limits.time(Limit::Application) + rest);
            limits.application_busy = rest;
        } else {
            limits.set(Limit::Network, rest);
        }
        limits
    }

    /// How long `limit` was active.
    pub const fn time(&self, limit: Limit) -> TimeDelta {
        self.times[limit as usize]
    }

    fn set(&mut self, limit: Limit, time: TimeDelta) {
        self.times[limit as usize] = time;
    }

    /// The total time.
    pub fn total(&self) -> TimeDelta {
        self.times.into_iter().fold(TimeDelta::default(), |sum, time| sum + time)
    }

    /// Adds the times of `other`.
    pub fn add(&mut self, other: &Self) {
        for (time, more) in self.times.iter_mut().zip(other.times) {
            *time += more;
        }
        self.application_busy += other.application_busy;
    }

    /// The limit that was active longest, and its share of the time; `None` if there was no time.
    pub fn main(&self) -> Option<(Limit, f64)> {
        let total = self.total().as_secs_f64();
        // If two are equal, the later one wins: the network rather than the application.
        let longest = Limit::ALL.into_iter().max_by_key(|limit| self.time(*limit))?;
        (total > 0.0).then(|| (longest, self.time(longest).as_secs_f64() / total))
    }
}

/// Whether data waits because the receiver's window has no room for another segment, although the congestion window has.
fn fills_window(socket: &SocketSample) -> bool {
    let next = socket.in_flight_bytes.saturating_add(socket.mss_bytes.into());
    let is_smaller = |window: u64| next > window && window <= socket.cwnd_bytes;
    socket.unsent_bytes > 0 && socket.receive_window_bytes.is_some_and(is_smaller)
}

/// Whether BBR's model is that of the receiver's window: a window holds no more than the BDP that it estimates.
fn is_model_of_window(socket: &SocketSample) -> bool {
    let Some((window, bbr)) = socket.receive_window_bytes.zip(socket.bbr) else { return false };
    let bdp = bbr.bandwidth.zip(bbr.min_rtt).map_or(0, |(rate, rtt)| rate.bytes_in(rtt));
    socket.unsent_bytes > 0 && bdp.saturating_add(socket.mss_bytes.into()) > window
}

fn is_application(before: Option<&SocketSample>, now: &SocketSample) -> bool {
    let is_marked = now.is_app_limited && now.unsent_bytes < u64::from(now.mss_bytes);
    is_marked || before.is_some_and(trickles) && trickles(now)
}

/// Whether data is in flight, none waits, and the window had room for more. Every transfer also
/// ends like this, so one sample alone is not enough.
fn trickles(socket: &SocketSample) -> bool {
    let has_room =
        socket.in_flight_bytes.saturating_add(socket.mss_bytes.into()) < socket.cwnd_bytes;
    let is_sending = socket.in_flight_bytes > 0 && socket.unsent_bytes == 0;
    is_sending && has_room && !socket.is_send_buffer_full
}
