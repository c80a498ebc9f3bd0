//! What the verifier has to do. Its limit is a million instructions for each program.

use uncork_kernel::{Algorithm, Loaded};

use crate::loaded;

/// Room for other kernels. Their verifiers may follow more paths.
const MAX_INSTRUCTIONS: u32 = 600_000;

#[test]
fn verification_stays_far_below_the_limit() {
    for algorithm in Algorithm::ALL {
        let Some(loaded) = loaded(Loaded::new, algorithm) else { return };
        for program in loaded.programs() {
            println!(
                "{algorithm} {}: {} instructions verified",
                program.name, program.instructions
            );
            assert!(program.instructions < MAX_INSTRUCTIONS, "{algorithm} {program:?}");
        }
    }
}
