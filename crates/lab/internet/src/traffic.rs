//! Requests of users, and their times.

use uncork_apps::{AudioSpec, Track};
use uncork_flow::LARGE_BYTES;
use uncork_units::{Rate, Rng, TimeDelta};

use crate::draw::{pareto, uniform};

/// The object that a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AskedObject {
    /// One object of this many bytes.
    Object(u64),
    /// A song, in chunks.
    Song,
}

/// A song of 45 s at 320 kbit/s, 1.8 MB in four chunks.
const SONG: (TimeDelta, Rate) = (TimeDelta::from_secs(45), Rate::from_bits_per_sec(320_000));

/// The part of visits for downloads; of the rest, a tenth is for songs.
const DOWNLOADS: f64 = 0.35;
const SONGS: f64 = 0.1;

impl AskedObject {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let visit = uniform(rng);
        if visit < DOWNLOADS {
            Self::large(rng)
        } else if visit < DOWNLOADS + (1.0 - DOWNLOADS) * SONGS {
            Self::Song
        } else {
            Self::small(rng)
        }
    }

    /// A download of 3 to 12 MB with a heavy tail. The bound limits the cost of a simulation.
    pub(super) fn large(rng: &mut Rng) -> Self {
        Self::Object((pareto(rng, 1.2, LARGE_BYTES as f64, 12e6) as u64).max(LARGE_BYTES))
    }

    /// Anything but a download: an oracle of small objects has as many songs among them as a day has.
    pub(super) fn other(rng: &mut Rng) -> Self {
        if uniform(rng) < SONGS { Self::Song } else { Self::small(rng) }
    }

    /// A part of a page, 5 kB to 3 MB with a heavy tail.
    pub(super) fn small(rng: &mut Rng) -> Self {
        Self::Object((pareto(rng, 0.8, 5e3, 2.9e6) as u64).min(LARGE_BYTES - 1))
    }
}

pub(super) fn song() -> AudioSpec {
    let (duration, bitrate) = SONG;
    AudioSpec { tracks: vec![Track { duration, bitrate }], ..AudioSpec::default() }
}

/// Connections of a visit: mostly one, sometimes many.
pub(super) fn visit_length(rng: &mut Rng) -> u32 {
    pareto(rng, 1.5, 1.0, 30.0) as u32
}

/// The user of a connection: some come far more often than others.
pub(super) fn user(rng: &mut Rng, users: u64) -> u64 {
    let at = uniform(rng);
    ((users as f64 * at * at) as u64).min(users - 1)
}

/// The hour of the day where a country is, when it is `hour` in UTC. Countries are 2.4 h apart.
pub(super) fn local_hour(hour: u32, country: u32) -> u32 {
    (hour + country * 24 / crate::world::COUNTRIES) % 24
}

/// The traffic of a local hour relative to the busiest: most at 20, least at 8 hours.
pub(super) fn intensity(local_hour: u32) -> f64 {
    let angle = 2.0 * std::f64::consts::PI * (f64::from(local_hour) - 20.0) / 24.0;
    (1.0 + 0.7 * libm::cos(angle)) / 1.7
}

/// Other people's flows on a network's uplink: none in the morning, most in the evening.
pub(super) fn cross_flows(local_hour: u32) -> usize {
    match local_hour {
        18 | 23 => 1,
        19..=22 => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evenings_are_busy() {
        assert!((intensity(20) - 1.0).abs() < 1e-12);
        assert!((intensity(8) - 0.3 / 1.7).abs() < 1e-12);
        assert_eq!((local_hour(20, 0), local_hour(20, 5)), (20, 8));
        assert_eq!((cross_flows(8), cross_flows(21)), (0, 2));
    }

    #[test]
    fn sizes_belong_to_their_class() {
        let mut rng = Rng::new(1, 0);
        for _ in 0..10_000 {
            let [large, small] = [AskedObject::large(&mut rng), AskedObject::small(&mut rng)];
            assert!(matches!(large, AskedObject::Object(LARGE_BYTES..=12_000_000)), "{large:?}");
            assert!(matches!(small, AskedObject::Object(5_000..LARGE_BYTES)), "{small:?}");
        }
    }

    #[test]
    fn some_users_come_often() {
        let mut rng = Rng::new(1, 0);
        let first = (0..10_000).filter(|_| user(&mut rng, 1000) < 10).count();
        assert!((900..1100).contains(&first), "{first} of 10000 by 1 % of the users");
    }
}
