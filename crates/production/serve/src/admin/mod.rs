//! The admin endpoint: health, metrics, status, and a page that shows them.
//!
//! It has its own listener, on a Unix socket or on loopback, which clients cannot reach.

mod address;
mod answer;
mod listener;
mod page;

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

pub use self::address::{AdminAddress, AdminSpec};
pub(crate) use self::answer::AdminService;
pub(crate) use self::listener::Bound;
use crate::error::ServeError;

/// Maximum number of concurrent connections; others wait.
const CONNECTIONS: usize = 32;
/// Timeout for a request's head.
const HEAD: Duration = Duration::from_secs(5);
/// The lifetime of a connection. Pollers reconnect.
const CONNECTION: Duration = Duration::from_mins(2);
/// How long to wait before accepting again when the system is out of resources for another
/// connection.
const NO_ROOM: Duration = Duration::from_millis(50);

impl AdminSpec {
    /// Starts to listen. Must be called within tokio's runtime.
    pub(crate) fn listen(&self) -> Result<Bound, ServeError> {
        Bound::listen(&self.address, self.anywhere)
    }
}

/// Serves requests on `bound` until it is aborted.
pub(crate) async fn serve(bound: Bound, service: AdminService) {
    let service = Arc::new(service);
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        match bound.accept().await {
            Ok(stream) => {
                let service = Arc::clone(&service);
                tokio::spawn(async move {
                    let _over = timeout(CONNECTION, talk(stream, service)).await;
                    drop(permit);
                });
            }
            Err(_) => sleep(NO_ROOM).await,
        }
    }
}

/// Errors are caused by the client and ignored.
async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin, service: Arc<AdminService>) {
    let answer = service_fn(move |request| {
        let response = service.answer(&request);
        async move { Ok::<_, std::convert::Infallible>(response) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(16 * 1024);
    let _ended = http.serve_connection(TokioIo::new(stream), answer).await;
}
