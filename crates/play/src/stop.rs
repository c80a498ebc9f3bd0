//! Being told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// How often to look whether somebody wants it.
const INTERVAL: Duration = Duration::from_millis(50);

/// Tells many at once that it is over.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Comes when `flag` is set; looks as long as somebody waits for it.
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

    /// Returns when it is over.
    pub(crate) async fn over(&mut self) {
        // Who would tell has gone only after having told.
        let _told = self.0.wait_for(|over| *over).await;
    }
}
