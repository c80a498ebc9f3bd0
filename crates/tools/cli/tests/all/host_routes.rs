//! Routes of a desired state on this kernel: closed, temporary, inner ones, nexthop objects and rare attributes.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;

use crate::common::Scratch;
use crate::common::sandbox::succeed;

/// `desired NETWORK…` writes a desired state with `[[route]]` to each.
const DESIRED: &str = r#"
desired() { for to in "$@"; do printf '[[route]]\nto = "%s"\nalgorithm = "reno"\n' $to; done > host.toml; }
"#;

#[test]
fn what_leads_nowhere_or_expires_stays_as_it_is() {
    let scratch = Scratch::new("host-routes-closed");
    let script = format!(
        r"{DESIRED}
        for kind in blackhole unreachable prohibit throw; do
            ip route add $kind 198.18.0.0/16
            ip -6 route add $kind 2001:db8:18::/48 2> /dev/null || ip -6 route add blackhole 2001:db8:18::/48
            ip route > before; ip -6 route >> before
            for to in 198.18.0.0/16 198.18.3.0/24 2001:db8:18:1::/64; do
                desired $to
                host apply host.toml 2>> refused && exit 9
                host prove reno $OTHER --to 198.18.3.0/24 --pairs 6 --window 1s --burn-in 100ms 2>> refused && exit 8
            done
            ip route > after; ip -6 route >> after; cmp before after
            ip route del 198.18.0.0/16; ip -6 route del 2001:db8:18::/48
        done
        ip -6 route add 2001:db8:20::/48 via 2001:db8::1 expires 600
        desired 2001:db8:20::/48 2001:db8:20:1::/64
        host apply host.toml 2> temporary && exit 7
        ip -6 route show 2001:db8:20::/48 | grep -c expires
        ended"
    );
    let Some(stdout) = succeed(&scratch, &script) else { return };
    assert_eq!(stdout, "1\n");
    let read = |name: &str| fs::read_to_string(scratch.path(name)).unwrap();
    let refused = read("refused");
    assert_eq!(refused.matches("it leads nowhere (blackhole").count(), 24, "{refused}");
    let temporary = read("temporary");
    for to in ["2001:db8:20::/48", "2001:db8:20:1::/64"] {
        let expected = format!("route to {to}: the route that leads there expires");
        assert!(temporary.contains(&expected), "{temporary}");
    }
}

#[test]
fn inner_routes_and_routes_of_nexthop_objects_get_the_algorithm() {
    let scratch = Scratch::new("host-routes-inner");
    let script = format!(
        r"{DESIRED}
        ip address add 10.1.0.1/24 dev t0
        ip route add 10.9.0.0/16 via 192.0.2.9
        ip nexthop add id 7 via 192.0.2.1 dev t0
        ip nexthop add id 8 via 192.0.2.3 dev t0
        ip nexthop add id 9 group 7/8
        ip nexthop add id 17 via 2001:db8::1 dev t0
        ip route add 10.11.0.0/16 nhid 7
        ip route add 10.12.0.0/16 nhid 9
        ip -6 route add 2001:db8:11::/48 nhid 17
        seen > before
        desired 10.0.0.0/8 10.11.3.0/24 2001:db8:11::/48 2001:db8:11:3::/64
        host plan host.toml > planned && exit 9
        host apply host.toml > applied
        host plan host.toml
        ip route; ip -6 route
        host revert > reverted
        seen | cmp before -
        sed -n '/^ip /p' planned > typed.sh
        sh -e typed.sh
        ip route > typed
        ended"
    );
    let Some(stdout) = succeed(&scratch, &script) else { return };
    assert!(stdout.contains("This host matches"), "{stdout}");
    let typed = fs::read_to_string(scratch.path("typed")).unwrap();
    for to in ["10.0.0.0/8 ", "10.1.0.0/24 ", "10.9.0.0/16 ", "10.11.0.0/16 nhid 7", "10.11.3.0/24 nhid 7"] {
        for routes in [&stdout, &typed] {
            let line = routes.lines().find(|line| line.starts_with(to)).expect(routes);
            assert!(line.contains("congctl reno"), "{line}");
        }
    }
    let with_six = stdout.lines().filter(|line| line.starts_with("2001:db8:11:"));
    assert_eq!(with_six.filter(|line| line.contains("congctl reno")).count(), 2, "{stdout}");
    let group = stdout.split("10.12.0.0/16 ").nth(1).unwrap();
    assert!(group.lines().next().unwrap().contains("congctl reno"), "{stdout}");
}

#[test]
fn planned_commands_keep_each_attribute_or_say_which_they_cannot() {
    let scratch = Scratch::new("host-routes-attributes");
    let script = format!(
        r"{DESIRED}
        ip route add 10.1.0.0/16 via 192.0.2.1 mtu lock 1300 cwnd lock 20 reordering 5 fastopen_no_cookie 1
        ip route add 10.2.0.0/16 nexthop via 192.0.2.1 dev t0 onlink nexthop via 192.0.2.3 dev t0 weight 2
        ip route add 10.3.0.0/16 via 192.0.2.1 realm 5 rto_min 50ms
        ip route add 10.4.0.0/16 encap ip id 100 dst 192.0.2.1 dev t0
        routes() {{ ip route show | grep -A2 '^10\.'; }}
        routes > before
        desired 10.1.0.0/16 10.1.1.0/24 10.2.0.0/16 10.2.1.0/24
        host plan host.toml > planned && exit 9
        host apply host.toml > /dev/null; routes > applied; host revert > /dev/null
        routes | cmp before -
        sed -n '/^ip /p' planned > typed.sh; sh -e typed.sh; routes > typed
        diff applied typed
        desired 10.3.0.0/16 10.4.0.0/16
        host plan host.toml && exit 9
        ended"
    );
    let Some(stdout) = succeed(&scratch, &script) else { return };
    for part in [
        "# route to 10.3.0.0/16: only `uncork host apply` keeps its rto_min, realm",
        "# route to 10.4.0.0/16: only `uncork host apply` keeps its encap",
        "[encap] congctl reno",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}
