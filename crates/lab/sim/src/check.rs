//! Validation of run specifications.

use std::fmt;

use uncork_cc::ControllerSpec;
use uncork_path::{Ecn, LinkSpec, PathSpec, Step, shared_rtt};
use uncork_units::{Time, TimeDelta};

use crate::segments::{HEADER_BYTES, MSS_BYTES, PACKET_BYTES};
use crate::spec::{AckPolicy, FlowSpec, Migration, RunSpec, Workload};

/// An invalid run specification. The message names the part, the value and the valid range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct RunSpecError {
    place: String,
    problem: String,
}

type Result = std::result::Result<(), RunSpecError>;

/// A part of a run, by its index.
#[derive(Clone, Copy)]
struct RunPart(&'static str, usize);

impl fmt::Display for RunPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.1)
    }
}

/// Fails unless `holds`.
fn require(holds: bool, place: impl fmt::Display, problem: impl FnOnce() -> String) -> Result {
    if holds { Ok(()) } else { Err(RunSpecError { place: place.to_string(), problem: problem() }) }
}

/// Adds the part to an error.
fn at<E: fmt::Display>(place: RunPart, checked: std::result::Result<(), E>) -> Result {
    checked.map_err(|error| RunSpecError { place: place.to_string(), problem: error.to_string() })
}

impl<S: ControllerSpec> RunSpec<S> {
    /// Flows without a named host get host numbers from here on.
    pub(crate) const FIRST_UNNAMED_HOST: u32 = 1 << 31;

    /// Checks that the run can be simulated and that each flow can make progress.
    pub fn check(&self) -> Result {
        require(self.end < Time::NEVER, "the run", || "it never ends: set an end".to_owned())?;
        require(self.warmup <= self.end, "the warm-up", || {
            let spans = [self.warmup, self.end].map(|time| time.since(Time::ZERO));
            format!("{} are longer than the run of {}: use less", spans[0], spans[1])
        })?;
        let sampled = self.sample_every != Some(TimeDelta::ZERO);
        require(sampled, "the samples", || "they are 0ns apart: use at least 1us".to_owned())?;
        let (slowest, fastest) = LinkSpec::RATES;
        let card = self.card.filter(|card| !(slowest..=fastest).contains(card));
        require(card.is_none(), "the card", || {
            let rate = card.unwrap_or(fastest);
            format!("a rate of {rate} is out of range; expected {slowest} to {fastest}")
        })?;
        let (mut paths, mut links) = (self.paths.iter().enumerate(), 0..self.links.len());
        paths.try_for_each(|(index, path)| self.check_path(RunPart("path", index), path))?;
        links.try_for_each(|link| self.check_link(link))?;
        let mut clients = self.clients.iter().enumerate();
        clients.try_for_each(|(index, client)| at(RunPart("client", index), client.check()))?;
        let few = self.flows.len() <= Self::FIRST_UNNAMED_HOST as usize;
        require(few, "the flows", || format!("{} are too many: use fewer", self.flows.len()))?;
        let mut flows = self.flows.iter().enumerate();
        flows.try_for_each(|(index, flow)| self.check_flow(RunPart("flow", index), flow))
    }

    fn check_path(&self, place: RunPart, path: &PathSpec) -> Result {
        at(place, path.check(PACKET_BYTES, HEADER_BYTES))?;
        for (hop, link) in path.via.iter().enumerate() {
            one_of(place, "link", *link, self.links.len())?;
            require(!path.via[..hop].contains(link), place, || {
                format!("it crosses link {link} twice: name each link once")
            })?;
        }
        Ok(())
    }

    /// A link that no path crosses has no buffer size and is not checked.
    fn check_link(&self, link: usize) -> Result {
        let Some(rtt) = shared_rtt(&self.paths, link) else { return Ok(()) };
        at(RunPart("link", link), self.links[link].check(PACKET_BYTES, rtt))
    }

    fn check_flow(&self, place: RunPart, flow: &FlowSpec<S>) -> Result {
        one_of(place, "path", flow.path, self.paths.len())?;
        let (shortest, longest) = PathSpec::RTTS;
        if let Some(rtt) = flow.rtt {
            require((shortest..=longest).contains(&rtt), place, || {
                format!("an RTT of {rtt} is out of range; expected {shortest} to {longest}")
            })?;
        }
        let has_steps = !self.paths[flow.path].rtt_steps.is_empty();
        require(flow.rtt.is_none() || !has_steps, place, || {
            "it has an RTT of its own, and its path's RTT has steps: use one of them".to_owned()
        })?;
        let window = flow.receive_window;
        require(window >= u64::from(MSS_BYTES), place, || {
            format!("a receive window of {window} B holds no segment: use at least {MSS_BYTES} B")
        })?;
        self.check_window_steps(place, flow)?;
        self.check_migrations(place, flow)?;
        check_acks(place, flow.acks)?;
        let host = flow.host.unwrap_or(0);
        require(host < Self::FIRST_UNNAMED_HOST, place, || {
            format!("host {host} is reserved: use less than 2^31")
        })?;
        require(flow.ecn != Ecn::Ce, place, || {
            "only queues set CE: use NotEct, Ect0 or Ect1".to_owned()
        })?;
        match flow.workload {
            Workload::Transfer(bytes) => {
                require(bytes > 0, place, || "a transfer of 0 B never ends: use 1 B".to_owned())
            }
            Workload::Until(_) => Ok(()),
            Workload::Media(media) => at(place, media.check()),
            Workload::Client(client) => one_of(place, "client", client, self.clients.len()),
            Workload::Command(command) => one_of(place, "command", command, self.commands.len()),
        }
    }
}

impl<S: ControllerSpec> RunSpec<S> {
    fn check_window_steps(&self, place: RunPart, flow: &FlowSpec<S>) -> Result {
        if let Some(index) = flow.receive_window_steps {
            one_of(place, "list of receive windows", index, self.receive_window_steps.len())?;
        }
        let steps = self.receive_window_steps(flow);
        require(Step::are_in_order(steps), place, || {
            "its receive windows are not in order of time: sort them".to_owned()
        })?;
        let small = steps.iter().find(|step| step.value < u64::from(MSS_BYTES));
        require(small.is_none(), place, || {
            let window = small.map_or(0, |step| step.value);
            format!("a receive window of {window} B holds no segment: use at least {MSS_BYTES} B")
        })
    }

    fn check_migrations(&self, place: RunPart, flow: &FlowSpec<S>) -> Result {
        if let Some(index) = flow.migrations {
            one_of(place, "list of migrations", index, self.migrations.len())?;
        }
        let migrations = self.migrations(flow);
        require(Step::are_in_order(migrations), place, || {
            "its migrations are not in order of time: sort them".to_owned()
        })?;
        let (count, max) = (migrations.len(), Migration::MAX_COUNT);
        require(count <= max, place, || format!("{count} migrations: use at most {max}"))
    }
}

fn check_acks(place: RunPart, AckPolicy { every, delay }: AckPolicy) -> Result {
    let (fewest, most) = AckPolicy::EVERY;
    require((fewest..=most).contains(&every), place, || {
        format!("an ACK for {every} segments is out of range; expected {fewest} to {most}")
    })?;
    let (shortest, longest) = AckPolicy::DELAYS;
    let outside = delay.filter(|delay| !(shortest..=longest).contains(delay));
    require(outside.is_none(), place, || {
        let delay = outside.unwrap_or(longest);
        format!("ACKs after {delay} are out of range; expected {shortest} to {longest}")
    })
}

/// Fails unless `index` is one of `count`.
fn one_of(place: RunPart, what: &str, index: usize, count: usize) -> Result {
    require(index < count, place, || {
        format!("unknown {what} {index}: there are {count}, counted from 0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_apps::{CbrSpec, ClientSpec, FetchSpec};
    use uncork_path::{Buffer, QueueSpec};
    use uncork_units::Rate;

    type Change = fn(&mut RunSpec);

    /// Two paths with a link in common, a flow over each, and a client.
    fn run() -> RunSpec {
        let end = Time::ZERO + TimeDelta::from_secs(10);
        let path = |via: &[usize]| {
            let rtt = TimeDelta::from_millis(20);
            let path = PathSpec::new(Rate::from_mbit(10), rtt, Buffer::MilliBdp(1000));
            PathSpec { via: via.to_vec(), ..path }
        };
        let cubic = "cubic".parse().expect("a controller");
        let flow = FlowSpec::new(cubic, Workload::Transfer(1));
        RunSpec {
            links: vec![LinkSpec::new(Rate::from_mbit(10), Buffer::Packets(10)); 2],
            paths: vec![path(&[0]), path(&[1, 0])],
            clients: vec![ClientSpec::Fetch(FetchSpec::once(1))],
            ..RunSpec::over(path(&[]), vec![flow, FlowSpec { path: 1, ..flow }], 1, end)
        }
    }

    fn assert_refused(refused: &[(Change, &str)]) {
        for (change, message) in refused {
            let mut run = run();
            change(&mut run);
            let error = run.check().expect_err(message).to_string();
            assert!(error.starts_with(message), "{error}, not {message}");
        }
    }

    #[test]
    fn invalid_runs_are_rejected_with_part_and_value() {
        assert_eq!(run().check(), Ok(()));
        let refused: [(Change, &str); 21] = [
            (|run| run.end = Time::NEVER, "the run: it never ends: set an end"),
            (|run| run.warmup = run.end + TimeDelta::from_secs(1), "the warm-up: 11s are longer"),
            (|run| run.sample_every = Some(TimeDelta::ZERO), "the samples: they are 0ns apart"),
            (|run| run.paths[1].via[0] = 2, "path 1: unknown link 2: there are 2, counted"),
            (|run| run.paths[1].via[0] = 0, "path 1: it crosses link 0 twice: name each link"),
            (|run| run.paths[0].rtt = TimeDelta::ZERO, "path 0: an RTT of 0ns is out of range"),
            (
                |run| run.paths[0].loss = "100%".parse().expect("a loss"),
                "path 0: every packet would be lost",
            ),
            (
                |run| run.links[1] = LinkSpec::new(Rate::ZERO, Buffer::Packets(1)),
                "link 1: a rate of 0bit is out of range",
            ),
            (
                |run| run.links[0].buffer = Buffer::MilliBdp(1),
                "link 0: a buffer of 25 B cannot hold one packet of 1500 B",
            ),
            (
                |run| {
                    let tupdate = TimeDelta::ZERO;
                    let pie = uncork_path::PieSpec { tupdate, ..uncork_path::PieSpec::default() };
                    run.links[0].queue = QueueSpec::Pie(pie);
                },
                "link 0: the tupdate of pie needs a time from 100us",
            ),
            (
                |run| {
                    let fetch = FetchSpec { requests: Some(0), ..FetchSpec::once(1) };
                    run.clients[0] = ClientSpec::Fetch(fetch);
                },
                "client 0: the number of requests is 0",
            ),
            (|run| run.flows[1].path = 2, "flow 1: unknown path 2: there are 2"),
            (|run| run.flows[0].rtt = Some(TimeDelta::MAX), "flow 0: an RTT of"),
            (|run| run.flows[0].receive_window = 1447, "flow 0: a receive window of 1447 B holds"),
            (|run| run.flows[0].host = Some(1 << 31), "flow 0: host 2147483648 is reserved"),
            (|run| run.flows[0].ecn = Ecn::Ce, "flow 0: only queues set CE"),
            (
                |run| run.flows[0].workload = Workload::Transfer(0),
                "flow 0: a transfer of 0 B never ends: use 1 B",
            ),
            (|run| run.flows[0].workload = Workload::Client(1), "flow 0: unknown client 1"),
            (|run| run.flows[0].workload = Workload::Command(0), "flow 0: unknown command 0"),
            (
                |run| {
                    run.flows[0].workload = Workload::Media(CbrSpec {
                        rate: Rate::ZERO,
                        interval: TimeDelta::from_millis(20),
                        duration: TimeDelta::from_secs(1),
                    });
                },
                "flow 0: ",
            ),
            (|run| run.paths.clear(), "flow 0: unknown path 0: there are 0"),
        ];
        assert_refused(&refused);
    }

    #[test]
    fn invalid_cards_and_clients_are_rejected() {
        assert_refused(&[
            (|run| run.card = Some(Rate::ZERO), "the card: a rate of 0bit is out of range"),
            (
                |run| {
                    let rtt = TimeDelta::from_millis(20);
                    run.paths[0].rtt_steps = vec![Step { at: run.end, value: rtt }];
                    run.flows[0].rtt = Some(rtt);
                },
                "flow 0: it has an RTT of its own, and its path's RTT has steps",
            ),
            (
                |run| run.flows[0].receive_window_steps = Some(0),
                "flow 0: unknown list of receive windows 0: there are 0",
            ),
            (
                |run| {
                    run.receive_window_steps = vec![vec![Step { at: run.end, value: 1447 }]];
                    run.flows[0].receive_window_steps = Some(0);
                },
                "flow 0: a receive window of 1447 B holds no segment",
            ),
            (|run| run.flows[0].acks.every = 0, "flow 0: an ACK for 0 segments is out of"),
            (|run| run.flows[0].acks.delay = Some(TimeDelta::MAX), "flow 0: ACKs after"),
        ]);
    }

    /// A link that no path crosses has no RTT for its buffer and is not checked.
    #[test]
    fn unused_link_is_not_checked() {
        let mut run = run();
        run.links.push(LinkSpec::new(Rate::ZERO, Buffer::MilliBdp(1)));
        assert_eq!(run.check(), Ok(()));
        assert_eq!(crate::run(&run).flows.len(), 2);
    }
}
