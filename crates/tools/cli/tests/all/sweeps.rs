//! Follows `docs/reference/sweeps.md`: runs the shards of its two examples as separate processes.
#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::Scratch;

/// The blocks of the page in `language`, in order.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    let parts = page.split(&begin).skip(1);
    parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
}

/// The value after `key` on its own line.
fn number(text: &str, key: &str) -> u32 {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(key)).expect(key);
    line.parse().unwrap()
}

/// The lines of the YAML block scalar at `key`, without indentation.
fn block_scalar(yaml: &str, key: &str) -> String {
    let mut lines = yaml.lines().skip_while(|line| line.trim() != key).skip(1);
    let mut indented = lines.by_ref().skip_while(|line| line.trim() == "- |").peekable();
    let depth = indented.peek().map(|line| line.len() - line.trim_start().len()).unwrap();
    let inside = |line: &&str| line.len() - line.trim_start().len() >= depth;
    indented.take_while(inside).map(str::trim).collect::<Vec<_>>().join("\n")
}

/// Runs `script` in a shell in `directory`, with `uncork` on its path.
fn shell(directory: &Path, script: &str, variable: &str, value: u32) {
    let binaries = Path::new(env!("CARGO_BIN_EXE_uncork")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", script]).current_dir(directory);
    shell.env("PATH", format!("{}:{path}", binaries.display()));
    let output = shell.env(variable, value.to_string()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {stderr}");
}

#[test]
fn sweeps_of_the_documentation_match_a_single_process() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/sweeps.md");
    let page = fs::read_to_string(page).unwrap();
    let scratch = Scratch::new("sweeps");
    let directory = scratch.path("");
    fs::write(scratch.path("sweep.toml"), &blocks(&page, "toml")[0]).unwrap();
    let [slurm, slurm_merge, kubernetes_merge] = &blocks(&page, "sh")[..] else {
        panic!("a batch script and two merges")
    };
    let kubernetes = &blocks(&page, "yaml")[0];

    let tasks = number(slurm, "#SBATCH --array=1-");
    assert!(slurm.contains(&format!("SLURM_ARRAY_TASK_ID/{tasks} ")), "{slurm}");
    for task in 1..=tasks {
        shell(&directory, slurm, "SLURM_ARRAY_TASK_ID", task);
    }
    shell(&directory, slurm_merge, "UNUSED", 0);

    let pods = number(kubernetes, "completions: ");
    let script = block_scalar(kubernetes, "args:");
    assert!(script.contains(&format!("$nth/{pods} ")), "{script}");
    for index in 0..pods {
        shell(&directory, &script, "JOB_COMPLETION_INDEX", index);
    }
    shell(&directory, kubernetes_merge, "UNUSED", 0);

    shell(&directory, "uncork lab run sweep.toml -o whole", "UNUSED", 0);
    for name in ["cells.csv", "flows.parquet", "objects.parquet", "scenario.toml"] {
        let read = |place: &str| fs::read(scratch.path(place).join(name)).unwrap();
        assert!(read("whole") == read("report"), "{name}");
        assert!(read("whole") == read("report-of-pods"), "{name}");
    }
    assert_eq!(scratch.entries("runs").len(), tasks as usize);
    assert_eq!(scratch.entries("pods").len(), pods as usize);
}
