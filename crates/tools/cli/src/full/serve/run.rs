//! Serving until a signal comes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::ArgMatches;
use signal_hook::consts::SIGHUP;
use uncork_policy::Prefixes;
use uncork_serve::config::{read_hosts, read_site};
use uncork_serve::site::SiteOptions;
use uncork_serve::{
    AdminSpec, CertificateFiles, Identity, Limits, ListenerSpec, RecordsSpec, Reloaded, ServeError,
    Server, ServerSpec, WatchedFiles,
};
use uncork_units::Rate;

use super::args::{Listen, ServeArgs};
use super::config::ConfigFile;
use crate::failure::Failure;
use crate::full::open_files;
use crate::interrupt::flag_on_signal;
use crate::values::{Color, shown};
use crate::{color, exit, stderr, stdout};

/// How often to look whether a signal has come.
const INTERVAL: Duration = Duration::from_millis(50);
/// After how many of these to look whether files have changed.
const LOOKS: u32 = 20;

/// What the command line and the configuration file say.
struct Configuration {
    args: ServeArgs,
    spec: ServerSpec,
}

impl Configuration {
    /// `matches` are of the command line `given`.
    fn read(given: &ServeArgs, matches: &ArgMatches) -> Result<Self, Failure> {
        let Some(path) = &given.config else {
            let spec = specification(given)?;
            return Ok(Self { args: given.clone(), spec });
        };
        let file = ConfigFile::read(path)?;
        let args = file.arguments(matches)?;
        let mut spec = specification(&args)?;
        let wrong = |error| file.wrong(error);
        read_site(&file.tree, &mut spec.site).map_err(wrong)?;
        spec.hosts = read_hosts(&file.tree, &spec.root, &spec.site).map_err(wrong)?;
        Ok(Self { args, spec })
    }
}

pub(crate) fn run(given: &ServeArgs, matches: &ArgMatches) -> Result<(), Failure> {
    let mut watched = given.config.clone().map(|path| WatchedFiles::new(vec![path]));
    let Configuration { mut args, mut spec } = Configuration::read(given, matches)?;
    if args.check {
        return spec
            .check()
            .map(|warnings| note(&args, &warnings))
            .map_err(|error| refused(&error));
    }
    open_files::allow_all();
    let (stop, reload) = (flag_on_signal()?, flag_on_hangup()?);
    let mut server = Server::start(&spec).map_err(|error| refused(&error))?;
    announce(&server)?;
    note(&args, server.policy().as_slice());
    note(&args, &server.warnings(&spec));
    note(&args, too_few_files(&spec).as_slice());
    let admin = server.admin().map(|admin| format!("admin endpoint on {admin}"));
    note(&args, admin.as_slice());
    let why = wait(&stop, &reload, |event| match event {
        ServeEvent::Tick => hands_over(&mut server),
        ServeEvent::Look | ServeEvent::Reload => {
            let ordered = matches!(event, ServeEvent::Reload);
            if ordered {
                server.reopen();
            }
            if let Some(problem) = server.problem() {
                eprintln!("warning: {problem}; the server goes on");
            }
            let is_due = |file: &mut WatchedFiles| file.have_changed() || ordered;
            if watched.as_mut().is_some_and(is_due) {
                watched.as_mut().into_iter().for_each(WatchedFiles::begin);
                if let Some(new) = reconfigured(given, matches, &mut server) {
                    (args, spec) = (new.args, new.spec);
                }
            }
            let files = if ordered { server.reload() } else { server.reload_changed() };
            for reloaded in &files {
                report(reloaded, &args);
            }
            if files.iter().any(|reloaded| reloaded.result.is_ok()) {
                note(&args, &server.warnings(&spec));
            }
            false
        }
    });
    let grace = args.grace.into();
    if !args.quiet {
        eprintln!(
            "note: {why}: up to {} for responses under way; a second signal ends at once",
            args.grace
        );
    }
    let records = server.stop(grace);
    if let Some(lost) = records.warning()
        && !args.quiet
    {
        eprintln!("note: {lost}");
    }
    Ok(())
}

/// The configuration that is read again, once it is active.
fn reconfigured(
    given: &ServeArgs,
    matches: &ArgMatches,
    server: &mut Server,
) -> Option<Configuration> {
    let new = match Configuration::read(given, matches) {
        Ok(new) => new,
        Err(failure) => {
            // The server keeps running, so the exit status is not used.
            let _status = exit::report(failure);
            eprintln!("note: the previous configuration stays active");
            return None;
        }
    };
    let reloaded = server.reconfigure(&new.spec);
    report(&reloaded, &new.args);
    reloaded.result.is_ok().then_some(new)
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
enum ServeEvent {
    /// Every [`INTERVAL`].
    Tick,
    /// Files may have changed.
    Look,
    /// A signal wants files to be read again.
    Reload,
}

/// Waits for `stop`, or until `attend` returns true. Returns why the server ends.
fn wait(
    stop: &AtomicBool,
    reload: &AtomicBool,
    mut attend: impl FnMut(ServeEvent) -> bool,
) -> &'static str {
    let mut tick = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        tick = tick.wrapping_add(1);
        let is_look = tick.is_multiple_of(LOOKS);
        let look = if reload.swap(false, Ordering::Relaxed) {
            Some(ServeEvent::Reload)
        } else {
            is_look.then_some(ServeEvent::Look)
        };
        if [Some(ServeEvent::Tick), look].into_iter().flatten().any(&mut attend) {
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

fn report(reloaded: &Reloaded, args: &ServeArgs) {
    match &reloaded.result {
        Ok(line) => note(args, &[format!("read again: {line}")]),
        Err(error) => {
            stderr::styled(&format!("{}\n", shown_error(error)));
            eprintln!("note: the previous {} stays active", reloaded.what);
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
    one_who_chooses(args)?;
    let root = args.root.clone().ok_or_else(|| {
        Failure::Usage("the configuration has no root: write root = \"public\"".to_owned())
    })?;
    let server_timing = args.server_timing.parse();
    let server_timing = server_timing.map_err(|error: String| {
        Failure::value(&shown::<ServeArgs>("server_timing"), &args.server_timing, error)
    })?;
    Ok(ServerSpec {
        root,
        site: SiteOptions {
            index: args.index,
            precompressed: args.precompressed,
            cors: header("cors", args.cors.as_deref())?,
            cache_control: header("cache_control", args.cache_control.as_deref())?,
            ..SiteOptions::default()
        },
        hosts: Vec::new(),
        listeners: listeners(args),
        policy: args.policy.clone(),
        policy_key: args.policy_key.clone(),
        geo: args.geo.clone(),
        identity: identity(args),
        http3: !args.no_http3,
        plain_anywhere: args.plain,
        limits: limits(args),
        server_timing,
        proxies: Prefixes::new(args.proxy_from.iter().copied()),
        records: args.records.as_ref().map(|path| RecordsSpec {
            path: path.clone(),
            every: args.records_every.into(),
            rows: args.records_rows as usize,
            ..args.rollup.apply(RecordsSpec::new(path))
        }),
        access_log: args.access_log.clone(),
        qlog: args.qlog.clone(),
        admin: admin(args)?,
        keys: args.keys.clone(),
        user: args.user.clone(),
        handover: args.handover.clone(),
    })
}

fn identity(args: &ServeArgs) -> Identity {
    match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            let (certificate, key) = (certificate.clone(), key.clone());
            Identity::Files(CertificateFiles { certificate, key })
        }
        _ if args.self_signed => Identity::SelfSigned,
        _ => Identity::Plain,
    }
}

/// Listeners that redirect requests to HTTPS come last.
fn listeners(args: &ServeArgs) -> Vec<ListenerSpec> {
    let listener = |listen: &Listen| ListenerSpec {
        name: listen.name.clone(),
        address: listen.address,
        cc: listen.cc.clone().or_else(|| args.cc.clone()),
        quic_cc: args.quic_cc,
        to_https: false,
    };
    let to_https = |address: &SocketAddr| ListenerSpec {
        name: address.to_string(),
        address: *address,
        cc: args.cc.clone(),
        quic_cc: None,
        to_https: true,
    };
    let others = args.redirect_http.iter().map(to_https);
    args.listen.iter().map(listener).chain(others).collect()
}

fn limits(args: &ServeArgs) -> Limits {
    Limits {
        connections: args.max_connections as usize,
        memory: args.max_memory.as_u64(),
        network_share: args.network_share,
        network_connections: args.network_connections.map(|most| most as usize),
        network_requests: args.network_requests,
        network_rate: args.network_rate.map(Rate::bytes_per_sec),
        network_bits: (args.network_v4, args.network_v6),
        streams: args.max_streams,
        head_time: args.head_time.into(),
        idle_time: args.idle_time.into(),
        stall_time: args.stall_time.into(),
        ..Limits::default()
    }
}

fn admin(args: &ServeArgs) -> Result<Option<AdminSpec>, Failure> {
    let Some(address) = &args.admin else { return Ok(None) };
    let parsed = address.parse();
    let address = parsed.map_err(|e| Failure::value(&shown::<ServeArgs>("admin"), address, e))?;
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
    parsed.map(Some).map_err(|_| Failure::value(&shown::<ServeArgs>(id), value, reason))
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
