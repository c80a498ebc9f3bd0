//! From a request's head to a response.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header,
};

use super::body::SiteBody;
use super::conditional::{ConditionalOutcome, Validators};
use super::encoding::accepted;
use super::file::ServedFile;
use super::open_files::OpenFiles;
use super::options::SiteOptions;
use super::range::Ranges;
use super::representation::{Boundaries, content_type, multipart};
use super::root::{Found, Root};
use super::target::{Refused, Target};
use crate::error::ServeError;

/// As many as most responses have: there is room for them from the beginning.
const HEADERS: usize = 12;
const METHODS: &str = "GET, HEAD, OPTIONS";
/// What pages of other origins may ask with and read, beyond what they may anyway.
const CORS_REQUEST: &str = "Range, If-Range, If-None-Match, If-Modified-Since";
const CORS_RESPONSE: &str = "Accept-Ranges, Content-Range, ETag, Server-Timing";

/// A directory that is served.
#[derive(Debug)]
pub struct Site {
    path: PathBuf,
    root: ArcSwap<Root>,
    files: Arc<OpenFiles>,
    options: SiteOptions,
    boundaries: Boundaries,
}

/// A response, and what it is of.
#[derive(Debug)]
pub struct Answer {
    /// The response.
    pub response: Response<SiteBody>,
    /// The decoded path of the request; `None` if it is invalid or hidden.
    pub path: Option<String>,
    /// The size of the whole file, in bytes, even if only a part is sent; `None` without a file.
    pub object_bytes: Option<u64>,
}

/// What a request leads to.
enum Resource {
    File {
        file: Arc<ServedFile>,
        content_type: HeaderValue,
        coding: Option<&'static str>,
    },
    /// The same path with `/` behind it.
    Elsewhere,
    Status(StatusCode),
}

impl Site {
    /// Serves what is in the directory `root`, the same one until [`Self::reopen`].
    ///
    /// # Errors
    ///
    /// A directory that cannot be opened; a kernel that cannot keep lookups inside of it.
    pub fn open(root: &Path, options: SiteOptions) -> Result<Self, ServeError> {
        Self::with_files(root, options, &Arc::default())
    }

    /// The same, with `files` of other directories.
    pub(super) fn with_files(
        root: &Path,
        options: SiteOptions,
        files: &Arc<OpenFiles>,
    ) -> Result<Self, ServeError> {
        Ok(Self {
            path: root.to_owned(),
            root: ArcSwap::from_pointee(Root::open(root)?),
            files: Arc::clone(files),
            options,
            boundaries: Boundaries::default(),
        })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Serves the directory that the path leads to now: it may be a link that was changed. Whether it is another.
    ///
    /// # Errors
    ///
    /// Those of [`Self::open`]; the directory that was served before is served on.
    pub fn reopen(&self) -> Result<bool, ServeError> {
        let root = Root::open(&self.path)?;
        let is_other = !root.is_same(&self.root.load());
        if is_other {
            self.root.store(Arc::new(root));
        }
        Ok(is_other)
    }

    /// Answers a request that came at `now`. Looks the file up at once; what is not in memory is read
    /// by other threads as the body is polled, on a runtime of tokio's.
    pub fn respond<B>(&self, request: &Request<B>, now: SystemTime) -> Answer {
        let target = Target::parse(request.uri().path());
        let redirect = self.redirect(request.uri()).filter(|_| target.is_ok());
        self.answer(request, target, redirect, now)
    }

    /// The same without redirects.
    pub(crate) fn respond_unmoved<B>(&self, request: &Request<B>, now: SystemTime) -> Answer {
        self.answer(request, Target::parse(request.uri().path()), None, now)
    }

    fn answer<B>(
        &self,
        request: &Request<B>,
        target: Result<Target, Refused>,
        redirect: Option<Response<SiteBody>>,
        now: SystemTime,
    ) -> Answer {
        let (mut response, object_bytes) = match (redirect, request.method()) {
            // A browser's preflight must not be redirected (Fetch, "CORS-preflight fetch").
            (_, &Method::OPTIONS) => (self.describe(), None),
            (Some(redirect), _) => (redirect, None),
            (None, &Method::GET | &Method::HEAD) => self.get(request, target.as_ref(), now),
            (None, _) => {
                let mut response = status(StatusCode::METHOD_NOT_ALLOWED);
                put(&mut response, header::ALLOW, METHODS);
                (response, None)
            }
        };
        self.show_error_page(&mut response, now);
        put(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        self.share(response.headers_mut());
        for own in &self.options.headers {
            response.headers_mut().insert(&own.name, own.value.clone());
        }
        let length = response.body().len();
        if !matches!(response.status(), StatusCode::NOT_MODIFIED | StatusCode::NO_CONTENT) {
            response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        }
        if *request.method() == Method::HEAD {
            *response.body_mut() = SiteBody::default();
        }
        Answer { response, path: target.ok().map(Target::into_path), object_bytes }
    }

    /// Where a path has moved.
    fn redirect(&self, uri: &Uri) -> Option<Response<SiteBody>> {
        let (code, location) = self.options.redirects.iter().find_map(|it| it.apply(uri))?;
        Some(moved(code, location))
    }

    /// The owner's page instead of the status in words, if there is one and it can be read.
    fn show_error_page(&self, response: &mut Response<SiteBody>, now: SystemTime) {
        let code = response.status();
        let mut pages = self.options.error_pages.iter();
        let Some((_, path)) = pages.find(|(of, _)| *of == code) else { return };
        let root = self.root.load();
        let found = root.find(path.trim_start_matches('/'), &self.files, now);
        if let Ok(Found::File(file)) = found {
            let mut body = SiteBody::default();
            body.add_file(&file, 0..file.len());
            *response.body_mut() = body;
            response.headers_mut().insert(header::CONTENT_TYPE, content_type(path));
        }
    }

    /// The response, and the size of the file that it is of.
    fn get<B>(
        &self,
        request: &Request<B>,
        target: Result<&Target, &Refused>,
        now: SystemTime,
    ) -> (Response<SiteBody>, Option<u64>) {
        let found = match target {
            Ok(target) => self.find(request.headers(), target, now),
            Err(Refused::Malformed) => Ok(Resource::Status(StatusCode::BAD_REQUEST)),
            Err(Refused::Hidden) => Ok(Resource::Status(StatusCode::NOT_FOUND)),
        };
        match found {
            Ok(Resource::File { file, content_type, coding }) => {
                (self.send(request, &file, content_type, coding, now), Some(file.len()))
            }
            Ok(Resource::Elsewhere) => (with_slash(request), None),
            Ok(Resource::Status(code)) => (status(code), None),
            Err(_) => (status(StatusCode::INTERNAL_SERVER_ERROR), None),
        }
    }

    fn find(&self, headers: &HeaderMap, target: &Target, now: SystemTime) -> io::Result<Resource> {
        let below_root = target.below_root();
        let path = match (target.is_directory(), self.options.index) {
            (true, false) => return Ok(Resource::Status(StatusCode::NOT_FOUND)),
            (true, true) if below_root.is_empty() => Cow::Borrowed("index.html"),
            (true, true) => format!("{below_root}/index.html").into(),
            (false, _) => below_root.into(),
        };
        Ok(match self.root.load().find(&path, &self.files, now)? {
            Found::File(file) => self.negotiate(headers, &path, file, now)?,
            Found::Directory if self.options.index && !target.is_directory() => Resource::Elsewhere,
            Found::Directory | Found::Nothing => Resource::Status(StatusCode::NOT_FOUND),
            Found::Forbidden => Resource::Status(StatusCode::FORBIDDEN),
        })
    }

    /// The file, or a compressed one next to it that the client takes and that is not older.
    fn negotiate(
        &self,
        headers: &HeaderMap,
        path: &str,
        file: Arc<ServedFile>,
        now: SystemTime,
    ) -> io::Result<Resource> {
        let content_type = file.heads().content_type.clone();
        let root = self.root.load();
        let codings = if self.options.precompressed { accepted(headers) } else { Vec::new() };
        for coding in codings {
            match root.find(&format!("{path}{}", coding.ending), &self.files, now)? {
                Found::File(compressed) if compressed.is_as_new_as(&file) => {
                    let coding = Some(coding.name);
                    return Ok(Resource::File { file: compressed, content_type, coding });
                }
                _ => {}
            }
        }
        Ok(Resource::File { file, content_type, coding: None })
    }

    fn send<B>(
        &self,
        request: &Request<B>,
        file: &Arc<ServedFile>,
        content_type: HeaderValue,
        coding: Option<&'static str>,
        now: SystemTime,
    ) -> Response<SiteBody> {
        let etag = if coding.is_some() { file.etag(coding) } else { file.heads().etag.clone() };
        let validators = Validators { etag, modified: file.modified() };
        let mut response = match validators.evaluate(request.headers()) {
            ConditionalOutcome::Failed => status(StatusCode::PRECONDITION_FAILED),
            ConditionalOutcome::NotModified => empty(StatusCode::NOT_MODIFIED),
            ConditionalOutcome::Send { ranges } => {
                // Only GET has ranges (RFC 9110 §14.2).
                let wanted = request.headers().get(header::RANGE);
                let wanted = wanted.filter(|_| ranges && *request.method() == Method::GET);
                let mut response = self.parts(file, wanted, content_type);
                if let Some(coding) = coding {
                    put(&mut response, header::CONTENT_ENCODING, coding);
                }
                response
            }
        };
        let headers = response.headers_mut();
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if let Some(etag) = validators.etag {
            headers.insert(header::ETAG, etag);
        }
        // A time to come is none (RFC 9110 §8.8.2.1).
        if validators.modified <= now {
            let date = file.heads().modified.clone();
            headers.extend(date.map(|date| (header::LAST_MODIFIED, date)));
        }
        if self.options.precompressed {
            headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        headers.extend(self.options.cache_control.clone().map(|it| (header::CACHE_CONTROL, it)));
        response
    }

    /// The whole file, or what `wanted` asks for of it.
    fn parts(
        &self,
        file: &Arc<ServedFile>,
        wanted: Option<&HeaderValue>,
        content_type: HeaderValue,
    ) -> Response<SiteBody> {
        let length = file.len();
        let ranges = wanted.map(|wanted| Ranges::parse(wanted.as_bytes(), length));
        let mut body = SiteBody::default();
        let (code, content_range, content_type) = match ranges {
            None | Some(Ranges::Whole) => {
                body.add_file(file, 0..length);
                (StatusCode::OK, None, content_type)
            }
            Some(Ranges::Unsatisfiable) => {
                let mut response = status(StatusCode::RANGE_NOT_SATISFIABLE);
                put(&mut response, header::CONTENT_RANGE, format!("bytes */{length}"));
                return response;
            }
            Some(Ranges::Parts(parts)) => {
                let code = StatusCode::PARTIAL_CONTENT;
                if let [part] = parts.as_slice() {
                    let content_range = format!("bytes {}-{}/{length}", part.start, part.end - 1);
                    body.add_file(file, part.clone());
                    (code, Some(content_range), content_type)
                } else {
                    let boundary = self.boundaries.next();
                    body = multipart(file, parts, &boundary, &content_type);
                    let multipart = format!("multipart/byteranges; boundary={boundary}");
                    (code, None, HeaderValue::try_from(multipart).unwrap_or(content_type))
                }
            }
        };
        let mut response = with(code, body);
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        if let Some(content_range) = content_range {
            put(&mut response, header::CONTENT_RANGE, content_range);
        }
        response
    }

    /// What may be asked, also to pages of other origins (Fetch, "CORS-preflight").
    fn describe(&self) -> Response<SiteBody> {
        let mut response = empty(StatusCode::NO_CONTENT);
        put(&mut response, header::ALLOW, METHODS);
        if self.options.cors.is_some() {
            put(&mut response, header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            put(&mut response, header::ACCESS_CONTROL_ALLOW_HEADERS, CORS_REQUEST);
            put(&mut response, header::ACCESS_CONTROL_MAX_AGE, "86400");
        }
        response
    }

    fn share(&self, headers: &mut HeaderMap) {
        let Some(origin) = &self.options.cors else { return };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        let exposed = HeaderValue::from_static(CORS_RESPONSE);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        headers.insert(HeaderName::from_static("timing-allow-origin"), origin.clone());
        if origin != "*" {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
    }
}

/// A directory's own address ends with `/`, so that relative links in its index work. The path was
/// parsed: it begins with one `/`, not with the two that would make it another host's.
fn with_slash<B>(request: &Request<B>) -> Response<SiteBody> {
    let query = request.uri().query().map_or(String::new(), |query| format!("?{query}"));
    moved(StatusCode::PERMANENT_REDIRECT, format!("{}/{query}", request.uri().path()))
}

/// Says that what was asked for is at `location`.
pub(crate) fn moved(code: StatusCode, location: String) -> Response<SiteBody> {
    let mut response = status(code);
    put(&mut response, header::LOCATION, location);
    response
}

/// A response that says its status in words.
fn status(code: StatusCode) -> Response<SiteBody> {
    let reason = code.canonical_reason().unwrap_or_default();
    let mut response = with(code, SiteBody::text(format!("{} {reason}\n", code.as_u16())));
    put(&mut response, header::CONTENT_TYPE, "text/plain; charset=utf-8");
    response
}

fn empty(code: StatusCode) -> Response<SiteBody> {
    with(code, SiteBody::default())
}

fn with(code: StatusCode, body: SiteBody) -> Response<SiteBody> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    *response.headers_mut() = HeaderMap::with_capacity(HEADERS);
    response
}

/// Refuses what a request brings: nothing here reads it, and before HTTP/2 the connection cannot go on
/// behind it.
pub(crate) fn unwanted(version: Version) -> Response<SiteBody> {
    let mut response = empty(StatusCode::PAYLOAD_TOO_LARGE);
    put(&mut response, header::CONTENT_LENGTH, "0");
    if version < Version::HTTP_2 {
        put(&mut response, header::CONNECTION, "close");
    }
    response
}

/// Refuses a request of HTTP/1.1 that does not say clearly what it is of.
pub(crate) fn malformed() -> Response<SiteBody> {
    let mut response = bad_request();
    put(&mut response, header::CONNECTION, "close");
    response
}

/// Refuses a request; its connection goes on.
pub(crate) fn bad_request() -> Response<SiteBody> {
    with_length(status(StatusCode::BAD_REQUEST))
}

/// Says how long the body is.
pub(crate) fn with_length(mut response: Response<SiteBody>) -> Response<SiteBody> {
    let length = response.body().len();
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    response
}

/// Refuses a request of a client network that has sent too many (RFC 6585 §4). `after` is when there may be another.
pub(crate) fn too_many(after: Duration) -> Response<SiteBody> {
    let mut response = with_length(status(StatusCode::TOO_MANY_REQUESTS));
    let seconds = after.as_secs_f64().ceil() as u64;
    response.headers_mut().insert(header::RETRY_AFTER, seconds.max(1).into());
    response
}

/// Sets a header to text that is made here, or came in the request's head and could be in one.
fn put(response: &mut Response<SiteBody>, name: HeaderName, value: impl Into<Cow<'static, str>>) {
    let value = match value.into() {
        Cow::Borrowed(value) => Ok(HeaderValue::from_static(value)),
        Cow::Owned(value) => HeaderValue::try_from(value),
    };
    if let Ok(value) = value {
        response.headers_mut().insert(name, value);
    }
}
