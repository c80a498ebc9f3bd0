#![no_main]

#[path = "../../tests/requests/model.rs"]
mod model;
#[path = "../../tests/requests/play.rs"]
mod play;
#[path = "../../tests/requests/world.rs"]
mod world;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use world::TestDirectory;

// The response to any request matches a slow model, byte by byte, and never contains a file of
// another directory.
fuzz_target!(|script: &[u8]| {
    static WORLD: OnceLock<TestDirectory> = OnceLock::new();
    let world = WORLD.get_or_init(|| TestDirectory::new(&std::env::temp_dir()));
    let _status = play::play(world, script);
});
