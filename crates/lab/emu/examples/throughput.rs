//! Throughput and lateness of the emulator: one kernel TCP flow over a path of 10 ms, for each
//! given rate in Mbit/s.
//!
//! `cargo run --release -p uncork-emu --example throughput -- 1 10 100 1000`

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use uncork_emu::{Emulation, EmulationSpec, Namespace, Report};
use uncork_path::{Buffer, PathSpec};
use uncork_units::{Rate, TimeDelta};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Unmeasured warm-up, and measured time.
const WARMUP: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(5);

fn main() -> Outcome<()> {
    println!("   set  carried     of set   late ms: p50    p99     max   overruns  CPU %");
    let given: Vec<u64> =
        std::env::args().skip(1).map(|rate| rate.parse()).collect::<Result<_, _>>()?;
    for rate in if given.is_empty() { vec![1, 10, 100, 1000] } else { given } {
        let (bits_per_s, report) = measure(rate)?;
        let carried = bits_per_s / 1e6;
        let late = report.down.lateness_ms.ok_or("nothing arrived")?;
        println!(
            "{rate:6} {carried:8.2} {:8.2} %        {:8.3} {:6.3} {:7.2}   {:8}  {:5.1}",
            100.0 * carried / rate as f64,
            late.p50,
            late.p99,
            late.max,
            report.down.dropped.overrun + report.up.dropped.overrun,
            100.0 * report.cpu_s / report.duration_s,
        );
    }
    Ok(())
}

/// Bits per second on the wire, measured at the receiver.
fn measure(rate_mbit: u64) -> Outcome<(f64, Report)> {
    let (rate, rtt) = (Rate::from_mbit(rate_mbit), TimeDelta::from_millis(10));
    let buffer = rate.bytes_in(rtt).max(150_000);
    let mut path = PathSpec::new(rate, rtt, Buffer::MilliBdp(1000));
    path.link.buffer = Buffer::Packets(buffer / 1500);
    let mut spec = EmulationSpec::over(path, 1);
    if std::env::var_os("BUSY_WAIT").is_some() {
        spec.busy_wait = TimeDelta::from_micros(200);
    }
    let emulation = Emulation::start(&spec)?;
    [emulation.client(), emulation.server()].into_iter().try_for_each(widen)?;
    let address = (emulation.server().addresses().v4, 5000);
    let listener = emulation.server().run(|| TcpListener::bind(address))??;
    let over = AtomicBool::new(false);
    let bits = thread::scope(|scope| {
        let sender = scope.spawn(|| send(&listener, &over));
        let stream = emulation.client().run(|| TcpStream::connect(address))??;
        let bits = receive(stream);
        over.store(true, Ordering::Relaxed);
        sender.join().map_err(|_| "the sender failed")?.ok();
        bits
    })?;
    Ok((bits, emulation.stop()?))
}

/// Socket buffers large enough for 1 Gbit/s.
fn widen(host: &Namespace) -> Outcome<()> {
    host.run(|| -> Outcome<()> {
        for key in ["tcp_rmem", "tcp_wmem"] {
            fs::write(format!("/proc/sys/net/ipv4/{key}"), "4096 1000000 67108864")?;
        }
        Ok(())
    })?
}

fn send(listener: &TcpListener, over: &AtomicBool) -> Outcome<()> {
    let (mut stream, _) = listener.accept()?;
    let data = vec![0; 1 << 18];
    while !over.load(Ordering::Relaxed) {
        stream.write_all(&data)?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "it is a clock that is measured")]
fn receive(mut stream: TcpStream) -> Outcome<f64> {
    let mut buffer = vec![0; 1 << 18];
    let start = Instant::now();
    while start.elapsed() < WARMUP && stream.read(&mut buffer)? > 0 {}
    let (start, mut bytes) = (Instant::now(), 0);
    let mut last = start;
    while start.elapsed() < MEASURED {
        bytes += stream.read(&mut buffer)?;
        last = Instant::now();
    }
    // A packet of 1500 bytes has 1448 bytes of payload.
    Ok(8.0 * bytes as f64 * 1500.0 / 1448.0 / last.duration_since(start).as_secs_f64())
}
