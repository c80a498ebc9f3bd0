//! Runs independent tasks on several threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// The results of `work(0)` to `work(count - 1)` in that order, computed on up to `jobs` threads.
/// The assignment to threads varies; the results do not. Once `stop` is set no more tasks are
/// started, and those not started are omitted.
pub fn map_until<T: Send + Sync>(
    stop: &AtomicBool,
    count: usize,
    jobs: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let slots: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = slots.get(index) else { return };
            slot.get_or_init(|| work(index));
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs.min(count) {
            // If the system refuses more threads, the existing ones do the work.
            if thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        worker();
    });
    slots.into_iter().filter_map(OnceLock::into_inner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map<T: Send + Sync>(count: usize, jobs: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        map_until(&AtomicBool::new(false), count, jobs, work)
    }

    #[test]
    fn results_are_in_order_with_any_number_of_threads() {
        let expected: Vec<usize> = (0..100).map(|n| n * n).collect();
        for jobs in [0, 1, 2, 7, 1000] {
            assert_eq!(map(100, jobs, |n| n * n), expected);
        }
        assert_eq!(map(0, 4, |n| n), Vec::<usize>::new());
    }

    #[test]
    fn no_task_starts_after_the_stop() {
        let stop = AtomicBool::new(false);
        let work = |n| {
            if n == 3 {
                stop.store(true, Ordering::Relaxed);
            }
            n
        };
        assert_eq!(map_until(&stop, 100, 1, work), [0, 1, 2, 3]);
        assert_eq!(map_until(&stop, 100, 4, work), [0; 0]);
    }

    #[test]
    fn several_threads_run_concurrently() {
        let barrier = std::sync::Barrier::new(2);
        // Each task waits for the other, so a single thread would block forever.
        assert_eq!(map(2, 2, |n| (n, barrier.wait().is_leader()).0), [0, 1]);
    }
}
