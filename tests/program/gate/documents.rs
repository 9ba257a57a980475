//! The examples of `docs/ci.md` and the steps of `action.yml`, run as they stand there.
//!
//! What a runner has and a test has not is stood in for: `sudo` and `cargo` do nothing, and `perf`
//! runs the program that is to be recorded and then hands out a recorded run: of the usual
//! length, or of the longer one if the program says that it takes longer.

use crate::gate::runs::{Folder, baseline, only, text};
use crate::support::root;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The fenced blocks of a language, in order.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}");
    let mut lines = text.lines();
    let mut blocks = Vec::new();
    while lines.by_ref().any(|line| line == fence) {
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push(block.join("\n") + "\n");
    }
    blocks
}

/// How far a line is indented.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The shell text of every `run: |` of a workflow, in order, with the environment that its step
/// sets.
fn steps(yaml: &str) -> Vec<(Vec<(String, String)>, String)> {
    let mut steps = Vec::new();
    let mut env = Vec::new();
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        let depth = indent(line);
        let mut deeper = || {
            let inside = |l: &&str| l.is_empty() || indent(l) > depth;
            std::iter::from_fn(|| lines.next_if(inside)).collect::<Vec<_>>()
        };
        match line.trim() {
            "env:" => {
                let pair = |l: &str| l.trim().split_once(": ").map(|(k, v)| (k.into(), v.into()));
                env = deeper().into_iter().filter_map(pair).collect();
            }
            "run: |" => steps.push((std::mem::take(&mut env), deeper().join("\n"))),
            line if line.starts_with("- ") => env.clear(),
            _ => {}
        }
    }
    steps
}

/// The lines `- COMMAND` below `script:`.
fn script(yaml: &str) -> String {
    let below = yaml.lines().skip_while(|l| l.trim() != "script:").skip(1);
    let lines = below.map(str::trim).take_while(|l| l.starts_with("- "));
    lines.map(|l| format!("{}\n", &l[2..])).collect()
}

/// The value of a key in the lines of a workflow.
fn value<'a>(yaml: &'a str, key: &str) -> Option<&'a str> {
    let start = format!("{key}: ");
    yaml.lines().find_map(|l| l.trim().strip_prefix(start.as_str())).map(|v| v.trim_matches('"'))
}

/// The default of an input of an action.
fn default<'a>(action: &'a str, input: &str) -> Option<&'a str> {
    let head = format!("  {input}:");
    let below = action.lines().skip_while(|l| *l != head).skip(1);
    let mut inside = below.take_while(|l| indent(l) > 2);
    inside.find_map(|l| l.trim().strip_prefix("default: ")).map(|v| v.trim_matches('"'))
}

fn program(path: &Path, text: &str) {
    fs::write(path, format!("#!/usr/bin/env bash\nset -euo pipefail\n{text}")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Everything that perf is asked for here: `record ... -o FILE ... -- COMMAND`.
const PERF: &str = r#"
[ "$1" = record ]
while [ "$1" != -- ]; do
    [ "$1" != -o ] || file=$2
    shift
done
shift
length=$("$@")
n=$(cat "$STAND_IN/$length.next")
cp "$STAND_IN/$length-$((n % 24)).json" "$file"
echo $((n + 1)) >"$STAND_IN/$length.next"
"#;

/// A repository whose main branch builds a program of the usual length, and which is checked out
/// with a change after which it has this one.
struct Project {
    folder: Folder,
}

impl Project {
    fn new(length: &str) -> Project {
        let folder = Folder::new();
        let stand_in = folder.path().join("stand-in");
        fs::create_dir(&stand_in).unwrap();
        // The runs of the changed program are others than those of the program before.
        for length in ["100", "125"] {
            let all = baseline(&format!("mutex-{length}"));
            for i in 0..24 {
                let run = text(only(all.clone(), i..i + 1));
                fs::write(stand_in.join(format!("{length}-{i}.json")), run).unwrap();
            }
            fs::write(stand_in.join(format!("{length}.next")), "0\n").unwrap();
        }
        for name in ["sudo", "cargo"] {
            program(&stand_in.join(name), "");
        }
        // Whatever CPUs there are here.
        program(&stand_in.join("taskset"), "shift 2\nexec \"$@\"\n");
        program(&stand_in.join("perf"), PERF);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_holdup"), stand_in.join("holdup")).unwrap();
        let project = Project { folder };
        project.runs(
            "git init -q --initial-branch main origin && cd origin
             printf 'bench:\\n\\t(echo \"#!/bin/sh\"; echo echo 100) >$@; chmod +x $@\\n' >Makefile
             git add Makefile && git commit -q -m before
             cd .. && git clone -q origin work && mkdir work/ci",
        );
        let makefile = project.path().join("work/Makefile");
        let changed = fs::read_to_string(&makefile).unwrap().replace("100", length);
        fs::write(makefile, changed).unwrap();
        for name in ["record.sh", "pairs.sh", "scaling.sh"] {
            let to = project.path().join("work/ci").join(name);
            fs::copy(root().join("docs/ci").join(name), to).unwrap();
        }
        let policy = &blocks(&read("docs/ci.md"), "toml")[0];
        fs::write(project.path().join("work/ci/holdup.toml"), policy).unwrap();
        project
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Run a shell text at the top, and say how it ended and what it printed.
    fn shell(&self, folder: &str, env: &[(String, String)], text: &str) -> (i32, String) {
        let stand_in = self.path().join("stand-in");
        let path = format!("{}:{}", stand_in.display(), std::env::var("PATH").unwrap());
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", text]).current_dir(self.path().join(folder));
        bash.env("PATH", path).env("STAND_IN", stand_in).env_remove("GITHUB_ACTIONS");
        bash.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        for who in ["GIT_AUTHOR", "GIT_COMMITTER"] {
            bash.env(format!("{who}_NAME"), "A").env(format!("{who}_EMAIL"), "a@example.org");
        }
        let out = bash.envs(env.iter().cloned()).output().unwrap();
        let said = [out.stdout, out.stderr].map(|b| String::from_utf8_lossy(&b).into_owned());
        (out.status.code().unwrap(), said.concat())
    }

    #[track_caller]
    fn runs(&self, text: &str) -> String {
        let (code, said) = self.shell("", &[], text);
        assert_eq!(code, 0, "{text}\n{said}");
        said
    }
}

/// Run the shell texts one after the other until one fails; its exit code and what it said.
fn all(project: &Project, steps: &[(Vec<(String, String)>, String)]) -> (i32, String) {
    for (env, text) in steps {
        let (code, said) = project.shell("work", env, text);
        if code != 0 {
            return (code, said);
        }
    }
    (0, String::new())
}

#[test]
fn the_shell_lines_of_the_document_run() {
    let shell = blocks(&read("docs/ci.md"), "sh");
    assert!(shell.len() >= 5, "{shell:?}");
    let project = Project::new("100");
    for text in &shell {
        let (code, said) = project.shell("work", &[], text);
        assert_eq!(code, 0, "{text}\n{said}");
    }
    let kept = fs::read_dir(project.path().join("work/baselines")).unwrap().count();
    assert_eq!(kept, 2);
}

#[test]
fn the_first_shell_lines_fail_on_a_slower_program() {
    let shell = &blocks(&read("docs/ci.md"), "sh")[0];
    let (code, said) = Project::new("125").shell("work", &[], shell);
    assert_eq!(code, 1, "{said}");
}

/// The steps of the workflow in the document, with those of the action in its place.
fn github() -> Vec<(Vec<(String, String)>, String)> {
    let (document, action) = (read("docs/ci.md"), read("action.yml"));
    let workflow = &blocks(&document, "yaml")[0];
    assert!(workflow.contains("uses: holdup/holdup@main"), "{workflow}");
    let fill = |text: &str| {
        let Some(name) = text.strip_prefix("${{ ").and_then(|t| t.strip_suffix(" }}")) else {
            return text.to_owned();
        };
        let input = name.strip_prefix("inputs.");
        let given = input.and_then(|i| value(workflow, i).or_else(|| default(&action, i)));
        match name {
            "github.action_path" => root().display().to_string(),
            _ => given.unwrap_or_else(|| panic!("nobody sets {name}")).to_owned(),
        }
    };
    let of_action = steps(&action)
        .into_iter()
        .map(|(env, text)| (env.into_iter().map(|(k, v)| (k, fill(&v))).collect(), text));
    let mut all: Vec<_> = steps(workflow).into_iter().chain(of_action).collect();
    all.iter_mut().for_each(|(env, _)| env.push(("GITHUB_BASE_REF".into(), "main".into())));
    all
}

#[test]
fn the_github_workflow_passes_what_did_not_change_and_fails_on_what_did() {
    let steps = github();
    assert_eq!(steps.len(), 5, "{steps:?}");
    let project = Project::new("100");
    let (code, said) = all(&project, &steps);
    assert_eq!(code, 0, "{said}");
    for file in ["holdup-runs.xml", "holdup-runs.sarif"] {
        assert!(project.path().join("work").join(file).exists(), "{file}");
    }
    let (code, said) = all(&Project::new("125"), &steps);
    assert_eq!(code, 1, "{said}");
}

#[test]
fn on_github_the_report_goes_to_the_page_of_the_job() {
    let mut steps = github();
    let project = Project::new("125");
    let page = project.path().join("page.md");
    fs::write(&page, "").unwrap();
    let page_env = ("GITHUB_STEP_SUMMARY".to_owned(), page.display().to_string());
    for (env, _) in &mut steps {
        env.extend([("GITHUB_ACTIONS".to_owned(), "true".to_owned()), page_env.clone()]);
    }
    let (code, said) = all(&project, &steps);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("::error"), "{said}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("syscalls.futex"), "{page}");
}

#[test]
fn the_gitlab_job_passes_what_did_not_change_and_fails_on_what_did() {
    let document = read("docs/ci.md");
    let job = &blocks(&document, "yaml")[1];
    let env = vec![("CI_MERGE_REQUEST_TARGET_BRANCH_NAME".to_owned(), "main".to_owned())];
    for (length, expected) in [("100", 0), ("125", 1)] {
        let project = Project::new(length);
        let (code, said) = project.shell("work", &env, &script(job));
        assert_eq!(code, expected, "{said}");
        assert!(project.path().join("work/holdup-runs.xml").exists());
    }
    assert!(job.contains("exit_codes: 4") && job.contains("junit: holdup-runs.xml"), "{job}");
}

#[test]
fn the_policies_of_the_document_are_policies() {
    let document = read("docs/ci.md");
    let policies = blocks(&document, "toml");
    assert_eq!(policies.len(), 2);
    let folder = Folder::new();
    folder.runs("before.json", "mutex-100", 0..10);
    folder.runs("same.json", "mutex-100", 10..20);
    for policy in policies {
        folder.file("policy.toml", policy);
        folder.holdup("gate --baseline before.json --policy policy.toml same.json").says(0);
    }
}

#[test]
fn the_steps_of_a_workflow_are_found() {
    let yaml = "steps:\n  - name: a\n    env:\n      A: ${{ inputs.a }}\n    run: |\n      \
                one\n\n      two\n  - uses: x\n  - name: b\n    run: |\n      three\n";
    let found = steps(yaml);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].0, [("A".to_owned(), "${{ inputs.a }}".to_owned())]);
    assert_eq!(found[0].1.split_whitespace().collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!((found[1].0.len(), found[1].1.trim()), (0, "three"));
}
