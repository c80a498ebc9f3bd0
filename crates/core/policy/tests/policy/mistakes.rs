//! Mistakes in policies: the marked place, and the messages (`tests/messages.txt`).

use uncork_policy::{Policy, PolicyError};
use uncork_testkit::assert_message;

use crate::common::EXAMPLE;
use crate::texts::{Case, case, message};

const HOST: &str = "host = \"*-bbr*\"";
const PATHS: &str = "[\"/audio/*\", \"/video/**\"]";
const NETS: &str = "[\"10.0.0.0/8\", \"fd00::/8\"]";
const SIZE: &str = "{ min = \"1MB\", below = \"1GB\" }";
const TIME: &str = "{ from = \"18:00\", to = \"01:00\", days = [\"thu\"] }";

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Names.
    case("[default]", "[defualt]", "defualt"),
    case("[[rule]]", "[[rules]]", ""),
    case(HOST, "hots = \"*-bbr*\"", "hots"),
    case("tcp = \"cubic\"", "tpc = \"cubic\"", "tpc"),
    case("use = { tcp = \"bbr\" }", "use = { tcpp = \"bbr\" }", "tcpp"),
    case("weight = 2", "wieght = 2", "wieght"),
    case("salt = ", "slat = ", "slat"),
    case(SIZE, "{ mim = \"1MB\" }", "mim"),
    case(TIME, "{ form = \"18:00\" }", "form"),
    case("quic = \"bbr2\"", "quic = \"bbr\"", "\"bbr\""),
    case("bbr3:loss_floor", "bbr3:los_floor", "\"bbr3:los_floor\""),
    case("experiment = \"fleet\"", "experiment = \"fleat\"", "\"fleat\""),
    case("\"each_request\"", "\"each-request\"", "\"each-request\""),
    case("[\"thu\"]", "[\"thur\"]", "\"thur\""),
    case("name = \"place\"", "name = \"inside\"", "\"inside\""),
    case("name = \"place\"", "name = \"\"", "\"\""),
    // Types and units.
    case("{ min = \"1MB\"", "{ min = 1000000", "1000000"),
    case("\"50mbit\"", "50", "50"),
    case("\"50mbit\"", "\"50Mb\"", "\"50Mb\""),
    case("\"50mbit\"", "\"0mbit\"", "\"0mbit\""),
    case("\"32p\"", "32", "32"),
    case("\"32p\"", "\"0p\"", "\"0p\""),
    case("\"32p\"", "\"65p\"", "\"65p\""),
    case("\"32p\"", "\"97kB\"", "\"97kB\""),
    case("initial_window = \"32p\"", "initial_rate = \"bursts\"", "\"bursts\""),
    case("initial_window = \"32p\"", "initial_rate = \"0mbit\"", "\"0mbit\""),
    case("initial_window = \"32p\"", "initial_rate = 20", "20"),
    case("initial_window = \"32p\"", "initial_rate = \"burst\"", "\"burst\""),
    case("initial_window = \"32p\"", "ecn = \"l4s\"", "\"l4s\""),
    case("initial_window = \"32p\"", "ecn = \"ect1\"", "\"ect1\""),
    case("initial_window = \"32p\"", "ecn = true", "true"),
    case("share = \"50%\"", "share = 50", "50"),
    case("share = \"50%\"", "share = 0.5", "0.5"),
    case("share = \"50%\"", "share = \"150%\"", "\"150%\""),
    case("share = \"50%\"", "share = \"0.001%\"", "\"0.001%\""),
    case("weight = 2", "weight = \"2\"", "\"2\""),
    case("weight = 2", "weight = 0", "0"),
    case("asn = \"AS64500\"", "asn = 64500", "64500"),
    case("asn = \"AS64500\"", "asn = \"AS4294967296\"", "\"AS4294967296\""),
    case("asn = \"AS64500\"", "asn = true", "true"),
    case("[[rule]]\nname = \"inside\"", "[rule]\nname = \"inside\"", ""),
    case("use = { tcp = \"bbr\" }", "use = \"bbr\"", "\"bbr\""),
    case(HOST, "host = 7", "7"),
    case(HOST, "host = []", "[]"),
    case("query = { bbr = \"1\" }", "query = \"bbr=1\"", "\"bbr=1\""),
    case("query = { bbr = \"1\" }", "query = {}", "query"),
    case("query = { bbr = \"1\" }", "query = { bbr = 1 }", "1"),
    // Impossible values.
    case(NETS, "\"10.0.0.1/8\"", "\"10.0.0.1/8\""),
    case(NETS, "\"10.0.0.0/33\"", "\"10.0.0.0/33\""),
    case(NETS, "\"10.0.0/8\"", "\"10.0.0/8\""),
    case("\"CL\"", "\"Chile\"", "\"Chile\""),
    case("\"CL\"", "\"cl\"", "\"cl\""),
    case(HOST, "host = \"https://a.example/x\"", "\"https://a.example/x\""),
    case(HOST, "host = \"a.example:443\"", "\"a.example:443\""),
    case(HOST, "host = \"bücher.example\"", "\"bücher.example\""),
    case(HOST, "host = \"\"", "\"\""),
    case(HOST, "host = 'a\\'", "'a\\'"),
    case(PATHS, "\"audio/*\"", "\"audio/*\""),
    case(PATHS, "\"/a?bbr=1\"", "\"/a?bbr=1\""),
    case(PATHS, "\"/a%20b\"", "\"/a%20b\""),
    case("X-Client", "\"X Client\"", "\"X Client\""),
    case("beta = ", "\"be;ta\" = ", "\"be;ta\""),
    case("query = { bbr", "query = { \"a=b\"", "\"a=b\""),
    case(SIZE, "{}", "size"),
    case(SIZE, "{ min = \"1MB\", below = \"1MB\" }", "\"1MB\""),
    case(TIME, "{}", "time"),
    case(TIME, "{ from = \"18:00\" }", "from"),
    case(TIME, "{ from = \"18:00\", to = \"18:00\" }", "\"18:00\""),
    case(TIME, "{ from = \"6pm\", to = \"18:00\" }", "\"6pm\""),
    case(TIME, "{ from = \"00:00\", to = \"24:01\" }", "\"24:01\""),
    case(TIME, "{ from = 18, to = 20 }", "18"),
    case(TIME, "{ since = 2026-12-01 }", "2026-12-01"),
    case(TIME, "{ since = 2026-12-01T18:00:00 }", "2026-12-01T18:00:00"),
    case(TIME, "{ since = \"soon\" }", "\"soon\""),
    case(TIME, "{ since = 2026-12-02T00:00:00Z, until = 2026-12-01T00:00:00Z }", "2026-12-01T00:00:00Z"),
    case(TIME, "{ days = \"thu\", utc_offset = \"CET\" }", "\"CET\""),
    case("tcp = \"cubic\"", "tcp = \"bbr with fq\"", "\"bbr with fq\""),
    case("tcp = \"cubic\"", "tcp = \"a_name_of_16_byt\"", ""),
    case("use = { quic = \"reno\" }", "use = {}", "use"),
    case("use = { quic = \"reno\" }", "", ""),
    case("use = { quic = \"reno\" }", "use = { quic = \"reno\" }\nexperiment = \"fleet\"", "experiment"),
    case("sni = \"*.cdn.example\"", "", ""),
    // Experiments.
    case("key = \"0001", "key = \"zz01", ""),
    case("key = \"0001", "key = \"+001", ""),
    case("0d0e0f\"", "0d0e\"", ""),
    case("unit = \"prefix\"", "unit = \"client\"", "\"client\""),
    case("unit = \"prefix\"", "unit = \"cookie:\"", "\"cookie:\""),
    case("unit = \"prefix\"\n", "", ""),
    case("share = \"10%\"\n", "", ""),
    case("salt = \"fleet-1\"", "salt = \"\"", "\"\""),
    case("share = \"50%\"", "share = \"0.01%\"", "\"0.01%\""),
    case("[experiment.holdback.arm.cubic]\nweight = 1", "", "holdback"),
    case("[experiment.holdback.arm.cubic]\nweight = 1", "arm = 3", "3"),
    case("[[rule]]\nexperiment = \"holdback\"", "", "holdback"),
    // The table of networks.
    case("use = { quic = \"reno\" }", "table = \"large\"", "\"large\""),
    case("[default]", "[table]\nfile = \"a\"\n[table.arm.a]\ntcp = \"bbr\"\n[default]", ""),
    case("[default]", "[table]\nfile = \"\"\n[table.arm.a]\ntcp = \"bbr\"\n[default]", "\"\""),
    case("[default]", "[table]\nfile = \"a\"\n[default]", ""),
    case("[default]", "[table]\nfile = \"a\"\narm = {}\n[default]", ""),
    // TOML syntax.
    case("decide = ", "decide = \"once\"\ndecide = ", "decide"),
    case("quic = \"cubic\"", "quic = cubic", ""),
    case("[default]", "[default", ""),
];

fn refused(text: &str, what: &str) -> PolicyError {
    match Policy::parse("test", text) {
        Ok(_) => panic!("{what} was taken"),
        Err(error) => error,
    }
}

#[test]
fn errors_are_marked_and_have_a_remedy() {
    for case in CASES {
        let text = case.within(EXAMPLE);
        let error = refused(&text, case.new);
        case.assert_marked(&text, &error);
        let remedy = error.suggestion().or(error.expectation());
        assert!(remedy.is_some(), "{}", error.render("test.toml", false));
        assert_message!(case.name(), message(&error));
    }
}

#[test]
fn a_single_bracket_suggests_a_list_of_rules() {
    let error = refused("[rule]\nhost = \"a\"\nuse = { tcp = \"bbr\" }\n", "[rule]");
    assert!(error.suggestion().unwrap_or_default().contains("[[rule]]"), "{error}");
}

#[test]
fn an_error_is_shown_at_its_place() {
    let error = refused("[[rule]]\nhots = \"*-bbr*\"\nuse = { tcp = \"bbr\" }\n", "hots");
    assert_message!("hots", error.render("policy.toml", false));
}
