//! Named distributions of object sizes.

use std::str::FromStr;

use uncork_units::ByteCount;

use crate::ObjectSizes;

/// `web-search`: flows of a cluster that answers web searches. Points in percent, as used by the
/// simulators of DCTCP (Alizadeh et al., SIGCOMM 2010), pFabric and HPCC; this is HPCC's
/// `traffic_gen/WebSearch_distribution.txt`. The mean is 1.711 MB.
const WEB_SEARCH: [(u64, u64); 12] = [
    (0, 0),
    (10_000, 15),
    (20_000, 20),
    (30_000, 30),
    (50_000, 40),
    (80_000, 53),
    (200_000, 60),
    (1_000_000, 70),
    (2_000_000, 80),
    (5_000_000, 90),
    (10_000_000, 97),
    (30_000_000, 100),
];

/// `web`: synthetic web objects with the parameters of SURGE (Barford and Crovella, SIGMETRICS
/// 1998). Up to 133 kB the sizes are lognormal with mu = 9.357 and sigma = 1.318. The remaining 3.2
/// % are a Pareto tail with alpha = 1.1, truncated at 100 MB, because otherwise very rare objects
/// would dominate its mean. The join and the truncation are choices of this table. It has shares in
/// millionths at ten sizes per decade from 100 B (the Renard series R10); linear interpolation is
/// off by at most 0.3 % of the objects. The mean is 42 kB.
#[rustfmt::skip]
const WEB: [u64; 61] = [
    156, 295, 580, 1_037, 1_806, 3_121, 5_332, 8_558, 13_592, 21_300,
    31_563, 45_610, 66_587, 91_365, 122_396, 161_640, 209_981, 262_003, 322_101, 389_517,
    455_699, 523_138, 596_899, 660_795, 720_369, 776_160, 826_530, 866_468, 900_638, 928_737,
    949_055, 964_467, 973_888, 979_576, 984_026, 987_617, 990_484, 992_560, 994_235, 995_572,
    996_541, 997_298, 997_946, 998_398, 998_751, 999_037, 999_264, 999_429, 999_562, 999_669,
    999_745, 999_806, 999_857, 999_893, 999_921, 999_944, 999_962, 999_975, 999_985, 999_994,
    1_000_000,
];

/// The Renard series R10, from 100 B on.
const WEB_DECADE: [u64; 10] = [100, 125, 160, 200, 250, 315, 400, 500, 630, 800];

/// A text that is not a valid object size distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected web-search, web, or one size, such as fixed:64KiB")]
pub struct ObjectSizesError;

/// Parses `web-search`, `web`, or `fixed:` and a size, such as `fixed:64KiB`.
///
/// - `web-search`: flows of a cluster that answers web searches, 1 B to 30 MB, mean 1.711 MB (DCTCP,
///   Alizadeh et al., SIGCOMM 2010; the points are from HPCC).
/// - `web`: synthetic objects of the Web, 1 B to 100 MB, mean 42 kB (the lognormal body and the
///   Pareto tail of SURGE, Barford and Crovella, SIGMETRICS 1998).
/// - `fixed`: always the same size.
impl FromStr for ObjectSizes {
    type Err = ObjectSizesError;

    fn from_str(text: &str) -> Result<Self, ObjectSizesError> {
        match text {
            "web-search" => Ok(Self::from_points(100, WEB_SEARCH)),
            "web" => Ok(Self::from_points(1_000_000, web())),
            _ => fixed(text).ok_or(ObjectSizesError),
        }
    }
}

fn fixed(text: &str) -> Option<ObjectSizes> {
    let bytes: ByteCount = text.strip_prefix("fixed:")?.parse().ok()?;
    (bytes != ByteCount::ZERO).then(|| ObjectSizes::fixed(bytes.as_u64()))
}

/// The points of `web`; the first one excludes empty objects.
fn web() -> impl Iterator<Item = (u64, u64)> {
    let sizes = (0..7).flat_map(|decade| WEB_DECADE.map(|bytes| bytes * 10_u64.pow(decade)));
    [(0, 0)].into_iter().chain(sizes.zip(WEB))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;
    use uncork_units::Rng;

    fn named(name: &str) -> ObjectSizes {
        name.parse().expect("a name")
    }

    /// The published mean of these points.
    #[test]
    fn web_search_has_its_published_mean() {
        assert_eq!(named("web-search").mean(), 1_711_250);
        assert_eq!(named("web-search").largest(), 30_000_000);
    }

    /// The number of draws up to each point matches its share: binomial with 100000 draws, four
    /// standard deviations.
    #[test]
    fn web_search_samples_pass_through_its_points() {
        let (sizes, n) = (named("web-search"), 100_000_u32);
        let mut rng = Rng::new(11, 0);
        let drawn: Vec<u64> = (0..n).map(|_| sizes.sample(&mut rng)).collect();
        for (bytes, percent) in WEB_SEARCH {
            let expected = f64::from(n) * percent as f64 / 100.0;
            let found = drawn.iter().filter(|size| **size <= bytes).count() as f64;
            let deviation = (expected * (1.0 - percent as f64 / 100.0)).sqrt();
            assert!((found - expected).abs() <= 4.0 * deviation, "{bytes}: {found}");
        }
    }

    /// The standard normal distribution function, by Simpson's rule.
    fn normal(z: f64) -> f64 {
        let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let steps = 400;
        let h = z / f64::from(steps);
        let inner: f64 = (1..steps)
            .map(|i| f64::from(if i % 2 == 1 { 4 } else { 2 }) * density(f64::from(i) * h))
            .sum();
        0.5 + h / 3.0 * (density(0.0) + inner + density(z))
    }

    /// SURGE's formulas, joined at 133 kB and cut at 100 MB.
    fn surge(bytes: f64) -> f64 {
        let body = |bytes: f64| normal((bytes.ln() - 9.357) / 1.318);
        let (join, cut, alpha) = (133e3_f64, 1e8, 1.1);
        if bytes <= join {
            return body(bytes);
        }
        let above = |bytes: f64| (join / bytes).powf(alpha);
        1.0 - (1.0 - body(join)) * (above(bytes) - above(cut)) / (1.0 - above(cut))
    }

    #[test]
    fn web_table_matches_surges_formulas() {
        let points: Vec<(u64, u64)> = web().collect();
        assert_eq!(points.last(), Some(&(100_000_000, 1_000_000)));
        for (bytes, share) in &points[1..] {
            let expected = surge(*bytes as f64);
            assert!((*share as f64 / 1e6 - expected).abs() < 1e-6, "{bytes}: {expected}");
        }
        for pair in points[1..].windows(2) {
            for part in 1..10 {
                let between = |a: u64, b: u64| a as f64 + (b - a) as f64 * f64::from(part) / 10.0;
                let share = between(pair[0].1, pair[1].1) / 1e6;
                let distance = (share - surge(between(pair[0].0, pair[1].0))).abs();
                assert!(distance < 0.003, "{pair:?}: {distance}");
            }
        }
    }

    /// The mean of the formulas is the integral of the complementary distribution.
    #[test]
    fn web_mean_matches_surges_formulas() {
        let (steps, span) = (4000, 1e8_f64.ln());
        let mean: f64 = (0..steps)
            .map(|step| {
                let bytes = (span * (f64::from(step) + 0.5) / f64::from(steps)).exp();
                (1.0 - surge(bytes)) * bytes * span / f64::from(steps)
            })
            .sum();
        let table = named("web").mean() as f64;
        assert!((table / mean - 1.0).abs() < 0.02, "{table} {mean}");
    }

    #[test]
    fn builtin_sizes_are_found_by_name() {
        assert_eq!(named("fixed:64KiB"), ObjectSizes::fixed(65_536));
        for text in ["", "web ", "Web", "fixed", "fixed:", "fixed:64", "fixed:0B", "64KiB"] {
            assert_eq!(text.parse::<ObjectSizes>(), Err(ObjectSizesError), "{text}");
        }
        assert_message!("", ObjectSizesError);
    }
}
