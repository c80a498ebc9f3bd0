//! Presets on the command line.

use crate::common::{stdout, uncork};

fn names() -> Vec<String> {
    let list = stdout("lab presets");
    list.lines().skip(1).filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn every_preset_runs_in_compare_and_is_named_there() {
    let names = names();
    assert_eq!(names.len(), 12, "{names:?}");
    for name in names {
        let line = format!("compare --preset {name} --size 100kB --seeds 2 --cc cubic,bbr3");
        assert!(stdout(&line).starts_with(&format!("preset    {name}: ")), "{name}");
        let json = stdout(&format!("{line} --format json"));
        assert!(json.contains(&format!("uncork compare --preset {name} --host-jitter")), "{json}");
    }
}

#[test]
fn every_value_of_a_preset_is_listed_with_its_source() {
    let lte = stdout("lab presets lte");
    assert!(lte.contains("rtt = 21ms\n    Ofcom, Mobile Matters 2024"), "{lte}");
    assert!(lte.contains("buffer = 10bdp\n    assumed"), "{lte}");
}

#[test]
fn unknown_preset_is_a_usage_error_and_suggests_the_nearest() {
    for line in ["compare --preset fiber", "lab presets fiber"] {
        let finished = uncork(line);
        assert_eq!(finished.status, 2, "{line}");
        assert!(finished.stderr.contains("'fibre'"), "{}", finished.stderr);
    }
}
