//! The exchanges of an HTTP/2 connection, in the task of the connection.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use futures_util::stream::{FuturesUnordered, StreamExt};
use hyper::rt::Executor;

type Exchange = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where a connection puts the exchanges that it begins.
///
/// Were they tasks of their own, each would have the connection send its answer before the next one is
/// looked for, with a system call for each. So the connection sends what all of them have.
#[derive(Clone, Default)]
pub(super) struct ExchangeSpawner(Arc<Mutex<Vec<Exchange>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for ExchangeSpawner {
    fn execute(&self, exchange: F) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::pin(exchange));
    }
}

impl ExchangeSpawner {
    fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The exchanges under way.
#[derive(Default)]
pub(super) struct Exchanges {
    spawner: ExchangeSpawner,
    under_way: FuturesUnordered<Exchange>,
}

impl Exchanges {
    pub(super) fn spawner(&self) -> ExchangeSpawner {
        self.spawner.clone()
    }

    /// Goes on with all of them. It is to be polled after the connection, which does not tell what it
    /// has begun.
    pub(super) async fn run(&mut self) -> Infallible {
        poll_fn(|context| {
            self.under_way.extend(self.spawner.take());
            while let Poll::Ready(Some(())) = self.under_way.poll_next_unpin(context) {}
            Poll::Pending
        })
        .await
    }
}
