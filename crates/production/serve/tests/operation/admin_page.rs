//! The admin page in a real browser, while a client with a malicious host name is served.
//!
//! The environment variables are those of the browser tests of reports: `UNCORK_CHROMIUM`,
//! `UNCORK_SCREENSHOTS`.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{Scratch as Place, Served, content, spec};
use crate::driver::{Browser, Run, Scratch};
use uncork_serve::{AdminSpec, RecordsSpec};
use uncork_testkit::{pause, wait_until};

/// HTML that a client tries to inject. Its script leaves a mark if it runs.
const INTRUDER: &str = "<img src=x onerror=\"document.documentElement.dataset.intruder='ran'\">";

/// Ends the clients, also if the browser fails: the scope waits for them.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Opens the page with `flags` while a client with a malicious host name requests files.
fn look(browser: &Browser, flags: &[&str]) -> Run {
    let place = Place::new("serve");
    place.write("root/file", content(1_000_000));
    let mut spec = spec(&place.path("root"));
    spec.admin =
        Some(AdminSpec { address: "127.0.0.1:0".parse().expect("an address"), anywhere: false });
    spec.records = Some(RecordsSpec::new(place.path("records/")));
    let mut other = spec.listeners[0].clone();
    INTRUDER.clone_into(&mut spec.listeners[0].name);
    other.cc = Some("reno".to_owned());
    spec.listeners.push(other);
    let served = Served::new(&spec);
    let admin = served.server.admin().expect("an address").to_string();
    let (over, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let run = thread::scope(|scope| {
        let (over, count) = (&over, &count);
        let _end = SetOnDrop(over);
        for listening in served.server.listening() {
            scope.spawn(move || {
                let mut client = crate::common::Client::new(listening.address);
                while !over.load(Ordering::Relaxed) {
                    client.request("GET", "/file", "").expect("a response");
                    let refused =
                        crate::common::Client::new(listening.address).ask(INTRUDER, "GET", "/", "");
                    assert_eq!(refused.expect("a response").status, 400);
                    count.fetch_add(1, Ordering::Relaxed);
                    pause(
                        Duration::from_millis(20),
                        "responses at intervals, for the page's curves",
                    );
                }
            });
        }
        wait_until("responses to show", Duration::from_mins(1), || {
            count.load(Ordering::Relaxed) >= 10
        });
        browser.open(&Scratch::new("browser"), flags, &format!("http://{admin}/"))
    });
    served.stop();
    run
}

#[test]
fn the_page_shows_traffic_and_runs_no_injected_script() {
    let Some(browser) = Browser::find() else { return };
    let run = look(&browser, &["--virtual-time-budget=12000", "--dump-dom"]);
    assert!(!run.stderr.contains("CONSOLE"), "the console has complaints:\n{}", run.stderr);
    let page = &run.stdout;
    let (_, readings) = page.split_once("data-readings=\"").expect("it reads");
    let (readings, _) = readings.split_once('"').expect("a number");
    assert!(readings.parse::<u32>().expect("a number") >= 5, "{readings} readings");
    assert!(!page.contains("data-errors") && !page.contains("data-intruder"), "{page}");
    assert_eq!(page.matches("class=\"uplot u-hz").count(), 4, "charts");
    // A curve for each controller, in each of four legends.
    assert!(page.matches(">reno</").count() >= 4);
    assert!(page.contains(">serving</span>"));
    let escaped = "&lt;img src=x onerror=";
    assert!(page.matches(escaped).count() >= 10, "what clients call the server is text");
    assert!(page.contains(">127.0.0.0/24</td>") && !page.contains(">127.0.0.1</td>"));
}

#[test]
fn the_page_is_legible_in_light_and_dark_mode() {
    let Some(browser) = Browser::find() else { return };
    let mut pictures = Vec::new();
    for (name, scheme, size) in
        [("light", 1, "1280,1500"), ("dark", 0, "1280,1500"), ("narrow", 1, "390,2600")]
    {
        let place = Scratch::new("browser");
        let picture = place.path("page.png");
        let flags = [
            format!("--screenshot={}", picture.display()),
            format!("--window-size={size}"),
            format!("--blink-settings=preferredColorScheme={scheme}"),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let more = ["--hide-scrollbars", "--virtual-time-budget=12000"];
        look(&browser, &[&flags[..], &more].concat());
        let bytes = fs::read(&picture).expect("a picture");
        assert!(bytes.len() > 30_000, "{name} is almost empty: {} bytes", bytes.len());
        if let Some(directory) = std::env::var_os("UNCORK_SCREENSHOTS") {
            let kept = std::path::Path::new(&directory).join(format!("serve-{name}.png"));
            fs::copy(&picture, kept).expect("kept");
        }
        pictures.push(bytes);
    }
    assert_ne!(pictures[0], pictures[1]);
}
