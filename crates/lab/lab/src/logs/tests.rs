//! Lines as programs write them.

use proptest::proptest;
use uncork_testkit::assert_message;

use super::{ClientPath, LogFormat, LogPaths};

fn read(format: LogFormat, text: &str) -> LogPaths {
    format.paths(text).expect("a log")
}

/// Client, RTT in ms, rate in Mbit/s with headers, resent in per cent.
fn row(path: &ClientPath) -> String {
    let show = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let rate = path.rate_bps.map(|rate| rate / 1e6);
    let resent = path.resent.map(|share| share * 100.0);
    format!("{} {} {} {}", path.client, show(path.rtt_ms), show(rate), show(resent))
}

/// A line for each note with its count.
fn notes(log: &LogPaths) -> String {
    let lines = log.notes.iter().map(|(note, count)| format!("{note}: {count}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn rows(log: &LogPaths) -> Vec<String> {
    log.paths.iter().map(row).collect()
}

/// Values of ss of iproute2 4.19 and 4.15, before `bytes_sent`, with units.
const OLD: &str = "cubic wscale:7,7 rto:252 rtt:51.2/3.1 mss:1448 cwnd:96 bytes_acked:31630112 segs_out:22003 \
     send 21.7Mbps pacing_rate 26.1Mbps delivery_rate 20.3Mbps busy:12850ms unacked:95 retrans:0/60 minrtt:24.9";

#[test]
fn ss_units_and_two_lines_are_read() {
    let one = format!("0 1448000 192.0.2.10:443 198.51.100.7:51344 {OLD}\n");
    let two = format!(
        "State  Recv-Q Send-Q Local Address:Port Peer Address:Port\n\
         ESTAB  0      0      192.0.2.10:443     198.51.100.7:51344\n\t {OLD}\n\
         ESTAB  0      0      [2001:db8::1]:443  [2001:db8::7]:51344 \n\t {OLD}\n"
    );
    assert_eq!(rows(&read(LogFormat::Ss, &one)), ["198.51.100.7 24.90 21.03 0.27"]);
    let timed = format!("1764475559 {one}17:04:11 198.51.100.8 {one}");
    assert_eq!(rows(&read(LogFormat::Ss, &timed)), ["198.51.100.7 24.90 21.03 0.27"]);
    let both = read(LogFormat::Ss, &two);
    assert_eq!(rows(&both), ["198.51.100.7 24.90 21.03 0.27", "2001:db8::7 24.90 21.03 0.27"]);
    assert_eq!(both.notes, []);
}

#[test]
fn ss_connections_that_show_no_path_are_left_out_and_counted() {
    let line = |values: &str| format!("0 0 192.0.2.10:443 198.51.100.7:51344 {values}\n");
    let new = "bytes_sent:31856000 bytes_acked:31630112 bytes_retrans:86880 delivery_rate 20310000bps busy:12850ms";
    let text = [
        line("cubic rtt:51.2/3.1 cwnd:10 send 2262500bps delivered:1 minrtt:51.2"),
        line(&format!("cubic rtt:51.2/3.1 {new} rwnd_limited:12000ms(93.4%) minrtt:24.9")),
        line(&format!("cubic rtt:51.2/3.1 {new} sndbuf_limited:12000ms(93.4%) minrtt:24.9")),
        line(&format!("cubic rtt:51.2/3.1 {new} app_limited minrtt:24.9")),
        line(&format!("cubic rtt:51.2/3.1 {new}")),
        line(&format!("cubic rtt:51,2/3,1 {new} minrtt:24,9")),
        line(&format!("cubic rtt:25.2/3.1 {new} minrtt:24.9")),
        "Cannot open netlink socket\n".to_owned(),
    ];
    let log = read(LogFormat::Ss, &text.concat());
    assert_eq!(rows(&log), ["198.51.100.7 24.90 - 0.27"], "RTT and losses without a queue");
    assert_eq!(log.notes.iter().map(|(_, count)| count).sum::<usize>(), 8, "{:?}", log.notes);
    let bbr = line(&format!("bbr bbr:(bw:30.1Mbps,mrtt:24.9) rtt:25.2/3.1 {new} minrtt:24.9"));
    assert_eq!(rows(&read(LogFormat::Ss, &bbr)), ["198.51.100.7 24.90 31.18 0.27"]);
}

fn stream(rate: f64, rtt: [u32; 3]) -> String {
    let [least, mean, most] = rtt;
    format!(
        "{{\"sender\":{{\"bits_per_second\":{rate},\"min_rtt\":{least},\"mean_rtt\":{mean},\"max_rtt\":{most}}}}}"
    )
}

fn end(streams: &[String]) -> String {
    format!("\"end\":{{\"streams\":[{}],\"sender_tcp_congestion\":\"cubic\"}}", streams.join(","))
}

#[test]
fn iperf3_streams_of_the_sender_are_added() {
    let two =
        end(&[stream(12e6, [25_000, 100_000, 150_000]), stream(12e6, [24_800, 90_000, 140_000])]);
    let log = read(LogFormat::Iperf3, &format!("{{{two}}}"));
    assert_eq!(rows(&log), ["all streams 24.80 24.86 -"]);
    assert!((log.paths[0].buffer_bytes.expect("a buffer") / 1e3 - 389.1).abs() < 0.1);
    let none = end(&[stream(24e6, [0, 0, 0])]);
    let error = LogFormat::Iperf3.paths(&format!("{{{none}}}")).expect_err("-R");
    assert!(error.contains("--get-server-output"), "{error}");
    let log = read(LogFormat::Iperf3, &format!("{{{none},\"server_output_json\":{{{two}}}}}"));
    assert_eq!(rows(&log), ["all streams 24.80 24.86 -"]);
    // `--bidir`: the other direction has no round-trip times; the ones written are wrong.
    let received = "{\"sender\":{\"sender\":false,\"bits_per_second\":9e9,\"min_rtt\":8}}";
    let both = end(&[stream(24e6, [25_000, 100_000, 150_000]), received.to_owned()]);
    let log = read(LogFormat::Iperf3, &format!("{{{both}}}"));
    assert_eq!(rows(&log), ["all streams 25.00 24.86 -"]);
    assert_message!("--bidir", notes(&log));
    let idle = end(&[stream(3e6, [25_000, 25_100, 26_000])]);
    let log = read(LogFormat::Iperf3, &format!("{{{idle}}}"));
    assert_eq!(rows(&log), ["all streams 25.00 - -"]);
    assert_message!("idle", notes(&log));
    let nothing = end(&[stream(0.0, [25_000, 25_100, 26_000])]);
    let error = LogFormat::Iperf3.paths(&format!("{{{nothing}}}")).expect_err("no bytes");
    assert!(error.contains("carried no bytes"), "{error}");
    let udp = LogFormat::Iperf3.paths("{\"start\":{\"test_start\":{\"protocol\":\"UDP\"}}}");
    assert!(udp.expect_err("UDP").ends_with("run iperf3 without -u"));
    let events = LogFormat::Iperf3.paths("{\"event\":\"start\"}\n{\"event\":\"end\"}\n");
    assert!(events.expect_err("a line for each event").ends_with("not --json-stream"));
    for text in ["", "{\"error\":\"unable to connect\"}", "[]"] {
        assert!(LogFormat::Iperf3.paths(text).is_err(), "{text}");
    }
}

#[test]
fn nginx_what_has_no_rate_is_left_out_and_counted() {
    let line = |seconds: &str, bytes: u32, completed: &str, rtt: &str| {
        format!(
            "{{\"time\":\"1795747649.487\",\"request_time\":\"{seconds}\",\"remote_addr\":\"203.0.113.7\",\"status\":\"200\",\
             \"body_bytes_sent\":\"{bytes}\",\"content_length\":\"5000000\",\"completed\":\"{completed}\",\"rtt\":\"{rtt}\"}}\n"
        )
    };
    let text = [
        line("2.000", 5_000_000, "OK", "24900"),
        line("0.000", 5_000_000, "OK", "25100"),
        line("1.998", 4_015_808, "", "30000"),
        line("1.998", 4_015_808, "OK", "30000"),
        line("1.000", 5_000_000, "OK", "-"),
        line("4.000", 5_000_000, "OK", "-"),
        "203.0.113.21 1024 0.000 20300 500 10\n- - -\n203.0.113.9 x y z\n".to_owned(),
    ];
    let log = read(LogFormat::Nginx, &text.concat());
    assert_eq!(rows(&log), ["203.0.113.21 20.30 - -", "203.0.113.7 24.90 20.72 -"]);
    assert_message!("all", notes(&log));
}

#[test]
fn nginx_numbers_without_quotes_and_short_responses_are_known() {
    let line = |bytes: u32| {
        format!(
            "{{\"request_time\":2.0,\"remote_addr\":\"203.0.113.7\",\"body_bytes_sent\":{bytes},\"content_length\":5000000}}\n"
        )
    };
    let log = read(LogFormat::Nginx, &(line(5_000_000) + &line(4_015_808)));
    assert_eq!(rows(&log), ["203.0.113.7 - 20.72 -"]);
    let aborted = log.notes.iter().find(|(note, _)| *note == "responses were aborted");
    assert_eq!(aborted.map(|(_, count)| *count), Some(1), "{:?}", log.notes);
}

#[test]
fn cmcd_of_version_2_and_json_is_read() {
    let text = "{\"cmcd\":\"br=3200,mtp=25400,sid=\\\"a\\\"\"}\n\
         GET /v?cmcd=mtp%3D(25400%3Bv%20800%3Ba)%2Cv%3D2%2Csid%3D%22b%22 HTTP/2\n\
         mtp=25400,su=?0,sid=\"c\"\nmtp=9,su=?1,sid=\"c\"\nmtp=9,su,sid=\"c\"\n";
    let log = read(LogFormat::Cmcd, text);
    assert_eq!(rows(&log), ["a - 26.31 -", "b - 26.31 -", "c - 26.31 -"], "{:?}", log.notes);
    assert_eq!(log.notes, [("requests are of startup (su)", 2)]);
}

#[test]
fn cmcd_lists_and_queries_are_read() {
    let text = "bl=21300,br=3200,mtp=25400,ot=v,sid=\"6e2f,su\"\n\
         203.0.113.7 - - [10/May/2023:17:07:15 -0300] \"GET /v.m4v?a=1&CMCD=ot%3Di%2Csid%3D%22b%22%2Cst%3Dv%2Csu HTTP/2\" 206 759\n\
         203.0.113.7 - - [10/May/2023:17:07:15 -0300] \"GET /a.m4v?CMCD=br%3D3200%2Cmtp%3D48100%2Csid%3D%226e2f%22 HTTP/2\" 200 1\n\
         {\"url\":\"/a.m4v?CMCD=br%3D3200%2Ccom.example-myNumericKey%3D500%2Cmtp%3D25400%2Csid%3D%226e2f%22\"}\n\
         bl=21300,ot=i\nmtp=0\n";
    let log = read(LogFormat::Cmcd, text);
    assert_eq!(rows(&log), ["6e2f - 38.07 -", "6e2f,su - 26.31 -"], "{:?}", log.notes);
    let counts: Vec<usize> = log.notes.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [1, 1, 1], "{:?}", log.notes);
}

proptest! {
    #[test]
    fn any_text_panics_no_reader(text in "(.|\n){0,200}", words in "[-0-9a-zA-Z:%.,/ \t\n\"{}\\[\\]=()]{0,300}") {
        for format in [LogFormat::Ss, LogFormat::Iperf3, LogFormat::Nginx, LogFormat::Cmcd] {
            let _any = (format.paths(&text), format.paths(&words));
        }
    }
}
