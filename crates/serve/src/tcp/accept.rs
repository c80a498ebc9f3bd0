//! Accepting connections, as many as there may be.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::connection::TcpContext;
use crate::shared::Stop;

/// How long to wait when the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(50);

/// Accepts until it shall stop, and waits for what was accepted.
pub(crate) async fn accept(listener: TcpListener, accepted: TcpContext, mut stop: Stop) {
    let room = Arc::new(Semaphore::new(accepted.shared.limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (listener.accept().await, permit)
        };
        tokio::select! {
            (new, Ok(permit)) = next => match new {
                Ok((stream, peer)) => {
                    connections.spawn(accepted.clone().serve(stream, peer, permit));
                }
                // The client has gone, or there are too many files; the latter passes.
                Err(_) => tokio::time::sleep(NO_ROOM).await,
            },
            _stopped = stop.changed() => break,
        }
        while connections.try_join_next().is_some() {}
    }
    drop((listener, accepted));
    while connections.join_next().await.is_some() {}
}
