//! Configuration files that are reloaded when they change.

mod files;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uncork_policy::{Origins, Policy};

use crate::error::ServeError;
use crate::identity::{Certificates, Identity};
use crate::keys;
use crate::tcp;
use crate::tickets::SharedTickets;
use arc_swap::ArcSwap;
use files::Files;

/// All reloadable files, and the values made from them.
#[derive(Debug, Default)]
pub(crate) struct Sources(Vec<(Files, Reloadable)>);

/// The value made from files.
#[derive(Debug)]
enum Reloadable {
    Policy(PathBuf, Arc<ArcSwap<Policy>>),
    Origins(Vec<PathBuf>, Arc<ArcSwap<Origins>>),
    Certificate(PathBuf, PathBuf, Arc<Certificates>),
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
    /// Loads a policy. The kernel must support all of it.
    pub(crate) fn policy(&mut self, path: &Path) -> Result<Arc<ArcSwap<Policy>>, ServeError> {
        let files = Files::new(vec![path.to_owned()]);
        let policy = Arc::new(ArcSwap::from_pointee(read_policy(path)?));
        self.0.push((files, Reloadable::Policy(path.to_owned(), Arc::clone(&policy))));
        Ok(policy)
    }

    /// Loads databases of client locations, which are queried in order.
    pub(crate) fn origins(
        &mut self,
        paths: &[PathBuf],
    ) -> Result<Arc<ArcSwap<Origins>>, ServeError> {
        let files = Files::new(paths.to_owned());
        let origins = Arc::new(ArcSwap::from_pointee(read_origins(paths)?));
        if !paths.is_empty() {
            self.0.push((files, Reloadable::Origins(paths.to_owned(), Arc::clone(&origins))));
        }
        Ok(origins)
    }

    /// Loads the certificate. A self-signed certificate is valid for `addresses`.
    pub(crate) fn certificates(
        &mut self,
        identity: &Identity,
        addresses: &[SocketAddr],
    ) -> Result<Option<Arc<Certificates>>, ServeError> {
        let Identity::Files { certificate, key } = identity else {
            return Certificates::load(identity, addresses);
        };
        let files = Files::new(vec![certificate.clone(), key.clone()]);
        let certificates = Certificates::load(identity, addresses)?;
        if let Some(made) = certificates.clone() {
            self.0.push((files, Reloadable::Certificate(certificate.clone(), key.clone(), made)));
        }
        Ok(certificates)
    }

    /// Loads the keys of session tickets.
    pub(crate) fn tickets(&mut self, path: &Path) -> Result<SharedTickets, ServeError> {
        let files = Files::new(vec![path.to_owned()]);
        let tickets = SharedTickets::new(&keys::read(path)?);
        self.0.push((files, Reloadable::Tickets(path.to_owned(), tickets.clone())));
        Ok(tickets)
    }

    /// Reloads all files.
    pub(crate) fn reload(&mut self) -> Vec<Reloaded> {
        self.0.iter_mut().map(|(files, reloadable)| reloadable.again(files)).collect()
    }

    /// Reloads the files that have changed, see [`Files::have_changed`].
    pub(crate) fn reload_changed(&mut self) -> Vec<Reloaded> {
        let changed = self.0.iter_mut().filter_map(|(files, reloadable)| {
            let changed = files.have_changed();
            changed.then(|| reloadable.again(files))
        });
        changed.collect()
    }
}

impl Reloadable {
    fn again(&self, files: &mut Files) -> Reloaded {
        files.begin();
        let what = match self {
            Self::Policy(..) => "policy",
            Self::Origins(..) => "databases",
            Self::Certificate(..) => "certificate",
            Self::Tickets(..) => "keys",
        };
        Reloaded { what, result: self.replace() }
    }

    /// Replaces the value, or leaves the old one if the new one is invalid.
    fn replace(&self) -> Result<String, ServeError> {
        match self {
            Self::Policy(path, policy) => {
                let new = read_policy(path)?;
                let line = described(&new);
                policy.store(Arc::new(new));
                Ok(line)
            }
            Self::Origins(paths, origins) => {
                origins.store(Arc::new(read_origins(paths)?));
                let names: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
                Ok(format!("databases '{}'", names.join("', '")))
            }
            Self::Certificate(certificate, key, certificates) => {
                certificates.replace(certificate, key)?;
                Ok(format!("certificate '{}'", certificate.display()))
            }
            Self::Tickets(path, tickets) => {
                tickets.replace(path)?;
                Ok(format!("keys of tickets '{}'", path.display()))
            }
        }
    }
}

/// A policy in one line: its name, its fingerprint in records, and a summary of its contents.
pub(crate) fn described(policy: &Policy) -> String {
    let (name, fingerprint) = (policy.name(), policy.fingerprint());
    format!("policy '{name}', fingerprint {fingerprint:016x}: {}", policy.summary())
}

fn read_policy(path: &Path) -> Result<Policy, ServeError> {
    let text = fs::read_to_string(path).map_err(unreadable("policy", path))?;
    let policy = Policy::parse(&path.display().to_string(), &text);
    let policy = policy.map_err(|error| ServeError::Policy(path.to_owned(), error))?;
    tcp::has_all_of(&policy)?;
    Ok(policy)
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
