use proptest::collection::vec;
use proptest::prelude::{Strategy as _, prop_assert, prop_assert_eq, proptest};

use super::*;

fn distribution(nanos: impl IntoIterator<Item = u64>) -> Distribution {
    let mut distribution = Distribution::new();
    nanos.into_iter().for_each(|nanos| distribution.record(nanos));
    distribution
}

fn within(value: f64, expected: f64, tolerance: f64) -> bool {
    (value - expected).abs() <= expected * tolerance
}

fn heap_bytes(distribution: &Distribution) -> usize {
    distribution.cells.capacity() + distribution.carries.capacity() * size_of::<Carry>()
}

#[test]
fn empty_distribution_has_no_quantiles() {
    assert_eq!((Distribution::new().quantiles(), Distribution::new().p99_ms()), (None, None));
}

#[test]
fn constant_values_are_exact() {
    let quantiles = distribution([40_123_456; 1_000]).quantiles();
    let value = 40.123_456;
    assert_eq!(quantiles, Some(Quantiles { min: value, p50: value, p95: value }));
}

#[test]
fn quantiles_over_many_magnitudes_are_within_0_4_percent() {
    for scale in [1_000, 40_000, 1_000_000, 900_000_000] {
        let quantiles = distribution((1..=1_000).map(|n| n * scale)).quantiles().unwrap();
        let unit = scale as f64 / 1e6;
        assert!(within(quantiles.min, unit, 0.0), "{quantiles:?}");
        assert!(within(quantiles.p50, 500.0 * unit, 0.004), "{quantiles:?}");
        assert!(within(quantiles.p95, 950.0 * unit, 0.004), "{quantiles:?}");
    }
}

/// RTTs between the minimum and `factor` times that.
#[test]
fn quantiles_over_one_magnitude_are_within_0_1_percent() {
    for (factor, tolerance) in [(2, 0.001), (4, 0.002), (1000, 0.004)] {
        for base in [1_000_000, 50_000_000] {
            let step = base * (factor - 1) / 10_000;
            let rtts = distribution((0..10_000).map(|n| base + n * step)).quantiles().unwrap();
            for (value, n) in [(rtts.p50, 4_999), (rtts.p95, 9_499)] {
                let exact = millis(base + n * step);
                assert!(within(value, exact, tolerance), "{factor}: {value} for {exact}");
            }
        }
    }
}

#[test]
fn below_a_microsecond_only_the_minimum_is_exact() {
    let quantiles = distribution([300, 400, 500]).quantiles().unwrap();
    assert!(within(quantiles.min, 0.000_3, 0.0));
    assert!(quantiles.p50 >= 0.000_3 && quantiles.p95 <= 0.000_5);
}

#[test]
fn zero_and_huge_values_are_counted() {
    let distribution = distribution([0, 0, 0, u64::MAX]);
    let quantiles = distribution.quantiles().unwrap();
    assert_eq!(distribution.count(), 4);
    assert_eq!((quantiles.min, quantiles.p50), (0.0, 0.0));
    assert!(within(quantiles.p95, 1e6, 0.001), "1000 s: {quantiles:?}");
}

#[test]
fn every_duration_has_a_cell_near_it() {
    for step in 0..12 {
        let resolution = Resolution(step);
        let mut last = 0;
        for units in (0..100_000).chain((100_000..=MAX_UNITS).step_by(99_991)).chain([MAX_UNITS]) {
            let cell = resolution.cell_of(units);
            assert!(cell >= last && u16::try_from(cell).is_ok(), "{units} µs: {cell} after {last}");
            assert!(resolution.cell_and_page_of(units).1 < PAGES);
            let middle = resolution.middle_of(cell);
            let off = middle.abs_diff(units);
            let near =
                off << (resolution.bits() + 1) <= units || off <= (1 << resolution.shift()) / 2;
            assert!(near, "{units} µs: {middle}");
            last = cell;
        }
    }
    assert!(PAGES <= usize::from(NOWHERE), "places are bytes");
}

#[test]
fn counts_beyond_a_byte_are_carried() {
    let mut both =
        distribution((0..1_000_000).map(|n| if n % 10 < 4 { 1_000_000 } else { 9_000_000 }));
    let (cells, carries) = (both.cells.len(), both.carries.len());
    assert_eq!((both.count(), cells, carries), (1_000_000, 256, 2));
    assert_eq!(both.counts().map(|(_, count)| count).collect::<Vec<_>>(), [400_000, 600_000]);
    both.merge(&both.clone());
    assert_eq!(both.counts().map(|(_, count)| count).collect::<Vec<_>>(), [800_000, 1_200_000]);
}

/// The delays of a transfer of some megabytes: RTTs of 50 to 100 ms, and queueing delays from 0 to
/// 50 ms with a median of 25 ms.
#[test]
fn delays_of_a_transfer_take_little_space() {
    let rtts = distribution((0..2_000).map(|n| 50_000_000 + n * 25_000));
    let queueing = distribution((0..4_000).map(|n| n * 12_500));
    for distribution in [&rtts, &queueing] {
        assert!(heap_bytes(distribution) <= SPACE, "{}", heap_bytes(distribution));
    }
    assert!(size_of::<Distribution>() <= 272, "{}", size_of::<Distribution>());
    assert!(within(queueing.quantiles().expect("not empty").p50, 25.0, 0.004));
}

/// Ten of a thousand RTT samples include a timeout; the precision of the others is not affected.
#[test]
fn outliers_cost_no_precision() {
    let usual = (0..990).map(|n| 50_000_000 + n * 10_000);
    let stragglers = (0..10).map(|n| 1_000_000_000 + n * 100_000_000);
    let quantiles = distribution(usual.chain(stragglers)).quantiles().expect("not empty");
    assert!(within(quantiles.p50, 54.99, 0.002), "{quantiles:?}");
}

proptest! {
    /// Compared with the exact order statistic.
    #[test]
    fn quantiles_agree_with_sorting(
        mut nanos in vec((0_u64..60, 0_u64..1_000_000).prop_map(|(bits, low)| (low << bits) >> 20), 1..400),
    ) {
        for nanos in &mut nanos {
            *nanos = (*nanos).min(MAX_UNITS * NANOS_PER_UNIT);
        }
        let recorded = distribution(nanos.iter().copied());
        let quantiles = recorded.quantiles().expect("not empty");
        let p99 = recorded.p99_ms().expect("not empty");
        nanos.sort_unstable();
        let largest = millis(nanos[nanos.len() - 1]);
        for (value, share) in [(quantiles.p50, 0.5), (quantiles.p95, 0.95), (p99, 0.99)] {
            let rank = (share * nanos.len() as f64).ceil() as usize;
            let exact = millis(nanos[rank - 1]);
            prop_assert!((value - exact).abs() <= exact.max(largest / 8.0) / 256.0 + 0.001, "{value} for {exact}");
        }
        prop_assert!(quantiles.min.total_cmp(&millis(nanos[0])).is_eq());
    }

    #[test]
    fn merging_is_recording_both(
        one in vec(0_u64..100_000_000, 0..500),
        other in vec(0_u64..100_000_000, 0..500),
    ) {
        let mut merged = distribution(one.iter().copied());
        merged.merge(&distribution(other.iter().copied()));
        let whole = distribution(one.into_iter().chain(other));
        prop_assert_eq!(merged.count(), whole.count());
        prop_assert_eq!(merged.quantiles(), whole.quantiles());
        prop_assert!(merged.counts().eq(whole.counts()));
    }
}
