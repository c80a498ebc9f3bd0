//! The cost of a decision, for a policy of a hundred rules of which only the last matches.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use uncork_policy::{Fact, Facts, Origins, Policy, UnixTime};
use uncork_units::ByteCount;

const RULES: usize = 100;

/// A policy whose last rule matches, after rules with `condition` that do not.
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

criterion_group!(benches, decide);
criterion_main!(benches);
