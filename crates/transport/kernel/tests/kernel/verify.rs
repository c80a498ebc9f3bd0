//! What the verifier has to do. Its limit is a million instructions for each program.

use uncork_kernel::{Algorithm, Error, LoadOptions, Loaded, ResumeNetworks};

use crate::loaded;

/// Room for other kernels. Their verifiers may follow more paths.
const MAX_INSTRUCTIONS: u32 = 600_000;

fn check(load: fn(Algorithm) -> Result<Loaded, Error>) {
    for algorithm in Algorithm::ALL {
        let Some(loaded) = loaded(load, algorithm) else { return };
        for program in loaded.programs() {
            println!(
                "{algorithm} {}: {} instructions verified",
                program.name, program.instructions
            );
            assert!(program.instructions < MAX_INSTRUCTIONS, "{algorithm} {program:?}");
        }
    }
}

#[test]
fn verification_stays_far_below_the_limit() {
    check(Loaded::new);
}

#[test]
fn verification_with_careful_resume_stays_far_below_the_limit() {
    check(|algorithm| {
        let resume = Some(ResumeNetworks::DEFAULT);
        Loaded::with(algorithm, LoadOptions { resume, ..LoadOptions::default() })
    });
}
