//! Happy Eyeballs (RFC 8305): connects to the first of a host's addresses that answers.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, pending};
use futures_util::stream::{FuturesUnordered, StreamExt};

/// The Connection Attempt Delay (RFC 8305 §5, §8).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The addresses in the order of attempts: the resolver's order (RFC 6724) with alternating
/// families, starting with the family of the first address (RFC 8305 §4).
pub(crate) fn interleaved(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.iter().copied().partition(|address| address.is_ipv6() == first_is_v6);
    let mut second = second.into_iter();
    let mut order = Vec::with_capacity(addresses.len());
    for address in first {
        order.push(address);
        order.extend(second.next());
    }
    order.extend(second);
    order
}

/// Connects to the first of `addresses` that answers; returns the result and its address. An
/// attempt starts when the previous one fails, or [`ATTEMPT_DELAY`] after its start; the first
/// success cancels the others (RFC 8305 §5). If all fail, returns the last error; `None` without
/// addresses.
pub(crate) async fn race<T, E, F: Future<Output = Result<T, E>>>(
    addresses: &[SocketAddr],
    connect: impl Fn(SocketAddr) -> F,
) -> Option<Result<(T, SocketAddr), E>> {
    let mut waiting = interleaved(addresses).into_iter();
    let begin = |address| connect(address).map(move |result| result.map(|made| (made, address)));
    let mut attempts = FuturesUnordered::new();
    attempts.push(begin(waiting.next()?));
    loop {
        let delay = if waiting.len() > 0 {
            Either::Left(tokio::time::sleep(ATTEMPT_DELAY))
        } else {
            Either::Right(pending())
        };
        tokio::select! {
            biased;
            ended = attempts.next() => match ended? {
                Ok(made) => return Some(Ok(made)),
                Err(error) if attempts.is_empty() && waiting.len() == 0 => return Some(Err(error)),
                Err(_) => {}
            },
            () = delay => {}
        }
        attempts.extend(waiting.next().map(begin));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::clock::instant;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().expect("an address")).collect()
    }

    fn run<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(test)
    }

    #[test]
    fn interleaved_alternates_families_and_keeps_the_first() {
        for (given, order) in [
            (
                &["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"][..],
                &["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"][..],
            ),
            (&["1.1.1.1:1", "1.1.1.2:1", "[::1]:1"], &["1.1.1.1:1", "[::1]:1", "1.1.1.2:1"]),
            (&["1.1.1.1:1"], &["1.1.1.1:1"]),
            (&[], &[]),
        ] {
            assert_eq!(interleaved(&addresses(given)), addresses(order));
        }
    }

    /// Races fake addresses. Their ports are indices into `fates`: `None` never answers. Returns
    /// the winner's port, the duration, and the ports in the order of attempts.
    fn race_with(
        fates: &[Option<Result<(), &'static str>>],
    ) -> (Result<u16, &'static str>, Duration, Vec<u16>) {
        let all: Vec<SocketAddr> =
            (0..fates.len() as u16).map(|port| ([127, 0, 0, 1], port).into()).collect();
        let tried = RefCell::new(Vec::new());
        let began = instant();
        let connect = async |address: SocketAddr| {
            tried.borrow_mut().push(address.port());
            match fates[usize::from(address.port())] {
                Some(fate) => fate,
                None => pending().await,
            }
        };
        let won = run(race(&all, connect)).expect("there are addresses");
        (won.map(|((), address)| address.port()), began.elapsed(), tried.into_inner())
    }

    #[test]
    fn race_waits_250_ms_for_an_address_that_does_not_answer() {
        let (won, took, tried) = race_with(&[None, Some(Ok(())), Some(Ok(()))]);
        assert_eq!((won, tried), (Ok(1), vec![0, 1]));
        assert!((ATTEMPT_DELAY..ATTEMPT_DELAY * 8).contains(&took), "{took:?}");
    }

    #[test]
    fn race_continues_at_once_after_a_refusal() {
        let (won, took, tried) =
            race_with(&[Some(Err("refused")), Some(Err("refused")), Some(Ok(()))]);
        assert_eq!((won, tried), (Ok(2), vec![0, 1, 2]));
        assert!(took < ATTEMPT_DELAY, "{took:?}");
    }

    #[test]
    fn race_tries_one_address_if_it_answers() {
        let (won, _, tried) = race_with(&[Some(Ok(())), Some(Ok(()))]);
        assert_eq!((won, tried), (Ok(0), vec![0]));
    }

    #[test]
    fn race_fails_with_the_last_error() {
        let (won, ..) = race_with(&[Some(Err("one")), Some(Err("two"))]);
        assert_eq!(won, Err("two"));
        let none = run(race(&[], async |_| Ok::<(), ()>(())));
        assert!(none.is_none());
    }
}
