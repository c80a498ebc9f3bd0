//! Serving until a signal comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::SIGHUP;
use uncork_serve::site::SiteOptions;
use uncork_serve::{
    AdminSpec, Identity, Limits, ListenerSpec, RecordsSpec, Reloaded, ServeError, Server,
    ServerSpec,
};

use super::args::{Listen, ServeArgs};
use crate::args::{Color, shown};
use crate::color;
use crate::failure::Failure;
use crate::lab::flag_on_signal;
use crate::{open_files, stdout};

/// How often to look whether a signal has come.
const INTERVAL: Duration = Duration::from_millis(50);
/// After how many of these to look whether files have changed.
const LOOKS: u32 = 20;

pub(crate) fn serve(args: &ServeArgs) -> Result<(), Failure> {
    let spec = specification(args)?;
    if args.check {
        return spec.check().map(|warnings| note(args, &warnings)).map_err(|error| refused(&error));
    }
    open_files::allow_all();
    let (stop, reload) = (flag_on_signal()?, flag_on_hangup()?);
    let mut server = Server::start(&spec).map_err(|error| refused(&error))?;
    announce(&server)?;
    note(args, server.policy().as_slice());
    note(args, &server.warnings(&spec));
    note(args, too_few_files(&spec).as_slice());
    let admin = server.admin().map(|admin| format!("admin endpoint on {admin}"));
    note(args, admin.as_slice());
    let why = wait(&stop, &reload, |event| match event {
        Event::Turn => hands_over(&mut server),
        Event::Look | Event::Reload => {
            let ordered = matches!(event, Event::Reload);
            if ordered {
                server.reopen();
            }
            if let Some(problem) = server.problem() {
                eprintln!("warning: {problem}; the server goes on");
            }
            let files = if ordered { server.reload() } else { server.reload_changed() };
            for reloaded in &files {
                tell(reloaded, args);
            }
            if files.iter().any(|reloaded| reloaded.result.is_ok()) {
                note(args, &server.warnings(&spec));
            }
            false
        }
    });
    let grace = Duration::from_nanos(args.grace.as_nanos());
    if !args.quiet {
        eprintln!(
            "note: {why}: up to {} for responses under way; a second signal ends at once",
            args.grace
        );
    }
    let records = server.stop(grace);
    if records.lost > 0 && !args.quiet {
        let all = records.written + records.lost;
        eprintln!(
            "note: {} of {all} records were lost: the disk was full or too slow",
            records.lost
        );
    }
    Ok(())
}

/// A connection needs a descriptor; a quarter of them is for files.
fn too_few_files(spec: &ServerSpec) -> Option<String> {
    let allowed = open_files::allowed()?;
    let wanted = (spec.listeners.len() * spec.limits.connections) as u64;
    let room = allowed / 4 * 3;
    (room < wanted).then(|| {
        format!(
            "this system allows {allowed} open files, enough for about {room} connections over TCP: raise the limit \
             with `ulimit -Hn`, or LimitNOFILE= of systemd"
        )
    })
}

/// What the main thread attends to.
#[derive(Clone, Copy)]
enum Event {
    /// Every [`INTERVAL`].
    Turn,
    /// Files may have changed.
    Look,
    /// A signal wants files to be read again.
    Reload,
}

/// Waits for `stop`, or until `attend` returns true. Returns why the server ends.
fn wait(
    stop: &AtomicBool,
    reload: &AtomicBool,
    mut attend: impl FnMut(Event) -> bool,
) -> &'static str {
    let mut turn = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        turn = turn.wrapping_add(1);
        let is_look = turn.is_multiple_of(LOOKS);
        let look = if reload.swap(false, Ordering::Relaxed) {
            Some(Event::Reload)
        } else {
            is_look.then_some(Event::Look)
        };
        if [Some(Event::Turn), look].into_iter().flatten().any(&mut attend) {
            return "another process has taken over";
        }
        thread::sleep(INTERVAL);
    }
    "shutting down"
}

/// Whether another process serves from now on.
fn hands_over(server: &mut Server) -> bool {
    match server.hand_over() {
        Some(Ok(())) => true,
        Some(Err(error)) => {
            eprintln!("warning: {error}");
            false
        }
        None => false,
    }
}

fn flag_on_hangup() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let registered = signal_hook::flag::register(SIGHUP, Arc::clone(&flag));
    let failed = |error| Failure::Environment(format!("cannot listen for signals: {error}"));
    registered.map(|_| flag).map_err(failed)
}

fn note(args: &ServeArgs, lines: &[String]) {
    for line in lines.iter().filter(|_| !args.quiet) {
        eprintln!("note: {line}");
    }
}

fn tell(reloaded: &Reloaded, args: &ServeArgs) {
    match &reloaded.result {
        Ok(line) => note(args, &[format!("read again: {line}")]),
        Err(error) => {
            eprintln!("{}", shown_error(error));
            eprintln!("note: the previous {} stays in force", reloaded.what);
        }
    }
}

/// With its place, if it has one.
fn shown_error(error: &ServeError) -> String {
    match error {
        ServeError::Policy(path, error) => {
            error.render(&path.display().to_string(), color::on_stderr(Color::Auto))
        }
        error => format!("error: {error}"),
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
    one_who_chooses(args)?;
    let listener = |listen: &Listen| ListenerSpec {
        name: listen.name.clone(),
        address: listen.address,
        cc: listen.cc.clone().or_else(|| args.cc.clone()),
        quic_cc: args.quic_cc,
    };
    Ok(ServerSpec {
        root: args.root.clone(),
        site: SiteOptions {
            index: args.index,
            precompressed: args.precompressed,
            cors: header("cors", args.cors.as_deref())?,
            cache_control: header("cache_control", args.cache_control.as_deref())?,
        },
        listeners: args.listen.iter().map(listener).collect(),
        policy: args.policy.clone(),
        geo: args.geo.clone(),
        identity,
        http3: !args.no_http3,
        plain_anywhere: args.plain,
        limits: Limits {
            connections: args.connections as usize,
            memory: args.memory.as_u64(),
            network_share: args.network_share,
            network_bits: (args.network_v4, args.network_v6),
            ..Limits::default()
        },
        records: args.records.as_ref().map(|path| RecordsSpec {
            path: path.clone(),
            every: Duration::from_nanos(args.records_every.as_nanos()),
            rows: args.records_rows as usize,
        }),
        qlog: args.qlog.clone(),
        admin: admin(args)?,
        keys: args.keys.clone(),
        handover: args.handover.clone(),
    })
}

fn admin(args: &ServeArgs) -> Result<Option<AdminSpec>, Failure> {
    let Some(address) = &args.admin else { return Ok(None) };
    let parsed = address.parse();
    let address = parsed.map_err(|e| Failure::value(&shown("serve", "admin"), address, e))?;
    Ok(Some(AdminSpec { address, anywhere: args.admin_anywhere }))
}

/// A policy chooses for all listeners, by their names if need be.
fn one_who_chooses(args: &ServeArgs) -> Result<(), Failure> {
    if args.policy.is_none() {
        return Ok(());
    }
    let chooses = |listen: &Listen| Some((listen.name.clone(), listen.cc.clone()?));
    let (what, remedy) = if let Some(cc) = &args.cc {
        (format!("'--cc {cc}'"), format!("[default] with tcp = \"{cc}\""))
    } else if let Some(cc) = &args.quic_cc {
        (format!("'--quic-cc {cc}'"), format!("[default] with quic = \"{cc}\""))
    } else if let Some((name, cc)) = args.listen.iter().find_map(chooses) {
        let rule = format!("[[rule]] with listener = \"{name}\" and use = {{ tcp = \"{cc}\" }}");
        (format!("'={cc}' of '--listen'"), rule)
    } else {
        return Ok(());
    };
    let message = format!("{what} and '--policy' both choose the congestion control");
    Err(Failure::Usage(format!("{message}: leave it out, and write into the policy: {remedy}")))
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

/// One line for each listener, when they all listen: where, what sends, and the versions of HTTP.
fn announce(server: &Server) -> Result<(), Failure> {
    let lines = server.listening().iter().map(|listening| {
        let scheme = if listening.is_tls { "https" } else { "http" };
        format!("{scheme}://{} {} {}\n", listening.address, listening.cc, listening.protocols)
    });
    stdout::write(lines.collect::<String>().as_bytes())
}

fn refused(error: &ServeError) -> Failure {
    if matches!(error, ServeError::Policy(..)) {
        return Failure::Shown(shown_error(error));
    }
    let message = error.to_string();
    if error.is_usage() { Failure::Usage(message) } else { Failure::Environment(message) }
}
