//! The columns that only a server fills.

use parquet::record::Field;
use smol_str::SmolStr;

use super::read::{Row, U32};
use super::write::Cells::{MaybeCount, MaybeNumber, MaybeText};
use super::write::{Column, column};
use crate::ecn::{EcnEvidence, EcnUse};
use crate::error::FileError;
use crate::record::FlowRecord;
use crate::service::{Arm, Choice, Scope, Service};

type Columns<'a, const N: usize> = [Column<&'a FlowRecord>; N];

/// The columns of [`Service`].
pub(super) fn service_columns<'a>() -> Columns<'a, 17> {
    [
        column("service_scope", MaybeText(|it| of(it, |it| Some(it.scope.name())))),
        column("service_start_unix_ns", MaybeCount(|it| of(it, |it| Some(it.start_unix_ns)))),
        column("service_protocol", MaybeText(|it| of(it, |it| Some(&it.protocol)))),
        column("service_listener", MaybeText(|it| of(it, |it| Some(&it.listener)))),
        column("service_host", MaybeText(|it| of(it, |it| it.host.as_deref()))),
        column("service_client", MaybeText(|it| of(it, |it| it.client.as_deref()))),
        column("service_asn", MaybeCount(|it| of(it, |it| it.asn).map(u64::from))),
        column("service_country", MaybeText(|it| of(it, |it| it.country.as_deref()))),
        column("service_status", MaybeCount(|it| of(it, |it| it.status).map(u64::from))),
        column("service_object_bytes", MaybeCount(|it| of(it, |it| it.object_bytes))),
        column("service_responses", MaybeCount(|it| of(it, |it| Some(it.responses)))),
        column("service_broken_off", MaybeCount(|it| of(it, |it| Some(it.broken_off)))),
        column("service_min_rtt_ns", MaybeCount(|it| of(it, |it| it.min_rtt_ns))),
        column("service_delivery_rate_bps", MaybeCount(|it| of(it, |it| it.delivery_rate_bps))),
        column("service_rwnd_limited_ns", MaybeCount(|it| of(it, |it| it.rwnd_limited_ns))),
        column("service_sndbuf_limited_ns", MaybeCount(|it| of(it, |it| it.sndbuf_limited_ns))),
        column("service_app_limited_ns", MaybeCount(|it| of(it, |it| it.app_limited_ns))),
    ]
}

/// The columns of [`Service`] that only some operators want, if at least one record `has` them.
pub(super) fn optional_columns<'a>(
    has: impl Fn(fn(&FlowRecord) -> bool) -> bool,
) -> Vec<Column<&'a FlowRecord>> {
    let ports: Columns<'a, 2> = [
        column("service_client_port", MaybeCount(|it| of(it, |it| it.client_port).map(u64::from))),
        column("service_end_unix_ns", MaybeCount(|it| of(it, |it| it.end_unix_ns))),
    ];
    let window: Columns<'a, 1> = [column(
        "service_initial_window",
        MaybeCount(|it| of(it, |it| it.initial_window).map(u64::from)),
    )];
    let region: Columns<'a, 1> =
        [column("region", MaybeText(|it| of(it, |it| it.region.as_deref())))];
    let ecn: Columns<'a, 1> =
        [column("service_ecn", MaybeText(|it| of(it, |it| it.ecn).map(EcnUse::name)))];
    let evidence: Columns<'a, 6> = [
        column("service_ecn_rounds", MaybeCount(|it| seen(it, |it| it.rounds.into()))),
        column(
            "service_ecn_marked_rounds",
            MaybeCount(|it| seen(it, |it| it.marked_rounds.into())),
        ),
        column("service_ecn_l4s_rounds", MaybeCount(|it| seen(it, |it| it.l4s_rounds.into()))),
        column(
            "service_ecn_classic_rounds",
            MaybeCount(|it| seen(it, |it| it.classic_rounds.into())),
        ),
        column("service_ecn_marked_queue_us", MaybeCount(|it| seen(it, |it| it.marked_queue_us))),
        column("service_ecn_fell_back", MaybeCount(|it| seen(it, |it| it.fell_back.into()))),
    ];
    let has_ports = has(|it| of(it, |it| it.client_port).is_some());
    let has_window = has(|it| of(it, |it| it.initial_window).is_some());
    let has_region = has(|it| it.service.as_ref().is_some_and(|it| it.region.is_some()));
    let has_ecn = has(|it| of(it, |it| it.ecn).is_some());
    let has_evidence = has(|it| of(it, |it| it.ecn_evidence.as_ref()).is_some());
    let ports = has_ports.then_some(ports).into_iter().flatten();
    let window = has_window.then_some(window).into_iter().flatten();
    let ecn = has_ecn.then_some(ecn).into_iter().flatten();
    let ecn = ecn.chain(has_evidence.then_some(evidence).into_iter().flatten());
    ports
        .chain(window)
        .chain(has_region.then_some(region).into_iter().flatten())
        .chain(ecn)
        .collect()
}

/// The columns of [`Choice`] and its [`Arm`].
pub(super) fn choice_columns<'a>() -> Columns<'a, 8> {
    [
        column(
            "choice_policy",
            MaybeText(|it| it.choice.as_ref()?.known_policy().map(SmolStr::as_str)),
        ),
        column("choice_rule", MaybeText(|it| it.choice.as_ref().map(|it| it.rule.as_str()))),
        column("choice_cc", MaybeText(|it| it.choice.as_ref().and_then(|it| it.cc.as_deref()))),
        column("arm_experiment", MaybeText(|it| arm(it).map(|it| it.experiment.as_str()))),
        column("arm", MaybeText(|it| arm(it).map(|it| it.arm.as_str()))),
        column("arm_unit", MaybeCount(|it| arm(it).map(|it| it.unit))),
        column("arm_bucket", MaybeCount(|it| arm(it).map(|it| u64::from(it.bucket)))),
        column("arm_propensity", MaybeNumber(|it| arm(it).map(|it| it.propensity))),
    ]
}

fn of<'r, T>(record: &'r FlowRecord, field: fn(&'r Service) -> Option<T>) -> Option<T> {
    record.service.as_ref().and_then(field)
}

fn arm(record: &FlowRecord) -> Option<&Arm> {
    record.choice.as_ref()?.arm.as_ref()
}

/// `None` for other than a server's record. The lines of a log have a start and no scope: each is a response.
pub(super) fn service(row: &mut Row) -> Result<Option<Service>, FileError> {
    let scope = row.text_if_any("service_scope")?.filter(|scope| !scope.is_empty());
    let start_unix_ns = row.count_if_any("service_start_unix_ns")?;
    let scope = match scope {
        Some(scope) => Scope::named(&scope).ok_or_else(|| {
            row.unexpected("service_scope", "response or connection", &Field::Str(scope.into()))
        })?,
        None if start_unix_ns.is_some() => Scope::Response,
        None => return Ok(None),
    };
    Ok(Some(Service {
        scope,
        start_unix_ns: start_unix_ns.unwrap_or_default(),
        protocol: row.text_if_any("service_protocol")?.unwrap_or_default(),
        listener: row.text_if_any("service_listener")?.unwrap_or_default(),
        host: row.text_if_any("service_host")?,
        client: row.text_if_any("service_client")?,
        client_port: row.narrow("service_client_port", "a port")?,
        end_unix_ns: row.count_if_any("service_end_unix_ns")?,
        initial_window: row.narrow("service_initial_window", U32)?,
        region: row.text_if_any("region")?,
        asn: row.narrow("service_asn", U32)?,
        country: row.text_if_any("service_country")?,
        status: row.narrow("service_status", "a status code")?,
        object_bytes: row.count_if_any("service_object_bytes")?,
        responses: row.count_or_zero("service_responses")?,
        broken_off: row.count_or_zero("service_broken_off")?,
        min_rtt_ns: row.count_if_any("service_min_rtt_ns")?,
        delivery_rate_bps: row.count_if_any("service_delivery_rate_bps")?,
        ecn: ecn(row)?,
        ecn_evidence: ecn_evidence(row)?.map(Box::new),
        rwnd_limited_ns: row.count_if_any("service_rwnd_limited_ns")?,
        sndbuf_limited_ns: row.count_if_any("service_sndbuf_limited_ns")?,
        app_limited_ns: row.count_if_any("service_app_limited_ns")?,
    }))
}

fn seen(record: &FlowRecord, field: fn(&EcnEvidence) -> u64) -> Option<u64> {
    of(record, |it| it.ecn_evidence.as_deref()).map(field)
}

/// `None` of a connection that did not send ECT(1).
fn ecn_evidence(row: &mut Row) -> Result<Option<EcnEvidence>, FileError> {
    let Some(rounds) = row.narrow("service_ecn_rounds", U32)? else { return Ok(None) };
    Ok(Some(EcnEvidence {
        rounds,
        marked_rounds: row.narrow("service_ecn_marked_rounds", U32)?.unwrap_or_default(),
        l4s_rounds: row.narrow("service_ecn_l4s_rounds", U32)?.unwrap_or_default(),
        classic_rounds: row.narrow("service_ecn_classic_rounds", U32)?.unwrap_or_default(),
        marked_queue_us: row.count_or_zero("service_ecn_marked_queue_us")?,
        fell_back: row.count_or_zero("service_ecn_fell_back")? != 0,
    }))
}

fn ecn(row: &mut Row) -> Result<Option<EcnUse>, FileError> {
    let Some(name) = row.text_if_any("service_ecn")?.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let unknown = || {
        row.unexpected("service_ecn", "none, classic, l4s or failed", &Field::Str(name.to_string()))
    };
    EcnUse::named(&name).map(Some).ok_or_else(unknown)
}

/// `None` without a policy, a rule and an arm. Records of others have an arm, but often no policy.
pub(super) fn choice(row: &mut Row) -> Result<Option<Choice>, FileError> {
    let (policy, rule) = (row.text_if_any("choice_policy")?, row.text_if_any("choice_rule")?);
    let (cc, arm) = (row.text_if_any("choice_cc")?, read_arm(row)?);
    if policy.is_none() && rule.is_none() && arm.is_none() {
        return Ok(None);
    }
    let (policy, rule) = (policy.unwrap_or_default(), rule.unwrap_or_default());
    Ok(Some(Choice { policy, rule, cc, arm }))
}

/// `None` if no experiment with known shares chose, as of a log.
fn read_arm(row: &mut Row) -> Result<Option<Arm>, FileError> {
    let experiment = row.text_if_any("arm_experiment")?;
    let propensity = row.maybe_number("arm_propensity")?;
    let (Some(experiment), Some(propensity)) = (experiment, propensity) else { return Ok(None) };
    Ok(Some(Arm {
        experiment,
        arm: row.text_if_any("arm")?.unwrap_or_default(),
        unit: row.count_or_zero("arm_unit")?,
        bucket: row.narrow("arm_bucket", "a whole number below 100")?.unwrap_or_default(),
        propensity,
    }))
}
