//! `uncork records ship`: finished files of a directory to a store.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use uncork_fleet::MetricsText;
use uncork_records::ROLLUP_PREFIX;
use uncork_store::{Amount, Pass, Spool, Store, StoreError};
use uncork_units::{ByteCount, TimeDelta};

use super::nap::{pause, sleep};
use super::unix_time::unix_s;
use super::{file, store};
use crate::failure::Failure;
use crate::interrupt::flag_on_signal;
use crate::stdout;

pub(super) const EXAMPLES: &str = "\
Examples:
  uncork records ship /var/lib/uncork/records s3://telemetry/uncork/edge1
  uncork records ship /var/lib/uncork/records gs://telemetry/uncork/edge1 --watch
  uncork records ship records/ s3://telemetry/uncork/edge1 --watch --spool-max 500MB --metrics /run/uncork-ship/ship.prom";

pub(super) const AFTER: &str = "\
It ships each finished Parquet file under its own name, roll-ups first, and removes it once the store has acknowledged it. A run that \
ends in between does no harm: the next one finds that the store has the file. Give each host a prefix of its own.

If the store is away, files wait in DIR. Above --spool-max the oldest are dropped, records before roll-ups. Each one is reported \
and counted.

Exit status: 0 all files are in the store, or ended by a signal; 1 files were dropped; 2 wrong usage; 3 a file cannot be shipped, or \
another process ships DIR; 5 a bug.";

#[derive(Args, Debug)]
pub(super) struct ShipArgs {
    /// Directory that `serve`, `steer record`, `host watch` or `records rollup` writes
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Store: s3://, gs:// or az://BUCKET/PREFIX, or a directory
    #[arg(value_name = "STORE")]
    store: String,
    /// Go on until a signal
    #[arg(long)]
    watch: bool,
    /// Time between two looks at DIR
    #[arg(long, value_name = "TIME", value_parser = pause, default_value = "10s", requires = "watch")]
    every: TimeDelta,
    /// Maximum size of the files that wait while the store is away
    #[arg(long, value_name = "SIZE", default_value = "2GB")]
    spool_max: ByteCount,
    /// Write metrics to a file that node_exporter reads
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
}

pub(super) fn run(args: &ShipArgs) -> Result<(), Failure> {
    if !args.directory.is_dir() {
        return Err(Failure::value("<DIR>", args.directory.display(), "no such directory"));
    }
    if args.store.starts_with("https://") {
        let reason = "a store behind https is only read; use s3://, gs://, az:// or a directory";
        return Err(Failure::value("<STORE>", &args.store, reason));
    }
    let target = store::open(&args.store)?;
    // What is not mounted would become a directory of this disk.
    if !args.store.contains("://") && !PathBuf::from(&args.store).is_dir() {
        return Err(store::failure(&StoreError::NoDirectory(args.store.clone())));
    }
    let spool = Spool::new(&args.directory, ROLLUP_PREFIX, args.spool_max.as_u64());
    let _lock = spool.lock().map_err(|error| {
        let directory = args.directory.display();
        Failure::Environment(format!(
            "cannot ship '{directory}': {error}; it must be writable, and only one process may ship it"
        ))
    })?;
    let stop = flag_on_signal()?;
    let mut total = Total::default();
    loop {
        let pass = pass(args, &spool, &*target, &stop)?;
        total.take(&pass);
        if let Some(metrics) = &args.metrics {
            file::replace_metrics(metrics, &total.metrics())?;
        }
        if !args.watch || stop.load(Ordering::Relaxed) {
            return total.end(args.watch);
        }
        sleep(args.every.into(), &stop);
    }
}

fn pass(
    args: &ShipArgs,
    spool: &Spool,
    target: &dyn Store,
    stop: &AtomicBool,
) -> Result<Pass, Failure> {
    let pass = spool.pass(target, || stop.load(Ordering::Relaxed));
    pass.map_err(|error| {
        Failure::Environment(format!("cannot ship '{}': {error}", args.directory.display()))
    })
}

/// All passes of this process.
#[derive(Default)]
struct Total {
    shipped: Amount,
    dropped: Amount,
    waiting: Amount,
    problem: Option<String>,
    /// When nothing was left waiting.
    empty_unix_s: i64,
}

impl Total {
    /// Counts a pass, and says what has changed for the worse or back.
    fn take(&mut self, pass: &Pass) {
        for (total, more) in [(&mut self.shipped, pass.shipped), (&mut self.dropped, pass.dropped)]
        {
            total.files += more.files;
            total.bytes += more.bytes;
        }
        self.waiting = pass.waiting;
        for name in &pass.dropped_names {
            let name = uncork_config::visible(name);
            eprintln!(
                "dropped: {name}: the spool is full (--spool-max), and the store does not have it"
            );
        }
        let problem = pass.problem.as_ref().map(problem);
        if problem != self.problem {
            let line = problem.clone().unwrap_or_else(|| "files are shipped again".to_owned());
            eprintln!("{}", uncork_config::visible(&line));
        }
        self.problem = problem;
        if pass.waiting.files == 0 {
            self.empty_unix_s = unix_s();
        }
    }

    fn end(self, is_stopped: bool) -> Result<(), Failure> {
        let Self { shipped, dropped, waiting, .. } = &self;
        let text = format!(
            "shipped {}, {} bytes; dropped {}; {} left\n",
            files(shipped.files),
            shipped.bytes,
            files(dropped.files),
            files(waiting.files)
        );
        stdout::write(text.as_bytes())?;
        if dropped.files > 0 {
            return Err(Failure::Status(1));
        }
        if self.problem.is_some() && !is_stopped {
            return Err(Failure::Status(3));
        }
        Ok(())
    }

    /// Metrics for Prometheus, as a file that node_exporter reads.
    fn metrics(&self) -> String {
        let Self { shipped, dropped, waiting, .. } = self;
        let mut text = MetricsText::new("uncork_ship_");
        text.counter("shipped_files_total", "Files that the store has.", shipped.files);
        text.counter("shipped_bytes_total", "Their bytes.", shipped.bytes);
        text.counter("dropped_files_total", "Files that the store never got.", dropped.files);
        text.counter("dropped_bytes_total", "Their bytes.", dropped.bytes);
        text.gauge("waiting_files", "Files that wait for the store.", waiting.files as f64);
        text.gauge("waiting_bytes", "Their bytes.", waiting.bytes as f64);
        let is_failing = f64::from(u8::from(self.problem.is_some()));
        text.gauge("failing", "Whether a file could not be shipped.", is_failing);
        let empty = self.empty_unix_s as f64;
        text.gauge("empty_timestamp_seconds", "When no file waited.", empty);
        text.into_text()
    }
}

fn files(count: u64) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

fn problem(error: &StoreError) -> String {
    match error {
        StoreError::Conflict(name) => {
            format!(
                "{name}: the store has another file of this name; ship each host to a prefix of its own"
            )
        }
        error => format!("cannot ship: {error}"),
    }
}
