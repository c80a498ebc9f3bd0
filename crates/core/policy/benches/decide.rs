//! The cost of a decision, for a policy of a hundred rules where only the last matches, and for one with a
//! table of a million networks; and of the look-up in that table alone.

use std::fmt::Write as _;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use criterion::{Criterion, criterion_group, criterion_main};
use uncork_policy::{Fact, Facts, Origin, Origins, Policy, UnixTime};
use uncork_units::ByteCount;

const RULES: usize = 100;

/// A policy where the last rule matches, after rules with `condition` that do not.
fn text(condition: &dyn Fn(usize) -> String) -> String {
    let mut text = String::new();
    for n in 0..RULES - 1 {
        let _ = write!(text, "[[rule]]\n{}\nuse = {{ quic = \"bbr3\" }}\n", condition(n));
    }
    text + "[[rule]]\nhost = \"*\"\nuse = { quic = \"bbr3\" }\n"
}

fn policy(text: &str) -> Policy {
    Policy::parse("bench", text).unwrap_or_else(|error| panic!("{}", error.render("", false)))
}

fn mixed(n: usize) -> String {
    match n % 5 {
        0 => format!("client = [\"10.{n}.0.0/16\", \"2001:db8:{n}::/48\"]"),
        1 => format!("host = \"*-bbr{n}*\""),
        2 => format!("path = \"/audio/{n}/**.ogg\""),
        3 => format!("cookie = {{ arm = \"{n}\" }}"),
        _ => format!("listener = \"internal{n}\"\nsize = {{ min = \"1MB\" }}"),
    }
}

fn decide(criterion: &mut Criterion) {
    let headers =
        [("user-agent", "listener/1.0"), ("accept", "*/*"), ("cookie", "uid=1234567; arm=none")];
    let facts = Facts {
        host: Fact::Known("audio-fa-bbr.cdn.example.com"),
        path: Fact::Known("/audio/artist/album/track-0123456789.ogg"),
        query: Fact::Known(""),
        headers: Fact::Known(&headers),
        size: Fact::Known(ByteCount::new(5_000_000)),
        sni: Fact::Known("audio-fa-bbr.cdn.example.com"),
        ..Facts::at_accept(
            "public",
            "203.0.113.9".parse().expect("an address"),
            UnixTime(1_800_000_000),
            Origins::new().of("203.0.113.9".parse().expect("an address")),
        )
    };
    let policies = [
        ("mixed", policy(&text(&mixed))),
        ("client", policy(&text(&|n| format!("client = \"10.{n}.0.0/16\"")))),
        ("host", policy(&text(&|n| format!("host = \"*-bbr{n}*\"")))),
        ("path", policy(&text(&|n| format!("path = \"/audio/**/{n}.ogg\"")))),
    ];
    for (name, policy) in &policies {
        criterion.bench_function(&format!("decide/100 rules, {name}"), |bencher| {
            bencher.iter(|| black_box(policy).decide(black_box(&facts)));
        });
    }
    let text = text(&mixed);
    criterion.bench_function("parse/100 rules, mixed", |bencher| {
        bencher.iter(|| policy(black_box(&text)));
    });
}

/// A policy with a table of this many networks: /24s and /48s, half of them nested in /20s and /40s.
fn learned(networks: usize) -> (Policy, String) {
    let mut body = String::from(
        "uncork-table 1\nversion 1\nmade 2026-01-01T00:00:00Z\nexpires 2036-01-01T00:00:00Z\nsection all\n* a\n",
    );
    for n in 0..networks / 2 {
        let (arm, spread) =
            (if n % 3 == 0 { "a" } else { "b" }, (n as u32).wrapping_mul(0x9e37_79b1) >> 8);
        let network = Ipv4Addr::from(spread << 8);
        let _ = writeln!(body, "{network}/24 {arm}");
        let spread = u128::from(spread);
        let network = Ipv6Addr::from((0x2000 | spread >> 12) << 112 | spread << 80);
        let _ = writeln!(body, "{network}/48 {arm}");
    }
    let policy = policy(
        "[table]\nfile = \"t\"\n[table.arm.a]\ntcp = \"cubic\"\n[table.arm.b]\ntcp = \"bbr\"\n\
         [[rule]]\ntable = \"all\"\n",
    );
    (policy, uncork_testkit::finished_table(&body))
}

/// `count` addresses all over the address space.
fn addresses(count: u32, address: fn(u32) -> IpAddr) -> Vec<IpAddr> {
    (0..count).map(|n| address(n.wrapping_mul(0x85eb_ca6b))).collect()
}

fn v4(n: u32) -> IpAddr {
    IpAddr::V4(n.into())
}

fn v6(n: u32) -> IpAddr {
    let spread = u128::from(n >> 8);
    IpAddr::V6(Ipv6Addr::from((0x2000 | spread >> 12) << 112 | spread << 80 | u128::from(n)))
}

/// The table alone, as the server and the kernel read it: for a number of clients with their part of it in the caches,
/// and for a larger one.
fn look_up(criterion: &mut Criterion, loaded: &Policy) {
    let flat = loaded.flat(&[], &Origins::new()).unwrap_or_else(|error| panic!("{error}"));
    for (family, address) in [("IPv4", v4 as fn(u32) -> IpAddr), ("IPv6", v6)] {
        for count in [4_096, 1_000_000] {
            let clients = addresses(count, address);
            let mut all = clients.iter().cycle();
            let name = format!("look-up/10^6 networks, {family}, {count} clients in turn");
            criterion.bench_function(&name, |bencher| {
                bencher.iter(|| flat.table.find(*all.next().unwrap_or(&clients[0])));
            });
        }
    }
}

/// Decisions of a policy with a table of a million networks, for clients all over the address space.
fn table(criterion: &mut Criterion) {
    let (policy, text) = learned(1_000_000);
    let with_table = || {
        let mut policy = policy.clone();
        policy.take_table(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        policy
    };
    let loaded = with_table();
    let clients = |address: fn(u32) -> IpAddr| -> Vec<Facts<'static>> {
        let facts =
            |client| Facts::at_accept("public", client, UnixTime(1_800_000_000), Origin::default());
        addresses(4_096, address).into_iter().map(facts).collect()
    };
    for (name, clients) in [("IPv4", clients(v4)), ("IPv6", clients(v6))] {
        let mut all = clients.iter().cycle();
        criterion.bench_function(&format!("decide/10^6 networks, {name}"), |bencher| {
            bencher
                .iter(|| black_box(&loaded).decide(black_box(all.next().unwrap_or(&clients[0]))));
        });
    }
    look_up(criterion, &loaded);
    let mut group = criterion.benchmark_group("read");
    group.sample_size(10);
    group.bench_function("10^6 networks", |bencher| bencher.iter(with_table));
    group.finish();
}

criterion_group!(benches, decide, table);
criterion_main!(benches);
