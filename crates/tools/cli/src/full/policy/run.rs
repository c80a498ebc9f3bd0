//! The commands of `uncork policy`.

use uncork_policy::{Fact, Facts, Headers, Origin, UnixTime};

use super::args::{ExplainArgs, FileArgs, PolicyArgs, PolicyCommand};
use super::ecn;
use super::read::{origins, read};
use crate::failure::Failure;
use crate::full::unix_time::unix_s;
use crate::{print, stdout};

pub(crate) fn run(args: &PolicyArgs) -> Result<(), Failure> {
    match &args.command {
        PolicyCommand::Check(args) => check(args),
        PolicyCommand::Explain(args) => explain(args),
        PolicyCommand::Ecn(args) => ecn::run(args),
    }
}

fn check(args: &FileArgs) -> Result<(), Failure> {
    let policy = read(&args.file, args.policy_key.as_deref(), args.color)?;
    // Listeners and databases are those of a server, which is not known here.
    let expired = policy.expired_rules(UnixTime(unix_s()));
    for warning in policy.warnings(None, true).into_iter().chain(expired) {
        eprintln!("warning: {warning}");
    }
    let databases = if policy.asks_origin() {
        "; `asn` and `country` need a database (--geo) to match"
    } else {
        ""
    };
    let line = format!("{}: {}{databases}\n", policy.name(), policy.summary());
    stdout::write(line.as_bytes())
}

fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let FileArgs { file, policy_key, color } = &args.file;
    let policy = read(file, policy_key.as_deref(), *color)?;
    let origin = origin(args)?;
    let fields = fields(args);
    let explanation = policy.explain(&facts(args, origin, &fields));
    print::document(args.format, &explanation.document(&policy), |_| explanation.text())
}

/// The client's origin: as given, otherwise from the databases.
fn origin(args: &ExplainArgs) -> Result<Origin, Failure> {
    let origins = origins(&args.geo)?;
    let found = args.ip.map(|address| origins.of(address)).unwrap_or_default();
    Ok(Origin { asn: args.asn.or(found.asn), country: args.country.or(found.country) })
}

fn fields(args: &ExplainArgs) -> Vec<(String, String)> {
    let cookies = args.cookie.iter().map(|cookie| ("cookie".to_owned(), cookie.clone()));
    args.header.iter().cloned().chain(cookies).collect()
}

fn facts<'a>(args: &'a ExplainArgs, origin: Origin, fields: &'a dyn Headers) -> Facts<'a> {
    let path = args.path.as_deref().map(|path| path.split_once('?').unwrap_or((path, "")));
    let connection = Facts {
        listener: given(args.listener.as_deref()),
        client: given(args.ip),
        asn: given(origin.asn),
        country: given(origin.country),
        accepted: given(args.at),
        sni: given(args.sni.as_deref()),
        ..Facts::default()
    };
    // Origin facts missing in the databases stay unknown later, so they are absent.
    let connection = if args.geo.is_empty() { connection } else { connection.with_whole_origin() };
    if args.host.is_none() && path.is_none() && args.size.is_none() && args.fields() == 0 {
        return connection;
    }
    let request = Facts {
        host: given(args.host.as_deref()),
        path: given(path.map(|(path, _)| path)),
        query: given(path.map(|(_, query)| query)),
        headers: Fact::Known(fields),
        size: given(args.size),
        ..connection
    };
    request.with_whole_request()
}

fn given<T>(value: Option<T>) -> Fact<T> {
    value.map_or(Fact::Unknown, Fact::Known)
}
