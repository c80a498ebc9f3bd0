//! The functions that `shim.bpf.c` calls, for one controller.
#![no_std]

mod glue;

use glue::Connection;

#[cfg(feature = "bbr3")]
type Controller = uncork_cc::Bbr3;
#[cfg(feature = "reno")]
type Controller = uncork_cc::NewReno;

macro_rules! export {
    ($($name:ident => $method:ident),*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name(connection: &mut Connection<Controller>) {
            connection.$method();
        })*
    };
}

export! {
    uncork_init => init,
    uncork_sent => sent,
    uncork_ack_losses => ack_losses,
    uncork_ack_model => ack_model,
    uncork_timeout => timeout,
    uncork_spurious => spurious
}

/// What only Rust knows of a connection, in words. The build script gives the shim the same number.
const REST_WORDS: usize = if cfg!(feature = "bbr3") { 89 } else { 44 };
const _: [(); REST_WORDS] = [(); (size_of::<Connection<Controller>>() - size_of::<glue::Call>()) / 8];

/// Never called: the object does not load where code that panics is left.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
