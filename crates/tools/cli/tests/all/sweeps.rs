//! Follows `docs/howto/sweep-on-a-cluster.md`: runs the shards of its two arrays as separate processes.
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

/// The words of the list at `key` of a YAML file.
fn words(yaml: &str, key: &str) -> Vec<String> {
    let list = yaml.lines().find_map(|line| line.trim().strip_prefix(key)).expect(key);
    serde_json::from_str(list).unwrap()
}

/// Runs `script` in a shell in `directory`, with `uncork` on its path.
fn shell(directory: &Path, script: &str, variables: &[(&str, u32)]) {
    let binaries = Path::new(env!("CARGO_BIN_EXE_uncork")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", script]).current_dir(directory);
    shell.env("PATH", format!("{}:{path}", binaries.display()));
    shell.envs(variables.iter().map(|(name, value)| (name, value.to_string())));
    let output = shell.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {stderr}");
}

fn page(name: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs").join(name);
    fs::read_to_string(page).unwrap()
}

#[test]
fn sweeps_of_the_documentation_match_a_single_process() {
    let scratch = Scratch::new("sweeps");
    let directory = scratch.path("");
    let scenario = &blocks(&page("reference/sweeps.md"), "toml")[0];
    fs::write(scratch.path("sweep.toml"), scenario).unwrap();
    let guide = page("howto/sweep-on-a-cluster.md");
    let scripts = blocks(&guide, "sh");
    let has = |word: &str| scripts.iter().find(|it| it.contains(word)).expect(word);
    let (slurm, merge) = (has("#SBATCH"), has("lab merge"));
    let kubernetes = &blocks(&guide, "yaml")[0];

    let tasks = number(slurm, "#SBATCH --array=1-");
    for task in 1..=tasks {
        let variables = [
            ("SLURM_ARRAY_TASK_ID", task),
            ("SLURM_ARRAY_TASK_COUNT", tasks),
            ("SLURM_ARRAY_TASK_MIN", 1),
        ];
        shell(&directory, slurm, &variables);
    }
    shell(&directory, merge, &[]);
    fs::rename(scratch.path("runs"), scratch.path("tasks")).unwrap();
    fs::rename(scratch.path("report"), scratch.path("report-of-tasks")).unwrap();

    let pods = number(kubernetes, "completions: ");
    let script = format!("uncork {}", words(kubernetes, "args: ").join(" "));
    assert!(script.contains(&format!("auto/{pods} ")), "{script}");
    for index in 0..pods {
        shell(&directory, &script, &[("JOB_COMPLETION_INDEX", index)]);
    }
    shell(&directory, merge, &[]);

    shell(&directory, "uncork lab run sweep.toml -o whole", &[]);
    for name in ["cells.csv", "flows.parquet", "objects.parquet", "scenario.toml"] {
        let read = |place: &str| fs::read(scratch.path(place).join(name)).unwrap();
        assert!(read("whole") == read("report-of-tasks"), "{name}");
        assert!(read("whole") == read("report"), "{name}");
    }
    assert_eq!(scratch.entries("tasks").len(), tasks as usize);
    assert_eq!(scratch.entries("runs").len(), pods as usize);
}
