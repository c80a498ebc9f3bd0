#![no_main]

#[path = "../../tests/scripts/priority.rs"]
mod priority;

use libfuzzer_sys::fuzz_target;

// Any header says what another parser reads.
fuzz_target!(|text: &[u8]| {
    let _priority = priority::compare(text);
});
