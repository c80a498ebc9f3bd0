//! An emulated path with a delay.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use uncork_testkit::{now, pause};

/// Relays datagrams between a server and its only client, each after the same delay.
pub(crate) struct DelayedPath {
    /// The address that the client connects to.
    pub(crate) address: SocketAddr,
    far: Arc<UdpSocket>,
    is_over: Arc<AtomicBool>,
    is_cut: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DelayedPath {
    pub(crate) fn to(server: SocketAddr, delay: Duration) -> Self {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a socket"));
        far.connect(server).expect("an address");
        let (address, far) = (near.local_addr().expect("bound"), Arc::new(far));
        let [is_over, is_cut] = [(); 2].map(|()| Arc::<AtomicBool>::default());
        let (over, cut, end) = (Arc::clone(&is_over), Arc::clone(&is_cut), Arc::clone(&far));
        let thread = thread::spawn(move || {
            let (_, client) = near.peek_from(&mut [0]).expect("a client");
            near.connect(client).expect("an address");
            thread::scope(|scope| {
                for (from, to) in [(&near, &*end), (&*end, &near)] {
                    let (queue, queued) = channel();
                    let (over, cut) = (&over, &cut);
                    scope.spawn(move || receive(from, &queue, over));
                    scope.spawn(move || pass(queued, to, delay, cut));
                }
            });
        });
        Self { address, far, is_over, is_cut, thread: Some(thread) }
    }

    /// Stops relaying.
    #[allow(dead_code, reason = "each test binary uses its own part")]
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Redirects to another server.
    #[allow(dead_code, reason = "each test binary uses its own part")]
    pub(crate) fn lead_to(&self, server: SocketAddr) {
        self.far.connect(server).expect("an address");
    }
}

impl Drop for DelayedPath {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|it| it.is_ok()) || thread::panicking(), "it has failed");
    }
}

fn receive(from: &UdpSocket, queue: &Sender<(Instant, Vec<u8>)>, is_over: &AtomicBool) {
    from.set_read_timeout(Some(Duration::from_millis(50))).expect("a time");
    let mut datagram = [0; 2048];
    while !is_over.load(Ordering::Relaxed) {
        let Ok(length) = from.recv(&mut datagram) else { continue };
        queue.send((now(), datagram[..length].to_vec())).expect("somebody passes them on");
    }
}

fn pass(
    queued: Receiver<(Instant, Vec<u8>)>,
    to: &UdpSocket,
    delay: Duration,
    is_cut: &AtomicBool,
) {
    for (came, datagram) in queued {
        pause((came + delay).saturating_duration_since(now()), "the delay of the path");
        if !is_cut.load(Ordering::Relaxed) {
            // If the receiver has gone, the datagram is lost.
            let _gone = to.send(&datagram);
        }
    }
}
