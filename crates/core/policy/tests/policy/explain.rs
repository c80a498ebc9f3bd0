//! The text of explanations.

use uncork_policy::Fact;

use crate::common::{EXAMPLE, NO_HEADERS, policy, request};

#[test]
fn each_rule_is_explained() {
    let policy = policy(EXAMPLE);
    let mut facts = request(&NO_HEADERS);
    facts.sni = Fact::Absent;
    facts.host = Fact::Known("audio-bbr.example");
    assert_eq!(
        policy.explain(&facts).text(),
        "\
rule 1 `inside` (line 28) does not hold
    listener = internal: no, the listener is `public`
    client = 10.0.0.0/8, fd00::/8: no, the client is 203.0.113.9
rule 2 (line 34) does not hold
    experiment = \"holdback\": no, the client's network is in slot 7085, which no arm has
rule 3 `place` (line 37) does not hold
    asn = AS64500: no, the client's network is AS64999
    country = PE, CL: no, the country is DE
    time = { from = 18:00, to = 01:00, days = thu }: no, the time is 0 s since 1970
rule 4 (line 44) does not hold
    sni = *.cdn.example: no, the name in the handshake is absent
rule 5 `spotify` (line 48) decides
    host = *-bbr*: yes, the host is `audio-bbr.example`
rule 6 (line 53) is not asked
rule 7 `flags` (line 58) is not asked
rule 8 (line 65) is not asked
rule 5 `spotify` decides finally: quic bbr3, tcp bbr
"
    );
}

#[test]
fn unknown_facts_are_shown() {
    let policy = policy(
        "[experiment.e]\nunit = \"cookie:uid\"\nshare = \"100%\"\n[experiment.e.arm.a]\n\
         [[rule]]\nlistener = \"public\"\npath = \"/a\"\nexperiment = \"e\"\n\
         [[rule]]\nquery = { a = \"1\" }\nheader = { X-A = \"2\" }\ncookie = { b = \"3\" }\n\
         use = { tcp = \"bbr\" }\n",
    );
    let mut facts = request(&NO_HEADERS);
    (facts.path, facts.headers) = (Fact::Unknown, Fact::Unknown);
    assert_eq!(
        policy.explain(&facts).text(),
        "\
rule 1 (line 5) may hold when more is known
    listener = public: yes, the listener is `public`
    path = /a: not known yet, the path is not known yet
    experiment = \"e\": not known yet, the cookie `uid` is not known yet
rule 2 (line 9) does not hold
    query a = 1: no, the query is ``
    header x-a = 2: not known yet, the header `x-a` is not known yet
    cookie b = 3: not known yet, the cookie `b` is not known yet
the default decides for now: quic cubic, tcp as the system has it
"
    );
    facts.headers = Fact::Known(&[("cookie", "uid=7"), ("x-a", "\u{1b}[0m")]);
    facts.path = Fact::Known("/a");
    let explained = policy.explain(&facts).text();
    assert!(explained.contains("experiment = \"e\": yes, arm `a` of `e`, slot "), "{explained}");
    facts.path = Fact::Known("/b");
    let explained = policy.explain(&facts).text();
    assert!(explained.contains("header x-a = 2: no, the header `x-a` is `\\u{1b}[0m`"));
    assert!(explained.contains("cookie b = 3: no, the cookie `b` is absent"));
}
