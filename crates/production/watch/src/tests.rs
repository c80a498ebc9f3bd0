//! Tests of the tracker, its rows and records, without a kernel.

use std::net::SocketAddr;

use uncork_diag::CcName;
use uncork_flow::{Buckets, EcnUse, FlowRecord, TransportFigures};
use uncork_testkit::{assert_generated, assert_message, metrics_table};
use uncork_units::{Rate, TimeDelta};

use super::*;

const SECOND: u64 = 1_000_000_000;

fn ms(millis: u64) -> TimeDelta {
    TimeDelta::from_millis(millis)
}

fn at(seconds: u64) -> Moment {
    Moment { session_ns: seconds * SECOND, unix_ns: 1_700_000_000 * SECOND + seconds * SECOND }
}

/// A socket of a web server that has sent `bytes` in `busy` milliseconds.
fn socket(cookie: u64, cc: &str, bytes: u64, busy: u64) -> SocketSample {
    let address = |text: String| text.parse::<SocketAddr>().expect("an address");
    SocketSample {
        cookie,
        local: address("192.0.2.1:443".to_owned()),
        remote: address(format!("203.0.113.{cookie}:50000")),
        cc: Some(CcName::new(cc)),
        figures: TransportFigures {
            bytes_acked: bytes,
            bytes_sent: bytes,
            packets_sent: 12,
            packets_lost: 2,
            busy: ms(busy),
            rwnd_limited: Some(ms(0)),
            sndbuf_limited: Some(ms(0)),
            rtt: Some(ms(40)),
            min_rtt: Some(ms(20)),
            ..TransportFigures::default()
        },
        bytes_received: 100,
        is_app_limited: false,
        pacing_rate: None,
        pacing_cap: None,
        mss_bytes: 1448,
        cwnd_bytes: 14480,
        in_flight_bytes: 1448,
        receive_window_bytes: None,
        unsent_bytes: 100_000,
        is_send_buffer_full: false,
        delivered_packets: Some(11),
        last_data_sent: ms(0),
        bbr: None,
        resume: None,
        is_accepted: None,
        given: None,
    }
}

/// A recorded session may have any numbers.
#[test]
fn the_largest_numbers_are_added_up() {
    let huge = |cookie| {
        let mut socket = socket(cookie, "cubic", u64::MAX, 10);
        (socket.in_flight_bytes, socket.cwnd_bytes) = (u64::MAX, u64::MAX);
        socket.receive_window_bytes = Some(u64::MAX);
        socket
    };
    let none = [socket(1, "cubic", 0, 0), socket(2, "cubic", 0, 0)];
    let (tracker, _) = played(true, &[pass(1, &none), pass(2, &[huge(1), huge(2)])]);
    let settings = ViewSettings { by: GroupBy::Controller, ..ViewSettings::default() };
    let mut view = View::new(settings);
    view.update(&tracker);
    assert!(view.plain(10).contains("cubic"), "{}", view.plain(10));
}

/// Of connections that live between two passes all bytes are in the rates.
#[test]
fn short_connections_count_in_rates_and_not_as_connections() {
    let open = socket(1, "cubic", 0, 0);
    let mut events = vec![pass(1, &[open])];
    events.extend((2..102).map(|cookie| destroyed(2, &socket(cookie, "cubic", 30_000, 5))));
    events.push(pass(2, &[open]));
    let (tracker, _) = played(true, &events);
    let settings = ViewSettings { by: GroupBy::Port, ..ViewSettings::default() };
    let mut view = View::new(settings);
    view.update(&tracker);
    let text = view.plain(10);
    assert!(text.starts_with("2.0 s: 1 connections, 0 active, 100 ended; 24.00 Mbit/s"), "{text}");
    let row = text.lines().nth(2).expect(&text);
    assert!(row.starts_with("443 ") && row.contains(" 24.00 "), "{row}");
    let (tracker, _) = played(true, &[&events[..], &[pass(3, &[open])]].concat());
    view.update(&tracker);
    assert!(view.plain(10).contains("0.00 Mbit/s"), "{}", view.plain(10));
}

#[test]
fn a_service_is_named_by_the_port_that_listens() {
    let with = |local: u16, remote: u16, is_accepted| {
        let mut socket = SocketSample { is_accepted, ..socket(1, "cubic", 1000, 10) };
        socket.local.set_port(local);
        socket.remote.set_port(remote);
        let (_, records) = played(true, &[pass(1, &[socket]), destroyed(2, &socket)]);
        records[0].group.to_string()
    };
    // gRPC, clients with low ports, and a client of a service on a high port.
    assert_eq!(with(50051, 40000, Some(true)), "50051");
    assert_eq!(with(8080, 2001, Some(true)), "8080");
    assert_eq!(with(40000, 50051, Some(false)), "50051");
    assert_eq!(with(8080, 2001, None), "2001");
}

fn pass(second: u64, sockets: &[SocketSample]) -> Event {
    Event::Pass(Pass { at: at(second), sockets: sockets.to_vec() })
}

fn destroyed(second: u64, socket: &SocketSample) -> Event {
    Event::Destroyed(Destroyed { at: at(second), socket: SocketSample { cc: None, ..*socket } })
}

fn played(has_close_events: bool, events: &[Event]) -> (Tracker, Vec<FlowRecord>) {
    let (mut tracker, mut records) = (Tracker::new(has_close_events), Vec::new());
    for event in events {
        tracker.take(event, |_, record| records.push(record));
    }
    (tracker, records)
}

fn limits(before: &SocketSample, now: &SocketSample) -> Option<(&'static str, f64)> {
    let limits = Limits::between(Some(before), now, ms(1000));
    assert_eq!(limits.total(), ms(1000), "all of the time is divided");
    limits.main().map(|(limit, share)| (limit.name(), share))
}

#[test]
fn a_close_event_gives_the_final_figures_and_the_last_pass_the_controller() {
    let events = [
        pass(0, &[]),
        pass(1, &[socket(7, "bbr", 1_000_000, 900)]),
        destroyed(2, &socket(7, "", 1_500_000, 1300)),
    ];
    let (tracker, records) = played(true, &events);
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((record.engine.as_str(), record.cc.as_str()), ("watch", "bbr"));
    assert_eq!((record.group.as_str(), record.flow), ("443", 0));
    assert_eq!((record.bytes_acked, record.busy_ns), (1_500_000, 1_300_000_000));
    assert_eq!(record.start_ns, SECOND);
    let service = record.service.as_ref().expect("a service");
    assert_eq!(service.client.as_deref(), Some("203.0.113.0/24"));
    let ended = service.end_unix_ns.map(|end| end - service.start_unix_ns);
    assert_eq!((service.client_port, ended), (Some(50_000), Some(SECOND)), "for callbacks");
    assert_eq!(service.listener, "192.0.2.1:443");
    assert_eq!(record.rtt_ms.map(|rtt| (rtt.min, rtt.p50)), Some((20.0, 40.0)));
    assert_eq!(tracker.connections().count(), 0);
}

#[test]
fn a_connection_between_two_passes_has_a_record_without_its_controller() {
    let events = [pass(0, &[]), destroyed(1, &socket(7, "", 5000, 5)), pass(1, &[])];
    let (_, records) = played(true, &events);
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((record.cc.as_str(), record.bytes_acked), ("unknown", 5000));
    assert_eq!(record.start_ns, SECOND - 5_000_000, "it was busy for so long at least");
    assert_eq!(record.service.as_ref().and_then(|it| it.app_limited_ns), None);
}

#[test]
fn without_close_events_a_connection_ends_when_a_pass_misses_it() {
    let open = [socket(7, "bbr", 1000, 1), socket(9, "cubic", 1000, 1)];
    let (_, records) = played(false, &[pass(0, &open), pass(1, &open[..1])]);
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].cc.as_str(), records[0].bytes_acked), ("cubic", 1000));
}

/// A program may keep a socket open after its connection has ended. The close event then comes later.
#[test]
fn with_close_events_an_absent_connection_ends_by_a_close_event_or_after_lost_close_events() {
    let open = [socket(7, "bbr", 1000, 1)];
    let events = [pass(0, &open), pass(1, &[]), pass(2, &[])];
    let (tracker, records) = played(true, &events);
    assert_eq!((records.len(), tracker.connections().count()), (0, 0));
    let with = |last| [events.as_slice(), &[last]].concat();
    assert_eq!(played(true, &with(destroyed(3, &open[0]))).1.len(), 1);
    let (tracker, records) = played(true, &with(Event::CloseEventsLost));
    assert_eq!((records.len(), tracker.lost_close_events()), (1, 1));
    let mut view = View::new(ViewSettings::default());
    view.update(&tracker);
    assert_message!("lost", view.plain(1).lines().last().unwrap());
}

#[test]
fn a_socket_that_a_dump_reports_twice_counts_once() {
    let (one, two) = (socket(7, "bbr", 1000, 100), socket(7, "bbr", 3000, 200));
    let (tracker, _) = played(true, &[pass(0, &[one]), pass(1, &[two, two])]);
    let changes: Vec<u64> = tracker.connections().map(|it| it.change.bytes_acked).collect();
    assert_eq!(changes, [2000]);
}

/// Data sent before the session is not part of its totals, but is part of the connection's record.
#[test]
fn totals_begin_with_the_session() {
    let events = [
        pass(0, &[socket(7, "bbr", 1_000_000, 900)]),
        pass(1, &[socket(7, "bbr", 1_200_000, 1900)]),
        destroyed(2, &socket(7, "", 1_300_000, 2900)),
    ];
    let (tracker, records) = played(true, &events);
    let [(label, sums)] = tracker.totals().series().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!((label.cc, label.port), (Some(CcName::new("bbr")), Some(443)));
    assert_eq!((sums.figures.bytes_acked, sums.ended), (300_000, 1));
    assert_eq!(sums.limits.time(Limit::Network), ms(2000));
    assert_eq!(records[0].bytes_acked, 1_300_000);
}

#[test]
fn labels_are_bounded() {
    let mut tracker = Tracker::new(true);
    for port in 1..=100 {
        for cc in 0..30 {
            let base = socket(1, &format!("cc{cc}"), 1000, 1);
            let local = SocketAddr::new(base.local.ip(), port);
            let cookie = u64::from(port) * 100 + cc;
            tracker.take(&destroyed(1, &SocketSample { cookie, local, ..base }), |_, _| {});
            let open = SocketSample { cookie, local, ..base };
            tracker.take(&pass(1, &[open]), |_, _| {});
        }
    }
    let (ports, controllers): (Vec<_>, Vec<_>) =
        tracker.totals().series().map(|(label, _)| (label.port, label.cc)).unzip();
    let different = |mut all: Vec<String>| {
        all.sort();
        all.dedup();
        all.len()
    };
    assert_eq!(different(ports.iter().map(|it| format!("{it:?}")).collect()), 21);
    assert_eq!(different(controllers.iter().map(|it| format!("{it:?}")).collect()), 17);
    assert!(metrics(&tracker, None).expect("text").contains(r#"cc="other",port="other""#));
}

/// The first pass sees data that was sent before the session, the second sees more. The third connection sends nothing.
#[test]
fn delays_and_pacing_rates_count_at_passes_in_which_data_was_sent() {
    let paced = |bytes| {
        let pacing_rate = Some(Rate::from_bytes_per_sec(150_000));
        SocketSample { pacing_rate, ..socket(1, "bbr", bytes, bytes / 1000) }
    };
    let idle = socket(3, "bbr", 0, 0);
    let events = [
        pass(0, &[paced(1000), idle]),
        pass(1, &[paced(9000), idle]),
        pass(2, &[paced(9000), idle]),
    ];
    let (tracker, _) = played(true, &events);
    let [(_, sums)] = tracker.totals().series().collect::<Vec<_>>()[..] else { panic!() };
    let edge =
        |buckets: &Buckets| buckets.edges().filter(|(_, count)| *count > 0).collect::<Vec<_>>();
    assert_eq!(edge(&sums.rtt), [(0.05, 1)]);
    assert_eq!(edge(&sums.queue_delay), [(0.02, 1)]);
    assert_eq!(edge(&sums.rtt_ratio), [(2.0, 1)]);
    assert_eq!(edge(&sums.pacing_rate), [(2e5, 1)]);
    let text = metrics(&tracker, Some("cubic".to_owned())).expect("text");
    for line in [
        r#"uncork_watch_default_controller{cc="cubic"} 1"#,
        r#"uncork_watch_rtt_seconds_count{cc="bbr",port="443"} 1"#,
        r#"uncork_watch_pacing_rate_bytes_per_second_sum{cc="bbr",port="443"} 150000.0"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

#[test]
fn the_time_of_a_period_is_divided_among_limits() {
    let before = socket(1, "bbr", 0, 0);
    let now = socket(1, "bbr", 1_000_000, 1000);
    assert_eq!(limits(&before, &now), Some(("network", 1.0)));
    assert_eq!(limits(&before, &socket(1, "bbr", 1_000_000, 300)), Some(("application", 0.7)));
    let trickle = SocketSample { is_app_limited: true, unsent_bytes: 0, ..now };
    assert_eq!(limits(&before, &trickle), Some(("application", 1.0)));
    let sending = |sample: &SocketSample| SocketSample { unsent_bytes: 0, ..*sample };
    assert_eq!(limits(&sending(&before), &sending(&now)), Some(("application", 1.0)));
    assert_eq!(limits(&before, &sending(&now)), Some(("network", 1.0)), "the end of a transfer");
    let probing = SocketSample { is_app_limited: true, ..now };
    assert_eq!(limits(&before, &probing), Some(("network", 1.0)));
    let held = |rwnd, sndbuf| {
        let figures = TransportFigures {
            rwnd_limited: Some(ms(rwnd)),
            sndbuf_limited: Some(ms(sndbuf)),
            ..now.figures
        };
        limits(&before, &SocketSample { figures, ..now })
    };
    assert_eq!(held(800, 100), Some(("receiver", 0.8)));
    assert_eq!(held(100, 600), Some(("send-buffer", 0.6)));
    let full = SocketSample { is_app_limited: true, is_send_buffer_full: true, ..now };
    assert_eq!(limits(&before, &full), Some(("send-buffer", 1.0)));
    let window_too = SocketSample { in_flight_bytes: full.cwnd_bytes, ..full };
    assert_eq!(limits(&before, &window_too), Some(("network", 1.0)));
    let capped = |bytes_per_sec| {
        let pacing_cap = Some(Rate::from_bytes_per_sec(bytes_per_sec));
        limits(&before, &SocketSample { pacing_cap, ..now })
    };
    assert_eq!(capped(1_050_000), Some(("pacing-cap", 1.0)));
    assert_eq!(capped(2_000_000), Some(("network", 1.0)));
}

/// At the end of a transfer, every connection is application-limited: it has no more data to send.
#[test]
fn the_final_sample_is_not_application_limited() {
    let last = SocketSample { is_app_limited: true, unsent_bytes: 0, ..socket(7, "", 10_000, 800) };
    let (tracker, _) = played(true, &[pass(0, &[]), destroyed(1, &last)]);
    let sums = tracker.totals().series().next().expect("a series").1;
    assert_eq!(sums.limits.time(Limit::Network), ms(800));
}

#[test]
fn a_separate_fin_is_not_busy_time() {
    let busy = |delivered, last_data_sent| {
        let delivered_packets = Some(delivered);
        let last = SocketSample { delivered_packets, last_data_sent, ..socket(7, "", 10_000, 800) };
        played(true, &[pass(0, &[]), destroyed(1, &last)]).1[0].busy_ns
    };
    // Ten data packets and the SYN; the minimum round-trip time is 20 ms.
    assert_eq!(busy(11, ms(60)), 800_000_000, "acknowledged with the data");
    assert_eq!(busy(12, ms(40)), 780_000_000);
    assert_eq!(busy(12, ms(30_000)), 780_000_000);
    assert_eq!(busy(12, ms(21)), 800_000_000, "it was not acknowledged later than the data");
}

#[test]
fn a_replayed_session_gives_the_same_results() {
    let events = [
        pass(0, &[socket(7, "bbr", 1_000_000, 900), socket(9, "cubic", 5, 1)]),
        pass(1, &[socket(7, "bbr", 1_200_000, 1900)]),
        Event::CloseEventsLost,
        destroyed(2, &socket(7, "", 1_300_000, 2900)),
    ];
    let mut file = Vec::new();
    let mut tape = TapeWriter::new(&mut file, true).expect("a head");
    for event in &events {
        tape.write(event).expect("written");
    }
    // An incomplete last line, as a killed process leaves it.
    file.extend(b"{\"pass\":{");
    let mut tape = TapeReader::new(file.as_slice()).expect("a head");
    assert!(tape.has_close_events());
    let read: Vec<Event> = std::iter::from_fn(|| tape.read().expect("an event")).collect();
    assert_eq!(read, events);
    assert_eq!(played(true, &read).1, played(true, &events).1);
}

#[test]
fn invalid_sessions_are_rejected_with_the_line() {
    let head = r#"{"schema":"uncork.host-watch/1","has_close_events":true}"#;
    for (case, line, text) in [
        ("empty", 1, String::new()),
        ("no schema", 1, "{}\n".to_owned()),
        ("another schema", 1, head.replace("/1", "/2")),
        ("another event", 2, format!("{head}\n{{\"pas\":1}}\n")),
    ] {
        let tape = TapeReader::new(text.as_bytes());
        let error = tape.and_then(|mut tape| tape.read()).expect_err("refused").to_string();
        assert!(error.starts_with(&format!("line {line}: ")), "{error}");
        assert_message!(case, error);
    }
}

/// Two BBR connections to a network, one CUBIC connection to it, and an idle connection.
fn view() -> View {
    let first =
        [1, 2, 3, 4].map(|cookie| socket(cookie, if cookie == 3 { "cubic" } else { "bbr" }, 0, 0));
    let second = [
        socket(1, "bbr", 125_000, 1000),
        socket(2, "bbr", 250_000, 1000),
        SocketSample {
            is_app_limited: true,
            unsent_bytes: 0,
            ..socket(3, "cubic", 1_250_000, 500)
        },
        first[3],
    ];
    let (tracker, _) = played(true, &[pass(0, &first), pass(1, &second)]);
    let mut view = View::new(ViewSettings::default());
    view.update(&tracker);
    view
}

fn press(view: &mut View, keys: &str) {
    for key in keys.chars() {
        let key = if key == '\n' { Key::Enter } else { Key::Char(key) };
        assert!(view.press(key));
    }
}

/// The names of the rows.
fn names(view: &View) -> Vec<String> {
    let lines = view.screen(200, 12);
    let rows = lines[3..lines.len() - 1].iter().filter(|line| !line.is_empty());
    rows.map(|line| line.split("  ").next().unwrap_or_default().trim().to_owned()).collect()
}

#[test]
fn plain_lines_have_a_summary_and_a_row_for_each_active_connection() {
    let expected = "\
1.0 s: 4 connections, 3 active, 0 ended; 13.00 Mbit/s acknowledged, 0.00 % resent
socket                             controller     Mbit/s   rtt ms   min ms   cwnd kB flight kB resent %  limited by  time %  BBR
192.0.2.1:443 > 203.0.113.3:50000  cubic           10.00     40.0     20.0      14.5       1.4     0.00  application    100  -
192.0.2.1:443 > 203.0.113.2:50000  bbr              2.00     40.0     20.0      14.5       1.4     0.00  network        100  -
";
    assert_eq!(view().plain(2), expected);
}

#[test]
fn keys_group_sort_and_filter() {
    let mut view = view();
    let socket = |n: u32| format!("192.0.2.1:443 > 203.0.113.{n}:50000");
    assert_eq!(names(&view), [socket(3), socket(2), socket(1)]);
    press(&mut view, "r");
    assert_eq!(names(&view), [socket(1), socket(2), socket(3)]);
    press(&mut view, "ri");
    assert_eq!(names(&view).len(), 4);
    press(&mut view, "ig");
    assert_eq!(names(&view), ["cubic", "bbr"]);
    press(&mut view, "g");
    assert_eq!(names(&view), ["203.0.113.0/24"]);
    press(&mut view, "g");
    assert_eq!(names(&view), ["443"]);
    press(&mut view, "g");
    assert_eq!(names(&view), ["none"], "no arm");
    press(&mut view, "gg/network\n");
    assert_eq!(names(&view), [socket(2), socket(1)]);
    press(&mut view, "/");
    assert!(view.press(Key::Escape));
    assert_eq!(names(&view).len(), 3, "escape takes the filter away");
    assert!(!view.press(Key::Char('q')) && !view.press(Key::Interrupt));
}

#[test]
fn a_frozen_view_keeps_its_rows_and_still_groups_them() {
    let mut view = view();
    let before = view.screen(200, 12);
    press(&mut view, "f");
    view.update(&Tracker::new(true));
    let frozen = view.screen(200, 12);
    assert!(frozen[1].ends_with("FROZEN"), "{}", frozen[1]);
    assert_eq!(frozen[2..], before[2..]);
    press(&mut view, "g");
    assert_eq!(names(&view), ["cubic", "bbr"]);
    press(&mut view, "f");
    view.update(&Tracker::new(true));
    assert!(names(&view).is_empty());
}

#[test]
fn the_screen_has_the_terminal_s_size() {
    let mut view = view();
    for (width, height) in [(80, 24), (20, 5), (1, 1), (0, 0), (200, 4)] {
        let lines = view.screen(width, height);
        assert_eq!(lines.len(), height);
        assert!(lines.iter().all(|line| line.chars().count() <= width));
    }
    for key in [Key::Down, Key::PageDown, Key::PageUp, Key::Up, Key::PageDown] {
        view.press(key);
        view.screen(80, 24);
    }
    assert_eq!(names(&view).len(), 1, "the last row stays");
}

/// BBR at the rate of a window of 8 kB, as measured: the kernel counts less than half of the time.
#[test]
fn a_window_that_is_full_is_the_receiver_s_also_under_bbr() {
    let bbr = BbrSample {
        version: 1,
        state: uncork_diag::BbrState::ProbeBw,
        bandwidth: Some(Rate::from_bits_per_sec(3_100_000)),
        min_rtt: Some(ms(20)),
        bounds: None,
    };
    let sample = |bytes, busy, rwnd, in_flight: u64, window| {
        let mut sample = SocketSample {
            mss_bytes: 1344,
            cwnd_bytes: 24 * 1344,
            in_flight_bytes: in_flight * 1344,
            unsent_bytes: 96_000,
            receive_window_bytes: window,
            bbr: Some(bbr),
            ..socket(7, "bbr", bytes, busy)
        };
        sample.figures.rwnd_limited = Some(ms(rwnd));
        sample
    };
    let before = sample(1_000_000, 1_000, 430, 5, Some(8_064));
    let main = |now: &SocketSample| limits(&before, now).map(|(limit, _)| limit);
    assert_eq!(main(&sample(1_390_000, 2_000, 860, 6, Some(8_064))), Some("receiver"));
    assert_eq!(main(&sample(1_390_000, 2_000, 860, 3, Some(8_064))), Some("receiver"), "its model");
    assert_eq!(main(&sample(1_390_000, 2_000, 430, 3, Some(8_064))), Some("network"), "room in it");
    assert_eq!(main(&sample(1_390_000, 2_000, 430, 23, Some(64_000))), Some("network"));
    assert_eq!(main(&sample(1_390_000, 2_000, 430, 6, None)), Some("network"), "an older kernel");
    let done = SocketSample { unsent_bytes: 0, ..sample(1_390_000, 2_000, 430, 6, Some(8_064)) };
    assert_ne!(main(&done), Some("receiver"), "nothing waits");
}

/// What decides is there in a terminal of 80 columns: who limits, for how long, and what is sent again.
#[test]
fn eighty_columns_show_what_decides() {
    let bbr = BbrSample {
        version: 3,
        state: uncork_diag::BbrState::ProbeBwCruise,
        bandwidth: None,
        min_rtt: None,
        bounds: None,
    };
    let sample =
        |bytes, busy| SocketSample { bbr: Some(bbr), ..socket(200, "uncork_bbr3", bytes, busy) };
    let (tracker, _) =
        played(true, &[pass(0, &[sample(0, 0)]), pass(1, &[sample(9_000_000, 900)])]);
    let mut view = View::new(ViewSettings::default());
    view.update(&tracker);
    let lines = view.screen(80, 8);
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    for heading in ["remote", "Mbit/s", "rtt ms", "resent %", "limited by", "time %", "BBR"] {
        assert!(lines[2].contains(heading), "{heading}: {lines:#?}");
    }
    assert!(lines[3].starts_with("203.0.113.200:50000"), "{lines:#?}");
    for cell in ["network", "ProbeBW_CRUISE", "72.00", "40.0"] {
        assert!(lines[3].contains(cell), "{cell}: {lines:#?}");
    }
    let wide = view.screen(200, 8);
    assert!(wide[2].starts_with("socket") && wide[2].contains("cwnd kB"), "{wide:#?}");
}

fn given_to(socket: &SocketSample, rule: &str, arm: Option<&str>) -> SocketSample {
    let given = PolicyChoice { rule: ShortName::new(rule), arm: arm.map(ShortName::new) };
    SocketSample { given: Some(given), ..*socket }
}

#[test]
fn what_a_policy_gave_groups_rows_and_counters() {
    let sample =
        |cookie, bytes, arm: &str| given_to(&socket(cookie, "bbr", bytes, 900), "web", Some(arm));
    let sockets = |bytes| {
        [
            sample(1, bytes, "speed/bbr"),
            sample(2, bytes, "speed/cubic"),
            socket(3, "bbr", bytes, 900),
        ]
    };
    let events =
        [pass(0, &sockets(0)), pass(1, &sockets(1_000)), destroyed(2, &socket(1, "", 5_000, 950))];
    let (tracker, _) = played(true, &events);
    for (by, names) in [
        (GroupBy::Arm, vec!["none", "speed/bbr", "speed/cubic"]),
        (GroupBy::Rule, vec!["none", "web"]),
    ] {
        let (tracker, _) = played(true, &events[..2]);
        let rows: Vec<Row> = tracker.connections().map(Row::of).collect();
        let grouped = Row::grouped(&rows, by);
        assert_eq!(grouped.iter().map(|row| row.name.to_string()).collect::<Vec<_>>(), names);
    }
    let text = metrics(&tracker, None).expect("text");
    for line in [
        "uncork_watch_steered_connections{rule=\"web\",arm=\"speed/cubic\"} 1",
        "uncork_watch_steered_acknowledged_bytes_total{rule=\"web\",arm=\"speed/bbr\"} 5000",
        "uncork_watch_steered_ended_connections_total{rule=\"web\",arm=\"speed/bbr\"} 1",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let (none, _) = played(true, &[pass(0, &[socket(3, "bbr", 0, 0)])]);
    assert!(!metrics(&none, None).expect("text").contains("steered"));
}

#[test]
fn table_of_metrics_is_current() {
    let socket = |bytes| given_to(&socket(1, "bbr", bytes, 900), "web", Some("speed/bbr"));
    let (tracker, _) = played(true, &[pass(0, &[socket(0)]), pass(1, &[socket(1_000)])]);
    let exposition = metrics(&tracker, Some("bbr".to_owned())).expect("text");
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/watch.md");
    let command = "UPDATE_DOCS=1 cargo test -p uncork-watch --lib metrics";
    let table = metrics_table(&exposition, "uncork_watch_");
    assert_generated(page.as_ref(), "metrics", command, &table);
}

#[test]
fn rules_and_arms_have_a_bounded_number_of_series() {
    let socket = |n: u64| given_to(&socket(n % 200 + 1, "bbr", 0, 0), &format!("rule {n}"), None);
    let later = |n: u64| {
        let mut socket = socket(n);
        (socket.figures.bytes_sent, socket.figures.busy) = (1_000, ms(10));
        socket
    };
    let sockets: Vec<_> = (0..100).map(socket).collect();
    let more: Vec<_> = (0..100).map(later).collect();
    let (tracker, _) = played(true, &[pass(0, &sockets), pass(1, &more)]);
    assert_eq!(tracker.totals().steered().count(), 65, "64 and `other`");
    let long = ShortName::new(&"é".repeat(40));
    assert_eq!(long.as_str(), "é".repeat(23));
}

/// Ten passes in which half of the new packets are marked, 1 ms above the minimum, at 100 packets in each.
#[test]
fn record_of_a_connection_with_ect1_has_what_its_packets_met() {
    let sample = |second: u64, ecn| {
        let mut socket = socket(7, "uncork_prague", second * 100_000, second * 1000);
        let figures = &mut socket.figures;
        (figures.ecn, figures.packets_marked) = (Some(ecn), second * 50);
        (figures.rtt, figures.min_rtt) = (Some(ms(21)), Some(ms(20)));
        socket.delivered_packets = Some(second as u32 * 1000);
        socket
    };
    for (ecn, expected) in [(EcnUse::L4s, Some(9)), (EcnUse::Classic, None)] {
        let mut tracker = Tracker::new(false);
        for second in 1..=10 {
            tracker.take(&pass(second, &[sample(second, ecn)]), |_, _| {});
        }
        let mut records = Vec::new();
        tracker.end_all(|_, record| records.push(record));
        let evidence = records[0].ecn_evidence();
        assert_eq!(evidence.map(|it| it.l4s_rounds), expected, "{ecn:?}: {evidence:?}");
    }
}
