//! Roll-ups merge by addition, in any order, any split and with any limit.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::{prop_assert, prop_assert_eq, proptest};
use smol_str::SmolStr;
use uncork_flow::{Arm, Choice, FlowRecord, Quantiles, Scope, Service};
use uncork_testkit::assert_message;
use uncork_units::Rng;

use crate::{
    DEFAULT_MAX_ROWS, Merger, Metric, Period, Ratio, Rollup, RollupError, RollupSpec, Rollups,
    Sample, is_rollup,
};

const MINUTE_NS: u64 = 60_000_000_000;
/// 1 December 2026.
const BEGIN_NS: u64 = 1_796_083_200_000_000_000;

/// A response that began within 10 minutes.
fn record(seed: u64) -> FlowRecord {
    let mut rng = Rng::new(seed, 0);
    let client = rng.below(40);
    let start = BEGIN_NS + rng.below(10 * MINUTE_NS);
    let mut service = Service::blank(Scope::Response, start, "h2", "public");
    service.client = Some(format!("10.0.{client}.0/24").into());
    service.asn = (!client.is_multiple_of(7)).then_some(64_500 + client as u32 % 7);
    service.responses = 1;
    service.broken_off = u64::from(rng.below(20) == 0);
    let size = 1 << rng.below(26);
    let arm = ["control", "bbr"][client as usize % 2];
    let arm = (client < 38).then(|| Arm {
        experiment: "one".into(),
        arm: arm.into(),
        unit: client * 1_000_003,
        bucket: client as u8,
        propensity: 0.5,
    });
    let min = 1.0 + rng.below(100) as f64;
    FlowRecord {
        completion_ns: Some(1 + rng.below(20_000_000_000)),
        first_byte_ns: Some(rng.below(1_000_000_000)),
        busy_ns: rng.below(10_000_000_000),
        size_bytes: Some(size),
        bytes_acked: size,
        bytes_sent: size,
        bytes_retransmitted: rng.below(size + 1),
        rtt_ms: Some(Quantiles { min, p50: min * 1.3, p95: min * 2.0 }),
        service: Some(service),
        choice: Some(Box::new(Choice { policy: "p1".into(), rule: "r".into(), cc: None, arm })),
        ..FlowRecord::blank("serve", "", "cubic", (0, 0))
    }
}

fn records() -> impl Strategy<Value = Vec<FlowRecord>> {
    vec(any::<u64>(), 0..120).prop_map(|seeds| seeds.into_iter().map(record).collect())
}

fn spec(max_rows: usize) -> RollupSpec {
    RollupSpec { max_rows, ..RollupSpec::new("edge1") }
}

fn rolled(max_rows: usize, records: &[FlowRecord]) -> Vec<Rollup> {
    let mut all = Rollups::new(spec(max_rows));
    for record in records {
        all.add(record).expect("it has a time");
    }
    all.take()
}

fn merged<'a>(max_rows: usize, parts: impl IntoIterator<Item = &'a [Rollup]>) -> Vec<Rollup> {
    let mut all = Rollups::new(spec(max_rows));
    for part in parts.into_iter().flatten() {
        all.merge(part).expect("same host and period");
    }
    all.take()
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(24))]

    #[test]
    fn a_merger_equals_the_roll_up_of_all_records(
        a in records(), b in records(), max_rows in 1_usize..60,
    ) {
        let all = [&a[..], &b[..]].concat();
        let (of_a, of_b) = (rolled(max_rows, &a), rolled(max_rows, &b));
        prop_assert!(merged(max_rows, [&of_a[..], &of_b[..]]) == rolled(max_rows, &all));
    }

    #[test]
    fn merging_is_commutative_and_associative(
        a in records(), b in records(), c in records(), max_rows in 1_usize..60,
    ) {
        let [a, b, c] = [a, b, c].map(|of| rolled(max_rows, &of));
        let ab = merged(max_rows, [&a[..], &b[..]]);
        let bc = merged(max_rows, [&b[..], &c[..]]);
        prop_assert!(ab == merged(max_rows, [&b[..], &a[..]]));
        prop_assert!(merged(max_rows, [&ab[..], &c[..]]) == merged(max_rows, [&a[..], &bc[..]]));
    }

    #[test]
    fn the_order_of_records_does_not_change_a_byte(mut all in records(), max_rows in 1_usize..60) {
        let bytes = |all: &[FlowRecord]| -> Vec<Vec<u8>> {
            rolled(max_rows, all).iter().map(|it| it.to_parquet().expect("a file")).collect()
        };
        let first = bytes(&all);
        all.reverse();
        prop_assert_eq!(first, bytes(&all));
    }

    #[test]
    fn a_file_reads_back(all in records(), max_rows in 1_usize..60) {
        for rollup in rolled(max_rows, &all) {
            let file = rollup.to_parquet().expect("a file");
            prop_assert!(is_rollup(&file));
            prop_assert!(Rollup::from_parquet(file).expect("a roll-up") == rollup);
        }
    }

    #[test]
    fn a_limit_loses_no_record(all in records(), max_rows in 1_usize..60) {
        let whole = rolled(DEFAULT_MAX_ROWS, &all);
        let limited = rolled(max_rows, &all);
        let records = |of: &[Rollup]| of.iter().map(Rollup::records).sum::<u64>();
        prop_assert_eq!(records(&limited), all.len() as u64);
        prop_assert_eq!(records(&whole), all.len() as u64);
        prop_assert!(whole.iter().all(|it| it.folded() == 0));
    }
}

/// A day of all files, in their order.
fn day_of(files: &[Vec<u8>], max_rows: usize) -> Rollup {
    let day = RollupSpec { period: Period::DAY, max_rows, ..RollupSpec::new("fra") };
    let mut merger = Merger::new(day, BEGIN_NS);
    for file in files {
        assert!(merger.add(file.clone()).expect("of this day"));
    }
    merger.into_rollup()
}

/// Files of three hosts.
fn files_of_hosts(all: &[FlowRecord], max_rows: usize) -> Vec<Vec<u8>> {
    let of_host = |number: usize| {
        let spec = RollupSpec { max_rows, ..RollupSpec::new(format!("edge{number}")) };
        let mut rollups = Rollups::new(spec);
        for record in all.iter().skip(number).step_by(3) {
            rollups.add(record).expect("it has a time");
        }
        rollups.take()
    };
    let all = (0..3).flat_map(of_host);
    all.map(|rollup| rollup.to_parquet().expect("a file")).collect()
}

fn to_file(rollup: &Rollup) -> Vec<u8> {
    rollup.to_parquet().expect("a file")
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(24))]

    #[test]
    fn merger_of_hosts_in_any_order_and_grouping_has_the_same_bytes(
        all in records(), max_rows in 1_usize..60,
    ) {
        let files = files_of_hosts(&all, DEFAULT_MAX_ROWS);
        let whole = day_of(&files, max_rows);
        let mut turned = files.clone();
        turned.reverse();
        prop_assert_eq!(to_file(&whole), to_file(&day_of(&turned, max_rows)));
        let parts = files.chunks(2).map(|part| to_file(&day_of(part, max_rows)));
        let of_parts = day_of(&parts.collect::<Vec<_>>(), max_rows);
        prop_assert_eq!(to_file(&whole), to_file(&of_parts));
        prop_assert_eq!(whole.sources().len(), files.len());
    }

    #[test]
    fn merger_of_hosts_without_limit_has_all_rows_of_the_files(
        all in records(), max_rows in 1_usize..60,
    ) {
        let files = files_of_hosts(&all, max_rows);
        let parsed: Vec<_> =
            files.iter().map(|it| Rollup::from_parquet(it.clone()).expect("a roll-up")).collect();
        let whole = day_of(&files, usize::MAX);
        let sum = |of: fn(&Rollup) -> u64| parsed.iter().map(of).sum::<u64>();
        prop_assert_eq!(whole.records(), sum(Rollup::records));
        prop_assert_eq!(whole.folded(), sum(Rollup::folded));
        prop_assert_eq!(by_client(std::slice::from_ref(&whole)), by_client(&parsed));
        prop_assert!(Rollup::from_parquet(to_file(&whole)).expect("a roll-up") == whole);
    }
}

#[test]
fn merger_of_hosts_counts_a_file_that_comes_again_once() {
    let all: Vec<_> = (0..200).map(record).collect();
    let files = files_of_hosts(&all, DEFAULT_MAX_ROWS);
    let whole = to_file(&day_of(&files, usize::MAX));
    let day = RollupSpec { period: Period::DAY, ..RollupSpec::new("fra") };
    let mut again = Merger::new(day.clone(), BEGIN_NS);
    assert!(again.add(whole).expect("a day"));
    for file in &files {
        assert!(!again.add(file.clone()).expect("a file of the day"));
    }
    assert_eq!(again.into_rollup().records(), 200);
    let [one, two] = [&files[..2], &files[1..]].map(|some| to_file(&day_of(some, usize::MAX)));
    let mut other = Merger::new(day.clone(), BEGIN_NS);
    assert!(other.add(one.clone()).expect("a day"));
    let error = other.add(two).expect_err("it has a file of the first");
    assert!(matches!(error, RollupError::Overlap(1)));
    assert_message!("a file in two mergers", error);
    let mut next = Merger::new(day, BEGIN_NS + 24 * 60 * MINUTE_NS);
    let error = next.add(files[0].clone()).expect_err("the day before");
    assert!(matches!(error, RollupError::NotWithin { .. }));
    assert_message!("the day before", error);
    let merger = Rollup::from_parquet(one).expect("a roll-up");
    let few = Merger::new(RollupSpec { period: Period::DAY, ..RollupSpec::new("a") }, BEGIN_NS);
    let mut few = few.only(&[Metric::Throughput]);
    few.add(to_file(&merger)).expect("a day");
    let few = few.into_rollup();
    let bins = |of: &Rollup, is_it: fn(Metric) -> bool| -> usize {
        let bins = of.sorted().into_iter().flat_map(|row| row.values.bins.clone());
        bins.filter(|bin| is_it(bin.metric)).count()
    };
    assert_eq!(bins(&few, |it| it != Metric::Throughput), 0);
    assert_eq!(
        bins(&few, |it| it == Metric::Throughput),
        bins(&merger, |it| it == Metric::Throughput)
    );
    assert_eq!(few.records(), merger.records());
    let error = merger.clone().merge(&merger).expect_err("of many hosts");
    assert_message!("a merger as a host", error);
}

#[test]
fn a_limit_folds_clients_and_the_file_says_how_many() {
    let all: Vec<_> = (0..2_000).map(record).collect();
    let rollup = &rolled(20, &all)[0];
    assert!(rollup.folded() > 0 && rollup.folded() < rollup.records());
    assert!(rolled(20, &all).iter().all(|it| it.rows() < rolled(10_000, &all)[0].rows()));
    let file = rollup.to_parquet().expect("a file");
    let text = String::from_utf8_lossy(&file).into_owned();
    assert!(text.contains("rollup.folded_records"));
}

/// Records and bytes by client network: of its rows with arms, and of its traffic without.
fn by_client(all: &[Rollup]) -> BTreeMap<Option<SmolStr>, (u64, u64)> {
    let mut found = BTreeMap::new();
    for rollup in all {
        let of_rows = rollup.sorted().into_iter().filter(|row| row.key.client.is_some());
        let of_rows =
            of_rows.map(|row| (row.key.client.clone(), row.values.records, row.values.bytes));
        let traffic = rollup.sorted_traffic().into_iter();
        let traffic =
            traffic.map(|row| (row.key.client.clone(), row.amount.records, row.amount.bytes));
        for (client, records, bytes) in of_rows.chain(traffic) {
            let sum: &mut (u64, u64) = found.entry(client).or_default();
            *sum = (sum.0 + records, sum.1 + bytes);
        }
    }
    found
}

#[test]
fn traffic_of_clients_without_arm_and_of_folded_ones_keeps_their_network() {
    let all: Vec<_> = (0..2_000).map(record).collect();
    let mut expected: BTreeMap<Option<SmolStr>, (u64, u64)> = BTreeMap::new();
    for record in &all {
        let client = record.service.as_ref().and_then(|service| service.client.clone());
        let sum = expected.entry(client).or_default();
        *sum = (sum.0 + 1, sum.1 + record.bytes_acked);
    }
    assert_eq!(expected.len(), 40);
    assert_eq!(by_client(&rolled(10_000, &all)), expected);
    // 120 rows of traffic are enough for all networks, and not for all rows of clients.
    let limited = rolled(120, &all);
    assert!(limited.iter().all(|it| it.folded() > 0));
    assert_eq!(by_client(&limited), expected);
    // Too few: some networks lose their name, and no byte is lost.
    let few = by_client(&rolled(20, &all));
    assert!(few.contains_key(&None) && few.len() < 41);
    let sum = |of: &BTreeMap<_, (u64, u64)>| of.values().map(|it| it.1).sum::<u64>();
    assert_eq!(sum(&few), sum(&expected));
}

#[test]
fn ratios_of_the_start_leave_out_larger_objects_and_contradictions() {
    let mut one = record(1);
    (one.size_bytes, one.bytes_sent, one.bytes_retransmitted) = (Some(100_000), 100_500, 500);
    one.rtt_ms = Some(Quantiles { min: 10.0, p50: 12.5, p95: 20.0 });
    assert_eq!(Ratio::StartResent.parts(&one), (500, 100_500));
    assert_eq!(Ratio::Queued.parts(&one), (2_500, 12_500));
    one.size_bytes = Some(100_001);
    one.rtt_ms = Some(Quantiles { min: 13.0, p50: 12.5, p95: 20.0 });
    assert_eq!(Ratio::StartResent.parts(&one), (0, 0));
    assert_eq!(Ratio::Queued.parts(&one), (0, 0));
}

#[test]
fn other_hosts_and_periods_do_not_merge() {
    let all: Vec<_> = (0..200).map(record).collect();
    let parts = rolled(100, &all);
    let mut first = parts[0].clone();
    let error = first.merge(&parts[1]).expect_err("the next period");
    assert!(matches!(error, RollupError::OtherPeriod { .. }));
    assert_message!("the next period", error);
    let mut other = Rollup::new(RollupSpec::new("edge2"), parts[0].start_ns());
    let error = other.merge(&parts[0]).expect_err("another host");
    assert!(matches!(error, RollupError::OtherHost { .. }));
    assert_message!("another host", error);
}

#[test]
fn a_record_without_a_time_and_a_file_of_records_are_errors() {
    let mut all = Rollups::new(spec(10));
    let error = all.add(&FlowRecord::blank("sim", "", "cubic", (0, 0))).expect_err("no time");
    assert!(matches!(error, RollupError::NoTime));
    assert_message!("no time", error);
    let mut file = Vec::new();
    let row = record(1);
    let rows = [uncork_flow::Labelled::plain(&row)].into_iter();
    uncork_flow::write_flows(&mut file, &uncork_flow::TableHead::default(), rows).expect("a file");
    assert!(!is_rollup(&file));
    let error = Rollup::from_parquet(file).expect_err("records");
    assert!(matches!(error, RollupError::NotARollup(_)));
    assert_message!("records", error);
    assert!(matches!(Rollup::from_parquet(vec![1, 2, 3]), Err(RollupError::Parquet(_))));
}

#[test]
fn periods_are_taken_when_they_ended() {
    let mut all = Rollups::new(spec(100));
    for seed in 0..100 {
        all.add(&record(seed)).expect("it has a time");
    }
    assert_eq!(all.next_end(), Some(BEGIN_NS + 5 * MINUTE_NS));
    assert!(all.take_ended(BEGIN_NS + 5 * MINUTE_NS - 1).is_empty());
    assert_eq!(all.take_ended(BEGIN_NS + 5 * MINUTE_NS).len(), 1);
    assert_eq!(all.take().len(), 1);
    assert_eq!(all.next_end(), None);
}

#[test]
fn a_sample_has_all_records_of_a_unit_and_about_its_share_of_units() {
    let tenth: Sample = "10%".parse().expect("a share");
    let with_unit = |unit: u64| {
        let mut record = record(3);
        let arm = record.choice.as_mut().and_then(|choice| choice.arm.as_mut());
        arm.expect("an arm").unit = unit;
        record
    };
    let chosen = (0..20_000).filter(|unit| tenth.has(&with_unit(*unit))).count();
    assert!((1_850..2_150).contains(&chosen), "{chosen}");
    assert!(Sample::ALL.has(&record(1)));
    assert!(!"0%".parse::<Sample>().expect("none").has(&record(1)));
    for text in ["1", "-1%", "101%", "", "%"] {
        assert!(text.parse::<Sample>().is_err(), "{text}");
    }
    assert_eq!(tenth.to_string(), "10%");
}

#[test]
fn metrics_follow_the_scope_of_the_record() {
    let mut large = record(1);
    large.size_bytes = Some(4_000_000);
    large.busy_ns = 1_000_000_000;
    large.bytes_acked = 4_000_000;
    // 32 Mbit/s
    assert_eq!(Metric::Throughput.bin(&large), Some(873));
    assert_eq!(Metric::Completion.bin(&large), None);
    large.size_bytes = Some(40_000);
    assert_eq!(Metric::Throughput.bin(&large), None);
    assert!(Metric::Completion.bin(&large).is_some());
    assert_eq!(Metric::PlaybackLatency.bin(&large), None);
}

#[test]
fn error_pages_and_redirects_are_no_downloads_and_errors_are_failed() {
    let with = |status: Option<u16>| {
        let mut record = record(1);
        record.size_bytes = Some(40_000);
        record.service.as_mut().expect("a response").status = status;
        record
    };
    let metrics = [Metric::Completion, Metric::FirstByte];
    for (status, is_download, failed) in [
        (None, true, (0, 0)),
        (Some(206), true, (0, 1)),
        (Some(302), false, (0, 1)),
        (Some(404), false, (1, 1)),
        (Some(460), true, (0, 1)),
        (Some(499), true, (0, 1)),
        (Some(502), false, (1, 1)),
    ] {
        let record = with(status);
        assert!(metrics.iter().all(|it| it.bin(&record).is_some() == is_download), "{status:?}");
        assert_eq!(Ratio::Failed.parts(&record), failed, "{status:?}");
    }
    let mut large = with(Some(502));
    large.size_bytes = Some(4_000_000);
    assert_eq!((Metric::Throughput.bin(&large), Metric::Bandwidth.bin(&large)), (None, None));
}
