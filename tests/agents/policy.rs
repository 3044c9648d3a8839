//! Calls that pass without a question, and calls that are asked or denied under any policy.

use std::path::Path;

use countersign::agent::{Agent, HookEvent, HookPolicy, NamedPath, PolicyJudgement};
use serde_json::{Value, json};

use super::inputs::{named, places};

fn call(agent: Agent, tool: &str, input: &Value) -> HookEvent {
    let text = match agent {
        Agent::Copilot => json!({ "cwd": "/srv/project", "toolName": tool, "toolArgs": input }),
        Agent::Opencode => json!({
            "event": "tool.execute.before", "sessionID": "s", "callID": "c", "directory": "/srv/project",
            "tool": tool, "args": input,
        }),
        Agent::Cursor => json!({
            "hook_event_name": "preToolUse", "conversation_id": "c", "workspace_roots": ["/srv/project"],
            "cwd": "/srv/project", "tool_name": tool, "tool_input": input,
        }),
        Agent::Gemini => json!({
            "hook_event_name": "BeforeTool", "cwd": "/srv/project", "tool_name": tool, "tool_input": input,
        }),
        _ => json!({
            "hook_event_name": "PreToolUse", "cwd": "/srv/project", "tool_name": tool, "tool_input": input,
        }),
    };
    HookEvent::read(agent, text.to_string().as_bytes()).unwrap()
}

#[derive(Debug, PartialEq, Eq)]
pub enum Is {
    Free,
    Asked,
    /// Even if it was granted.
    AlwaysAsked,
    Denied,
}

pub fn judge(policy: &HookPolicy, agent: Agent, tool: &str, input: &Value) -> Is {
    let event = call(agent, tool, input);
    let (call, places) = (event.call().unwrap(), places());
    let names = call.named_paths().map(|names| named(&places, &names));
    match policy.judge(agent, call, &places, names.as_deref()) {
        PolicyJudgement::NotAsked => Is::Free,
        PolicyJudgement::Asked => Is::Asked,
        PolicyJudgement::AlwaysAsked => Is::AlwaysAsked,
        PolicyJudgement::Denied(reason) => {
            let known = ["Countersign's own files", "read, not change"];
            assert!(known.iter().any(|part| reason.contains(part)), "{reason}");
            Is::Denied
        }
    }
}

pub fn bash(policy: &HookPolicy, command: &str) -> Is {
    judge(
        policy,
        Agent::Claude,
        "Bash",
        &json!({ "command": command }),
    )
}

pub fn read(policy: &HookPolicy, path: &str) -> Is {
    judge(policy, Agent::Claude, "Read", &json!({ "file_path": path }))
}

pub fn parse(text: &str) -> HookPolicy {
    HookPolicy::parse(text, &places()).unwrap()
}

#[test]
fn without_a_policy_only_reading_within_the_project_is_free() {
    let policy = HookPolicy::default();
    for (tool, input, is) in [
        ("Read", json!({ "file_path": "/srv/project/a" }), Is::Free),
        ("Read", json!({ "file_path": "a/b" }), Is::Free),
        ("Grep", json!({ "pattern": "x" }), Is::Free),
        ("Glob", json!({ "pattern": "**/*.rs" }), Is::Free),
        ("TodoWrite", json!({ "todos": [] }), Is::Free),
        ("Read", json!({ "file_path": "/srv/other/a" }), Is::Asked),
        ("Read", json!({ "file_path": "/srv/projects" }), Is::Asked),
        ("Read", json!({ "file_path": "../other" }), Is::Asked),
        ("Read", json!({ "file_path": "a/../../other" }), Is::Asked),
        ("Grep", json!({ "pattern": "x", "path": "/etc" }), Is::Asked),
        ("Glob", json!({ "pattern": "/etc/*" }), Is::Asked),
        ("Glob", json!({ "pattern": "../**" }), Is::Asked),
        ("Bash", json!({ "command": "ls" }), Is::Asked),
        (
            "Write",
            json!({ "file_path": "a", "content": "" }),
            Is::Asked,
        ),
        ("WebSearch", json!({ "query": "x" }), Is::Asked),
        ("mcp__x__read", json!({}), Is::Asked),
        (
            "mcp__countersign__request_approval",
            json!({ "text": "x" }),
            Is::Free,
        ),
        ("mcp__countersign__other", json!({}), Is::Asked),
        ("mcp__other__request_approval", json!({}), Is::Asked),
        ("ExitPlanMode", json!({ "plan": "x" }), Is::Asked),
        ("Unheard", json!({}), Is::Asked),
        ("read", json!({}), Is::Asked),
    ] {
        assert_eq!(
            judge(&policy, Agent::Claude, tool, &input),
            is,
            "{tool} {input}"
        );
    }
}

#[test]
fn countersigns_own_files_are_denied_to_every_tool() {
    let everything = parse(
        "[allow]\ntools = ['command', 'edit.project', 'mcp', 'read', 'web', 'other']\ncommands = ['cat …']\npaths = ['/']",
    );
    let own = "/home/dev/.config/countersign/default.toml";
    for policy in [&HookPolicy::default(), &everything] {
        for path in [
            own,
            "~/.config/countersign",
            "../../home/dev/.config/countersign/policy.toml",
            "file:///home/dev/.config/countersign/x",
        ] {
            assert_eq!(read(policy, path), Is::Denied, "{path}");
        }
        for (tool, input) in [
            ("Write", json!({ "file_path": own, "content": "" })),
            (
                "Edit",
                json!({ "file_path": own, "old_string": "a", "new_string": "b" }),
            ),
            ("mcp__files__read", json!({ "anything": [{ "deep": own }] })),
            ("Unheard", json!({ "x": "~/.config/countersign/a" })),
            (
                "Grep",
                json!({ "pattern": "key", "path": "/home/dev/.config/countersign" }),
            ),
            (
                "Glob",
                json!({ "pattern": "/home/dev/.config/countersign/*.toml" }),
            ),
        ] {
            assert_eq!(
                judge(policy, Agent::Claude, tool, &input),
                Is::Denied,
                "{tool} {input}"
            );
        }
        for command in [
            format!("cat {own}"),
            format!("cat -n --file={own}"),
            format!("cat -f{own}"),
            "cat ../../home/dev/.config/countersign/default.toml".to_owned(),
            "cat -f../../home/dev/.config/countersign/default.toml".to_owned(),
        ] {
            assert_eq!(bash(policy, &command), Is::Denied, "{command}");
        }
    }
    let patch =
        json!({ "command": format!("*** Begin Patch\n*** Add File: {own}\n+x\n*** End Patch") });
    assert_eq!(
        judge(&everything, Agent::Codex, "apply_patch", &patch),
        Is::Denied
    );
    // A link to them is as good as they are.
    let event = call(Agent::Claude, "Read", &json!({ "file_path": "notes" }));
    let linked = NamedPath {
        path: "/srv/project/notes".into(),
        real: own.into(),
    };
    let judged = everything.judge(
        Agent::Claude,
        event.call().unwrap(),
        &places(),
        Some(&[linked]),
    );
    assert!(matches!(judged, PolicyJudgement::Denied(_)));
}

#[test]
fn secrets_and_settings_of_hooks_are_asked_whatever_the_policy_says() {
    let everything = parse(
        "[allow]\ntools = ['command', 'edit.project', 'mcp', 'read', 'web', 'other']\npaths = ['/']",
    );
    for path in [
        "/home/dev/.ssh/id_ed25519",
        "~/.aws/credentials",
        "~/.netrc",
        "~/.claude/settings.json",
        ".claude/settings.local.json",
        ".claude",
        ".countersign.toml",
        "sub/.countersign.toml",
        ".github/hooks/x.json",
        "~/.codex/config.toml",
        "/etc/codex/requirements.toml",
        ".opencode/plugin/countersign.js",
        ".cursor/hooks.json",
        "/etc/cursor/hooks.json",
        "~/.copilot/settings.json",
        ".github/copilot/settings.json",
        ".gemini/.env",
        ".env",
        // Everything is below these.
        "/home/dev",
        "/home",
        "/",
        "~",
    ] {
        assert_eq!(read(&everything, path), Is::AlwaysAsked, "{path}");
        let write = json!({ "file_path": path, "content": "" });
        assert_eq!(
            judge(&everything, Agent::Claude, "Write", &write),
            Is::AlwaysAsked,
            "{path}"
        );
        if !path.contains('~') {
            let command = format!("tee {path}");
            assert_eq!(bash(&everything, &command), Is::AlwaysAsked, "{command}");
        }
    }
    for path in [
        "src/a",
        ".github/workflows/x.yml",
        ".claude/skills/x/SKILL.md",
        "/etc/hosts",
    ] {
        assert_eq!(read(&everything, path), Is::Free, "{path}");
    }
    // Nobody can tell what these touch.
    assert_eq!(bash(&everything, "cat a"), Is::Free);
    for (command, is) in [
        ("cat ~/.config/countersign/default.toml", Is::Asked),
        (
            "cat /home/dev/.config/countersign/default.toml | head",
            Is::Denied,
        ),
        ("echo x > .claude/settings.json", Is::AlwaysAsked),
        ("echo x | tee .claude/settings.json", Is::AlwaysAsked),
        ("echo x & cat .claude/settings.json", Is::Asked),
    ] {
        assert_eq!(bash(&everything, command), is, "{command}");
    }
    let many: Vec<_> = (0..600).map(|number| format!("/x/{number}")).collect();
    let many = json!({ "paths": many });
    assert_eq!(
        judge(&everything, Agent::Claude, "Read", &many),
        Is::AlwaysAsked
    );
}

#[test]
fn a_project_that_is_the_home_directory_makes_nothing_free() {
    let mut places = places();
    places.directory = "/home/dev".into();
    places.project = "/home/dev".into();
    let event = call(
        Agent::Claude,
        "Read",
        &json!({ "file_path": "/home/dev/notes" }),
    );
    let names = named(&places, &event.call().unwrap().named_paths().unwrap());
    let judged =
        HookPolicy::default().judge(Agent::Claude, event.call().unwrap(), &places, Some(&names));
    assert!(matches!(
        judged,
        PolicyJudgement::Asked | PolicyJudgement::AlwaysAsked
    ));
}

#[test]
fn a_policy_frees_tools_and_commands() {
    let policy = parse(
        r#"
        [allow]
        tools = ["read", "web", "claude:TodoWrite", "mcp__docs__*", "google_web_search", "gemini:save_memory"]
        commands = ["git status", "cargo test …", "ls ...", "git diff [--stat] [--unified=] …", "git log [--oneline]"]
        paths = ["/usr/include", "~/notes"]
        "#,
    );
    for (command, is) in [
        ("git status", Is::Free),
        ("git status --short", Is::Asked),
        ("git status a", Is::Asked),
        ("cargo test", Is::Free),
        ("cargo test a_name", Is::Free),
        ("cargo test --release", Is::Asked),
        ("cargo test a_name --release", Is::Asked),
        ("cargo test -- --nocapture", Is::Asked),
        ("git diff -- src/a", Is::Free),
        ("git diff config", Is::Free),
        ("git diff HEAD", Is::Free),
        ("ls node_modules", Is::Free),
        ("ls", Is::Free),
        ("ls src", Is::Free),
        ("ls -l", Is::Asked),
        ("ls /usr/include/linux", Is::Free),
        ("ls /srv/other", Is::Asked),
        ("ls ../other", Is::Asked),
        ("git diff", Is::Free),
        ("git diff --stat src/a", Is::Free),
        ("git diff src/a --stat --unified=5", Is::Free),
        ("git diff --unified=/etc/x", Is::Asked),
        ("git diff --unified", Is::Asked),
        ("git diff --no-index a b", Is::Asked),
        ("git diff --output=a", Is::Asked),
        // It writes no file, but `allow.paths` is about reading alone.
        ("git diff /usr/include/a", Is::Asked),
        ("git log --oneline", Is::Free),
        ("git log --oneline a", Is::Asked),
        ("git", Is::Asked),
        ("git push", Is::Asked),
        ("git statusx", Is::Asked),
        ("cargo build", Is::Asked),
        ("/usr/bin/git status", Is::Asked),
        ("git status && rm x", Is::Asked),
        ("git status\nrm x", Is::Asked),
        ("git status $(rm x)", Is::Asked),
        ("sudo git status", Is::Asked),
        ("GIT_DIR=/x git status", Is::Asked),
        ("git st\u{430}tus", Is::Asked),
        ("git status > x", Is::Asked),
        ("bash -c 'git status'", Is::Asked),
    ] {
        assert_eq!(bash(&policy, command), is, "{command}");
    }
    for (agent, tool, is) in [
        (Agent::Claude, "WebFetch", Is::Free),
        (Agent::Claude, "TodoWrite", Is::Free),
        // Not named any more.
        (Agent::Claude, "Agent", Is::Asked),
        (Agent::Claude, "mcp__docs__find", Is::Free),
        (Agent::Claude, "mcp__docsx__find", Is::Asked),
        (Agent::Gemini, "save_memory", Is::Free),
        (Agent::Copilot, "save_memory", Is::Asked),
        (Agent::Gemini, "google_web_search", Is::Free),
    ] {
        assert_eq!(
            judge(&policy, agent, tool, &json!({})),
            is,
            "{agent} {tool}"
        );
    }
    // A command that is allowed as a whole is allowed in the project.
    for (directory, is) in [
        ("/srv/project", Is::Free),
        (".", Is::Free),
        // Below, a repository or a package of its own could decide what runs.
        ("/srv/project/sub", Is::Asked),
        // A link before the dots would lead elsewhere.
        ("/srv/project/link/..", Is::Asked),
        ("/tmp/evil", Is::Asked),
        ("../other", Is::Asked),
    ] {
        let input = json!({ "command": "git status", "directory": directory });
        let judged = judge(&policy, Agent::Gemini, "run_shell_command", &input);
        assert_eq!(judged, is, "{directory}");
    }
    assert_eq!(read(&policy, "/usr/include/stdio.h"), Is::Free);
    assert_eq!(read(&policy, "~/notes/a"), Is::Free);
    assert_eq!(read(&policy, "~/other"), Is::Asked);
    let write = json!({ "file_path": "/usr/include/x", "content": "" });
    assert_eq!(judge(&policy, Agent::Claude, "Write", &write), Is::Asked);
}

#[test]
fn what_must_be_asked_wins() {
    let policy = parse(
        r#"
        [allow]
        tools = ["read", "command", "mcp"]
        commands = ["git …"]
        [ask]
        tools = ["mcp__prod__*", "codex:view_image"]
        commands = ["git push"]
        paths = ["~/private"]
        "#,
    );
    for (command, is) in [
        ("git status", Is::Free),
        ("anything", Is::Free),
        ("anything -v --all a/b", Is::Free),
        ("anything --config=a", Is::Asked),
        ("anything -C a", Is::Asked),
        ("anything /etc/a", Is::Asked),
        ("git push", Is::Asked),
        ("git push --force", Is::Asked),
        // It could be any command.
        ("true && git push", Is::Asked),
        ("cat ../../home/dev/private/x", Is::Asked),
    ] {
        assert_eq!(bash(&policy, command), is, "{command}");
    }
    assert_eq!(
        judge(&policy, Agent::Claude, "mcp__test__x", &json!({})),
        Is::Free
    );
    assert_eq!(
        judge(&policy, Agent::Claude, "mcp__prod__x", &json!({})),
        Is::Asked
    );
    let image = json!({ "path": "a.png" });
    assert_eq!(
        judge(&policy, Agent::Codex, "view_image", &image),
        Is::Asked
    );
    assert_eq!(judge(&policy, Agent::Codex, "list_dir", &image), Is::Free);
}

#[test]
fn a_command_that_runs_another_one_may_be_named_to_be_asked() {
    let text =
        "[allow]\ntools = ['read', 'command']\n[ask]\ncommands = ['sudo', 'docker run', 'curl']";
    let policy = parse(text);
    for command in ["sudo ls", "docker run x", "curl x", "docker ps -a; ls"] {
        assert_eq!(bash(&policy, command), Is::Asked, "{command}");
    }
    assert_eq!(bash(&policy, "ls src"), Is::Free);
    let mut policy = parse("[allow]\ntools = ['read', 'command']");
    policy
        .tighten(
            "[ask]\ncommands = ['npm exec']",
            &places(),
            Path::new("/srv/project"),
        )
        .unwrap();
    assert_eq!(policy.ask_all_reason(), None);
}

#[test]
fn a_project_only_makes_it_stricter() {
    let generous = || parse("[allow]\ntools = ['read', 'command']\ncommands = ['git …']");
    let here = Path::new("/srv/project");
    let mut policy = generous();
    policy
        .tighten("[ask]\ncommands = ['git push']", &places(), here)
        .unwrap();
    assert_eq!(policy.ask_all_reason(), None);
    assert_eq!(bash(&policy, "git status"), Is::Free);
    assert_eq!(bash(&policy, "git push"), Is::Asked);
    let mut policy = generous();
    policy
        .tighten("[ask]\npaths = ['secrets']", &places(), here)
        .unwrap();
    // A command could look into any directory below its own.
    assert_eq!(bash(&policy, "git status"), Is::Asked);
    assert_eq!(read(&policy, "secrets/a"), Is::Asked);
    assert_eq!(read(&policy, "other"), Is::Free);
    // Searching all of it would find them.
    assert_eq!(
        judge(&policy, Agent::Claude, "Grep", &json!({ "pattern": "x" })),
        Is::Asked
    );
    let mut policy = generous();
    policy
        .tighten("[ask]\ntools = ['*']", &places(), here)
        .unwrap();
    assert_eq!(read(&policy, "a"), Is::Asked);
    for text in [
        "[allow]\ncommands = ['rm']",
        "allow = 1",
        "[ask]\ncomands = ['git push']",
        "[ask]\ncommands = 'git push'",
        "[ask]\ncommands = ['git push; ls']",
        "[ask]\ntools = ['']",
        "not toml",
        "[ask]\n[ask]",
    ] {
        let mut policy = generous();
        policy.tighten(text, &places(), here).unwrap();
        let doubt = policy.ask_all_reason().unwrap_or_else(|| panic!("{text}"));
        assert!(
            doubt.starts_with("/srv/project/.countersign.toml: "),
            "{doubt}"
        );
        assert_eq!(read(&policy, "a"), Is::AlwaysAsked, "{text}");
        assert_eq!(bash(&policy, "git status"), Is::AlwaysAsked, "{text}");
    }
}

#[test]
fn a_policy_that_makes_no_sense_says_where() {
    for (text, expected) in [
        ("[alow]\ntools = []", "line 1: unknown field `alow`"),
        ("[allow]\n\ntool = []", "line 3: unknown field `tool`"),
        ("[allow]\ntools = 'read'", "line 2"),
        ("[allow]\ntools = ['*']", "would allow everything"),
        ("[allow]\ntools = ['claude:*']", "would allow everything"),
        ("[allow]\ntools = ['a*b']", "expected a class"),
        ("[allow]\ntools = ['']", "expected a class"),
        ("[allow]\ncommands = ['']", "plain words"),
        ("[allow]\ncommands = ['git *']", "plain words"),
        ("[allow]\ncommands = ['bash -c']", "plain words"),
        ("[allow]\ncommands = ['…']", "a space before …"),
        ("[allow]\ncommands = ['git…']", "a space before …"),
        ("[allow]\ncommands = ['git … log']", "plain words"),
        ("[allow]\ncommands = ['git [log]']", "[--options]"),
        ("[allow]\ncommands = ['git [--stat] log …']", "[--options]"),
        (
            "[allow]\ncommands = ['cargo test [--config] …']",
            "can choose a program",
        ),
        (
            "[allow]\ncommands = ['git diff [-o]']",
            "can choose a program",
        ),
        ("[allow]\ncommands = ['npm exec …']", "plain words"),
        ("[allow]\ntools = ['edit']", "write \"edit.project\""),
        ("[allow]\ncommands = ['sudo ls']", "plain words"),
        ("[allow]\npaths = ['relative']", "must begin with / or ~/"),
        ("[receipts]", "missing field `directory`"),
        ("[receipts]\ndirectory = 'r'", "must begin with / or ~/"),
        (
            "[receipts]\ndirectory = '/r'\nrequire = true",
            "unknown field `require`",
        ),
        ("= 1", "line 1"),
    ] {
        let error = HookPolicy::parse(text, &places()).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// The examples in the guide: a policy, and a project's file.
fn examples() -> [String; 2] {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/agents/policy.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let block = |rest: &str| rest.split("```").next().unwrap().to_owned();
    let blocks: Vec<_> = guide.split("```toml\n").skip(1).map(block).collect();
    blocks.try_into().expect("two examples")
}

/// Ways to run, read or change something else behind a command, an edit or a reading that looks
/// harmless.
#[test]
fn the_example_survives_known_escapes() {
    let policy = parse(&examples()[0]);
    let with_edits = examples()[0].replacen("tools = [", "tools = [\"edit.project\", ", 1);
    let with_edits = parse(&with_edits);
    let wide = parse("[allow]\ntools = ['read', 'internal', 'command', 'edit.project']");
    let mut count = 0;
    for line in include_str!("escapes.txt").lines() {
        let Some((kind, text)) = line.split_once(": ").filter(|_| !line.starts_with('#')) else {
            continue;
        };
        count += 1;
        let judged = match kind {
            "command" => bash(&policy, text),
            // Even if every command of plain words is allowed.
            "wide" => bash(&wide, text),
            "edit" => judge(
                &with_edits,
                Agent::Claude,
                "Write",
                &json!({ "file_path": text, "content": "" }),
            ),
            "read" => read(&policy, text),
            // Judged under another policy.
            "parts" => continue,
            _ => panic!("{line}"),
        };
        assert_ne!(judged, Is::Free, "{line}");
    }
    assert!(count >= 200, "{count}");
    let edit = json!({ "file_path": "src/main.rs", "content": "" });
    assert_eq!(judge(&with_edits, Agent::Claude, "Write", &edit), Is::Free);
    assert_eq!(judge(&policy, Agent::Claude, "Write", &edit), Is::Asked);
    assert_eq!(bash(&wide, "anything at all"), Is::Free);
}

#[test]
fn the_examples_in_the_guide_work() {
    let [policy, project] = examples();
    let mut policy = parse(&policy);
    for command in [
        "git status",
        "git diff --stat src",
        "cargo test a_name",
        "npm run lint",
    ] {
        assert_eq!(bash(&policy, command), Is::Free, "{command}");
    }
    assert_eq!(bash(&policy, "git push"), Is::Asked);
    policy
        .tighten(&project, &places(), Path::new("/srv/project"))
        .unwrap();
    assert_eq!(policy.ask_all_reason(), None);
    assert_eq!(read(&policy, "secrets/key"), Is::Asked);
}
