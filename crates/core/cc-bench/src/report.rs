//! Interleaved measurement of controllers, and a table row for each.

use std::fmt;

use crate::{BenchLoad, Connection, Costs, Subject, Timer};

/// Rounds of measurement; results are medians.
const ROUNDS: usize = 101;
/// Approximate number of packets per round.
const PACKETS: u64 = 3_000;
/// Round trips of warm-up, which include the first loss and its recovery.
const WARM_UP: u64 = 150;
/// Packets per ACK.
const PER_ACK: [usize; 3] = [1, 2, 32];
/// Packets per write of the application-limited connection.
const WRITTEN: usize = 20;

/// A controller's row in the table: nanoseconds per call.
#[derive(Debug)]
pub struct Row {
    /// The stack (if another one) and the controller's name.
    pub name: &'static str,
    /// Packets in flight, averaged over the rounds.
    pub in_flight: usize,
    /// Per packet sent.
    pub sent: f64,
    /// Per ACK of 1, 2 and 32 packets.
    pub ack: [f64; 3],
    /// Per packet sent and per ACK of one packet, application-limited.
    pub app_limited: [f64; 2],
    /// Bytes of state with that flight.
    pub state_bytes: u64,
}

impl Row {
    /// The column headings.
    pub const HEAD: &str = "controller         in flight    send   ack 1   ack 2  ack 32   \
        app-limited send   ack 1   state bytes";
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, in_flight, sent, ack: [one, two, many], .. } = self;
        let ([limited_sent, limited_ack], bytes) = (self.app_limited, self.state_bytes);
        write!(f, "{name:<17} {in_flight:>10} {sent:>7.1} {one:>7.1} {two:>7.1} {many:>7.1} ")?;
        write!(f, "{limited_sent:>18.1} {limited_ack:>7.1} {bytes:>13}")
    }
}

/// A controller to measure, one round at a time.
pub trait Candidate {
    /// Measures one round.
    fn measure(&mut self, timer: Timer);
    /// The medians so far.
    fn row(&mut self) -> Row;
}

/// The connections of one controller: one per number of packets per ACK, and an application-limited one.
struct Measured<S: Subject> {
    name: &'static str,
    flight: usize,
    connections: Vec<Connection<S>>,
    costs: Vec<Vec<Costs>>,
    in_flight: Vec<usize>,
}

/// Creates a candidate. Its connections are warmed up on a path of `flight` packets.
pub fn candidate<S: Subject + 'static>(
    name: &'static str,
    flight: usize,
    timer: Timer,
    build: impl Fn() -> S,
) -> Box<dyn Candidate> {
    let warm = |per_ack| {
        let load = BenchLoad::backlogged(flight, per_ack);
        let mut connection = Connection::new(build(), load);
        connection.run(WARM_UP, timer, &mut Costs::default());
        connection
    };
    let mut connections: Vec<_> = PER_ACK.into_iter().map(warm).collect();
    let mut limited = warm(1);
    for connection in connections.iter().chain([&limited]) {
        assert!(connection.subject().is_settled(), "{name} is still in its start-up");
    }
    limited.set_load(BenchLoad::app_limited(flight, WRITTEN));
    connections.push(limited);
    let costs = vec![Vec::new(); connections.len()];
    Box::new(Measured { name, flight, connections, costs, in_flight: Vec::new() })
}

impl<S: Subject> Candidate for Measured<S> {
    fn measure(&mut self, timer: Timer) {
        let round_trips = PACKETS / self.flight as u64;
        for (connection, measured) in self.connections.iter_mut().zip(&mut self.costs) {
            let mut costs = Costs::default();
            connection.run(round_trips, timer, &mut costs);
            measured.push(costs);
        }
        self.in_flight.push(self.connections[0].in_flight());
    }

    fn row(&mut self) -> Row {
        let median = |measured: &[Costs], tally: fn(&Costs) -> f64| {
            let mut figures: Vec<f64> = measured.iter().map(tally).collect();
            figures.sort_by(f64::total_cmp);
            figures[figures.len() / 2]
        };
        let sent = |costs: &Costs| costs.sent.nanos_per_call();
        let ack = |costs: &Costs| costs.ack.nanos_per_call();
        let costs = &self.costs;
        Row {
            name: self.name,
            in_flight: self.in_flight.iter().sum::<usize>() / self.in_flight.len(),
            sent: median(&costs[0], sent),
            ack: [0, 1, 2].map(|column| median(&costs[column], ack)),
            app_limited: [median(&costs[3], sent), median(&costs[3], ack)],
            state_bytes: self.connections[0].subject().state_bytes(),
        }
    }
}

/// Measures `candidates` in interleaved rounds, so that noise affects all equally.
pub fn measure(mut candidates: Vec<Box<dyn Candidate>>, timer: Timer) -> Vec<Row> {
    for _ in 0..ROUNDS {
        for candidate in &mut candidates {
            candidate.measure(timer);
        }
    }
    candidates.iter_mut().map(|candidate| candidate.row()).collect()
}
