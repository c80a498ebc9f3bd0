//! `ServerSpec::check` rejects everything that `Server::start` would reject, and leaves nothing
//! behind.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;

use crate::common::{Scratch, spec};
use crate::talker::secured;
use uncork_serve::{AdminSpec, RecordsError, RecordsSpec, ServeError, Server, ServerSpec};

fn secured_spec(scratch: &Scratch) -> ServerSpec {
    scratch.write("root/file", "text");
    secured(scratch)
}

/// Checks that both give the same error, and returns it.
fn refused(spec: &ServerSpec) -> ServeError {
    let started = Server::start(spec).map(drop).expect_err("start refuses");
    let checked = spec.check().expect_err("check refuses");
    assert_eq!(checked.to_string(), started.to_string());
    checked
}

fn admin(address: &str) -> AdminSpec {
    AdminSpec { address: address.parse().expect("an address"), anywhere: false }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let names = entries.map(|it| it.expect("an entry").file_name().into_string().expect("text"));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn check_refuses_taken_ports() {
    let scratch = Scratch::new("serve");
    let taken = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let mut spec = secured_spec(&scratch);
    spec.listeners[0].address = taken.local_addr().expect("an address");
    assert!(matches!(refused(&spec), ServeError::Listen(..)));

    // Another test may have the TCP port of the same number.
    let mut taken = (0..100).map(|_| UdpSocket::bind("127.0.0.1:0").expect("loopback"));
    let address = |socket: &UdpSocket| socket.local_addr().expect("an address");
    let taken = taken.find(|socket| TcpListener::bind(address(socket)).is_ok()).expect("a port");
    spec.listeners[0].address = address(&taken);
    assert!(matches!(refused(&spec), ServeError::Datagrams(..)));
}

#[test]
fn check_refuses_two_listeners_of_one_address() {
    let scratch = Scratch::new("serve");
    let mut spec = secured_spec(&scratch);
    let free = TcpListener::bind("127.0.0.1:0").expect("loopback");
    spec.listeners[0].address = free.local_addr().expect("an address");
    drop(free);
    spec.listeners.push(spec.listeners[0].clone());
    assert!(matches!(refused(&spec), ServeError::Listen(..)));
}

#[test]
fn check_refuses_admin_addresses() {
    let scratch = Scratch::new("serve");
    let taken = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let mut spec = spec(&scratch.path(""));
    spec.admin = Some(admin(&taken.local_addr().expect("an address").to_string()));
    assert!(matches!(refused(&spec), ServeError::Admin(..)));
    spec.admin = Some(admin("0.0.0.0:0"));
    assert!(matches!(refused(&spec), ServeError::AdminExposed(_)));
}

#[test]
fn check_refuses_records_and_qlog_that_cannot_be_written() {
    let scratch = Scratch::new("serve");
    scratch.write("file", "");
    let mut spec = secured_spec(&scratch);
    for path in ["/proc/x", "/proc/x/", &scratch.path("file/records/").display().to_string()] {
        spec.records = Some(RecordsSpec::new(path));
        assert!(
            matches!(refused(&spec), ServeError::Records(RecordsError::Unwritable(..))),
            "{path}"
        );
    }
    spec.records = Some(RecordsSpec::new(scratch.path("records.parquet")));
    assert!(matches!(refused(&spec), ServeError::Records(RecordsError::OneParquetFile(_))));
    spec.records = None;
    spec.qlog = Some("/proc/x".into());
    assert!(matches!(refused(&spec), ServeError::Qlog(..)));
}

#[test]
fn check_refuses_settings_without_effect() {
    let scratch = Scratch::new("serve");
    let mut spec = spec(&scratch.path(""));
    spec.listeners[0].quic_cc = Some("bbr3".parse().expect("a controller"));
    let error = refused(&spec);
    assert!(error.is_usage() && matches!(error, ServeError::QuicCcWithoutHttp3(_)));
    spec.listeners[0].quic_cc = None;
    spec.limits.connections = 0;
    let error = refused(&spec);
    assert!(error.is_usage() && matches!(error, ServeError::NoConnections));
}

#[test]
fn check_leaves_nothing_behind() {
    let scratch = Scratch::new("serve");
    let mut spec = secured_spec(&scratch);
    let before = names(&scratch.path(""));
    spec.qlog = Some(scratch.path("traces/qlog"));
    spec.admin = Some(admin(&format!("unix:{}", scratch.path("admin.sock").display())));
    for records in ["records/new/", "records.jsonl"] {
        spec.records = Some(RecordsSpec::new(scratch.path(records)));
        assert_eq!(spec.check().expect("good"), [""; 0]);
        assert_eq!(names(&scratch.path("")), before);
    }
    Server::start(&spec).expect("serves").stop(std::time::Duration::ZERO);
}
