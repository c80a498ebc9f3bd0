//! What `Server-Timing` says of the transport.

use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue};
use uncork_units::{Rate, TimeDelta};

/// The header.
pub(crate) const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// How old it may be: responses that come closer together are told the same.
const FRESH: Duration = Duration::from_millis(10);

/// What is said of a connection, for as long as it is fresh.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    said: Option<(Instant, Option<HeaderValue>)>,
}

/// What a transport knows of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transport {
    pub(crate) rtt: TimeDelta,
    pub(crate) min_rtt: TimeDelta,
    /// Of a controller that paces.
    pub(crate) pacing_rate: Option<Rate>,
}

impl Timing {
    /// What is to be said at the time `now`, by what `look` finds.
    pub(crate) fn at(
        &mut self,
        now: Instant,
        look: impl FnOnce() -> Option<Transport>,
    ) -> Option<HeaderValue> {
        match &self.said {
            Some((at, value)) if now.saturating_duration_since(*at) < FRESH => value.clone(),
            _ => {
                let value = look().and_then(|seen| HeaderValue::try_from(seen.told()).ok());
                self.said = Some((now, value.clone()));
                value
            }
        }
    }
}

impl Transport {
    fn told(self) -> String {
        let [rtt, min] = [self.rtt, self.min_rtt].map(TimeDelta::as_millis_f64);
        let pacing = self.pacing_rate.map_or(String::new(), |rate| {
            format!(", pacing;desc=\"{:.2} Mbit/s\"", rate.bits_per_sec() as f64 / 1e6)
        });
        format!("rtt;dur={rtt:.2}, min-rtt;dur={min:.2}{pacing}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn it_says_the_same_until_it_is_stale() {
        let (start, mut timing) = (clock::now(), Timing::default());
        let mut said = |after, rtt, pacing_rate| {
            let rtt = TimeDelta::from_micros(rtt);
            let look = || Some(Transport { rtt, min_rtt: TimeDelta::from_millis(20), pacing_rate });
            timing.at(start + after, look).expect("a header")
        };
        assert_eq!(said(Duration::ZERO, 20_114, None), "rtt;dur=20.11, min-rtt;dur=20.00");
        assert_eq!(said(FRESH / 2, 30_000, None), "rtt;dur=20.11, min-rtt;dur=20.00");
        let paced = said(FRESH, 30_000, Some(Rate::from_mbit(94)));
        assert_eq!(paced, "rtt;dur=30.00, min-rtt;dur=20.00, pacing;desc=\"94.00 Mbit/s\"");
    }
}
