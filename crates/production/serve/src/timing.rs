//! The figures of the connection in `Server-Timing`.

use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue};
use uncork_units::{Rate, TimeDelta};

/// The header.
pub(crate) const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// Maximum age of a value: responses that come closer together have the same.
const FRESH: Duration = Duration::from_millis(10);

/// The value for a connection, while it is fresh.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    latest: Option<TimingValue>,
}

#[derive(Debug)]
struct TimingValue {
    at: Instant,
    active: String,
    value: Option<HeaderValue>,
}

/// The figures of a transport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transport {
    pub(crate) rtt: TimeDelta,
    pub(crate) min_rtt: TimeDelta,
    /// Of a controller that paces.
    pub(crate) pacing_rate: Option<Rate>,
}

impl Timing {
    /// The header's value at the time `now`: the active settings, and the figures from `look`.
    pub(crate) fn at(
        &mut self,
        now: Instant,
        active: &str,
        look: impl FnOnce() -> Option<Transport>,
    ) -> Option<HeaderValue> {
        let is_fresh = |latest: &&TimingValue| {
            now.saturating_duration_since(latest.at) < FRESH && latest.active == active
        };
        if let Some(latest) = self.latest.as_ref().filter(is_fresh) {
            return latest.value.clone();
        }
        // Where the controller is withheld, the pacing rate would report it.
        let hidden = active.is_empty();
        let seen = look().map(|seen| if hidden { seen.without_pacing() } else { seen });
        let parts = [Some(active.to_owned()), seen.map(Transport::metrics)];
        let parts: Vec<_> = parts.into_iter().flatten().filter(|it| !it.is_empty()).collect();
        let value = HeaderValue::try_from(parts.join(", ")).ok().filter(|it| !it.is_empty());
        self.latest =
            Some(TimingValue { at: now, active: active.to_owned(), value: value.clone() });
        value
    }
}

impl Transport {
    fn without_pacing(self) -> Self {
        Self { pacing_rate: None, ..self }
    }

    fn metrics(self) -> String {
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
    fn the_value_stays_until_it_is_stale_or_the_settings_change() {
        let (cubic, bbr) = ("cc;desc=\"cubic\"", "cc;desc=\"bbr\"");
        let (start, mut timing) = (clock::now(), Timing::default());
        let mut said = |after, active, rtt, pacing_rate| {
            let rtt = TimeDelta::from_micros(rtt);
            let look = || Some(Transport { rtt, min_rtt: TimeDelta::from_millis(20), pacing_rate });
            timing.at(start + after, active, look).expect("a header")
        };
        let first = format!("{cubic}, rtt;dur=20.11, min-rtt;dur=20.00");
        assert_eq!(said(Duration::ZERO, cubic, 20_114, None), first);
        assert_eq!(said(FRESH / 2, cubic, 30_000, None), first);
        let other = format!("{bbr}, rtt;dur=30.00, min-rtt;dur=20.00");
        assert_eq!(said(FRESH / 2, bbr, 30_000, None), other);
        let paced = said(FRESH * 2, bbr, 30_000, Some(Rate::from_mbit(94)));
        assert_eq!(paced, format!("{other}, pacing;desc=\"94.00 Mbit/s\""));
        assert_eq!(timing.at(start + FRESH * 4, cubic, || None).expect("a header"), cubic);
    }

    #[test]
    fn pacing_is_withheld_with_the_controller() {
        let rtt = TimeDelta::from_millis(20);
        let look = || Some(Transport { rtt, min_rtt: rtt, pacing_rate: Some(Rate::from_mbit(94)) });
        let said = Timing::default().at(clock::now(), "", look).expect("a header");
        assert_eq!(said, "rtt;dur=20.00, min-rtt;dur=20.00");
        assert_eq!(Timing::default().at(clock::now(), "", || None), None);
    }
}
