//! The columns that only a server fills.

use super::read::Row;
use super::write::Cells::{MaybeCount, MaybeNumber, MaybeText};
use super::write::Column;
use crate::error::FileError;
use crate::record::FlowRecord;
use crate::service::{Arm, Choice, Scope, Service};

type Columns<'a, const N: usize> = [Column<&'a FlowRecord>; N];

/// Of [`Service`].
pub(super) fn service_columns<'a>() -> Columns<'a, 17> {
    [
        Column { name: "service_scope", cells: MaybeText(|it| of(it, |to| Some(to.scope.name()))) },
        Column {
            name: "service_start_unix_ns",
            cells: MaybeCount(|it| of(it, |to| Some(to.start_unix_ns))),
        },
        Column { name: "service_protocol", cells: MaybeText(|it| of(it, |to| Some(&to.protocol))) },
        Column { name: "service_listener", cells: MaybeText(|it| of(it, |to| Some(&to.listener))) },
        Column { name: "service_host", cells: MaybeText(|it| of(it, |to| to.host.as_deref())) },
        Column { name: "service_client", cells: MaybeText(|it| of(it, |to| to.client.as_deref())) },
        Column { name: "service_asn", cells: MaybeCount(|it| of(it, |to| to.asn).map(u64::from)) },
        Column {
            name: "service_country",
            cells: MaybeText(|it| of(it, |to| to.country.as_deref())),
        },
        Column {
            name: "service_status",
            cells: MaybeCount(|it| of(it, |to| to.status).map(u64::from)),
        },
        Column {
            name: "service_object_bytes",
            cells: MaybeCount(|it| of(it, |to| to.object_bytes)),
        },
        Column {
            name: "service_responses",
            cells: MaybeCount(|it| of(it, |to| Some(to.responses))),
        },
        Column {
            name: "service_broken_off",
            cells: MaybeCount(|it| of(it, |to| Some(to.broken_off))),
        },
        Column { name: "service_min_rtt_ns", cells: MaybeCount(|it| of(it, |to| to.min_rtt_ns)) },
        Column {
            name: "service_delivery_rate_bps",
            cells: MaybeCount(|it| of(it, |to| to.delivery_rate_bps)),
        },
        Column {
            name: "service_rwnd_limited_ns",
            cells: MaybeCount(|it| of(it, |to| to.rwnd_limited_ns)),
        },
        Column {
            name: "service_sndbuf_limited_ns",
            cells: MaybeCount(|it| of(it, |to| to.sndbuf_limited_ns)),
        },
        Column {
            name: "service_app_limited_ns",
            cells: MaybeCount(|it| of(it, |to| to.app_limited_ns)),
        },
    ]
}

/// Of [`Choice`], and of its [`Arm`].
pub(super) fn choice_columns<'a>() -> Columns<'a, 8> {
    [
        Column {
            name: "choice_policy",
            cells: MaybeText(|it| it.choice.as_ref().map(|choice| choice.policy.as_str())),
        },
        Column {
            name: "choice_rule",
            cells: MaybeText(|it| it.choice.as_ref().map(|choice| choice.rule.as_str())),
        },
        Column {
            name: "choice_cc",
            cells: MaybeText(|it| it.choice.as_ref().and_then(|choice| choice.cc.as_deref())),
        },
        Column {
            name: "arm_experiment",
            cells: MaybeText(|it| arm(it).map(|arm| arm.experiment.as_str())),
        },
        Column { name: "arm", cells: MaybeText(|it| arm(it).map(|arm| arm.arm.as_str())) },
        Column { name: "arm_unit", cells: MaybeCount(|it| arm(it).map(|arm| arm.unit)) },
        Column {
            name: "arm_bucket",
            cells: MaybeCount(|it| arm(it).map(|arm| u64::from(arm.bucket))),
        },
        Column {
            name: "arm_propensity",
            cells: MaybeNumber(|it| arm(it).map(|arm| arm.propensity)),
        },
    ]
}

fn of<'r, T>(record: &'r FlowRecord, field: fn(&'r Service) -> Option<T>) -> Option<T> {
    record.service.as_ref().and_then(field)
}

fn arm(record: &FlowRecord) -> Option<&Arm> {
    record.choice.as_ref()?.arm.as_ref()
}

/// Who was no server has no scope, as have tables older than these columns.
pub(super) fn service(row: &mut Row) -> Result<Option<Service>, FileError> {
    let Some(scope) = row.text_if_any("service_scope")? else { return Ok(None) };
    let scope = Scope::named(&scope).ok_or(FileError::UnexpectedValue("service_scope"))?;
    Ok(Some(Service {
        scope,
        start_unix_ns: row.count("service_start_unix_ns")?,
        protocol: row.text("service_protocol")?,
        listener: row.text("service_listener")?,
        host: row.text_if_any("service_host")?,
        client: row.text_if_any("service_client")?,
        asn: small(row, "service_asn")?,
        country: row.text_if_any("service_country")?,
        status: small(row, "service_status")?,
        object_bytes: row.maybe_count("service_object_bytes")?,
        responses: row.count("service_responses")?,
        broken_off: row.count("service_broken_off")?,
        min_rtt_ns: row.maybe_count("service_min_rtt_ns")?,
        delivery_rate_bps: row.maybe_count("service_delivery_rate_bps")?,
        rwnd_limited_ns: row.maybe_count("service_rwnd_limited_ns")?,
        sndbuf_limited_ns: row.maybe_count("service_sndbuf_limited_ns")?,
        app_limited_ns: row.maybe_count("service_app_limited_ns")?,
    }))
}

pub(super) fn choice(row: &mut Row) -> Result<Option<Choice>, FileError> {
    let Some(policy) = row.text_if_any("choice_policy")? else { return Ok(None) };
    let (rule, cc) = (row.text("choice_rule")?, row.text_if_any("choice_cc")?);
    let arm = match row.text_if_any("arm_experiment")? {
        None => None,
        Some(experiment) => Some(Arm {
            experiment,
            arm: row.text("arm")?,
            unit: row.count("arm_unit")?,
            bucket: small(row, "arm_bucket")?.ok_or(FileError::UnexpectedValue("arm_bucket"))?,
            propensity: row
                .maybe_number("arm_propensity")?
                .ok_or(FileError::UnexpectedValue("arm_propensity"))?,
        }),
    };
    Ok(Some(Choice { policy, rule, cc, arm }))
}

fn small<T: TryFrom<u64>>(row: &mut Row, name: &'static str) -> Result<Option<T>, FileError> {
    let count = row.maybe_count(name)?;
    count.map(|it| T::try_from(it).map_err(|_| FileError::UnexpectedValue(name))).transpose()
}
