//! Stop signal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// How often to check the flag.
const INTERVAL: Duration = Duration::from_millis(50);

/// A stop signal for many tasks.
#[derive(Clone, Debug)]
pub(crate) struct StopFlag(watch::Receiver<bool>);

impl StopFlag {
    /// A signal for when `flag` is set. A task checks the flag while any `Stop` exists.
    pub(crate) fn when(flag: &Arc<AtomicBool>) -> Self {
        let (sender, receiver) = watch::channel(false);
        let flag = Arc::clone(flag);
        tokio::spawn(async move {
            while !flag.load(Ordering::Relaxed) && !sender.is_closed() {
                tokio::time::sleep(INTERVAL).await;
            }
            sender.send_replace(true);
        });
        Self(receiver)
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the signal.
    pub(crate) async fn over(&mut self) {
        // The sender is dropped only after sending.
        let _result = self.0.wait_for(|over| *over).await;
    }
}
