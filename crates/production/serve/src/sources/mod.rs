//! Configuration files that are reloaded when they change.

mod files;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uncork_policy::{Origins, Policy, Release, Signed};
use uncork_private_files::releases::Releases;

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
    Policy(PolicyFiles, Arc<ArcSwap<Policy>>),
    Origins(Vec<PathBuf>, Arc<ArcSwap<Origins>>),
    Certificates(Box<ServerSpec>, Arc<Certificates>),
    Tickets(PathBuf, SharedTickets),
}

/// The result of a reload.
#[derive(Debug)]
pub struct Reloaded {
    /// `policy`, `databases`, `certificate`, `keys` (of tickets) or `root`.
    pub what: &'static str,
    /// A one-line description of the new version; or why the old version stays active.
    pub result: Result<String, ServeError>,
}

impl Sources {
    /// Loads a policy. The kernel must support all of it. A table of networks that cannot be read does not
    /// stop the server: until it is repaired, no rule that asks for it matches. With the signer's `key`, such a table
    /// stops the server.
    pub(crate) fn policy(
        &mut self,
        path: &Path,
        key: Option<&Path>,
    ) -> Result<Arc<ArcSwap<Policy>>, ServeError> {
        let mut of = PolicyFiles::new(path, key);
        let (mut policy, signed) = of.parse()?;
        let files = WatchedFiles::new(of.paths(&policy));
        let taken = of.take_table(&mut policy, signed.as_ref());
        if signed.is_some() {
            taken?;
        } // Otherwise `table_fault` reports the problem.
        of.release = signed.map(|signed| signed.release().clone());
        let policy = Arc::new(ArcSwap::from_pointee(policy));
        self.0.push((files, Reloadable::Policy(of, Arc::clone(&policy))));
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

    /// Reads the certificates of another configuration. [`Self::activate_certificates`] activates them.
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

    /// Serves with the certificates that [`Self::read_certificates`] has read.
    pub(crate) fn activate_certificates(
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

    /// The server has started: from now on, policies that are older than this one are refused.
    pub(crate) fn accept(&mut self) {
        self.0.iter_mut().filter_map(|(_, it)| it.policy()).for_each(PolicyFiles::accept);
    }

    /// What the operator must know of the signed policy.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|(_, reloadable)| match reloadable {
            Reloadable::Policy(of, _) => of.warning.as_deref(),
            _ => None,
        })
    }

    /// Reloads all files.
    pub(crate) fn reload(&mut self) -> Vec<Reloaded> {
        let files = self.0.iter_mut().filter(|(files, _)| !files.is_empty());
        files.map(|(files, reloadable)| reloadable.again(files)).collect()
    }

    /// Reloads the files that have changed and come to rest (see [`WatchedFiles::have_changed`]).
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

    fn policy(&mut self) -> Option<&mut PolicyFiles> {
        if let Self::Policy(of, _) = self { Some(of) } else { None }
    }

    fn again(&mut self, files: &mut WatchedFiles) -> Reloaded {
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
    fn replace(&mut self, files: &mut WatchedFiles) -> Result<String, ServeError> {
        match self {
            Self::Policy(of, policy) => {
                let (mut new, signed) = of.parse()?;
                // Another policy may name another table.
                files.watch(of.paths(&new));
                of.take_table(&mut new, signed.as_ref())?;
                let line = described(&new);
                policy.store(Arc::new(new));
                of.release = signed.map(|signed| signed.release().clone());
                of.accept();
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

/// Where a policy is, and by whom it must be signed.
#[derive(Debug)]
struct PolicyFiles {
    path: PathBuf,
    /// The file in the directory that the path led to when the policy was read. Its table is read there, too: a link to versions may
    /// change in between.
    at: PathBuf,
    key: Option<PathBuf>,
    /// The signed policies that were accepted before.
    releases: Releases,
    /// The active one, if it must be signed.
    release: Option<Release>,
    /// What the operator must know of it.
    warning: Option<String>,
}

impl PolicyFiles {
    fn new(path: &Path, key: Option<&Path>) -> Self {
        Self {
            path: path.to_owned(),
            at: path.to_owned(),
            key: key.map(Path::to_owned),
            releases: Releases::of_user(),
            release: None,
            warning: None,
        }
    }

    /// Notes which signed policy is active.
    fn accept(&mut self) {
        let Some(release) = &self.release else { return };
        let noted = self.releases.accept(release);
        self.warning = noted.err().or_else(|| release.warning().map(str::to_owned));
    }

    /// The policy without its table, and what was signed.
    fn parse(&mut self) -> Result<(Policy, Option<Signed>), ServeError> {
        let (directory, name) = (self.path.parent(), self.path.file_name());
        let directory = directory.and_then(|it| fs::canonicalize(it).ok());
        self.at = match (directory, name) {
            (Some(directory), Some(name)) => directory.join(name),
            _ => self.path.clone(),
        };
        let signed = self.key.as_deref().map(|key| {
            let signed = Signed::next_to(&self.at, key, |path| fs::read(path));
            signed.map_err(|error| ServeError::Signature(self.path.clone(), error))
        });
        let signed = signed.transpose()?;
        if let Some(signed) = &signed {
            let checked = self.releases.check(signed.release());
            checked.map_err(|error| ServeError::Release(self.path.clone(), Box::new(error)))?;
        }
        let text = fs::read_to_string(&self.at).map_err(unreadable("policy", &self.path))?;
        self.check(signed.as_ref(), &self.at, text.as_bytes())?;
        let policy = Policy::parse(&self.path.display().to_string(), &text);
        let policy = policy.map_err(|error| ServeError::Policy(self.path.clone(), error))?;
        tcp::has_all_of(&policy)?;
        Ok((policy, signed))
    }

    /// Reads the policy's table of networks, if it names one.
    fn take_table(&self, policy: &mut Policy, signed: Option<&Signed>) -> Result<(), ServeError> {
        let Some(name) = policy.table_file() else { return Ok(()) };
        let table = self.sibling(name);
        let bytes = fs::read(self.at.with_file_name(name));
        let bytes = bytes.map_err(unreadable("table of networks", &table))?;
        self.check(signed, &table, &bytes)?;
        policy.take_table(&bytes).map_err(|error| ServeError::Table(table, error))
    }

    fn check(&self, signed: Option<&Signed>, path: &Path, bytes: &[u8]) -> Result<(), ServeError> {
        let Some(signed) = signed else { return Ok(()) };
        signed.check(path, bytes).map_err(|error| ServeError::Signature(self.path.clone(), error))
    }

    fn paths(&self, policy: &Policy) -> Vec<PathBuf> {
        let mut paths = vec![self.path.clone()];
        paths.extend(policy.table_file().map(|name| self.sibling(name)));
        if let Some(key) = &self.key {
            paths.extend([
                key.clone(),
                self.sibling(Signed::LIST),
                self.sibling(Signed::SIGNATURE),
            ]);
        }
        paths
    }

    /// A file that is watched: by the path as it was given.
    fn sibling(&self, name: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(name)
    }
}

/// What keeps the policy's table from being used, if none was read.
pub(crate) fn table_fault(path: &Path, policy: &Policy) -> Option<String> {
    if policy.has_table() {
        return None;
    }
    // With a key the server would not run without the table.
    let of = PolicyFiles::new(path, None);
    let error = of.take_table(&mut policy.clone(), None).err()?;
    Some(format!("{error}; until it can, no rule that asks for it matches"))
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use uncork_testkit::Scratch;

    use super::*;

    #[test]
    fn table_is_of_the_same_version_as_the_policy_if_the_link_changes_in_between() {
        let scratch = Scratch::new("serve-policy-link");
        let policy =
            "[table]\nfile = \"t\"\n[table.arm.x]\ntcp = \"reno\"\n[[rule]]\ntable = \"s\"\n";
        scratch.write("1/policy.toml", policy);
        scratch.write("1/t", "the table of version 1");
        scratch.write("2/policy.toml", policy);
        let link = scratch.path("current");
        symlink("1", &link).unwrap();
        let mut of = PolicyFiles::new(&link.join("policy.toml"), None);
        let (mut policy, _) = of.parse().unwrap();
        fs::remove_file(&link).unwrap();
        symlink("2", &link).unwrap();
        // Version 2 has no table; that of version 1 is read, and refused for what it has.
        let error = of.take_table(&mut policy, None).unwrap_err();
        assert!(matches!(error, ServeError::Table(..)), "{error}");
    }
}
