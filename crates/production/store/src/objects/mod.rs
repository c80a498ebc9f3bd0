//! Object stores: S3, Google Cloud Storage, Azure Blob Storage, and files behind HTTPS.

mod address;
mod http;
mod reason;

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use object_store::path::Path as ObjectPath;
use object_store::{
    Error, GetOptions, GetResult as RemoteObject, MultipartUpload as _, ObjectStore,
    ObjectStoreExt as _, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use tokio::runtime::{self, Runtime};
use tokio::time::timeout;

use self::address::StoreLocation;
use self::reason::reason;
use crate::{Condition, GetResult, Object, Store, StoreError, Tag};

/// Files up to this size are one request. Larger ones are sent in parts of this size, which is above the least of each store.
const PART: usize = 8 << 20;
/// Requests at a time for many objects.
const AT_A_TIME: usize = 16;
/// How long any request may take with its retries, and the slowest link that is waited for beyond that.
const PATIENCE: Duration = Duration::from_mins(1);
const BYTES_PER_SECOND: u64 = 64 << 10;

/// A prefix of an object store. Requests run on a runtime of the caller's thread: between them nothing runs.
pub struct Objects {
    /// As it was given: it has no credential.
    address: String,
    store: Box<dyn ObjectStore>,
    prefix: ObjectPath,
    is_read_only: bool,
    runtime: Runtime,
}

/// Without the store below, which has credentials.
impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Objects").field(&self.address).finish()
    }
}

impl Objects {
    /// The store at an address, with the credentials that the platform gives. Nothing is asked yet.
    ///
    /// # Errors
    ///
    /// The address names no object store, or the environment has unusable settings for it.
    pub fn open(address: &str) -> Result<Self, StoreError> {
        let StoreLocation { store, prefix, is_read_only } = address::open(address)?;
        // Names are resolved on a thread, which ends soon.
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(1)
            .thread_keep_alive(Duration::from_secs(1))
            .build();
        let runtime =
            runtime.map_err(|error| StoreError::Away(address.to_owned(), error.to_string()))?;
        let address = address.trim_end_matches('/').to_owned();
        Ok(Self { address, store, prefix, is_read_only, runtime })
    }

    fn path(&self, name: &str) -> ObjectPath {
        let parts = name.split('/').filter(|part| !part.is_empty());
        parts.fold(self.prefix.clone(), ObjectPath::join)
    }

    fn name(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    fn away(&self, name: &str, error: &Error) -> StoreError {
        StoreError::Away(self.name(name), reason(error))
    }

    fn read_only(&self, name: &str, what: &str) -> Result<(), StoreError> {
        if !self.is_read_only {
            return Ok(());
        }
        let reason = format!("a store behind https cannot be {what}; use s3://, gs:// or az://");
        Err(StoreError::ReadOnly(self.name(name), reason))
    }

    /// Runs a request to its end.
    fn run<T>(
        &self,
        name: &str,
        bytes: u64,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let patience = PATIENCE + Duration::from_secs(bytes / BYTES_PER_SECOND);
        let ended = self.runtime.block_on(async { timeout(patience, request).await });
        ended.unwrap_or_else(|_| {
            let reason = format!("it has not answered within {} s", patience.as_secs());
            Err(StoreError::Away(self.name(name), reason))
        })
    }

    async fn read(
        &self,
        name: &str,
        max: u64,
        known: Option<&Tag>,
    ) -> Result<GetResult, StoreError> {
        let if_none_match = known.map(|tag| tag.etag.clone());
        let options = GetOptions { if_none_match, ..GetOptions::default() };
        let found = match self.store.get_opts(&self.path(name), options).await {
            Err(Error::NotModified { .. }) => return Ok(GetResult::Unchanged),
            // A store without a bucket is away: it does not count as empty.
            Err(error @ Error::NotFound { .. }) if reason::is_of_store(&error) => {
                return Err(self.away(name, &error));
            }
            Err(Error::NotFound { .. }) => return Ok(GetResult::Absent),
            found => found.map_err(|error| self.away(name, &error))?,
        };
        let large = || StoreError::Large(self.name(name), max);
        if found.meta.size > max {
            return Err(large());
        }
        let tag = Tag {
            etag: found.meta.e_tag.clone().unwrap_or_default(),
            generation: found.meta.version.clone(),
        };
        // Stores without ETag cannot say that an object is as it was.
        if known.is_some_and(|known| !tag.etag.is_empty() && *known == tag) {
            return Ok(GetResult::Unchanged);
        }
        let modified_unix_s = found.meta.last_modified.timestamp().try_into().unwrap_or(0);
        let bytes = self.body(name, found, max).await?.ok_or_else(large)?;
        Ok(GetResult::Object(Object { bytes, tag, modified_unix_s }))
    }

    /// The body, unless it has more bytes than its head said.
    async fn body(
        &self,
        name: &str,
        found: RemoteObject,
        max: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let mut bytes = Vec::new();
        let mut chunks = found.into_stream();
        while let Some(chunk) = chunks.try_next().await.map_err(|error| self.away(name, &error))? {
            if (bytes.len() + chunk.len()) as u64 > max {
                return Ok(None);
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(Some(bytes))
    }

    async fn write(&self, name: &str, bytes: &[u8], mode: PutMode) -> Result<(), StoreError> {
        let payload = PutPayload::from(bytes.to_vec());
        let options = PutOptions { mode, ..PutOptions::default() };
        match self.store.put_opts(&self.path(name), payload, options).await {
            Ok(_) => Ok(()),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                // A request that was answered too late was sent again: then it is this one that was first.
                match self.read(name, bytes.len() as u64, None).await {
                    Ok(GetResult::Object(object)) if object.bytes == bytes => Ok(()),
                    _ => Err(StoreError::Conflict(self.name(name))),
                }
            }
            Err(error) => Err(self.away(name, &error)),
        }
    }

    /// Whether an object that exists has the content of this file: then the file was sent before.
    async fn check_same(
        &self,
        name: &str,
        found: RemoteObject,
        mut file: &File,
    ) -> Result<(), StoreError> {
        let unreadable =
            |error: std::io::Error| StoreError::File(name.to_owned(), error.to_string());
        let conflict = || StoreError::Conflict(self.name(name));
        if found.meta.size != file.metadata().map_err(unreadable)?.len() {
            return Err(conflict());
        }
        let mut chunks = found.into_stream();
        while let Some(chunk) = chunks.try_next().await.map_err(|error| self.away(name, &error))? {
            let mut same = vec![0; chunk.len()];
            file.read_exact(&mut same).map_err(unreadable)?;
            if chunk != same {
                return Err(conflict());
            }
        }
        Ok(())
    }

    /// Sends a file in parts. The object appears when all are there.
    async fn write_parts(&self, name: &str, mut file: File) -> Result<(), StoreError> {
        let away = |error: &Error| self.away(name, error);
        let path = self.path(name);
        match self.store.get(&path).await {
            Ok(found) => return self.check_same(name, found, &file).await,
            // Who may only write cannot ask: the object is written again.
            Err(Error::NotFound { .. } | Error::PermissionDenied { .. }) => {}
            Err(error) => return Err(away(&error)),
        }
        let mut upload = self.store.put_multipart(&path).await.map_err(|error| away(&error))?;
        let sent = async {
            loop {
                let mut part = Vec::with_capacity(PART);
                let read = file.by_ref().take(PART as u64).read_to_end(&mut part);
                read.map_err(|error| StoreError::File(name.to_owned(), error.to_string()))?;
                if part.is_empty() {
                    break;
                }
                upload.put_part(part.into()).await.map_err(|error| away(&error))?;
            }
            upload.complete().await.map_err(|error| away(&error))
        };
        if let Err(error) = sent.await {
            // Parts that stay are removed by a rule of the bucket.
            let _ = upload.abort().await;
            return Err(error);
        }
        Ok(())
    }
}

impl Store for Objects {
    fn get(&self, name: &str, max: u64, known: Option<&Tag>) -> Result<GetResult, StoreError> {
        self.run(name, max, self.read(name, max, known))
    }

    fn get_all(&self, names: &[String], max: u64) -> Vec<Result<GetResult, StoreError>> {
        // Each has the time of a single one.
        let read = |name: &String| {
            let name = name.clone();
            async move {
                let patience = PATIENCE + Duration::from_secs(max / BYTES_PER_SECOND);
                timeout(patience, self.read(&name, max, None)).await.unwrap_or_else(|_| {
                    Err(StoreError::Away(self.name(&name), "it has not answered".to_owned()))
                })
            }
        };
        let reads = stream::iter(names.iter().map(read)).buffered(AT_A_TIME);
        self.runtime.block_on(reads.collect())
    }

    fn put(&self, name: &str, bytes: &[u8], condition: &Condition) -> Result<(), StoreError> {
        self.read_only(name, "written")?;
        let mode = match condition {
            Condition::Any => PutMode::Overwrite,
            Condition::New => PutMode::Create,
            Condition::Same(tag) => PutMode::Update(UpdateVersion {
                e_tag: Some(tag.etag.clone()),
                version: tag.generation.clone(),
            }),
        };
        self.run(name, bytes.len() as u64, self.write(name, bytes, mode))
    }

    fn put_file(&self, name: &str, path: &Path) -> Result<(), StoreError> {
        self.read_only(name, "written")?;
        let unreadable =
            |error: std::io::Error| StoreError::File(path.display().to_string(), error.to_string());
        let mut file = File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        if size > PART as u64 {
            return self.run(name, size, self.write_parts(name, file));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(unreadable)?;
        self.run(name, size, self.write(name, &bytes, PutMode::Create))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.read_only(folder, "listed")?;
        let path = self.path(folder);
        let listed = async {
            let found = self.store.list_with_delimiter(Some(&path)).await;
            found.map_err(|error| self.away(folder, &error))
        };
        // A thousand names in each answer.
        let found = self.run(folder, 64 << 20, listed)?;
        let paths = found.objects.iter().map(|object| &object.location);
        let mut names: Vec<String> = paths
            .chain(&found.common_prefixes)
            .filter_map(|path| path.filename().map(str::to_owned))
            .collect();
        names.sort();
        Ok(names)
    }
}
