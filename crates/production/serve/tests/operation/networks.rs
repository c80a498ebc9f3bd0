//! What depends on the client's network: limits, `Server-Timing`, trusted proxies.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use crate::common::{Client, Scratch, Served, connections, spec};
use crate::talker::secured;
use crate::versions::{VERSIONS, ask};
use ppp::v2::{Builder, Command, Protocol, Version};
use uncork_policy::Prefixes;
use uncork_serve::{AdminAddress, AdminSpec, RecordsSpec, ServerSpec, ServerTiming};
use uncork_testkit::{now, wait_until};

const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn site() -> Scratch {
    let scratch = Scratch::new("serve");
    scratch.write("root/file", "fine");
    scratch
}

fn networks(texts: &[&str]) -> Prefixes {
    Prefixes::new(texts.iter().map(|text| text.parse().unwrap()))
}

#[test]
fn a_network_that_asks_too_often_gets_429_and_others_do_not() {
    let scratch = site();
    let mut spec = spec(&scratch.path("root"));
    spec.limits.network_requests = Some(3);
    spec.admin = Some(AdminSpec { address: "127.0.0.1:0".parse().unwrap(), anywhere: false });
    let mut served = Served::new(&spec);
    let began = now();
    let mut client = served.connect();
    let statuses: Vec<_> =
        (0..5).map(|_| client.request("GET", "/file", "").unwrap().status).collect();
    if began.elapsed() < Duration::from_millis(300) {
        assert_eq!(statuses, [200, 200, 200, 429, 429]);
    }
    // The connection goes on, and so do other networks and operators.
    while client.request("GET", "/file", "").unwrap().status != 429 {}
    let refused = client.request("GET", "/file", "").unwrap();
    if refused.status == 429 {
        assert_eq!(refused.header("retry-after"), "1");
        assert_eq!(refused.body, b"429 Too Many Requests\n");
    }
    let mut other = Client::from(OTHER, served.address);
    assert_eq!(other.request("GET", "/file", "").unwrap().status, 200);
    let AdminAddress::Tcp(admin) = served.server.admin().unwrap().clone() else {
        panic!("an address")
    };
    for _ in 0..10 {
        assert_eq!(Client::new(admin).get_of("localhost", "/healthz").unwrap().status, 200);
    }
    wait_until("the network may ask again", Duration::from_mins(1), || {
        client.request("GET", "/file", "").unwrap().status == 200
    });
    // Without a limit from now on.
    spec.limits.network_requests = None;
    served.server.reconfigure(&spec).result.unwrap();
    assert!((0..20).all(|_| client.request("GET", "/file", "").unwrap().status == 200));
    served.stop();
}

/// Two clients of a network share its rate; another network has its own.
#[test]
fn the_rate_of_a_network_is_shared_by_its_responses() {
    const LENGTH: usize = 500_000;
    let scratch = Scratch::new("serve");
    scratch.write("root/file", "x".repeat(LENGTH));
    for version in VERSIONS {
        let mut spec = secured(&scratch);
        spec.limits.network_rate = Some(500_000);
        let served = Served::new(&spec);
        let took = || {
            let began = now();
            let response = ask(&served, &scratch, version, ("localhost", "/file"), "chain.pem");
            assert!(response.body == "x".repeat(LENGTH), "{version}: other bytes");
            began.elapsed().as_secs_f64()
        };
        // What is allowed at once.
        assert!(took() < 0.9, "{version}");
        let (began, both) = (now(), [(); 2].map(|()| &took));
        thread::scope(|scope| both.map(|took| scope.spawn(took)).map(|it| it.join().unwrap()));
        let both = began.elapsed().as_secs_f64();
        assert!((1.5..4.0).contains(&both), "{version}: {both} s");
        served.stop();
    }
}

#[test]
fn the_limit_of_requests_holds_for_each_version() {
    let scratch = site();
    for version in VERSIONS {
        let mut spec = secured(&scratch);
        spec.limits.network_requests = Some(1);
        let served = Served::new(&spec);
        let mut statuses = Vec::new();
        for _ in 0..10 {
            statuses
                .push(ask(&served, &scratch, version, ("localhost", "/file"), "chain.pem").status);
        }
        assert_eq!(statuses[0], 200, "{version}");
        assert!(statuses.contains(&429), "{version}: {statuses:?}");
        served.stop();
    }
}

#[test]
fn connections_of_a_network_are_limited() {
    let scratch = site();
    let mut spec = spec(&scratch.path("root"));
    spec.limits.network_connections = Some(3);
    let served = Served::new(&spec);
    let ask = |client: &mut Client| client.request("GET", "/file", "").map(|it| it.status).ok();
    let mut clients: Vec<_> = (0..3).map(|_| served.connect()).collect();
    assert!(clients.iter_mut().all(|client| ask(client) == Some(200)));
    assert_eq!(ask(&mut served.connect()), None, "none of the others is idle");
    assert_eq!(ask(&mut Client::from(OTHER, served.address)), Some(200));
    served.stop();
}

#[test]
fn some_networks_or_none_receive_server_timing() {
    let scratch = site();
    let mut served = Served::new(&secured(&scratch));
    for (who, has_timing) in [("on", true), ("off", false), ("127.0.0.0/8", true), ("::1", false)] {
        let server_timing: ServerTiming = who.parse().unwrap();
        let spec = ServerSpec { server_timing, ..secured(&scratch) };
        served.server.reconfigure(&spec).result.unwrap();
        for version in VERSIONS {
            let response = ask(&served, &scratch, version, ("localhost", "/file"), "chain.pem");
            assert_eq!(
                response.headers.contains_key("server-timing"),
                has_timing,
                "{who} {version}"
            );
        }
    }
    served.stop();
}

fn header(client: &str) -> Vec<u8> {
    let [client, server]: [SocketAddr; 2] = [client, "192.0.2.2:80"].map(|it| it.parse().unwrap());
    let version = Version::Two | Command::Proxy;
    Builder::with_addresses(version, Protocol::Stream, (client, server)).build().unwrap()
}

#[test]
fn a_proxy_says_who_the_client_is() {
    let scratch = site();
    let mut spec = spec(&scratch.path("root"));
    spec.proxies = networks(&["127.0.0.1"]);
    spec.server_timing = "203.0.113.0/24".parse().unwrap();
    spec.limits.network_requests = Some(1);
    spec.records = Some(RecordsSpec::new(scratch.path("records")));
    let served = Served::new(&spec);
    let from = |client: &str| {
        let mut connection = served.connect();
        connection.send(&header(client)).unwrap();
        connection.request("GET", "/file", "").unwrap()
    };
    let response = from("203.0.113.7:1234");
    assert_eq!((response.status, response.body.as_slice()), (200, b"fine".as_slice()));
    assert!(response.headers.contains_key("server-timing"));
    let other = from("198.51.100.7:1234");
    assert!(other.status == 200 && !other.headers.contains_key("server-timing"));
    // A client that is not a trusted proxy has no header.
    assert_eq!(
        Client::from(OTHER, served.address).request("GET", "/file", "").unwrap().status,
        200
    );
    let mut liar = Client::from(OTHER, served.address);
    liar.send(&header("203.0.113.8:1")).unwrap();
    assert!(liar.request("GET", "/file", "").map_or(true, |it| it.status == 400));
    // A proxy without a header is refused.
    assert!(served.connect().request("GET", "/file", "").is_err());
    served.stop();
    let clients = connections(&scratch.path("records"));
    let clients: Vec<_> =
        clients.iter().map(|it| it.service.as_ref().unwrap().client.clone().unwrap()).collect();
    assert!(clients.contains(&"203.0.113.0/24".into()), "{clients:?}");
}

#[test]
fn the_access_log_has_a_line_for_each_response_with_its_path() {
    let scratch = site();
    let log = scratch.path("access.log");
    let mut spec = secured(&scratch);
    spec.access_log = Some(log.clone());
    let served = Served::new(&spec);
    for version in VERSIONS {
        ask(&served, &scratch, version, ("localhost", "/file?a=%22"), "chain.pem");
        ask(&served, &scratch, version, ("localhost", "/none"), "chain.pem");
    }
    // As logrotate does it.
    wait_until("six lines", Duration::from_secs(20), || lines(&log).len() == 6);
    std::fs::rename(&log, scratch.path("access.log.1")).unwrap();
    served.server.reopen();
    ask(&served, &scratch, "h3", ("localhost", "/file"), "chain.pem");
    let port = served.address.port();
    served.stop();
    let first = lines(&scratch.path("access.log.1"));
    for (number, version) in ["1.1", "2.0", "3.0"].into_iter().enumerate() {
        let [found, missing] = [&first[2 * number], &first[2 * number + 1]];
        assert!(found.starts_with(&format!("localhost:{port} 127.0.0.1 - - [")), "{found}");
        assert!(
            found.contains(&format!("] \"GET /file?a=%22 HTTP/{version}\" 200 4 \"-\" ")),
            "{found}"
        );
        assert!(missing.contains(&format!("] \"GET /none HTTP/{version}\" 404 14 ")), "{missing}");
    }
    assert_eq!(lines(&log).len(), 1);
}

fn lines(path: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
