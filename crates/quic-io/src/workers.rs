//! Threads, and what they are told from outside.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use noq_proto::VarInt;

use crate::app::App;
use crate::driver::ShutdownOptions;
use crate::mailbox::{Mail, Mailer};
use crate::socket::{Socket, SocketOptions};
use crate::stats::Stats;
use crate::worker::{Config, Shared, Worker, noted};

/// A thread for each of some sockets. Dropped, they end at once.
pub struct Workers<C> {
    shared: Arc<[Shared<C>]>,
    threads: Vec<JoinHandle<io::Result<Stats>>>,
    addresses: Vec<SocketAddr>,
    options: SocketOptions,
}

/// Tells whether workers still work.
pub struct WorkersHealth<C>(Arc<[Shared<C>]>);

impl<C> WorkersHealth<C> {
    /// The workers that have failed, and why: clients that the kernel gives to their sockets get no answer.
    pub fn failures(&self) -> Vec<(usize, String)> {
        let all = self.0.iter().enumerate();
        all.filter_map(|(index, shared)| Some((index, shared.failure()?))).collect()
    }
}

/// Workers that a connection ID can name.
const MOST: usize = 256;

impl<C: Send + 'static> Workers<C> {
    /// Starts a worker for each socket; those of a server share their port ([`crate::bind`]). `make`
    /// makes the application of each on its own thread, and can keep what its worker is reached by.
    ///
    /// # Errors
    ///
    /// If a socket is none that QUIC can use, there are more than 256, or the system has no thread left.
    pub fn start<A: App<Command = C>>(
        sockets: Vec<UdpSocket>,
        config: &Config,
        make: impl Fn(Mailer<C>) -> A + Clone + Send + 'static,
    ) -> io::Result<Self> {
        if sockets.is_empty() || sockets.len() > MOST {
            let problem = format!("{} sockets: there must be 1 to {MOST}", sockets.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let shared = sockets.iter().map(|_| Shared::new()).collect::<io::Result<Vec<_>>>()?;
        let mut workers = Self {
            shared: shared.into(),
            threads: Vec::new(),
            addresses: Vec::new(),
            options: config.socket,
        };
        for (index, socket) in sockets.into_iter().enumerate() {
            let socket = Socket::new(socket, config.socket)?;
            workers.addresses.push(socket.local_addr()?);
            let (config, make) = (config.clone(), make.clone());
            let shared = Arc::clone(&workers.shared);
            let mailer = Mailer::new(Arc::clone(&shared), index);
            let run = move || {
                let workers = Arc::clone(&shared);
                noted(&workers, index, || {
                    Worker::new(index, make(mailer), socket, config, shared).run()
                })
            };
            let thread = thread::Builder::new().name(format!("uncork-quic-{index}"));
            workers.threads.push(thread.spawn(run)?);
        }
        Ok(workers)
    }

    /// The addresses of the sockets that they were started with.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.shared.len()
    }

    /// Tells the application of a worker something.
    pub fn tell(&self, worker: usize, command: C) {
        self.post(worker, Mail::Command(command));
    }

    /// What reaches a worker from anywhere. Once it has ended, nobody reads what it is told.
    pub fn mailer(&self, worker: usize) -> Mailer<C> {
        Mailer::new(Arc::clone(&self.shared), worker)
    }

    /// Has a worker of clients go on with another socket: their connections move to its address
    /// (RFC 9000 §9).
    ///
    /// # Errors
    ///
    /// If the socket is none that QUIC can use.
    pub fn rebind(&self, worker: usize, socket: UdpSocket) -> io::Result<()> {
        let socket = Box::new(Socket::new(socket, self.options)?);
        self.post(worker, Mail::Rebind(socket));
        Ok(())
    }

    /// What a worker has done so far.
    pub fn stats(&self, worker: usize) -> Stats {
        self.shared.get(worker).map(Shared::stats).unwrap_or_default()
    }

    /// Tells whether they still work, from any thread and after they are gone.
    pub fn health(&self) -> WorkersHealth<C> {
        WorkersHealth(Arc::clone(&self.shared))
    }

    /// Begins to end all of them, see [`Self::join`]. Told again, they hurry if they are to.
    pub fn shut_down(&self, shutdown: &ShutdownOptions) {
        for shared in &*self.shared {
            shared.mailbox.put(Mail::ShutDown(shutdown.clone()));
        }
    }

    /// Waits until all have ended, and gives what each did.
    ///
    /// # Errors
    ///
    /// What the system said to those that could not go on.
    pub fn join(mut self) -> io::Result<Vec<Stats>> {
        let threads = std::mem::take(&mut self.threads);
        threads.into_iter().map(end).collect()
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
            // It is over in any case.
            let _ = thread.join();
        }
    }
}

fn end(thread: JoinHandle<io::Result<Stats>>) -> io::Result<Stats> {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
