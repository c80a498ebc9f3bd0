//! The worker threads of a server or client.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use noq_proto::VarInt;

use crate::app::App;
use crate::driver::ShutdownOptions;
use crate::mailbox::{Mail, Mailer};
use crate::relay::{Inbox, Predecessor};
use crate::socket::{Socket, SocketOptions};
use crate::stats::Stats;
use crate::worker::{Config, Shared, Worker, record_failure};

/// Worker threads, one per socket. Dropping this stops them immediately.
pub struct Workers<C> {
    shared: Arc<[Shared<C>]>,
    threads: Vec<JoinHandle<io::Result<Stats>>>,
    addresses: Vec<SocketAddr>,
    options: SocketOptions,
    generation: u8,
}

/// Reports failed workers.
pub struct WorkersHealth<C>(Arc<[Shared<C>]>);

impl<C> WorkersHealth<C> {
    /// Failed workers, by index, with the reason. Clients on their sockets get no answer.
    pub fn failures(&self) -> Vec<(usize, String)> {
        let all = self.0.iter().enumerate();
        all.filter_map(|(index, shared)| Some((index, shared.failure()?))).collect()
    }
}

/// A connection ID has one byte for the worker.
const MAX_WORKERS: usize = 256;
/// How long a worker may take to stop reading its socket.
const ANSWER_TIME: Duration = Duration::from_secs(5);

impl<C: Send + 'static> Workers<C> {
    /// Starts a worker per socket. The sockets of a server share a port ([`crate::bind`]). `make` creates
    /// each worker's application on its thread; the [`Mailer`] sends to that worker.
    ///
    /// # Errors
    ///
    /// If a socket is unusable for QUIC, there are no or more than 256 sockets, or a thread cannot be
    /// started.
    pub fn start<A: App<Command = C>>(
        sockets: Vec<UdpSocket>,
        config: &Config,
        make: impl Fn(Mailer<C>) -> A + Clone + Send + 'static,
    ) -> io::Result<Self> {
        if sockets.is_empty() || sockets.len() > MAX_WORKERS {
            let problem = format!("{} sockets: there must be 1 to {MAX_WORKERS}", sockets.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let shared = sockets.iter().map(|_| Shared::new()).collect::<io::Result<Vec<_>>>()?;
        let mut workers = Self {
            shared: shared.into(),
            threads: Vec::new(),
            addresses: Vec::new(),
            options: config.socket,
            generation: config.identity.generation(),
        };
        for (index, socket) in sockets.into_iter().enumerate() {
            let socket = Socket::new(socket, config.socket)?;
            workers.addresses.push(socket.local_addr()?);
            let (config, make) = (config.clone(), make.clone());
            let shared = Arc::clone(&workers.shared);
            let mailer = Mailer::new(Arc::clone(&shared), index);
            let run = move || {
                let workers = Arc::clone(&shared);
                record_failure(&workers, index, || {
                    Worker::new(index, make(mailer), socket, config, shared).run()
                })
            };
            let thread = thread::Builder::new().name(format!("uncork-quic-{index}"));
            workers.threads.push(thread.spawn(run)?);
        }
        Ok(workers)
    }

    /// The addresses of the initial sockets.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The number of workers.
    pub fn count(&self) -> usize {
        self.shared.len()
    }

    /// Sends a command to a worker's application.
    pub fn send(&self, worker: usize, command: C) {
        self.post(worker, Mail::Command(command));
    }

    /// A handle that sends to a worker. Messages to a worker that has ended are lost.
    pub fn mailer(&self, worker: usize) -> Mailer<C> {
        Mailer::new(Arc::clone(&self.shared), worker)
    }

    /// Replaces the socket of a client worker. Its connections migrate to the new address.
    ///
    /// # Errors
    ///
    /// If the socket is unusable for QUIC.
    pub fn rebind(&self, worker: usize, socket: UdpSocket) -> io::Result<()> {
        let socket = Box::new(Socket::new(socket, self.options)?);
        self.post(worker, Mail::Rebind(socket));
        Ok(())
    }

    /// Stops reading the sockets, so that another process can read them. Connections go on: they
    /// send through the sockets and receive the datagrams that the other process passes on through
    /// the returned [`Predecessor`]. Clients that were asked to validate their addresses are still
    /// accepted: their packets name this process.
    ///
    /// # Errors
    ///
    /// If sockets cannot be created, or a worker does not answer within five seconds. Then nothing
    /// has changed.
    pub fn give_way(&self) -> io::Result<Predecessor> {
        self.try_give_way().inspect_err(|_| self.resume())
    }

    fn try_give_way(&self) -> io::Result<Predecessor> {
        let mut answers = Vec::new();
        let mut predecessor = Predecessor {
            generation: self.generation,
            workers: vec![],
            handshakes: HashMap::new(),
        };
        for (worker, shared) in self.shared.iter().enumerate() {
            let ((inbox, filler), (sender, answer)) = (Inbox::new()?, channel());
            predecessor.workers.push(filler);
            // The connections of a worker that has failed are gone.
            if shared.failure().is_none() {
                shared.mailbox.put(Mail::GiveWay(inbox, sender));
                answers.push((worker, answer));
            }
        }
        for (worker, answer) in answers {
            let silent = |_| io::Error::other(format!("HTTP/3 worker {worker} does not answer"));
            let handshakes = answer.recv_timeout(ANSWER_TIME).map_err(silent)?;
            predecessor.handshakes.extend(handshakes.into_iter().map(|id| (id, worker as u8)));
        }
        Ok(predecessor)
    }

    /// Reads the sockets again after [`Self::give_way`].
    pub fn resume(&self) {
        self.shared.iter().for_each(|shared| shared.mailbox.put(Mail::Resume));
    }

    /// A worker's counters.
    pub fn stats(&self, worker: usize) -> Stats {
        self.shared.get(worker).map(Shared::stats).unwrap_or_default()
    }

    /// The workers' health, readable from any thread and after this is dropped.
    pub fn health(&self) -> WorkersHealth<C> {
        WorkersHealth(Arc::clone(&self.shared))
    }

    /// Starts the shutdown of all workers; wait with [`Self::join`]. A second call can only shorten the
    /// times.
    pub fn shut_down(&self, shutdown: &ShutdownOptions) {
        for shared in &*self.shared {
            shared.mailbox.put(Mail::ShutDown(shutdown.clone()));
        }
    }

    /// Waits until all workers have ended. Returns their counters.
    ///
    /// # Errors
    ///
    /// The error of the first worker that failed.
    pub fn join(mut self) -> io::Result<Vec<Stats>> {
        let threads = std::mem::take(&mut self.threads);
        threads.into_iter().map(join_thread).collect()
    }

    fn post(&self, worker: usize, mail: Mail<C>) {
        if let Some(shared) = self.shared.get(worker) {
            shared.mailbox.put(mail);
        }
    }
}

impl<C> Drop for Workers<C> {
    fn drop(&mut self) {
        let shutdown = ShutdownOptions::at_once(VarInt::from_u32(0));
        for shared in self.shared.iter().filter(|_| !self.threads.is_empty()) {
            shared.mailbox.put(Mail::ShutDown(shutdown.clone()));
        }
        for thread in self.threads.drain(..) {
            // The thread has ended either way.
            let _ = thread.join();
        }
    }
}

fn join_thread(thread: JoinHandle<io::Result<Stats>>) -> io::Result<Stats> {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
