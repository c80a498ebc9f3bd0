//! What a class of traffic sends when, if nothing is lost.

use std::ops::Range;

use uncork_apps::{ArrivalSpec, ClientSpec};
use uncork_path::{LinkSpec, RateSpec, Step};
use uncork_sim::{MSS_BYTES, PACKET_BYTES};
use uncork_units::{Rate, Rng, Time, TimeDelta};

use super::draw::Between;
use super::plan::{ArrivalPlan, ClientActivity, FlowPlan, PathPlan, SingleActivity};

/// Times since the start of a run.
pub(crate) type Span = Range<TimeDelta>;

/// What a class sends, all its clients together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Its connections, at most five standard deviations above the mean.
    pub(crate) flows: u64,
    /// When it sends, unless what it sends takes longer.
    pub(crate) active: Span,
    pub(crate) amount: Amount,
}

/// How much a class sends. Bytes are those on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// What its links carry.
    Capacity,
    /// This much, evenly over its time.
    Spread(u64),
    /// This much, as soon as possible.
    Whole(u64),
}

impl Demand {
    /// What `flow` sends in a run until `end`.
    pub(crate) fn of(flow: &FlowPlan, end: TimeDelta) -> Self {
        let each = |bytes: u64| wire_bytes(bytes).saturating_mul(flow.count);
        let mut flows = flow.count;
        let (lasts, amount) = match &flow.work {
            ClientActivity::One(SingleActivity::Transfer(bytes)) => {
                (None, Amount::Whole(each(*bytes)))
            }
            ClientActivity::One(SingleActivity::Bulk(span)) => (*span, Amount::Capacity),
            ClientActivity::One(SingleActivity::Command(command)) => {
                (command.limit, Amount::Capacity)
            }
            ClientActivity::One(SingleActivity::Media(media)) => {
                let lasts = media.duration.min(end - flow.start);
                (Some(lasts), Amount::Spread(each(media.rate.bytes_in(lasts))))
            }
            ClientActivity::One(SingleActivity::Client(client, lasts)) => match asked(client) {
                Some(bytes) => (None, Amount::Whole(each(bytes))),
                None => (*lasts, Amount::Capacity),
            },
            ClientActivity::Arrivals(plan) => {
                let (connections, bytes) = arriving(plan);
                flows = connections.saturating_mul(flow.count);
                match plan {
                    ArrivalPlan::Poisson { length, .. } => {
                        (Some(*length), Amount::Spread(each(bytes)))
                    }
                    ArrivalPlan::Trace(_) => (None, Amount::Whole(each(bytes))),
                }
            }
        };
        let begin = flow.start.min(end);
        let until = lasts.map_or(end, |lasts| (begin + lasts).min(end));
        Self { flows, active: begin..until, amount }
    }

    /// Bytes that it sends over `path` in `span`.
    pub(crate) fn bytes_in(&self, path: &PathPlan, clients: u64, span: &Span) -> u64 {
        let both = overlap(&self.active, span);
        let links = if path.own_per_flow { clients } else { 1 };
        let capacity = link_bytes(path, &both).saturating_mul(links);
        match self.amount {
            Amount::Capacity => capacity,
            Amount::Spread(bytes) => part(bytes, &both, &self.active).min(capacity),
            Amount::Whole(bytes) => bytes.min(capacity),
        }
    }
}

/// Bytes that a link of `path` carries in `span`. For drawn rates, that of a medium one.
pub(crate) fn link_bytes(path: &PathPlan, span: &Span) -> u64 {
    let drawn = path.draws.rate.as_ref().and_then(super::draw::Draw::extremes);
    match drawn.map(|[least, most]| least.between(most, 1 << 63)) {
        Some(middle) => middle.bytes_in(length(span)),
        None => constant_parts(&path.spec.link, span)
            .map(|(part, rate)| rate.bytes_in(length(&part)))
            .fold(0, u64::saturating_add),
    }
}

/// The parts of `span` in which the rate of `link` is constant, as far as the specification says.
fn constant_parts<'a>(
    link: &'a LinkSpec,
    span: &'a Span,
) -> impl Iterator<Item = (Span, Rate)> + 'a {
    let steps = match &link.rate {
        RateSpec::Steps { steps, .. } => &**steps,
        _ => &[],
    };
    let change = |step: &Step<Rate>| (step.at.since(Time::ZERO), step.value);
    let mut changes: Vec<(TimeDelta, Rate)> = steps.iter().map(change).collect();
    changes.sort_by_key(|(at, _)| *at);
    let rates = std::iter::once((TimeDelta::ZERO, link.nominal_rate())).chain(changes.clone());
    let ends = changes.into_iter().map(|(at, _)| at).chain([TimeDelta::MAX]);
    rates.zip(ends).map(move |((from, rate), until)| (overlap(&(from..until), span), rate))
}

/// The time that both spans have; empty if there is none.
fn overlap(one: &Span, other: &Span) -> Span {
    let from = one.start.max(other.start);
    from..one.end.min(other.end).max(from)
}

fn length(span: &Span) -> TimeDelta {
    span.end - span.start
}

/// The part of `bytes`, spread over `whole`, in `part`.
fn part(bytes: u64, part: &Span, whole: &Span) -> u64 {
    let [part, whole] = [part, whole].map(|span| u128::from(length(span).as_nanos()));
    u64::try_from(u128::from(bytes) * part / whole.max(1)).unwrap_or(u64::MAX)
}

/// Bytes requested by a client, if known.
fn asked(client: &ClientSpec) -> Option<u64> {
    match client {
        ClientSpec::Fetch(fetch) => Some(fetch.sizes.mean().saturating_mul(fetch.requests?)),
        ClientSpec::Audio(audio) => Some(audio.tracks.iter().map(uncork_apps::Track::bytes).sum()),
        ClientSpec::Video(video) => Some(video.ladder.last()?.bytes_in(video.duration)),
        _ => None,
    }
}

/// Connections and bytes of a client's arrivals. For a Poisson process, five standard deviations
/// more connections than the mean.
fn arriving(plan: &ArrivalPlan) -> (u64, u64) {
    match plan {
        ArrivalPlan::Poisson { mean_gap, sizes, length } => {
            let mean = length.as_nanos() / mean_gap.as_nanos().max(1);
            let flows = mean.saturating_add(5 * mean.isqrt());
            (flows, mean.saturating_mul(sizes.mean()))
        }
        ArrivalPlan::Trace(trace) => {
            let arrivals = ArrivalSpec::Trace(trace.clone()).arrivals(Rng::new(0, 0));
            let each = arrivals.into_iter().flatten();
            each.fold((0, 0), |(flows, bytes), arrival| (flows + 1, bytes + arrival.bytes))
        }
    }
}

/// Size of `payload` bytes on the wire.
pub(super) fn wire_bytes(payload: u64) -> u64 {
    let packets = payload.div_ceil(u64::from(MSS_BYTES));
    packets.saturating_mul(u64::from(PACKET_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::NoFiles;
    use crate::scenario::Scenario;

    /// 1 MB/s until the tenth second, half of it after that.
    fn scenario(flow: &str) -> Scenario {
        let text = format!(
            "title = \"Demand\"\n[run]\nend = \"30s\"\n[path]\nrate = \"8mbit\"\nrate_steps = [[\"10s\", \"4mbit\"]]\n\
             rtt = \"20ms\"\n[flow.main]\ncc = \"cubic\"\n{flow}"
        );
        Scenario::parse("demand", &text, &[], &NoFiles).unwrap()
    }

    /// Bytes in each of these spans of seconds.
    fn bytes(flow: &str, spans: &[(u64, u64)]) -> Vec<u64> {
        let scenario = scenario(flow);
        let plan = &scenario.cells[0].plan;
        let (flow, path) = (&plan.flows[0], &plan.paths[0]);
        let demand = Demand::of(flow, TimeDelta::from_secs(30));
        let span = |(from, until)| TimeDelta::from_secs(from)..TimeDelta::from_secs(until);
        spans.iter().map(|at| demand.bytes_in(path, flow.count, &span(*at))).collect()
    }

    #[test]
    fn stream_sends_what_its_link_carries_at_each_rate_from_its_start_to_its_end() {
        let found =
            bytes("start = \"5s\"\nbulk = \"20s\"", &[(0, 5), (5, 10), (9, 11), (20, 30), (0, 30)]);
        assert_eq!(found, [0, 5_000_000, 1_500_000, 2_500_000, 12_500_000]);
    }

    #[test]
    fn download_sends_no_more_than_its_size() {
        let found = bytes("transfer = \"1448kB\"", &[(0, 1), (0, 2), (0, 30)]);
        assert_eq!(found, [1_000_000, 1_500_000, 1_500_000]);
    }

    #[test]
    fn arrivals_send_evenly_over_their_time() {
        let flow =
            "start = \"10s\"\narrivals = { rate = \"1/s\", size = \"144.8kB\", for = \"10s\" }";
        assert_eq!(bytes(flow, &[(0, 10), (10, 15), (0, 30)]), [0, 750_000, 1_500_000]);
    }

    #[test]
    fn clients_with_links_of_their_own_send_over_each() {
        let scenario = scenario("count = 3\nbulk = \"end\"");
        let plan = &scenario.cells[0].plan;
        let path = PathPlan { own_per_flow: true, ..plan.paths[0].clone() };
        let demand = Demand::of(&plan.flows[0], TimeDelta::from_secs(30));
        let second = TimeDelta::ZERO..TimeDelta::from_secs(1);
        assert_eq!(demand.bytes_in(&plan.paths[0], 3, &second), 1_000_000);
        assert_eq!(demand.bytes_in(&path, 3, &second), 3_000_000);
    }
}
