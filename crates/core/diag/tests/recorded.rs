//! Dumps of a real kernel (Linux 6.18), compared with the output of `ss` (iproute2 6.1) for the same sockets.
#![cfg(target_endian = "little")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{ipv4, ipv6, read};
use uncork_diag::{CaState, Connection, Family, TcpInfo, TcpState};
use uncork_units::{Rate, TimeDelta};

/// Numbers by name; the second one of a name is `name.1`.
type Numbers = BTreeMap<String, f64>;

/// The numbers in a line of `ss -tainemOH` after the addresses.
fn numbers_of(line: &str) -> Numbers {
    let mut numbers = Numbers::new();
    let mut words = line.split_whitespace().skip(5);
    while let Some(word) = words.next() {
        if ["send", "pacing_rate", "delivery_rate"].contains(&word) {
            numbers.insert(word.to_owned(), number(words.next().expect("a rate")));
        } else if let Some((name, value)) = word.split_once(':') {
            insert(&mut numbers, name, value);
        } else {
            numbers.insert(word.to_owned(), 1.0);
        }
    }
    numbers
}

fn insert(numbers: &mut Numbers, name: &str, value: &str) {
    let inner = value.trim_start_matches('(').trim_end_matches(')');
    match name {
        "timer" | "cgroup" | "v6only" => {}
        "sk" => {
            let cookie = u64::from_str_radix(value, 16).expect("hexadecimal digits");
            numbers.insert(name.to_owned(), cookie as f64);
        }
        "bbr" => inner.split(',').for_each(|part| {
            let (name, value) = part.split_once(':').expect("a name");
            numbers.insert(format!("bbr.{name}"), number(value));
        }),
        "skmem" => inner.split(',').for_each(|part| {
            let digits = part.find(|c: char| c.is_ascii_digit()).expect("a number");
            numbers.insert(format!("mem.{}", &part[..digits]), number(&part[digits..]));
        }),
        _ => inner.split(['/', ',']).enumerate().for_each(|(index, value)| {
            let name = if index == 0 { name.to_owned() } else { format!("{name}.{index}") };
            numbers.insert(name, number(value));
        }),
    }
}

fn number(text: &str) -> f64 {
    text.trim_end_matches("bps").trim_end_matches("ms").parse().expect(text)
}

/// The same numbers from a parsed connection.
fn numbers_here(connection: &Connection) -> Numbers {
    let mut numbers = Numbers::new();
    let mut put = |name: &str, number: f64| assert_eq!(numbers.insert(name.into(), number), None);
    put("ino", f64::from(connection.inode));
    put("sk", connection.cookie as f64);
    put("<->", 1.0);
    if let Some(cc) = connection.cc {
        put(cc.as_str(), 1.0);
    }
    if let Some(mem) = connection.mem {
        for (name, bytes) in [
            ("mem.r", mem.rmem_alloc),
            ("mem.rb", mem.rcvbuf),
            ("mem.t", mem.wmem_alloc),
            ("mem.tb", mem.sndbuf),
            ("mem.f", mem.fwd_alloc),
            ("mem.w", mem.wmem_queued),
            ("mem.o", mem.optmem),
            ("mem.bl", mem.backlog),
            ("mem.d", mem.drops.expect("since Linux 4.7")),
        ] {
            put(name, f64::from(bytes));
        }
    }
    if let Some(bbr) = connection.bbr() {
        put("bbr.bw", bits(Some(bbr.bw)));
        put("bbr.mrtt", ms(bbr.min_rtt.expect("a sample")));
        put("bbr.pacing_gain", bbr.pacing_gain.as_f64());
        put("bbr.cwnd_gain", bbr.cwnd_gain.as_f64());
    }
    if let Some(info) = &connection.info {
        let flags = [
            ("ts", info.options.timestamps()),
            ("sack", info.options.sack()),
            ("app_limited", info.delivery_rate_app_limited),
        ];
        flags.iter().filter(|(_, holds)| *holds).for_each(|(name, _)| put(name, 1.0));
        for (name, count) in counts(info) {
            put(name, f64::from(count));
        }
        for (name, number) in volumes(info) {
            put(name, number);
        }
    }
    numbers
}

fn counts(info: &TcpInfo) -> [(&'static str, u32); 24] {
    let known = |count: Option<u32>| count.expect("since Linux 5.4");
    [
        ("wscale", info.snd_wscale.into()),
        ("wscale.1", info.rcv_wscale.into()),
        ("backoff", info.backoff.into()),
        ("mss", info.snd_mss),
        ("pmtu", info.pmtu),
        ("rcvmss", info.rcv_mss),
        ("advmss", info.advmss),
        ("cwnd", info.snd_cwnd),
        ("ssthresh", info.snd_ssthresh.unwrap_or(u32::MAX)),
        ("unacked", info.unacked),
        ("sacked", info.sacked),
        ("lost", info.lost),
        ("retrans", info.retrans),
        ("retrans.1", info.total_retrans),
        ("rcv_space", info.rcv_space),
        ("rcv_ssthresh", info.rcv_ssthresh),
        ("segs_out", known(info.segs_out)),
        ("segs_in", known(info.segs_in)),
        ("data_segs_out", known(info.data_segs_out)),
        ("data_segs_in", known(info.data_segs_in)),
        ("notsent", known(info.notsent_bytes)),
        ("delivered", known(info.delivered)),
        ("snd_wnd", known(info.snd_wnd)),
        ("reordering", info.reordering),
    ]
}

fn volumes(info: &TcpInfo) -> [(&'static str, f64); 16] {
    let known = |bytes: Option<u64>| bytes.expect("since Linux 4.19") as f64;
    [
        ("rto", ms(info.rto)),
        ("ato", ms(info.ato)),
        ("rtt", ms(info.rtt)),
        ("rtt.1", ms(info.rttvar)),
        ("rcv_rtt", ms(info.rcv_rtt)),
        ("minrtt", info.min_rtt.map_or(-1.0, ms)),
        ("lastsnd", ms(info.last_data_sent)),
        ("lastrcv", ms(info.last_data_recv)),
        ("lastack", ms(info.last_ack_recv)),
        ("busy", ms(info.busy_time.expect("since Linux 4.10"))),
        ("bytes_sent", known(info.bytes_sent)),
        ("bytes_retrans", known(info.bytes_retrans)),
        ("bytes_acked", known(info.bytes_acked)),
        ("bytes_received", known(info.bytes_received)),
        ("pacing_rate", bits(info.pacing_rate)),
        ("delivery_rate", bits(info.delivery_rate)),
    ]
}

fn ms(span: TimeDelta) -> f64 {
    span.as_millis_f64()
}

fn bits(rate: Option<Rate>) -> f64 {
    rate.expect("since Linux 4.9").bytes_per_sec() as f64 * 8.0
}

/// Compares a connection with its line. Returns the names of the compared numbers.
fn compare(connection: &Connection, line: &str) -> BTreeSet<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let port = |address: &str| address.rsplit(':').next().map(str::to_owned);
    assert_eq!(connection.state.to_string(), words[0]);
    assert_eq!(connection.wqueue.to_string(), words[2], "{line}");
    assert_eq!(connection.rqueue.to_string(), words[1], "{line}");
    assert_eq!(Some(connection.local.port().to_string()), port(words[3]));
    let here = numbers_here(connection);
    let there = numbers_of(line);
    let compared = there.into_iter().filter(|(name, _)| name != "send");
    let names = compared.map(|(name, expected)| {
        let number = here.get(&name).unwrap_or_else(|| panic!("{name} is missing: {line}"));
        // ss ran some milliseconds later; it prints six digits of a gain.
        let passes = ["lastsnd", "lastrcv", "lastack", "busy"].contains(&name.as_str());
        let tolerance = if passes { 20.0 } else { expected * 1e-5 };
        assert!((number - expected).abs() <= tolerance, "{name}: {number}, not {expected}");
        name
    });
    names.collect()
}

#[test]
fn all_numbers_match_those_of_ss() {
    let mut compared = BTreeSet::new();
    for (datagrams, lines) in
        [(ipv4(), include_str!("recorded/ipv4.ss")), (ipv6(), include_str!("recorded/ipv6.ss"))]
    {
        let (connections, result) = read(&datagrams);
        assert_eq!(result, Ok(true));
        assert_eq!(connections.len(), lines.lines().count());
        for line in lines.lines() {
            let cookie = numbers_of(line)["sk"] as u64;
            let mut alike = connections.iter().filter(|one| one.cookie == cookie);
            compared.append(&mut compare(alike.next().expect(line), line));
            assert!(alike.next().is_none(), "{cookie} is there twice");
        }
    }
    let expected = "<-> ato advmss app_limited backoff bbr bbr.bw bbr.cwnd_gain bbr.mrtt \
        bbr.pacing_gain busy bytes_acked bytes_received bytes_retrans bytes_sent cubic cwnd \
        data_segs_in data_segs_out delivered delivery_rate ino lastack lastrcv lastsnd lost mem.bl \
        mem.d mem.f mem.o mem.r mem.rb mem.t mem.tb mem.w minrtt mss pacing_rate pmtu rcv_rtt \
        rcv_space rcv_ssthresh rcvmss reno retrans retrans.1 rto rtt rtt.1 sack segs_in segs_out \
        sk snd_wnd ssthresh ts unacked wscale wscale.1";
    assert_eq!(compared, expected.split_whitespace().map(str::to_owned).collect());
}

/// `record.py` sent 300000 bytes forth and 1000 back; the client's SYN counts as one byte.
#[test]
fn byte_counts_match_the_recorded_transfer() {
    let (connections, _) = read(&ipv4());
    for cc in ["reno", "cubic", "bbr"] {
        let client = connections
            .iter()
            .find(|one| {
                let named = one.cc.is_some_and(|name| name.as_str() == cc);
                named && one.remote.port() == 5001
            })
            .expect(cc);
        let info = client.info.expect("details");
        assert_eq!((info.bytes_sent, info.bytes_acked), (Some(300_000), Some(300_001)));
        assert_eq!((info.bytes_received, info.bytes_retrans), (Some(1_000), Some(0)));
        assert_eq!(client.bbr().is_some(), cc == "bbr");
        let server =
            connections.iter().find(|one| one.local == client.remote && one.remote == client.local);
        let info = server.and_then(|one| one.info).expect("details of the server");
        assert_eq!((info.bytes_sent, info.bytes_acked), (Some(1_000), Some(1_000)));
        assert_eq!(info.bytes_received, Some(300_000));
        // On an idle connection, one side's advertised window is the window that the other sees.
        assert_eq!(info.rcv_wnd, client.info.and_then(|info| info.snd_wnd));
    }
}

/// Fields that this `ss` does not print, for the connection that lost its server.
#[test]
fn retransmission_timeouts_are_reported() {
    let (connections, _) = read(&ipv4());
    let lost = connections.iter().find(|one| one.remote.port() == 5003).expect("the connection");
    let info = lost.info.expect("details");
    assert_eq!((info.state, info.ca_state), (TcpState::Established, CaState::Loss));
    assert_eq!(u32::from(info.retransmits), u32::from(info.backoff));
    // Each timeout doubled the RTO; before the first came a tail loss probe (RFC 8985 §7).
    assert_eq!(info.total_rto, Some(u16::from(info.backoff)));
    assert_eq!(info.total_rto_recoveries, Some(1));
    let spent = info.total_rto_time.expect("since Linux 6.7");
    assert!(spent > TimeDelta::from_millis(200) && spent < TimeDelta::from_millis(1100), "{spent}");
    assert_eq!(info.rehash, Some(u32::from(info.backoff)));
    assert_eq!(info.acc_ecn.expect("since Linux 6.18"), uncork_diag::AccEcnInfo::default());
    assert_eq!(info.max_pacing_rate, Some(Rate::MAX));
    assert_eq!(info.bytes_sent, Some(400_000 + info.bytes_retrans.expect("since Linux 4.19")));
}

#[test]
fn sockets_without_details_have_none() {
    let (connections, _) = read(&ipv4());
    let gone = connections.iter().find(|one| one.state == TcpState::TimeWait).expect("one");
    assert_eq!((gone.info, gone.cc, gone.cc_info, gone.mem), (None, None, None, None));
    let listening = connections.iter().find(|one| one.state == TcpState::Listen).expect("one");
    let info = listening.info.expect("details");
    assert_eq!((info.unacked, info.sacked, listening.wqueue), (0, 128, 128));
}

#[test]
fn ipv4_on_a_socket_for_ipv6_is_ipv4() {
    let (connections, _) = read(&ipv6());
    let mapped = connections.iter().find(|one| one.remote.is_ipv4()).expect("one");
    assert_eq!((mapped.family, mapped.local.to_string()), (Family::V6, "127.0.0.1:5002".into()));
    assert!(connections.iter().any(|one| one.local.to_string() == "[::1]:5002"));
}
