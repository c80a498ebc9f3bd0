//! Which packets leave as ECT(1): those of connections with Prague and AccECN, while a program at the device sees to it, and no
//! others.

use uncork_kernel::{Algorithm, Loaded};
use uncork_path::Ecn;

use crate::record::{CLASSIC_ECN, Record};
use crate::traffic::{Downloads, EcnMode, Served};
use crate::{alone, loaded};

/// A path with a queue for L4S.
const L4S: Downloads = Downloads {
    rtt_ms: 10,
    queue: "dualpi2",
    ecn: EcnMode::Accurate,
    ..Downloads::new(20, "0%", 2, 3_000_000)
};

/// Runs downloads with Prague. The result has the calls that withdrew ECT(1).
fn with_prague(run: impl FnOnce(&Loaded) -> Option<Served>) -> Option<(Served, usize)> {
    let _alone = alone(Algorithm::Prague);
    let loaded = loaded(Loaded::traced, Algorithm::Prague)?;
    let _registered = loaded.register().expect("it is free");
    let served = run(&loaded)?;
    let (mut trace, mut withdrawn) = (loaded.trace(), 0);
    while let Some(record) = trace.pop().expect("a queue") {
        let kind = Record::<uncork_cc::Prague>::read(record).kind;
        withdrawn += usize::from(kind == CLASSIC_ECN);
    }
    Some((served, withdrawn))
}

fn count(served: &Served, field: Ecn) -> usize {
    served.fields.iter().filter(|(left, _)| *left == field).count()
}

#[test]
fn packets_leave_as_ect1_and_marks_come_back() {
    let Some((served, withdrawn)) = with_prague(|loaded| L4S.run(loaded)) else { return };
    let (all, ect1) = (served.fields.len(), count(&served, Ecn::Ect1));
    let marked = served.fields.iter().filter(|(_, end)| *end == Ecn::Ce).count();
    let reported: u32 = served
        .infos
        .iter()
        .map(|[start, end]| {
            end.delivered_ce.expect("Linux 6.18") - start.delivered_ce.expect("Linux 6.18")
        })
        .sum();
    println!("{all} packets, {ect1} ECT(1), {marked} marked, {reported} reported as marked");
    assert_eq!((count(&served, Ecn::Ect0), withdrawn), (0, 0));
    // Retransmissions are not ECT(1).
    assert!(ect1 * 100 >= all * 99, "{ect1} of {all}");
    assert!(marked > 20, "{marked}");
    assert!(reported as usize * 10 >= marked * 9 && reported as usize <= marked);
}

#[test]
fn clients_without_accecn_get_no_ect1() {
    for (ecn, field) in [(EcnMode::Classic, Ecn::Ect0), (EcnMode::None, Ecn::NotEct)] {
        let downloads = Downloads { ecn, ..L4S };
        let Some((served, withdrawn)) = with_prague(|loaded| downloads.run(loaded)) else { return };
        assert_eq!((count(&served, Ecn::Ect1), withdrawn), (0, 0), "{ecn:?}");
        // Retransmissions have no ECN field (RFC 3168 §6.1.5).
        let (all, with_field) = (served.fields.len(), count(&served, field));
        assert!(with_field * 10 >= all * 9, "{ecn:?}: {with_field} of {all}");
    }
}

/// As after `uncork kernel unload`, or through a device that was added later.
#[test]
fn without_a_program_at_the_device_marks_are_classic() {
    let Some((served, withdrawn)) = with_prague(|loaded| L4S.run_without_ect1(loaded)) else {
        return;
    };
    assert_eq!((count(&served, Ecn::Ect1), withdrawn), (0, L4S.flows));
}

#[test]
fn socket_that_gets_another_controller_sends_no_ect1() {
    let change = |stream: &std::net::TcpStream| {
        rustix::net::sockopt::set_tcp_congestion(stream, "reno").expect("it is there");
    };
    let Some((served, _)) = with_prague(|loaded| L4S.run_with(loaded, change)) else { return };
    let last =
        served.fields.iter().rposition(|(left, _)| *left == Ecn::Ect1).expect("the first third");
    let share = last as f64 / served.fields.len() as f64;
    println!("ECT(1) in the first {:.0} % of the packets", share * 100.0);
    assert!(share < 0.75, "{share}");
    assert!(count(&served, Ecn::Ect0) > 0);
}

/// Prints the table of `docs/evidence/kernel.md`: one download of 40 MB over 40 Mbit/s and 20 ms.
#[test]
#[ignore = "a table"]
fn table_of_queueing_delays() {
    println!(
        "| controller | queue | Mbit/s | queueing delay p50, ms | p99, ms | marked | dropped |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|");
    for (algorithm, queue, buffer, ecn) in [
        (Algorithm::Prague, "dualpi2", "10bdp", EcnMode::Accurate),
        (Algorithm::Cubic, "dualpi2", "10bdp", EcnMode::Classic),
        (Algorithm::Cubic, "dualpi2", "10bdp", EcnMode::None),
        (Algorithm::Bbr3, "dualpi2", "10bdp", EcnMode::None),
        (Algorithm::Cubic, "fq_codel:ecn", "10bdp", EcnMode::Classic),
        (Algorithm::Prague, "droptail", "2bdp", EcnMode::Accurate),
        (Algorithm::Cubic, "droptail", "2bdp", EcnMode::None),
        (Algorithm::Bbr3, "droptail", "2bdp", EcnMode::None),
    ] {
        let _alone = alone(algorithm);
        let Some(loaded) = loaded(Loaded::new, algorithm) else { return };
        let _registered = loaded.register().expect("it is free");
        let download = Downloads::new(40, "0%", 1, 40_000_000);
        let Some(served) = (Downloads { rtt_ms: 20, queue, buffer, ecn, ..download }).run(&loaded)
        else {
            return;
        };
        let mut delays = served.queueing.clone();
        delays.sort_unstable();
        let at = |part: usize| delays[(delays.len() - 1) * part / 100].as_millis_f64();
        let marked = served.fields.iter().filter(|(_, end)| *end == Ecn::Ce).count();
        let rate = 40_000_000.0 * 8.0 / served.took.as_secs_f64() / 1e6;
        println!(
            "| {} | {queue} | {rate:.1} | {:.2} | {:.2} | {marked} | {} |",
            algorithm.name(),
            at(50),
            at(99),
            served.dropped
        );
    }
}
