//! Routes on this kernel: closed, temporary and inner ones, nexthop objects, rare attributes.

use std::fmt::Write;

use uncork_host::change::{DesiredState, HostTrial, Journal, Plan, plan, revert};
use uncork_testkit::Scratch;

use crate::desired_states::apply_text;
use crate::live::{KillableHost, in_namespaces, live, root, seen, shell};

fn host(scratch: &Scratch) -> KillableHost {
    KillableHost { host: live(scratch), left: 100_000, ahead_s: 0, unix_s: None }
}

/// A desired state with a route to each.
fn routes_to(networks: &[&str]) -> String {
    let mut text = String::new();
    for to in networks {
        writeln!(text, "[[route]]\nto = \"{to}\"\nalgorithm = \"reno\"").unwrap();
    }
    text
}

fn planned(scratch: &Scratch, text: &str) -> Plan {
    let mut host = host(scratch);
    plan(&mut host, &DesiredState::parse(text).unwrap(), &Journal::new("boot")).unwrap()
}

fn commands(plan: &Plan) -> Vec<String> {
    plan.document("host.toml").changes.into_iter().flat_map(|change| change.commands).collect()
}

#[test]
fn what_leads_nowhere_or_expires_stays_as_it_is() {
    in_namespaces("live_routes::what_leads_nowhere_or_expires_stays_as_it_is", |scratch| {
        for kind in ["blackhole", "unreachable", "prohibit", "throw"] {
            shell(&format!(
                "ip route add {kind} 198.18.0.0/16; ip -6 route add {kind} 2001:db8:18::/48"
            ));
            let before = seen(&root(scratch));
            for to in ["198.18.0.0/16", "198.18.3.0/24", "2001:db8:18::/48", "2001:db8:18:1::/64"] {
                let error = apply_text(&mut host(scratch), &routes_to(&[to]), None).unwrap_err();
                let expected = format!("route to {to}: it leads nowhere");
                assert!(error.to_string().contains(&expected), "{kind}: {error}");
                let mut trial = HostTrial::begin(&mut host(scratch)).unwrap();
                let state = DesiredState::parse(&routes_to(&[to])).unwrap();
                trial.switch(&mut host(scratch), &state).unwrap_err();
                trial.end(&mut host(scratch)).unwrap();
            }
            assert_eq!(seen(&root(scratch)), before);
            shell("ip route del 198.18.0.0/16; ip -6 route del 2001:db8:18::/48");
        }
        // Of two routes to one network the preferred one counts.
        shell(
            "ip route add 198.18.0.0/16 via 192.0.2.1 metric 10
             ip route add unreachable 198.18.0.0/16 metric 20
             ip -6 route add 2001:db8:20::/48 via 2001:db8::1 expires 600",
        );
        apply_text(&mut host(scratch), &routes_to(&["198.18.0.0/16"]), None).unwrap();
        revert(&mut host(scratch)).unwrap();
        for to in ["2001:db8:20::/48", "2001:db8:20:1::/64"] {
            let error = apply_text(&mut host(scratch), &routes_to(&[to]), None).unwrap_err();
            let expected = format!("route to {to}: the route that leads there expires");
            assert!(error.to_string().contains(&expected), "{error}");
        }
        assert!(shell("ip -6 route show 2001:db8:20::/48").contains("expires"));
    });
}

#[test]
fn inner_routes_and_routes_of_nexthop_objects_get_the_algorithm() {
    let name = "live_routes::inner_routes_and_routes_of_nexthop_objects_get_the_algorithm";
    in_namespaces(name, |scratch| {
        shell(
            "ip address add 10.1.0.1/24 dev t0
             ip route add 10.9.0.0/16 via 192.0.2.9
             ip link add v0 type veth peer name v1
             ip link set v0 up
             ip link set v1 up
             ip address add 192.168.7.2/24 dev v0
             ip -6 address add 2001:db8:7::2/64 dev v0 nodad
             ip nexthop add id 7 via 192.168.7.1 dev v0
             ip nexthop add id 8 via 192.168.7.3 dev v0
             ip nexthop add id 9 group 7/8
             ip nexthop add id 17 via 2001:db8:7::1 dev v0
             ip route add 172.16.11.0/24 nhid 7
             ip route add 172.16.12.0/24 nhid 9
             ip -6 route add 2001:db8:11::/48 nhid 17",
        );
        let before = seen(&root(scratch));
        for to in ["172.16.11.0/24", "172.16.12.0/24", "172.16.11.128/25", "172.16.0.0/12"] {
            let error = apply_text(&mut host(scratch), &routes_to(&[to]), None).unwrap_err();
            assert!(error.to_string().contains("has a nexthop object (nhid)"), "{error}");
        }
        assert_eq!(seen(&root(scratch)), before);
        let text = routes_to(&["10.0.0.0/8", "2001:db8:11::/48", "2001:db8:11:3::/64"]);
        let typed = commands(&planned(scratch, &text));
        apply_text(&mut host(scratch), &text, None).unwrap();
        let applied = seen(&root(scratch));
        for to in [
            "10.0.0.0/8 via",
            "10.1.0.0/24 dev t0",
            "10.9.0.0/16 via",
            "2001:db8:11::/48 nhid 17",
            "2001:db8:11:3::/64 nhid 17",
        ] {
            let route = applied.split(to).nth(1).expect(&applied).lines().next().unwrap();
            assert!(route.contains("congctl reno"), "{to}: {applied}");
        }
        assert!(apply_text(&mut host(scratch), &text, None).unwrap().steps.is_empty());
        revert(&mut host(scratch)).unwrap();
        assert_eq!(seen(&root(scratch)), before);
        shell(&format!("set -e\n{}", typed.join("\n")));
        assert_eq!(seen(&root(scratch)), applied);
    });
}

#[test]
fn planned_commands_keep_each_attribute_or_name_what_they_cannot() {
    let name = "live_routes::planned_commands_keep_each_attribute_or_name_what_they_cannot";
    in_namespaces(name, |scratch| {
        shell(
            "ip route add 10.1.0.0/16 via 192.0.2.1 mtu lock 1300 cwnd lock 20 reordering 5 fastopen_no_cookie 1
             ip route add 10.2.0.0/16 nexthop via 192.0.2.1 dev t0 onlink nexthop via 192.0.2.3 dev t0 weight 2
             ip route add 10.3.0.0/16 via 192.0.2.1 realm 5 rto_min 50ms",
        );
        let before = seen(&root(scratch));
        let text = routes_to(&["10.1.0.0/16", "10.1.1.0/24", "10.2.0.0/16", "10.2.1.0/24"]);
        let typed = commands(&planned(scratch, &text));
        apply_text(&mut host(scratch), &text, None).unwrap();
        let applied = seen(&root(scratch));
        revert(&mut host(scratch)).unwrap();
        assert_eq!(seen(&root(scratch)), before);
        shell(&format!("set -e\n{}", typed.join("\n")));
        assert_eq!(seen(&root(scratch)), applied);
        let rare = planned(scratch, &routes_to(&["10.3.0.0/16"])).document("host.toml");
        let comment = "# route to 10.3.0.0/16: only `uncork host apply` keeps its ";
        assert!(rare.changes[0].commands[0].starts_with(comment), "{:?}", rare.changes[0]);
        assert!(rare.changes[0].then.contains("[rto_min, realm]"), "{:?}", rare.changes[0]);
    });
}
