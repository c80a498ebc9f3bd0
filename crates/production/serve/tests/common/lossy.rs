//! An emulated path that loses datagrams.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use uncork_units::Rng;

/// Relays datagrams between a server and its only client, and drops two of a hundred.
pub(crate) struct LossyPath {
    /// The address that the client connects to.
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    is_over: AtomicBool,
    lost: AtomicU64,
}

impl LossyPath {
    pub(crate) fn to(server: SocketAddr) -> Self {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a socket"));
        far.connect(server).expect("an address");
        let (address, state) = (near.local_addr().expect("bound"), Arc::<State>::default());
        let shared = Arc::clone(&state);
        let thread = thread::spawn(move || {
            let (_, client) = near.peek_from(&mut [0]).expect("a client");
            near.connect(client).expect("an address");
            thread::scope(|scope| {
                scope.spawn(|| shared.pass(&near, &far, 1));
                scope.spawn(|| shared.pass(&far, &near, 2));
            });
        });
        Self { address, state, thread }
    }

    /// Stops relaying. Returns the number of dropped datagrams.
    pub(crate) fn end(self) -> u64 {
        self.state.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic");
        self.state.lost.load(Ordering::Relaxed)
    }
}

impl State {
    fn pass(&self, from: &UdpSocket, to: &UdpSocket, stream: u64) {
        from.set_read_timeout(Some(Duration::from_millis(50))).expect("a time");
        let (mut random, mut datagram) = (Rng::new(7, stream), [0; 2048]);
        while !self.is_over.load(Ordering::Relaxed) {
            let Ok(length) = from.recv(&mut datagram) else { continue };
            if random.next_u64() % 50 == 0 {
                self.lost.fetch_add(1, Ordering::Relaxed);
            } else {
                // If the receiver has gone, the datagram is lost.
                let _gone = to.send(&datagram[..length]);
            }
        }
    }
}
