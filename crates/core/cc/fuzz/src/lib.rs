//! The hosts of the crate's tests, as the fuzzer's entry points.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../tests/hosts/host/mod.rs"]
mod host;

/// Runs `script` on a host that reports truthfully.
pub fn truthful(script: &[u8]) {
    host::truthful::play(script);
}

/// Runs `script` on a host that reports falsehoods.
pub fn adversary(script: &[u8]) {
    host::adversary::play(script);
}
