//! The cost of a dump of 1000 sockets, split into query and parsing.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

#[cfg(target_os = "linux")]
mod linux {
    use std::hint::black_box;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use criterion::{Criterion, Throughput, criterion_group};
    use rustix::process::{Resource, getrlimit, setrlimit};
    use uncork_diag::{Diag, Family, Query, Replies, StateSet};

    const SOCKETS: usize = 1000;

    /// Each connection needs two descriptors: more in total than the default limit.
    fn raise_the_limit_of_descriptors() {
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        setrlimit(Resource::Nofile, limit).expect("the hard limit is allowed");
    }

    /// The accepted ends of as many connections, all on one port; the other ends are kept open.
    fn connections() -> (u16, Vec<(TcpStream, TcpStream)>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        let address = listener.local_addr().expect("an address");
        let pair = |_| {
            let client = TcpStream::connect(address).expect("a connection");
            (client, listener.accept().expect("a connection").0)
        };
        (address.port(), (0..SOCKETS).map(pair).collect())
    }

    fn dump(criterion: &mut Criterion) {
        raise_the_limit_of_descriptors();
        let (port, _kept) = connections();
        let query = Query {
            family: Some(Family::V4),
            states: StateSet::SENDING,
            local_port: Some(port),
            ..Query::default()
        };
        let mut diag = Diag::open().expect("sock_diag");
        let mut group = criterion.benchmark_group("1000 sockets");
        group.throughput(Throughput::Elements(SOCKETS as u64));
        group.bench_function("asked of the kernel", |bench| {
            bench.iter(|| {
                let summary = diag.dump(&query, |connection| {
                    black_box(connection);
                });
                assert_eq!(summary.expect("a dump").connections, SOCKETS as u64);
            });
        });
        // The cost of a query without results: the kernel scans its table.
        let none = Query { remote_port: Some(1), ..query };
        group.throughput(Throughput::Elements(1));
        group.bench_function("none of them asked for", |bench| {
            bench.iter(|| diag.dump(&none, |_| {}).expect("a dump"));
        });
        // One recorded datagram has 8 sockets, most of them with details.
        let datagram = recorded();
        let mut sockets = 0;
        let read = |count: &mut u64| {
            Replies::to(1).read(&datagram, |connection| {
                black_box(connection);
                *count += 1;
            })
        };
        read(&mut sockets).expect("sockets");
        group.throughput(Throughput::Elements(sockets));
        group.bench_function("a datagram read", |bench| bench.iter(|| read(&mut 0)));
        group.finish();
    }

    /// The first datagram of a recorded dump.
    fn recorded() -> Vec<u8> {
        let line = include_str!("../tests/recorded/ipv4.hex").lines().next().expect("a line");
        let digits = |pair: &[u8]| std::str::from_utf8(pair).expect("text").to_owned();
        let byte = |pair: &[u8]| u8::from_str_radix(&digits(pair), 16).expect("digits");
        line.as_bytes().chunks(2).map(byte).collect()
    }

    criterion_group!(dumps, dump);
}

#[cfg(target_os = "linux")]
criterion::criterion_main!(linux::dumps);

#[cfg(not(target_os = "linux"))]
fn main() {}
