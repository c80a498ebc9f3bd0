//! Every error in a policy is reported with its place and a remedy.

use uncork_policy::{Policy, PolicyError};

use crate::common::EXAMPLE;
use crate::texts::{Case, case};

const HOST: &str = "host = \"*-bbr*\"";
const PATHS: &str = "[\"/audio/*\", \"/video/**\"]";
const NETS: &str = "[\"10.0.0.0/8\", \"fd00::/8\"]";
const SIZE: &str = "{ min = \"1MB\", below = \"1GB\" }";
const TIME: &str = "{ from = \"18:00\", to = \"01:00\", days = [\"thu\"] }";

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Names.
    case("[default]", "[defualt]", "unknown key `defualt` in a policy", "defualt", "did you mean `default`?"),
    case("[[rule]]", "[[rules]]", "unknown key `rules` in a policy", "", "did you mean `rule`?"),
    case(HOST, "hots = \"*-bbr*\"", "unknown key `hots` in [[rule]]", "hots", "did you mean `host`?"),
    case("tcp = \"cubic\"", "tpc = \"cubic\"", "unknown key `tpc` in [default]", "tpc", "did you mean `tcp`?"),
    case("use = { tcp = \"bbr\" }", "use = { tcpp = \"bbr\" }", "unknown key `tcpp` in `use`", "tcpp", "did you mean `tcp`?"),
    case("weight = 2", "wieght = 2", "unknown key `wieght` in [experiment.fleet.arm.control]", "wieght", "did you mean `weight`?"),
    case("salt = ", "slat = ", "unknown key `slat` in [experiment.fleet]", "slat", "did you mean `salt`?"),
    case(SIZE, "{ mim = \"1MB\" }", "unknown key `mim` in `size`", "mim", "did you mean `min`?"),
    case(TIME, "{ form = \"18:00\" }", "unknown key `form` in `time`", "form", "did you mean `from`?"),
    case("quic = \"bbr2\"", "quic = \"bbr\"", "unknown controller `bbr`", "\"bbr\"", "did you mean `bbr"),
    case("bbr3:loss_floor", "bbr3:los_floor", "bbr3 has no option `los_floor`", "\"bbr3:los_floor\"", "did you mean `loss_floor`?"),
    case("experiment = \"fleet\"", "experiment = \"fleat\"", "there is no experiment `fleat`", "\"fleat\"", "did you mean `fleet`?"),
    case("\"each_request\"", "\"each-request\"", "unknown time to decide `each-request`", "\"each-request\"", "did you mean `each_request`?"),
    case("[\"thu\"]", "[\"thur\"]", "`thur` is not a day of the week", "\"thur\"", "did you mean `thu`?"),
    case("name = \"place\"", "name = \"inside\"", "two rules have the name `inside`", "\"inside\"", "line 28 has this one"),
    case("name = \"place\"", "name = \"\"", "the name is empty", "\"\"", "leave it out"),
    // Types and units.
    case("{ min = \"1MB\"", "{ min = 1000000", "a number of bytes needs a unit", "1000000", "write 1000000MB"),
    case("\"50mbit\"", "50", "a rate needs a unit", "50", "write 50mbit"),
    case("\"50mbit\"", "\"50Mb\"", "the unit has two meanings", "\"50Mb\"", "write 50mbit or 50MB/s"),
    case("\"50mbit\"", "\"0mbit\"", "a pacing cap of 0", "\"0mbit\"", "leave the cap out"),
    case("\"32p\"", "32", "a number of packets or of bytes", "32", "write 10p or 32KiB"),
    case("\"32p\"", "\"0p\"", "no connection begins with such a window", "\"0p\"", "write 1p to 1000p"),
    case("share = \"50%\"", "share = 50", "a probability needs a unit", "50", "write 50%"),
    case("share = \"50%\"", "share = 0.5", "a probability is written in percent", "0.5", "write 0.5%, or 50% for 0.5 of 1"),
    case("share = \"50%\"", "share = \"150%\"", "too large", "\"150%\"", "at most 100%"),
    case("share = \"50%\"", "share = \"0.001%\"", "0.001% is not a multiple of 0.01%", "\"0.001%\"", "at most two digits"),
    case("weight = 2", "weight = \"2\"", "a string where a whole number belongs", "\"2\"", ""),
    case("weight = 2", "weight = 0", "0 is not possible here", "0", "give a whole number from 1 to 10000"),
    case("asn = \"AS64500\"", "asn = 64500", "`64500` is not an AS number", "64500", "write \"AS64500\""),
    case("asn = \"AS64500\"", "asn = \"AS4294967296\"", "is not an AS number", "\"AS4294967296\"", "give AS0 to AS4294967295"),
    case("asn = \"AS64500\"", "asn = true", "true or false where a string belongs", "true", "write \"AS64500\""),
    case("[[rule]]\nname = \"inside\"", "[rule]\nname = \"inside\"", "not valid TOML", "", ""),
    case("use = { tcp = \"bbr\" }", "use = \"bbr\"", "a string where a table belongs", "\"bbr\"", "`use` has keys of its own"),
    case(HOST, "host = 7", "a number where a string belongs", "7", ""),
    case(HOST, "host = []", "an empty list never matches", "[]", "leave it out"),
    case("query = { bbr = \"1\" }", "query = \"bbr=1\"", "a string where a table belongs", "\"bbr=1\"", "write query = { NAME = \"VALUE\" }"),
    case("query = { bbr = \"1\" }", "query = {}", "`query` names none", "query", "write query = { NAME = \"VALUE\" }"),
    case("query = { bbr = \"1\" }", "query = { bbr = 1 }", "a number where a string belongs", "1", ""),
    // Impossible values.
    case(NETS, "\"10.0.0.1/8\"", "host bits are set", "\"10.0.0.1/8\"", "write 10.0.0.0/8"),
    case(NETS, "\"10.0.0.0/33\"", "bad prefix length", "\"10.0.0.0/33\"", "a number from 0 to 32"),
    case(NETS, "\"10.0.0/8\"", "not a network", "\"10.0.0/8\"", "write 203.0.113.0/24"),
    case("\"CL\"", "\"Chile\"", "a country code has two capital letters", "\"Chile\"", "write PE for Peru"),
    case("\"CL\"", "\"cl\"", "a country code has two capital letters", "\"cl\"", "write PE"),
    case(HOST, "host = \"https://a.example/x\"", "a host contains no `/`", "\"https://a.example/x\"", "write a.example"),
    case(HOST, "host = \"a.example:443\"", "hosts are compared without their ports", "\"a.example:443\"", "write a.example"),
    case(HOST, "host = \"bücher.example\"", "a host's name is sent in ASCII", "\"bücher.example\"", "xn--"),
    case(HOST, "host = \"\"", "an empty pattern never matches", "\"\"", "write * for anything"),
    case(HOST, "host = 'a\\'", "a backslash must precede `*` or another backslash", "'a\\'", "for a backslash"),
    case(PATHS, "\"audio/*\"", "a path begins with `/`", "\"audio/*\"", "write /audio/* or **/audio/*"),
    case(PATHS, "\"/a?bbr=1\"", "a path ends before `?`", "\"/a?bbr=1\"", "query = { NAME"),
    case(PATHS, "\"/a%20b\"", "paths are compared decoded", "\"/a%20b\"", "the character itself"),
    case("X-Client", "\"X Client\"", "no header has the name `X Client`", "\"X Client\"", "x-client"),
    case("beta = ", "\"be;ta\" = ", "no cookie has the name `be;ta`", "\"be;ta\"", "uid"),
    case("query = { bbr", "query = { \"a=b\"", "no query has the name `a=b`", "\"a=b\"", "without & and ="),
    case(SIZE, "{}", "a size without bounds always matches", "size", "write size = { min"),
    case(SIZE, "{ min = \"1MB\", below = \"1MB\" }", "no size is in this range", "\"1MB\"", "let `min` be less"),
    case(TIME, "{}", "an empty time window always matches", "time", "write time = { from"),
    case(TIME, "{ from = \"18:00\" }", "`from` needs `to`", "from", "write to = "),
    case(TIME, "{ from = \"18:00\", to = \"18:00\" }", "`from` equals `to`: the window is empty", "\"18:00\"", "for whole days"),
    case(TIME, "{ from = \"6pm\", to = \"18:00\" }", "`6pm` is not a time of day", "\"6pm\"", "write \"18:00\""),
    case(TIME, "{ from = \"00:00\", to = \"24:01\" }", "`24:01` is not a time of day", "\"24:01\"", "to \"24:00\""),
    case(TIME, "{ from = 18, to = 20 }", "a number where a time of the day belongs", "18", "write \"18:00\""),
    case(TIME, "{ since = 2026-12-01 }", "not a date with a time", "2026-12-01", "write 2026-12-01T18:00:00Z"),
    case(TIME, "{ since = 2026-12-01T18:00:00 }", "missing UTC offset", "2026-12-01T18:00:00", "or +01:00 for Z"),
    case(TIME, "{ since = \"soon\" }", "not a date with a time", "\"soon\"", "write 2026"),
    case(TIME, "{ since = 2026-12-02T00:00:00Z, until = 2026-12-01T00:00:00Z }", "`until` is not after `since`", "2026-12-01T00:00:00Z", "after `since`"),
    case(TIME, "{ days = \"thu\", utc_offset = \"CET\" }", "`CET` is not a UTC offset", "\"CET\"", "write \"+02:00\""),
    case("tcp = \"cubic\"", "tcp = \"bbr with fq\"", "`bbr with fq` is not a name of a congestion control in the kernel", "\"bbr with fq\"", "tcp_available_congestion_control"),
    case("tcp = \"cubic\"", "tcp = \"a_name_of_16_byt\"", "is not a name of a congestion control in the kernel", "", ""),
    case("use = { quic = \"reno\" }", "use = {}", "`use` is empty", "use", "write quic = "),
    case("use = { quic = \"reno\" }", "", "[[rule]] has no settings", "", ""),
    case("use = { quic = \"reno\" }", "use = { quic = \"reno\" }\nexperiment = \"fleet\"", "has two of settings", "experiment", "give one of `use`, `experiment`"),
    case("sni = \"*.cdn.example\"", "", "a rule without conditions holds for everybody", "", "put what it gives into [default]"),
    // Experiments.
    case("key = \"0001", "key = \"zz01", "a key needs 32 hexadecimal digits", "", "openssl rand -hex 16"),
    case("key = \"0001", "key = \"+001", "a key needs 32 hexadecimal digits", "", "openssl rand -hex 16"),
    case("0d0e0f\"", "0d0e\"", "a key needs 32 hexadecimal digits", "", "openssl rand -hex 16"),
    case("unit = \"prefix\"", "unit = \"client\"", "`client` is not a unit", "\"client\"", "write prefix, cookie:NAME or header:NAME"),
    case("unit = \"prefix\"", "unit = \"cookie:\"", "no cookie has the name ``", "\"cookie:\"", "uid"),
    case("unit = \"prefix\"\n", "", "[experiment.holdback] has no `unit`", "", "write unit = \"prefix\""),
    case("share = \"10%\"\n", "", "[experiment.holdback] has no `share`", "", "write share = \"10%\""),
    case("salt = \"fleet-1\"", "salt = \"\"", "the salt is empty", "\"\"", "then the name is the salt"),
    case("share = \"50%\"", "share = \"0.01%\"", "nothing is left for the arm `control`", "\"0.01%\"", "give a larger share"),
    case("[experiment.holdback.arm.cubic]\nweight = 1", "", "[experiment.holdback] has no arm", "holdback", "write [experiment.holdback.arm.NAME]"),
    case("[experiment.holdback.arm.cubic]\nweight = 1", "arm = 3", "a number where a table of tables belongs", "3", "write [experiment.holdback.arm.NAME]"),
    case("[[rule]]\nexperiment = \"holdback\"", "", "no rule uses the experiment `holdback`", "holdback", "or leave the experiment out"),
    // TOML syntax.
    case("decide = ", "decide = \"once\"\ndecide = ", "not valid TOML: duplicate key", "decide", ""),
    case("quic = \"cubic\"", "quic = cubic", "not valid TOML", "", ""),
    case("[default]", "[default", "not valid TOML", "", ""),
];

fn refused(text: &str, what: &str) -> PolicyError {
    match Policy::parse("test", text) {
        Ok(_) => panic!("{what} was taken"),
        Err(error) => error,
    }
}

#[test]
fn each_mistake_is_reported_with_place_and_remedy() {
    for case in CASES {
        let text = case.within(EXAMPLE);
        case.assert_told(&text, &refused(&text, case.new));
    }
    assert!(CASES.len() >= 80);
}

/// Every error has a remedy: a suggestion, or what is expected instead.
#[test]
fn each_mistake_has_a_remedy() {
    for case in CASES {
        let error = refused(&case.within(EXAMPLE), case.new);
        let remedy = error.suggestion().or(error.expectation());
        assert!(remedy.is_some(), "{}", error.render("test.toml", false));
    }
}

#[test]
fn a_single_bracket_suggests_a_list_of_rules() {
    let error = refused("[rule]\nhost = \"a\"\nuse = { tcp = \"bbr\" }\n", "[rule]");
    assert!(error.suggestion().unwrap_or_default().contains("write [[rule]]"), "{error}");
}

#[test]
fn an_error_is_shown_at_its_place() {
    let error = refused("[[rule]]\nhots = \"*-bbr*\"\nuse = { tcp = \"bbr\" }\n", "hots");
    assert_eq!(
        error.render("policy.toml", false),
        "\
error: unknown key `hots` in [[rule]]
 --> policy.toml:2:1
  |
2 | hots = \"*-bbr*\"
  | ^^^^
  |
  = help: did you mean `host`?"
    );
}
