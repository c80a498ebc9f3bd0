//! A socket that gets another controller while it sends goes on with the window that it has.

use std::fmt::Debug;
use std::net::TcpStream;

use rustix::net::sockopt::set_tcp_congestion;
use uncork_cc::{Bbr1, Bbr3, Cubic, NewReno, Prague, Snapshot};
use uncork_kernel::{Algorithm, Loaded};

use crate::glue::{Call, Staged};
use crate::record::{INIT, Record};
use crate::traffic::{Downloads, set_controller};
use crate::{alone, loaded};

/// The calls with which the controller began on one connection, and its state then. After a third of the download the socket had `between`
/// for a moment.
fn starts<C: Staged + Debug>(algorithm: Algorithm, between: &str) -> Option<Vec<(Call, Snapshot)>> {
    let _alone = alone(algorithm);
    let loaded = loaded(Loaded::traced, algorithm)?;
    let registered = loaded.register().expect("it is free");
    let change = |stream: &TcpStream| {
        set_tcp_congestion(stream, between).expect("it is there");
        set_controller(stream, algorithm);
    };
    Downloads { buffer: "10p", ..Downloads::new(20, "0.1%", 1, 6_000_000) }
        .run_with(&loaded, change)?;
    drop(registered);
    let (mut trace, mut starts) = (loaded.trace(), Vec::new());
    while let Some(record) = trace.pop().expect("a queue") {
        let Record { kind, mut connection, .. } = Record::<C>::read(record);
        if kind == INIT {
            starts.push((connection.call, connection.controller().snapshot()));
        }
    }
    Some(starts)
}

/// The listener's controller, that of the accepted socket, and the one after the change.
fn goes_on<C: Staged + Debug>(algorithm: Algorithm, state: &str) {
    let Some(starts) = starts::<C>(algorithm, "reno") else { return };
    let [.., (first, _), (call, snapshot)] = &starts[..] else { panic!("{starts:?}") };
    println!("{algorithm}: {} of {} bytes, {}", call.cwnd, call.ssthresh, snapshot.state);
    assert_eq!(first.ssthresh, 0, "{algorithm}: a connection that has sent nothing");
    assert!(call.ssthresh > 0, "{algorithm}: {call:?}");
    assert_eq!(snapshot.state, state, "{algorithm}: {call:?}");
    assert!(snapshot.min_rtt.is_none_or(|rtt| rtt.as_nanos() == call.min_rtt), "{snapshot:?}");
    assert!(call.cwnd >= call.initial_window, "{algorithm}: {call:?}");
}

#[test]
fn cubic_and_newreno_go_on_in_congestion_avoidance() {
    goes_on::<Cubic>(Algorithm::Cubic, "CongestionAvoidance");
    goes_on::<NewReno>(Algorithm::Reno, "CongestionAvoidance");
    goes_on::<Prague>(Algorithm::Prague, "CongestionAvoidance");
}

#[test]
fn bbr_goes_on_with_the_rate_of_the_window() {
    goes_on::<Bbr1>(Algorithm::Bbr1, "Drain");
    goes_on::<Bbr3>(Algorithm::Bbr2, "Drain");
    goes_on::<Bbr3>(Algorithm::Bbr3, "Drain");
}
