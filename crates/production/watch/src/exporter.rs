//! The HTTP endpoint for Prometheus.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Maximum number of concurrent connections; others wait.
const CONNECTIONS: usize = 8;
/// Timeout for a request's head.
const HEAD: Duration = Duration::from_secs(5);
/// The lifetime of a connection.
const CONNECTION: Duration = Duration::from_mins(2);
/// How long to wait before accepting again when the system is out of resources for another
/// connection.
const NO_ROOM: Duration = Duration::from_millis(50);

/// Serves `GET /metrics` on its own thread, with the text last given to it.
#[derive(Debug)]
pub struct Exporter {
    address: SocketAddr,
    text: Arc<Mutex<String>>,
}

impl Exporter {
    /// Listens on `address`. The text is of this content type, and empty at first.
    ///
    /// # Errors
    ///
    /// Nothing can listen there.
    pub fn start(address: SocketAddr, content_type: &'static str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind(address))?;
        let (address, text) = (listener.local_addr()?, Arc::new(Mutex::default()));
        let shown = Arc::clone(&text);
        let thread = thread::Builder::new().name("exporter".to_owned());
        thread.spawn(move || {
            runtime.block_on(accept(listener, Content { text: shown, content_type }));
        })?;
        Ok(Self { address, text })
    }

    /// The address that it listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers with `text` from now on.
    pub fn show(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

/// What is served.
#[derive(Clone)]
struct Content {
    text: Arc<Mutex<String>>,
    content_type: &'static str,
}

async fn accept(listener: TcpListener, content: Content) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(NO_ROOM).await;
            continue;
        };
        let content = content.clone();
        tokio::spawn(async move {
            let _over = timeout(CONNECTION, talk(stream, content)).await;
            drop(permit);
        });
    }
}

/// Errors are caused by the client and ignored.
async fn talk(stream: TcpStream, content: Content) {
    let answer = service_fn(move |request| {
        let response = answer(&request, &content);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(16 * 1024);
    let _ended = http.serve_connection(TokioIo::new(stream), answer).await;
}

fn answer(request: &Request<Incoming>, content: &Content) -> Response<String> {
    let plain = |status, text: &str| {
        let mut response = Response::new(text.to_owned());
        *response.status_mut() = status;
        response
    };
    if *request.method() != Method::GET {
        let mut response =
            plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed; try GET /metrics\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
        return response;
    }
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "not found; try GET /metrics\n");
    }
    let text = content.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut response = Response::new(text);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content.content_type));
    response
}
