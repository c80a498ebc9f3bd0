//! Configuration files that are reloaded when they change.

mod files;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uncork_policy::{Origins, Policy};

use crate::error::ServeError;
use crate::identity::{CertificateSet, Certificates};
use crate::keys;
use crate::spec::ServerSpec;
use crate::tcp;
use crate::tickets::SharedTickets;
use arc_swap::ArcSwap;
pub use files::WatchedFiles;

/// All reloadable files, and the values made from them.
#[derive(Debug, Default)]
pub(crate) struct Sources(Vec<(WatchedFiles, Reloadable)>);

/// The value made from files.
#[derive(Debug)]
enum Reloadable {
    Policy(PathBuf, Arc<ArcSwap<Policy>>),
    Origins(Vec<PathBuf>, Arc<ArcSwap<Origins>>),
    Certificates(Box<ServerSpec>, Arc<Certificates>),
    Tickets(PathBuf, SharedTickets),
}

/// The result of a reload.
#[derive(Debug)]
pub struct Reloaded {
    /// `policy`, `databases`, `certificate`, `keys` (of tickets) or `root`.
    pub what: &'static str,
    /// A one-line description of the new version; or why the old version stays in force.
    pub result: Result<String, ServeError>,
}

impl Sources {
    /// Loads a policy. The kernel must support all of it. A table of networks that cannot be read does not
    /// stop the server: until it is repaired, no rule that asks for it matches.
    pub(crate) fn policy(&mut self, path: &Path) -> Result<Arc<ArcSwap<Policy>>, ServeError> {
        let mut policy = parse_policy(path)?;
        let files = WatchedFiles::new(policy_paths(path, &policy));
        // `table_fault` tells what is wrong with it.
        let _ = take_table(path, &mut policy);
        let policy = Arc::new(ArcSwap::from_pointee(policy));
        self.0.push((files, Reloadable::Policy(path.to_owned(), Arc::clone(&policy))));
        Ok(policy)
    }

    /// Loads databases of client locations, which are queried in order.
    pub(crate) fn origins(
        &mut self,
        paths: &[PathBuf],
    ) -> Result<Arc<ArcSwap<Origins>>, ServeError> {
        let files = WatchedFiles::new(paths.to_owned());
        let origins = Arc::new(ArcSwap::from_pointee(read_origins(paths)?));
        if !paths.is_empty() {
            self.0.push((files, Reloadable::Origins(paths.to_owned(), Arc::clone(&origins))));
        }
        Ok(origins)
    }

    /// Loads the certificate. A self-signed certificate is valid for `addresses`.
    pub(crate) fn certificates(
        &mut self,
        spec: &ServerSpec,
        addresses: &[SocketAddr],
    ) -> Result<Option<Arc<Certificates>>, ServeError> {
        let files = WatchedFiles::new(spec.certificate_paths());
        let Some(read) = CertificateSet::read(spec, addresses)? else { return Ok(None) };
        let certificates = Arc::new(Certificates::new(read));
        let reloadable =
            Reloadable::Certificates(Box::new(spec.clone()), Arc::clone(&certificates));
        self.0.push((files, reloadable));
        Ok(Some(certificates))
    }

    /// Reads the certificates of another configuration. They are put in force by [`Self::put_in_force`].
    pub(crate) fn read_certificates(
        &self,
        spec: &ServerSpec,
    ) -> Result<Option<(WatchedFiles, CertificateSet)>, ServeError> {
        let Some(certificates) =
            self.0.iter().find_map(|(_, reloadable)| reloadable.certificates())
        else {
            return Ok(None);
        };
        let files = WatchedFiles::new(spec.certificate_paths());
        Ok(Some((files, certificates.read_again(spec)?)))
    }

    /// Serves with what [`Self::read_certificates`] has read.
    pub(crate) fn put_in_force(
        &mut self,
        spec: &ServerSpec,
        (files, read): (WatchedFiles, CertificateSet),
    ) {
        for (watched, reloadable) in &mut self.0 {
            if let Reloadable::Certificates(of, certificates) = reloadable {
                certificates.replace(read);
                (*watched, **of) = (files, spec.clone());
                return;
            }
        }
    }

    /// Loads the keys of session tickets.
    pub(crate) fn tickets(&mut self, path: &Path) -> Result<SharedTickets, ServeError> {
        let files = WatchedFiles::new(vec![path.to_owned()]);
        let tickets = SharedTickets::new(&keys::read(path)?);
        self.0.push((files, Reloadable::Tickets(path.to_owned(), tickets.clone())));
        Ok(tickets)
    }

    /// Reloads all files.
    pub(crate) fn reload(&mut self) -> Vec<Reloaded> {
        let files = self.0.iter_mut().filter(|(files, _)| !files.is_empty());
        files.map(|(files, reloadable)| reloadable.again(files)).collect()
    }

    /// Reads those again that have changed and come to rest, as [`WatchedFiles::have_changed`] tells.
    pub(crate) fn reload_changed(&mut self) -> Vec<Reloaded> {
        let changed = self.0.iter_mut().filter_map(|(files, reloadable)| {
            let changed = files.have_changed();
            changed.then(|| reloadable.again(files))
        });
        changed.collect()
    }
}

impl Reloadable {
    fn certificates(&self) -> Option<&Arc<Certificates>> {
        if let Self::Certificates(_, certificates) = self { Some(certificates) } else { None }
    }

    fn again(&self, files: &mut WatchedFiles) -> Reloaded {
        files.begin();
        let what = match self {
            Self::Policy(..) => "policy",
            Self::Origins(..) => "databases",
            Self::Certificates(..) => "certificate",
            Self::Tickets(..) => "keys",
        };
        Reloaded { what, result: self.replace(files) }
    }

    /// Replaces the value, or leaves the old one if the new one is invalid.
    fn replace(&self, files: &mut WatchedFiles) -> Result<String, ServeError> {
        match self {
            Self::Policy(path, policy) => {
                let mut new = parse_policy(path)?;
                // Another policy may name another table.
                files.watch(policy_paths(path, &new));
                take_table(path, &mut new)?;
                let line = described(&new);
                policy.store(Arc::new(new));
                Ok(line)
            }
            Self::Origins(paths, origins) => {
                origins.store(Arc::new(read_origins(paths)?));
                Ok(format!("databases {}", quoted(paths)))
            }
            Self::Certificates(spec, certificates) => {
                certificates.replace(certificates.read_again(spec)?);
                Ok(format!("certificate {}", quoted(&spec.certificate_paths())))
            }
            Self::Tickets(path, tickets) => {
                tickets.replace(path)?;
                Ok(format!("keys of tickets '{}'", path.display()))
            }
        }
    }
}

fn quoted(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|it| format!("'{}'", it.display())).collect();
    names.join(", ")
}

/// A policy in one line: its name, its fingerprint in records, and a summary of its contents.
pub(crate) fn described(policy: &Policy) -> String {
    let (name, fingerprint) = (policy.name(), policy.fingerprint());
    format!("policy '{name}', fingerprint {fingerprint:016x}: {}", policy.summary())
}

fn parse_policy(path: &Path) -> Result<Policy, ServeError> {
    let text = fs::read_to_string(path).map_err(unreadable("policy", path))?;
    let policy = Policy::parse(&path.display().to_string(), &text);
    let policy = policy.map_err(|error| ServeError::Policy(path.to_owned(), error))?;
    tcp::has_all_of(&policy)?;
    Ok(policy)
}

/// Reads the policy's table of networks, if it names one.
fn take_table(path: &Path, policy: &mut Policy) -> Result<(), ServeError> {
    let Some(table) = table_path(path, policy) else { return Ok(()) };
    let bytes = fs::read(&table).map_err(unreadable("table of networks", &table))?;
    policy.take_table(&bytes).map_err(|error| ServeError::Table(table, error))
}

/// What keeps the policy's table from being used, if none was read.
pub(crate) fn table_fault(path: &Path, policy: &Policy) -> Option<String> {
    if policy.has_table() {
        return None;
    }
    let error = take_table(path, &mut policy.clone()).err()?;
    Some(format!("{error}; until it can, no rule that asks for it matches"))
}

fn policy_paths(path: &Path, policy: &Policy) -> Vec<PathBuf> {
    std::iter::once(path.to_owned()).chain(table_path(path, policy)).collect()
}

/// Where the table is: relative to the policy's file.
fn table_path(path: &Path, policy: &Policy) -> Option<PathBuf> {
    Some(path.parent().unwrap_or(Path::new("")).join(policy.table_file()?))
}

fn read_origins(paths: &[PathBuf]) -> Result<Origins, ServeError> {
    let mut origins = Origins::new();
    for path in paths {
        let bytes = fs::read(path).map_err(unreadable("database", path))?;
        origins.add(bytes).map_err(|error| ServeError::Database(path.clone(), error))?;
    }
    Ok(origins)
}

fn unreadable(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ServeError {
    move |error| ServeError::Unreadable(what, path.to_owned(), error)
}
