//! Media at a constant bitrate, pushed by the server: a live stream, or a call.

use uncork_units::{Rate, Time, TimeDelta};

use crate::SpecError;
use crate::error::require;

/// An application that writes a frame at regular intervals, whether or not the previous one has
/// been sent. The sender is application-limited, which congestion controllers must handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CbrSpec {
    /// Its mean rate.
    pub rate: Rate,
    /// Interval between frames, such as 20 ms for call audio.
    pub interval: TimeDelta,
    /// Duration; [`TimeDelta::MAX`] for endless.
    pub duration: TimeDelta,
}

/// The application, as a stateless function of time.
#[derive(Clone, Copy, Debug)]
pub struct Cbr {
    spec: CbrSpec,
    start: Time,
}

/// The bytes that an application has written, and the time of its next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes written since the start.
    pub bytes: u64,
    /// The next write, later than now; `None` after the last.
    pub next: Option<Time>,
}

impl CbrSpec {
    /// Checks that each frame has at least a byte.
    pub fn check(&self) -> Result<(), SpecError> {
        let Self { rate, interval, duration } = self;
        require(!interval.is_zero(), "the interval of frames", interval, "use more, such as 20ms")?;
        let frame = rate.bytes_in(*interval);
        require(
            frame > 0,
            "the bytes of a frame",
            frame,
            "use a higher rate or a longer interval",
        )?;
        require(
            !duration.is_zero(),
            "the duration of the stream",
            duration,
            "use more, such as 60s",
        )
    }
}

impl Cbr {
    /// An application that writes its first frame at `start`; fails if [`CbrSpec::check`] does.
    pub fn new(spec: CbrSpec, start: Time) -> Result<Self, SpecError> {
        spec.check()?;
        Ok(Self { spec, start })
    }

    /// Bytes written up to and including `now`. If the rate does not divide evenly, frames differ
    /// by a byte, so that the long-run rate is exact.
    pub fn poll(&self, now: Time) -> Written {
        if now < self.start {
            return Written { bytes: 0, next: Some(self.start) };
        }
        let CbrSpec { rate, interval, duration } = self.spec;
        // Frames start at 0, 1, 2, … intervals, until the end.
        let last = (duration.as_nanos() - 1) / interval.as_nanos();
        let index = (now.since(self.start).as_nanos() / interval.as_nanos()).min(last);
        let begun = interval.times(index + 1);
        let next = (index < last).then(|| self.start + begun);
        Written { bytes: rate.bytes_in(begun), next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::ZERO + TimeDelta::from_micros(micros)
    }

    /// 64 kbit/s in frames of 20 ms, as in G.711: 160 bytes each.
    fn call(millis: u64) -> Cbr {
        let spec = CbrSpec {
            rate: Rate::from_bits_per_sec(64_000),
            interval: TimeDelta::from_millis(20),
            duration: TimeDelta::from_millis(millis),
        };
        Cbr::new(spec, at(5000)).expect("valid")
    }

    #[test]
    fn cbr_writes_a_frame_each_interval() {
        let call = call(60);
        let frames = [
            (0, 0, Some(5_000)),
            (5_000, 160, Some(25_000)),
            (24_999, 160, Some(25_000)),
            (25_000, 320, Some(45_000)),
            (45_000, 480, None),
            (99_000, 480, None),
        ];
        for (now, bytes, next) in frames {
            assert_eq!(call.poll(at(now)), Written { bytes, next: next.map(at) }, "{now}");
        }
    }

    /// 1 Mbit/s in 30 frames per second: 4166.6 bytes each, 125 kB per second.
    #[test]
    fn cbr_rate_is_exact_in_the_long_run() {
        let spec = CbrSpec {
            rate: Rate::from_mbit(1),
            interval: TimeDelta::from_nanos(33_333_333),
            duration: TimeDelta::MAX,
        };
        let stream = Cbr::new(spec, Time::ZERO).expect("valid");
        let (mut now, mut frames) = (Time::ZERO, 0_u64);
        while frames < 30_000 {
            let written = stream.poll(now);
            frames += 1;
            let exact = u128::from(frames) * 33_333_333 * 125_000 / 1_000_000_000;
            assert_eq!(u128::from(written.bytes), exact);
            now = written.next.expect("it does not end");
        }
    }

    #[test]
    fn cbr_rejects_a_stream_without_data() {
        let refused = |change: fn(&mut CbrSpec)| {
            let mut spec = call(60).spec;
            change(&mut spec);
            spec.check().expect_err("refused").to_string()
        };
        assert!(refused(|spec| spec.interval = TimeDelta::ZERO).contains("is 0ns: use more"));
        assert!(refused(|spec| spec.rate = Rate::ZERO).contains("is 0: use a higher rate"));
        assert!(refused(|spec| spec.duration = TimeDelta::ZERO).contains("is 0ns: use more"));
    }
}
