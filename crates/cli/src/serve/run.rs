//! Serving until a signal comes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use uncork_serve::site::SiteOptions;
use uncork_serve::{Identity, Limits, ListenerSpec, ServeError, Server, ServerSpec};

use super::args::ServeArgs;
use crate::args::shown;
use crate::failure::Failure;
use crate::lab::flag_on_signal;
use crate::stdout;

/// How often to look whether a signal has come.
const INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn serve(args: &ServeArgs) -> Result<(), Failure> {
    let spec = specification(args)?;
    if args.check {
        return spec.check().map_err(|error| refused(&error));
    }
    let stop = flag_on_signal()?;
    let server = Server::start(&spec).map_err(|error| refused(&error))?;
    announce(&server)?;
    wait(&stop);
    let grace = Duration::from_nanos(args.grace.as_nanos());
    if !args.quiet {
        eprintln!("note: no more requests; responses may come to their end for {}", args.grace);
    }
    let records = server.stop(grace).map_err(|error| refused(&error))?;
    if records.lost > 0 && !args.quiet {
        let all = records.written + records.lost;
        eprintln!("note: {} of {all} records are lost: the disk was too slow", records.lost);
    }
    Ok(())
}

fn wait(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(INTERVAL);
    }
}

fn specification(args: &ServeArgs) -> Result<ServerSpec, Failure> {
    let identity = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            Identity::Files { certificate: certificate.clone(), key: key.clone() }
        }
        _ if args.self_signed => Identity::SelfSigned,
        _ => Identity::Plain,
    };
    let cc = |own: &Option<String>| own.clone().or_else(|| args.cc.clone());
    let listeners = args.listen.iter();
    Ok(ServerSpec {
        root: args.root.clone(),
        site: SiteOptions {
            index: args.index,
            precompressed: args.precompressed,
            cors: header("cors", args.cors.as_deref())?,
            cache_control: header("cache_control", args.cache_control.as_deref())?,
        },
        listeners: listeners
            .map(|listen| ListenerSpec { address: listen.address, cc: cc(&listen.cc) })
            .collect(),
        identity,
        plain_anywhere: args.plain,
        limits: Limits { connections: args.connections.max(1) as usize, ..Limits::default() },
        records: args.records.clone(),
    })
}

/// The argument `id` as the value of a header.
fn header<V>(id: &str, value: Option<&str>) -> Result<Option<V>, Failure>
where
    V: for<'a> TryFrom<&'a str>,
{
    let Some(value) = value else { return Ok(None) };
    let parsed = V::try_from(value);
    let reason = "it cannot be in a header: write printable ASCII";
    parsed.map(Some).map_err(|_| Failure::value(&shown("serve", id), value, reason))
}

/// One line for each listener, when they all listen: where, and what sends.
fn announce(server: &Server) -> Result<(), Failure> {
    let lines = server.listening().iter().map(|listening| {
        let scheme = if listening.is_tls { "https" } else { "http" };
        format!("{scheme}://{} {}\n", listening.address, listening.cc)
    });
    stdout::write(lines.collect::<String>().as_bytes())
}

fn refused(error: &ServeError) -> Failure {
    let message = error.to_string();
    if error.is_usage() { Failure::Usage(message) } else { Failure::Environment(message) }
}
