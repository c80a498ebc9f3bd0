//! Files that say how it is served, and may be replaced meanwhile.

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

/// All files that may be replaced, and what was made of them.
#[derive(Debug, Default)]
pub(crate) struct Sources(Vec<(Files, Makes)>);

/// What is made of files.
#[derive(Debug)]
enum Makes {
    Policy(PathBuf, Arc<ArcSwap<Policy>>),
    Origins(Vec<PathBuf>, Arc<ArcSwap<Origins>>),
    Certificate(PathBuf, PathBuf, Arc<Certificates>),
    Tickets(PathBuf, SharedTickets),
}

/// What became of files that were read again.
#[derive(Debug)]
pub struct Reloaded {
    /// What they are: the `policy`, the `databases`, the `certificate`, the `keys` of tickets or the `root`.
    pub what: &'static str,
    /// What is in force now, in a line; or why what was there before stays in force.
    pub result: Result<String, ServeError>,
}

impl Sources {
    /// The policy in a file, of which this kernel must have all.
    pub(crate) fn policy(&mut self, path: &Path) -> Result<Arc<ArcSwap<Policy>>, ServeError> {
        let files = Files::new(vec![path.to_owned()]);
        let policy = Arc::new(ArcSwap::from_pointee(read_policy(path)?));
        self.0.push((files, Makes::Policy(path.to_owned(), Arc::clone(&policy))));
        Ok(policy)
    }

    /// Where clients are, by databases of which several are asked in turn.
    pub(crate) fn origins(
        &mut self,
        paths: &[PathBuf],
    ) -> Result<Arc<ArcSwap<Origins>>, ServeError> {
        let files = Files::new(paths.to_owned());
        let origins = Arc::new(ArcSwap::from_pointee(read_origins(paths)?));
        if !paths.is_empty() {
            self.0.push((files, Makes::Origins(paths.to_owned(), Arc::clone(&origins))));
        }
        Ok(origins)
    }

    /// Who the server is; `addresses` are what a certificate made here is for.
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
            self.0.push((files, Makes::Certificate(certificate.clone(), key.clone(), made)));
        }
        Ok(certificates)
    }

    /// The keys of tickets in a file.
    pub(crate) fn tickets(&mut self, path: &Path) -> Result<SharedTickets, ServeError> {
        let files = Files::new(vec![path.to_owned()]);
        let tickets = SharedTickets::new(&keys::read(path)?);
        self.0.push((files, Makes::Tickets(path.to_owned(), tickets.clone())));
        Ok(tickets)
    }

    /// Reads all files again.
    pub(crate) fn reload(&mut self) -> Vec<Reloaded> {
        self.0.iter_mut().map(|(files, makes)| makes.again(files)).collect()
    }

    /// Reads those again that have changed and come to rest, as [`Files::have_changed`] tells.
    pub(crate) fn reload_changed(&mut self) -> Vec<Reloaded> {
        let changed = self.0.iter_mut().filter_map(|(files, makes)| {
            let changed = files.have_changed();
            changed.then(|| makes.again(files))
        });
        changed.collect()
    }
}

impl Makes {
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

    /// All or nothing: what is wrong leaves what was there.
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

/// A policy in a line: its name, the fingerprint that records have, what there is in it.
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
