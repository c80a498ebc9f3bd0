//! A twin of a server's clients: from records to a population of paths for each autonomous system, and for
//! networks with many records, as a scenario. `docs/reference/from-logs.md` has the rules and how well they do.
#![forbid(unsafe_code)]

mod check;
mod line;
mod response;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use uncork_cc::CcSpec;
use uncork_flow::FlowRecord;
use uncork_policy::Prefix;

use crate::line::{MIN_RESPONSES, TwinLine};
use crate::response::{TwinResponse, Unusable, is_by_kernel};

/// Of a thousand lines in one run none stays in the caches: a flow takes four times as long.
const FLOWS_OF_A_RUN: usize = 200;
/// Maximum notes about left-out records in an error.
const MAX_NOTES: usize = 10;

/// How the twin's clients are tried.
#[derive(Clone, Debug)]
pub struct TwinSpec {
    /// The controllers. All clients of the twin have each of them once.
    pub controllers: Vec<CcSpec>,
    /// Clients of each line with each controller, at least: they are dealt to runs of equal size.
    pub clients: u32,
    /// Responses that give a network a line of its own, in addition to its system's. `None`: none has one.
    pub by_network: Option<usize>,
    /// The one system (`AS64500`) or network that has a line. `None`: all have.
    pub only: Option<String>,
}

/// A scenario, and what it could not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twin {
    /// The scenario file.
    pub text: String,
    /// Systems and networks without a path in their records, and unusable responses, with the reason.
    pub left_out: Vec<String>,
}

/// Why records have no twin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTwin {
    /// They are of other things than long downloads.
    #[error(
        "none of {0} records is of 3 MB or more, and of a response or, as of `uncork steer record` and \
         `uncork host watch`, of a connection"
    )]
    NoLong(usize),
    /// No record has the system of its client.
    #[error(
        "no record has an AS; record with a database of origins (--geo), or give networks lines of their own \
         (--by-network)"
    )]
    NoSystem,
    /// Likewise, and no network has enough responses.
    #[error(
        "no record has an AS, and no network has enough responses of 3 MB or more; write a smaller --by-network"
    )]
    NoGroup,
    /// No response is of the system or network that was named.
    #[error(
        "no response of 3 MB or more is of {0}; expected an AS or network of theirs, such as AS64500 or 203.0.113.0/24"
    )]
    UnknownGroup(String),
    /// The records have long responses, and they show no rate.
    #[error(
        "no {of} has {MIN_RESPONSES} responses of 3 MB or more that show its rate: BBR's, or CUBIC's with a \
         standing queue; record more, or give BBR to a few per cent of the clients{}",
        .left_out.iter().take(MAX_NOTES).fold(String::new(), |text, note| text + "\n  " + note + "; left out")
    )]
    NoRate {
        /// `system`, or `system or network`.
        of: &'static str,
        /// Left-out records, with the reason.
        left_out: Vec<String>,
    },
}

impl Twin {
    /// The twin of the clients in `records`.
    ///
    /// # Errors
    ///
    /// If no system's records, and no network's if they may have lines, show its paths; if no response is of
    /// the system or network that shall have a line.
    pub fn of(records: &[FlowRecord], spec: &TwinSpec) -> Result<Self, NoTwin> {
        let samples = ResponseSamples::by(records);
        if samples.responses.is_empty() && samples.unusable.is_empty() {
            return Err(NoTwin::NoLong(records.len()));
        }
        let groups = samples.groups(spec)?;
        let (mut lines, mut left_out) = (Vec::new(), samples.notes(&groups, spec.only.as_deref()));
        for (name, responses) in &groups {
            match TwinLine::of(name, responses) {
                Ok(line) => lines.push(line),
                Err(reason) => left_out.push(format!("{name}: {reason}")),
            }
        }
        if lines.is_empty() {
            let of = if spec.by_network.is_some() { "system or network" } else { "system" };
            return Err(NoTwin::NoRate { of, left_out });
        }
        let of_a_run = (FLOWS_OF_A_RUN / (lines.len() * spec.controllers.len()).max(1)).max(1);
        let runs = spec.clients.div_ceil(of_a_run as u32).max(1);
        let head = format!("{}[run]\nseeds = {runs}\n\n", samples.head());
        let clients = spec.clients.div_ceil(runs) as usize;
        let parts = lines.iter().map(|line| line.text(clients, &spec.controllers));
        Ok(Self { text: parts.fold(head, |text, part| text + &part), left_out })
    }
}

/// The assumptions of every twin.
const ASSUMPTIONS: [&str; 7] = [
    "The rate is what long responses reached after slow start: BBR's, or without any CUBIC's with a standing queue.",
    "A client's rate and round-trip time are drawn independently of each other.",
    "Random loss is what CUBIC's responses without a standing queue lost, or BBR's if that is less; it contains some drops of queues. All clients have the same.",
    "Losses that contradict CUBIC's own throughput (RFC 9438) are slow start's and not the path's. A path that contradicts the ratio of BBR's and CUBIC's records is left out.",
    "The buffer is the largest queue that was seen: a lower bound. Queues are drop-tail.",
    "A policer looks like random loss where no client has BBR, or downloads are short.",
    "Records do not show other traffic on the link, queue management, aggregation or jitter: the twin has none.",
];

/// A line's name, and the responses to its clients.
type Group<'t, 'r> = (String, Vec<&'t TwinResponse<'r>>);

/// The responses in records, and the number of unusable ones by reason.
struct ResponseSamples<'r> {
    responses: Vec<TwinResponse<'r>>,
    unusable: BTreeMap<Unusable, usize>,
}

impl<'r> ResponseSamples<'r> {
    fn by(records: &'r [FlowRecord]) -> Self {
        let mut samples = Self { responses: Vec::new(), unusable: BTreeMap::new() };
        for response in records.iter().filter_map(TwinResponse::of) {
            match response {
                Ok(response) => samples.responses.push(response),
                Err(reason) => *samples.unusable.entry(reason).or_default() += 1,
            }
        }
        samples
    }

    /// Responses by system, then by network; or the only ones that are asked for.
    fn groups(&self, spec: &TwinSpec) -> Result<Vec<Group<'_, 'r>>, NoTwin> {
        let mut systems: BTreeMap<u32, Vec<&TwinResponse<'r>>> = BTreeMap::new();
        let mut networks: BTreeMap<&str, Vec<&TwinResponse<'r>>> = BTreeMap::new();
        for response in &self.responses {
            if let Some(asn) = response.system() {
                systems.entry(asn).or_default().push(response);
            }
            if let Some(client) = response.service.client.as_deref() {
                networks.entry(client).or_default().push(response);
            }
        }
        let least = spec.by_network.or(spec.only.is_some().then_some(1));
        networks.retain(|name, of| {
            least.is_some_and(|least| of.len() >= least) && name.parse::<Prefix>().is_ok()
        });
        let systems = systems.into_iter().map(|(asn, of)| (format!("as{asn}"), of));
        let networks = networks.into_iter().map(|(name, of)| (name.to_owned(), of));
        let mut groups: Vec<_> = systems.chain(networks).collect();
        if let Some(only) = &spec.only {
            groups.retain(|(name, _)| name.eq_ignore_ascii_case(only));
            return if groups.is_empty() {
                Err(NoTwin::UnknownGroup(only.clone()))
            } else {
                Ok(groups)
            };
        }
        if groups.is_empty() && !self.responses.is_empty() {
            return Err(if least.is_some() { NoTwin::NoGroup } else { NoTwin::NoSystem });
        }
        Ok(groups)
    }

    /// Unusable responses, and responses without a group. With `only` one, the others are not missed.
    fn notes(&self, groups: &[Group<'_, 'r>], only: Option<&str>) -> Vec<String> {
        let names: BTreeSet<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
        let has_line = |one: &TwinResponse<'_>| {
            let client = one.service.client.as_deref();
            one.system().is_some() || client.is_some_and(|client| names.contains(client))
        };
        let lost = self.responses.iter().filter(|one| only.is_none() && !has_line(one)).count();
        let lost = (lost > 0)
            .then(|| format!("{lost} responses have no AS, and no line of their network"));
        let unusable = self.unusable.iter().map(|(reason, count)| match reason {
            Unusable::UnknownController(name) => {
                format!("{count} responses have a controller that no rule knows, {name:?}")
            }
            Unusable::NoRoundTrips => {
                format!("{count} responses without BBR have no round-trip times")
            }
            Unusable::NoCounts => {
                format!("{count} responses have no count of packets or no busy time, as those of access logs")
            }
            Unusable::ReceiverLimited => {
                format!("{count} responses were held back by the client, or had too little to send")
            }
        });
        unusable.chain(lost).collect()
    }

    /// The beginning of the scenario: what is assumed.
    fn head(&self) -> String {
        let assumptions = ASSUMPTIONS.iter().map(ToString::to_string).chain(self.of_kernel());
        let assumptions =
            assumptions.fold(String::new(), |text, line| text + "    \"" + &line + "\",\n");
        format!("title = \"Clients as records show them\"\nassumptions = [\n{assumptions}]\n\n")
    }

    /// The limits of the kernel's records, if any are used.
    fn of_kernel(&self) -> Option<String> {
        let by_kernel = || self.responses.iter().filter(|one| is_by_kernel(one.record));
        let (count, all) = (by_kernel().count(), self.responses.len());
        let unseen = by_kernel().filter(|one| one.has_queue().is_none()).count();
        (count > 0).then(|| {
            format!(
                "{count} of {all} records are the kernel's, of whole connections: the size is all that was \
                 sent, a rate is too low if slow start began again after a pause, what was sent again counts \
                 as lost, and queues are smoothed round-trip times, seen once a pass; {unseen} of BBR between \
                 two passes show a rate and no queue."
            )
        })
    }
}
