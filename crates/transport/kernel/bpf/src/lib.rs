//! The functions that `shim.bpf.c` calls, for one controller.
#![no_std]

mod glue;

use uncork_cc::Settings;

use glue::Connection;

/// The controller, how it is built, and what only Rust knows of a connection, in words. The build script
/// gives the shim the same number.
macro_rules! controller {
    ($feature:literal, $controller:ident, $start:expr, $rest_words:literal) => {
        #[cfg(feature = $feature)]
        type Controller = uncork_cc::$controller;
        #[cfg(feature = $feature)]
        const START: fn(&Settings) -> Controller = $start;
        #[cfg(feature = $feature)]
        const REST_WORDS: usize = $rest_words;
    };
}

controller!("bbr1", Bbr1, Controller::new, 86);
controller!("bbr2", Bbr3, Controller::v2, 105);
controller!("bbr3", Bbr3, |settings| Controller::new(settings, false), 105);
controller!("cubic", Cubic, Controller::new, 60);
controller!("prague", Prague, Controller::new, 74);
controller!("reno", NewReno, Controller::new, 46);

const _: [(); REST_WORDS] =
    [(); (size_of::<Connection<Controller>>() - size_of::<(glue::Report, glue::Call)>()) / 8];

macro_rules! export {
    ($($name:ident => $method:ident($($argument:expr)?)),*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name(connection: &mut Connection<Controller>) {
            connection.$method($($argument)?);
        })*
    };
}

export! {
    uncork_init => init(START),
    uncork_sent => sent(),
    uncork_ack_losses => ack_losses(),
    uncork_ack_model => ack_model(),
    uncork_timeout => timeout(),
    uncork_spurious => spurious(),
    uncork_resized => resized(),
    uncork_classic_ecn => classic_ecn(),
    uncork_report => renew_report(),
    uncork_ended => ended(),
    uncork_hand_over => hand_over(),
    uncork_resume_phase => resume_phase()
}

/// Never called: the object does not load where code that panics is left.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
