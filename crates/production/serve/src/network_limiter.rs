//! How much per second a client network may have: requests, or bytes.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Networks share this many counters per row: 512 KiB for both rows, however many networks there are.
const COUNTERS: usize = 1 << 15;
const SECOND: u64 = 1_000_000_000;

/// A token bucket for each network, of one second's units.
///
/// The buckets are two rows of counters, which networks share by hash with secret keys. Units conform if they do in
/// either row, so that a network is only limited by others if it meets one that sends too much in both. Each counter is
/// the theoretical arrival time of the generic cell rate algorithm (ITU-T I.371), which needs no refill.
#[derive(Debug)]
pub(crate) struct NetworkLimiter {
    rows: [LimiterRow; 2],
    per_second: u64,
    epoch: Instant,
}

#[derive(Debug)]
struct LimiterRow {
    hasher: RandomState,
    /// Nanoseconds of the epoch.
    arrivals: Box<[AtomicU64]>,
}

impl NetworkLimiter {
    /// Lets each network have `per_second` units, at least one.
    pub(crate) fn new(per_second: u64, epoch: Instant) -> Self {
        let row = || LimiterRow {
            hasher: RandomState::new(),
            arrivals: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
        };
        Self { rows: [row(), row()], per_second: per_second.max(1), epoch }
    }

    /// Counts `units` that are wanted `now`. Beyond the limit they are not counted, and the result is how long
    /// to wait for as many. What takes more than a second is admitted when nothing was counted before.
    pub(crate) fn admit(&self, network: IpAddr, units: u64, now: Instant) -> Result<(), Duration> {
        let now = now.saturating_duration_since(self.epoch).as_nanos() as u64;
        let time = (u128::from(units) * u128::from(SECOND) / u128::from(self.per_second)) as u64;
        let waits = self.rows.each_ref().map(|row| row.admit(network, now, time));
        match waits {
            [Err(one), Err(other)] => Err(Duration::from_nanos(one.min(other))),
            _ => Ok(()),
        }
    }
}

impl LimiterRow {
    /// Counts units that take `time` nanoseconds at the limit.
    fn admit(&self, network: IpAddr, now: u64, time: u64) -> Result<(), u64> {
        let index = self.hasher.hash_one(network) as usize % COUNTERS;
        // The last units of a burst may come this much before their time.
        let latest = now + SECOND.saturating_sub(time);
        let conform = |arrival| (arrival <= latest).then(|| now.max(arrival) + time);
        let admitted =
            self.arrivals[index].fetch_update(Ordering::Relaxed, Ordering::Relaxed, conform);
        admitted.map(|_| ()).map_err(|arrival| arrival - latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    fn network(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn a_network_has_a_burst_and_then_its_rate() {
        let start = clock::now();
        let limiter = NetworkLimiter::new(10, start);
        let admitted =
            |network, at| (0..100).filter(|_| limiter.admit(network, 1, at).is_ok()).count();
        assert_eq!(admitted(network(1), start), 10);
        assert_eq!(admitted(network(1), start + Duration::from_millis(250)), 2);
        assert_eq!(
            limiter.admit(network(1), 1, start + Duration::from_millis(250)),
            Err(Duration::from_millis(50))
        );
        assert_eq!(admitted(network(2), start), 10);
        assert_eq!(admitted(network(1), start + Duration::from_secs(100)), 10);
    }

    #[test]
    fn the_slowest_limit_is_one_in_a_second() {
        let start = clock::now();
        let limiter = NetworkLimiter::new(1, start);
        assert_eq!(limiter.admit(network(1), 1, start), Ok(()));
        assert_eq!(limiter.admit(network(1), 1, start), Err(Duration::from_secs(1)));
        assert_eq!(limiter.admit(network(1), 1, start + Duration::from_secs(1)), Ok(()));
    }

    #[test]
    fn more_than_a_seconds_units_wait_for_their_turn() {
        let start = clock::now();
        let limiter = NetworkLimiter::new(1000, start);
        assert_eq!(limiter.admit(network(1), 3000, start), Ok(()));
        assert_eq!(limiter.admit(network(1), 500, start), Err(Duration::from_millis(2500)));
        let later = start + Duration::from_millis(2500);
        assert_eq!(limiter.admit(network(1), 500, later), Ok(()));
        assert_eq!(limiter.admit(network(1), 3000, later), Err(Duration::from_secs(1)));
    }

    /// A thousand networks at their limits fill 3 % of a row, so about 0.1 % of the others meet them in both.
    #[test]
    fn others_are_hardly_limited_by_networks_that_send_too_much() {
        let start = clock::now();
        let limiter = NetworkLimiter::new(10, start);
        for greedy in 0..1000 {
            while limiter.admit(network(greedy), 1, start).is_ok() {}
        }
        let refused = (10_000..20_000)
            .filter(|&other| limiter.admit(network(other), 1, start).is_err())
            .count();
        assert!(refused < 40, "{refused} of 10,000");
    }
}
