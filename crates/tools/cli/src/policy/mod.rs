//! `uncork policy`: policies, read and explained.

mod args;
mod json;

use std::fs;
use std::path::{Path, PathBuf};

use uncork_host::releases::Releases;
use uncork_policy::{Fact, Facts, FileError, Headers, Origin, Origins, Policy};

use crate::color;
use crate::failure::Failure;
use crate::stdout;
use crate::values::{Color, TextFormat};
pub(crate) use args::PolicyArgs;
use args::{ExplainArgs, FileArgs, PolicyCommand};

pub(crate) fn policy(args: &PolicyArgs) -> Result<(), Failure> {
    match &args.command {
        PolicyCommand::Check(args) => check(args),
        PolicyCommand::Explain(args) => explain(args),
    }
}

/// Reads a policy, with its table. With a `key`, its owner must have signed both, and none that is later may have been accepted
/// by this user before.
pub(crate) fn read(file: &Path, key: Option<&Path>, color: Color) -> Result<Policy, Failure> {
    let policy = Policy::from_files(file, key, |path| fs::read(path));
    let policy = policy.map_err(|error| match error {
        FileError::Unreadable(file, error) => Failure::unreadable("<FILE>", &file, &error),
        FileError::UnreadableTable(file, error) => Failure::unreadable("table", &file, &error),
        FileError::Policy(file, error) => {
            let name = file.display().to_string();
            Failure::Shown(error.render(&name, color::on_stderr(color)))
        }
        FileError::Table(file, error) => Failure::value("table", file.display(), error),
        FileError::Signature(key, error) => {
            Failure::value("--policy-key <FILE>", key.display(), error)
        }
        FileError::Unsigned(error) => Failure::value("<FILE>", file.display(), error),
    })?;
    if let Some(release) = policy.release() {
        let checked = Releases::of_user().check(release);
        checked.map_err(|error| Failure::value("<FILE>", file.display(), error))?;
    }
    Ok(policy)
}

fn check(args: &FileArgs) -> Result<(), Failure> {
    let policy = read(&args.file, args.policy_key.as_deref(), args.color)?;
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
    match args.format {
        TextFormat::Human => stdout::write(explanation.to_string().as_bytes()),
        TextFormat::Json => stdout::write(&json::document(&policy, &explanation)?),
    }
}

/// Reads databases of origins.
pub(crate) fn origins(files: &[PathBuf]) -> Result<Origins, Failure> {
    let mut origins = Origins::new();
    for file in files {
        let argument = "--geo <FILE.mmdb>";
        let bytes = fs::read(file).map_err(|error| Failure::unreadable(argument, file, &error))?;
        let added = origins.add(bytes);
        added.map_err(|error| Failure::value(argument, file.display(), error))?;
    }
    Ok(origins)
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
