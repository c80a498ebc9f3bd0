//! A downloader: sequential objects.

use uncork_units::{Rng, Time, TimeDelta};

use crate::error::require;
use crate::transfer::Transfers;
use crate::{Action, ClientReport, ObjectSizes, SpecError, exponential};

/// Think time between the end of a response and the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Think {
    /// Constant; [`TimeDelta::ZERO`] for none.
    Fixed(TimeDelta),
    /// Exponentially distributed with this mean.
    Exponential(TimeDelta),
}

/// A sequence of requests on one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchSpec {
    /// Sizes of the objects.
    pub sizes: ObjectSizes,
    /// Number of requests; `None` for as many as time allows.
    pub requests: Option<u64>,
    /// No requests start from this time on; [`Time::NEVER`] for no limit.
    pub until: Time,
    /// The time between a response and the next request.
    pub think: Think,
}

impl FetchSpec {
    /// One object of these `bytes`.
    pub fn once(bytes: u64) -> Self {
        Self {
            sizes: ObjectSizes::fixed(bytes),
            requests: Some(1),
            until: Time::NEVER,
            think: Think::Fixed(TimeDelta::ZERO),
        }
    }

    /// Checks that there is something to fetch.
    pub fn check(&self) -> Result<(), SpecError> {
        require(self.requests != Some(0), "the number of requests", 0, "use at least 1")?;
        let until = self.until.since(Time::ZERO);
        require(!until.is_zero(), "the end of the requests", until, "use a time after the start")
    }
}

/// A downloader.
#[derive(Clone, Debug)]
pub struct Fetch {
    spec: FetchSpec,
    /// Think times have their own random stream, so that another think time distribution does not
    /// change the sizes.
    size_rng: Rng,
    think_rng: Rng,
    /// When the next request is due, if none is outstanding.
    due: Time,
    transfers: Transfers,
}

impl Fetch {
    /// A downloader with its first request due at `start`. Fails if [`FetchSpec::check`] does.
    pub fn new(spec: FetchSpec, start: Time, mut rng: Rng) -> Result<Self, SpecError> {
        spec.check()?;
        let think_rng = Rng::new(rng.next_u64(), 0);
        Ok(Self { spec, size_rng: rng, think_rng, due: start, transfers: Transfers::default() })
    }

    pub(crate) fn poll(&mut self, now: Time) -> Action {
        if self.transfers.outstanding() {
            return Action::WaitForData;
        }
        let made = self.transfers.all().len() as u64;
        if self.spec.requests.is_some_and(|requests| made >= requests)
            || self.due >= self.spec.until
        {
            return Action::Done;
        }
        if now < self.due {
            return Action::WaitUntil(self.due);
        }
        let bytes = self.spec.sizes.sample(&mut self.size_rng);
        self.transfers.begin(self.due, bytes);
        Action::Request { bytes }
    }

    pub(crate) fn on_body(&mut self, now: Time, bytes: u64) {
        let accepted = self.transfers.receive(now, bytes);
        if accepted > 0 && !self.transfers.outstanding() {
            self.due = now + self.spec.think.draw(&mut self.think_rng);
        }
    }

    pub(crate) fn report(&self) -> ClientReport {
        let transfers = self.transfers.all().to_vec();
        ClientReport { transfers, playback: None, audio: None, video: None }
    }
}

impl Think {
    fn draw(self, rng: &mut Rng) -> TimeDelta {
        match self {
            Self::Fixed(span) => span,
            Self::Exponential(mean) => exponential(mean, rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;

    fn at(millis: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(millis)
    }

    fn fetch(spec: FetchSpec) -> Fetch {
        Fetch::new(spec, at(100), Rng::new(1, 0)).expect("a valid specification")
    }

    /// With 10 ms per response, returns the start of each request.
    fn starts(spec: FetchSpec, rng: Rng) -> Vec<Time> {
        let mut fetch = Fetch::new(spec, at(100), rng).expect("a valid specification");
        let mut now = at(0);
        loop {
            match fetch.poll(now) {
                Action::Request { bytes } => {
                    now += TimeDelta::from_millis(10);
                    fetch.on_body(now, bytes);
                }
                Action::WaitUntil(then) => now = then,
                Action::WaitForData => unreachable!("nothing is outstanding"),
                Action::Done => break,
            }
        }
        fetch.report().transfers.iter().map(|transfer| transfer.start).collect()
    }

    #[test]
    fn fetch_requests_after_the_think_time() {
        let think = Think::Fixed(TimeDelta::from_millis(30));
        let spec = FetchSpec { requests: Some(4), think, ..FetchSpec::once(1000) };
        assert_eq!(starts(spec, Rng::new(1, 0)), [at(100), at(140), at(180), at(220)]);
    }

    #[test]
    fn fetch_makes_no_requests_after_the_end() {
        let think = Think::Fixed(TimeDelta::from_millis(30));
        let spec = FetchSpec { requests: None, until: at(180), think, ..FetchSpec::once(1000) };
        assert_eq!(starts(spec, Rng::new(1, 0)), [at(100), at(140)]);
    }

    #[test]
    fn fetch_exponential_think_time_has_its_mean() {
        let think = Think::Exponential(TimeDelta::from_millis(30));
        let spec = FetchSpec { requests: Some(100_001), think, ..FetchSpec::once(1) };
        let starts = starts(spec, Rng::new(2, 0));
        let mean = starts[100_000].since(starts[0]).as_millis_f64() / 1e5;
        // Four standard deviations of the mean: 4 · 30 / sqrt(100000).
        assert!((mean - 40.0).abs() < 0.38, "{mean}");
    }

    /// The connection is ready 50 ms late, which counts as part of the transfer.
    #[test]
    fn fetch_transfer_starts_at_its_request() {
        let mut fetch = fetch(FetchSpec::once(1000));
        assert_eq!(fetch.poll(at(150)), Action::Request { bytes: 1000 });
        assert_eq!(fetch.poll(at(150)), Action::WaitForData);
        fetch.on_body(at(200), 400);
        fetch.on_body(at(210), 600);
        assert_eq!(fetch.poll(at(210)), Action::Done);
        let transfer = fetch.report().transfers[0];
        assert_eq!(transfer.start, at(100));
        assert_eq!((transfer.first_byte, transfer.end), (Some(at(200)), Some(at(210))));
    }

    #[test]
    fn fetch_ignores_unrequested_bytes() {
        let think = Think::Fixed(TimeDelta::from_millis(30));
        let mut fetch = fetch(FetchSpec { requests: Some(2), think, ..FetchSpec::once(1000) });
        fetch.poll(at(100));
        fetch.on_body(at(110), 1000);
        fetch.on_body(at(120), 1000);
        assert_eq!(fetch.poll(at(120)), Action::WaitUntil(at(140)));
    }

    #[test]
    fn fetch_sizes_do_not_depend_on_the_think_time() {
        let sizes = |think| {
            let sizes: ObjectSizes = "web-search".parse().expect("a name");
            let spec = FetchSpec { sizes, requests: Some(50), think, ..FetchSpec::once(1) };
            let (mut fetch, mut now, mut sizes) = (fetch(spec), at(0), Vec::new());
            loop {
                match fetch.poll(now) {
                    Action::Request { bytes } => {
                        sizes.push(bytes);
                        fetch.on_body(now, bytes);
                    }
                    Action::WaitUntil(then) => now = then,
                    _ => return sizes,
                }
            }
        };
        let mean = TimeDelta::from_secs(1);
        assert_eq!(sizes(Think::Fixed(TimeDelta::ZERO)), sizes(Think::Exponential(mean)));
    }

    #[test]
    fn fetch_rejects_specs_without_data() {
        let none = FetchSpec { requests: Some(0), ..FetchSpec::once(1) };
        let over = FetchSpec { until: Time::ZERO, ..FetchSpec::once(1) };
        for (case, spec) in [("requests", none), ("until", over)] {
            assert_message!(case, spec.check().expect_err(case));
        }
    }
}
