//! Programs that Prometheus asks for metrics.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};

use super::command;

/// Ends with the test.
pub struct Running(pub Child);

impl Running {
    pub fn start(line: &str, directory: &Path) -> Self {
        let mut command = command(line);
        command.current_dir(directory).stdout(Stdio::null()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    /// Reads the notes of the program until one has the address of its metrics.
    pub fn address(&mut self) -> String {
        let mut notes = BufReader::new(self.0.stderr.take().unwrap()).lines();
        let address = notes.find_map(|line| {
            let line = line.unwrap();
            Some(line.split_once("http://")?.1.trim_end_matches("/metrics").to_owned())
        });
        // Without a reader, a later note would end the program.
        std::thread::spawn(move || notes.for_each(drop));
        address.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn get_metrics(mut stream: impl Read + Write) -> String {
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// The answer of the program at an address, head and text.
pub fn metrics_at(address: &str) -> String {
    get_metrics(TcpStream::connect(address).unwrap())
}

/// The time series of each family that a text of OpenMetrics declares, whether it has any yet or not.
pub fn series(metrics: &str) -> BTreeSet<String> {
    let families = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let names = families.flat_map(|(name, kind)| {
        // The text format has the whole name of a counter.
        let endings: &[&str] = match kind {
            "counter" if !name.ends_with("_total") => &["_total"],
            "histogram" => &["_bucket", "_count", "_sum"],
            "info" => &["_info"],
            _ => &[""],
        };
        endings.iter().map(move |ending| format!("{name}{ending}"))
    });
    names.collect()
}
