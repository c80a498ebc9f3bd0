//! A failure of an HTTP/3 worker is detected. The test has its own process, because it changes the
//! process's limits.
#![cfg(target_os = "linux")]

mod common;
#[path = "common/talker.rs"]
mod talker;

use std::net::UdpSocket;
use std::time::Duration;

use common::{Client, Scratch, Served};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use talker::secured;
use uncork_serve::{AdminAddress, AdminSpec};
use uncork_testkit::wait_for;

const LIMIT: Duration = Duration::from_mins(1);

#[test]
fn a_failed_quic_worker_is_reported_and_unhealthy() {
    let scratch = Scratch::new("serve");
    scratch.write("root/file", "text");
    let mut spec = secured(&scratch);
    let address = "127.0.0.1:0".parse().expect("an address");
    spec.admin = Some(AdminSpec { address, anywhere: false });
    let served = Served::new(&spec);
    let Some(AdminAddress::Tcp(admin)) = served.server.admin() else { panic!("no address") };
    let health = || Client::new(*admin).ask("localhost", "GET", "/healthz", "").expect("an answer");
    assert_eq!((health().status, served.server.problem()), (200, None));

    let client = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let limit = getrlimit(Resource::Nofile);
    // poll(2) fails with more descriptors than the process may have: a worker polls two.
    setrlimit(Resource::Nofile, Rlimit { current: Some(1), ..limit }).expect("allowed");
    let problem = wait_for("a report", LIMIT, || {
        client.send_to(b"wakes a worker", served.server.listening()[1].address).expect("sent");
        served.server.problem()
    });
    setrlimit(Resource::Nofile, limit).expect("allowed");

    assert!(problem.starts_with("HTTP/3 worker"), "{problem}");
    let health = health();
    let text = String::from_utf8(health.body).expect("text");
    assert_eq!(health.status, 503);
    assert!(text.starts_with("failed: HTTP/3 worker"), "{text}");
}
