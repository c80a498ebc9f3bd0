//! Accepts TCP connections, up to the limit.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::connection::TcpContext;
use crate::admission::Transport;
use crate::clock;
use crate::shared::Stop;

/// How long to wait before accepting again when the system is out of resources for another
/// connection.
const NO_ROOM: Duration = Duration::from_millis(50);
/// How often to look for an idle connection to close.
const LOOKS: Duration = Duration::from_millis(200);

/// Accepts until the server stops, then waits for the accepted connections.
pub(crate) async fn accept(listener: TcpListener, accepted: TcpContext, mut stop: Stop) {
    let room = Arc::new(Semaphore::new(accepted.shared.tcp_connections));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let new = listener.accept().await?;
            Ok::<_, std::io::Error>((new, place(&room, &accepted).await))
        };
        tokio::select! {
            new = next => match new {
                Ok(((stream, peer), permit)) => {
                    connections.spawn(accepted.clone().serve(stream, peer, permit));
                }
                // The client has gone, or there are too many open files, which is temporary.
                Err(_) => sleep(NO_ROOM).await,
            },
            _stopped = stop.changed() => break,
        }
        while connections.try_join_next().is_some() {}
    }
    drop((listener, accepted));
    while connections.join_next().await.is_some() {}
}

/// Waits for a permit for an accepted connection. If there is none, an idle connection is closed;
/// meanwhile, others wait in the kernel's queue.
async fn place(room: &Arc<Semaphore>, accepted: &TcpContext) -> Option<OwnedSemaphorePermit> {
    loop {
        if let Ok(permit) = Arc::clone(room).try_acquire_owned() {
            return Some(permit);
        }
        accepted.shared.admission.make_room(Transport::Tcp, clock::now());
        if let Ok(permit) = timeout(LOOKS, Arc::clone(room).acquire_owned()).await {
            return permit.ok();
        }
    }
}
