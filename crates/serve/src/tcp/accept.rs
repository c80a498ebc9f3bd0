//! Accepting connections, as many as there may be.

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

/// How long to wait when the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(50);
/// How often it is looked for a connection that can be ended for a new one.
const LOOKS: Duration = Duration::from_millis(200);

/// Accepts until it shall stop, and waits for what was accepted.
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
                // The client has gone, or there are too many files; the latter passes.
                Err(_) => sleep(NO_ROOM).await,
            },
            _stopped = stop.changed() => break,
        }
        while connections.try_join_next().is_some() {}
    }
    drop((listener, accepted));
    while connections.join_next().await.is_some() {}
}

/// A place for a connection that has been accepted. If there is none, an idle connection ends for it; others wait in
/// the kernel's queue meanwhile.
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
