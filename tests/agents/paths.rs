//! Paths that are written so that they look like others: if unsure, a call is asked, and an edit
//! denied.

use countersign::agent::{Agent, HookEvent, HookPolicy};
use serde_json::{Value, json};

use super::policy::{Is, bash, judge, parse, read};

fn everything() -> HookPolicy {
    parse(
        "[allow]\ntools = ['command', 'edit.project', 'mcp', 'read', 'web', 'other']\npaths = ['/']",
    )
}

#[track_caller]
fn is_asked(agent: Agent, tool: &str, input: &Value) {
    let is = judge(&HookPolicy::default(), agent, tool, input);
    assert!(
        matches!(is, Is::Asked | Is::AlwaysAsked | Is::Denied),
        "{tool} {input}: {is:?}"
    );
}

#[test]
fn what_only_looks_like_a_pattern_hides_nothing() {
    for path in [
        "/srv/project/[x]/../../other/key",
        "[x]/../../other",
        "{/../../other",
        "x?/../../other",
        "*/../../../home/dev/.ssh/id_rsa",
        "../other/[x]",
        "/etc/{passwd",
    ] {
        for (agent, tool, member) in [
            (Agent::Claude, "Read", "file_path"),
            (Agent::Claude, "Grep", "path"),
            (Agent::Claude, "Glob", "pattern"),
            (Agent::Gemini, "read_file", "absolute_path"),
            (Agent::Gemini, "read_many_files", "paths"),
            (Agent::Gemini, "read_many_files", "include"),
            (Agent::Copilot, "view", "path"),
        ] {
            is_asked(agent, tool, &json!({ member: path }));
            is_asked(agent, tool, &json!({ member: [path] }));
        }
    }
    // A secret is not less of one for the brackets in its name.
    let secret = "/home/dev/.ssh/[x]";
    assert_eq!(read(&everything(), secret), Is::AlwaysAsked);
    for pattern in [
        "{/etc/passwd,a}",
        "{a,/etc/passwd}",
        "{,/}etc/passwd",
        "{.,a}./other/*",
        ".{.,a}/other",
        ".{,a}./other",
        "{a,~/x}",
    ] {
        is_asked(Agent::Gemini, "glob", &json!({ "pattern": pattern }));
    }
    for path in ["app/[slug]/page.tsx", "a{b}c", "what?"] {
        assert_eq!(read(&HookPolicy::default(), path), Is::Free, "{path}");
    }
    for pattern in ["**/*.{ts,tsx}", "src/{a,b}/*.rs", "**/*{.test,.spec}.ts"] {
        let input = json!({ "pattern": pattern });
        let is = judge(&HookPolicy::default(), Agent::Claude, "Glob", &input);
        assert_eq!(is, Is::Free, "{pattern}");
    }
}

#[test]
fn what_begins_in_another_directory_is_looked_for_there() {
    // In the agent's own directory this would be within the project.
    let elsewhere = parse("[allow]\ntools = ['read']\npaths = ['/usr/include']");
    let input = json!({ "path": "/usr/include/a", "pattern": "x/../../*" });
    let is = judge(&elsewhere, Agent::Claude, "Glob", &input);
    assert_eq!(is, Is::AlwaysAsked);
    let policy = parse("[allow]\ncommands = ['cat …']\npaths = ['~/notes']");
    for (word, is) in [
        ("../.config/countersign/default.toml", Is::Denied),
        ("../.ssh/id", Is::AlwaysAsked),
        ("../other/a", Is::Asked),
        ("a", Is::Asked),
    ] {
        let input = json!({ "command": format!("cat {word}"), "directory": "/home/dev/notes" });
        let judged = judge(&policy, Agent::Gemini, "run_shell_command", &input);
        assert_eq!(judged, is, "{word}");
    }
}

#[test]
fn a_path_that_is_too_long_is_asked() {
    let long = format!("/home/dev/.ssh/{}id_rsa", "./".repeat(3_000));
    for member in ["file_path", "path", "pattern", "paths", "anything"] {
        is_asked(Agent::Claude, "Read", &json!({ member: long }));
        is_asked(
            Agent::Claude,
            "Read",
            &json!({ member: [long], "notebook_path": "a" }),
        );
    }
    let call = json!({ "path": long });
    let is = judge(&everything(), Agent::Claude, "mcp__files__read", &call);
    assert_eq!(is, Is::AlwaysAsked);
    // Text that an agent tells itself is no path.
    let text = json!({ "prompt": format!("Look at ../a. {}", "x ".repeat(4_000)) });
    assert_eq!(
        judge(&HookPolicy::default(), Agent::Claude, "Task", &text),
        Is::Free
    );
}

#[test]
fn a_search_that_names_no_place_is_one_of_the_whole_directory() {
    let mut policy = HookPolicy::default();
    let project = std::path::Path::new("/srv/project");
    policy
        .tighten(
            "[ask]\npaths = ['secrets']",
            &super::inputs::places(),
            project,
        )
        .unwrap();
    for input in [
        json!({ "pattern": "x" }),
        json!({ "pattern": "x", "path": "" }),
        json!({ "pattern": "x", "path": [] }),
        json!({ "pattern": "./x" }),
    ] {
        let is = judge(&policy, Agent::Claude, "Grep", &input);
        assert_eq!(is, Is::Asked, "{input}");
    }
    let other = json!({ "pattern": "./x", "path": "src" });
    assert_eq!(judge(&policy, Agent::Claude, "Grep", &other), Is::Free);
}

#[test]
fn other_spellings_are_asked() {
    for path in [
        " /home/dev/.ssh",
        "\t/etc/passwd",
        "/srv/project/a ",
        "a\n",
        "a\u{feff}",
        "\u{a0}/etc",
        "a\u{0}b",
        "a\u{202e}b",
        "~root/x",
        "file:/etc/passwd",
        "FILE:///etc/passwd",
        "file://localhost/etc/passwd",
        "file:///srv/project/%2e%2e/x",
    ] {
        is_asked(Agent::Claude, "Read", &json!({ "file_path": path }));
        is_asked(
            Agent::Claude,
            "Grep",
            &json!({ "pattern": "x", "path": path }),
        );
    }
    is_asked(
        Agent::Claude,
        "Glob",
        &json!({ "pattern": " /home/dev/.ssh/*" }),
    );
    assert_eq!(read(&HookPolicy::default(), "a b/c d"), Is::Free);
}

#[test]
fn whatever_makes_agents_or_shells_run_something_is_asked_before_it_changes() {
    let everything = everything();
    for path in [
        ".claude/skills/x/SKILL.md",
        ".claude/agents/a.md",
        ".claude/commands/c.md",
        "~/.claude/plugins/p",
        "~/.gemini/extensions/e/x.json",
        ".opencode/tool/t.ts",
        ".opencode/agent/a.md",
        ".codex/other.toml",
        ".cursor/mcp.json",
        ".copilot/mcp-config.json",
        ".mcp.json",
        ".git/config",
        ".git/hooks/pre-commit",
        "sub/.git/hooks/pre-commit",
        ".gitmodules",
        "~/.bashrc",
        "~/.bash_profile",
        "~/.profile",
        "~/.zshrc",
        "~/.zshenv",
        "~/.zprofile",
        "~/.gitconfig",
        "~/.config/fish/config.fish",
        "~/.config/systemd/user/x.service",
        "~/.config/autostart/x.desktop",
        ".Claude/Settings.json",
        ".GIT/Hooks/x",
        ".github/workflows/x.yml",
        ".envrc",
        ".vscode/tasks.json",
        "sub/.cargo/config.toml",
        "bin/countersign",
    ] {
        let path = path.replace('~', "/home/dev");
        let write = json!({ "file_path": path, "content": "" });
        let is = judge(&everything, Agent::Claude, "Write", &write);
        assert_eq!(is, Is::AlwaysAsked, "{path}");
        let is = bash(&everything, &format!("tee {path}"));
        assert_eq!(is, Is::AlwaysAsked, "{path}");
        let mcp = json!({ "path": path });
        let is = judge(&everything, Agent::Claude, "mcp__files__write", &mcp);
        assert_eq!(is, Is::AlwaysAsked, "{path}");
    }
    for path in [".claude/skills/x/SKILL.md", ".git/config", "~/.bashrc"] {
        assert_eq!(read(&everything, path), Is::Free, "{path}");
    }
    // Some file systems do not tell these apart.
    assert_eq!(read(&everything, ".CLAUDE/settings.JSON"), Is::AlwaysAsked);
    assert_eq!(read(&everything, "/home/dev/.SSH/id"), Is::AlwaysAsked);
    let own = "/home/dev/.config/Countersign/default.toml";
    assert_eq!(read(&everything, own), Is::Denied);
    for path in [
        "src/a",
        ".github/ISSUE_TEMPLATE.md",
        ".gitignore",
        "git/hooks",
    ] {
        let write = json!({ "file_path": path, "content": "" });
        let is = judge(&everything, Agent::Claude, "Write", &write);
        assert_eq!(is, Is::Free, "{path}");
    }
}

#[test]
fn two_names_for_one_member_are_not_understood() {
    let cursor = |tool: &str, input: &Value| {
        let text = json!({
            "hook_event_name": "preToolUse", "workspace_roots": ["/srv/project"], "tool_name": tool,
            "tool_input": input,
        });
        HookEvent::read(Agent::Cursor, text.to_string().as_bytes())
    };
    for (tool, input) in [
        (
            "Write",
            json!({ "file_path": "a", "path": "b", "content": "" }),
        ),
        (
            "Write",
            json!({ "path": "b", "content": "", "contents": "x" }),
        ),
        (
            "Edit",
            json!({ "file_path": "a", "path": "b", "old_string": "a", "new_string": "b" }),
        ),
        ("Delete", json!({ "path": "a", "target_file": "b" })),
        ("ApplyPatch", json!({ "patch": "a", "input": "b" })),
    ] {
        let error = cursor(tool, &input).unwrap_err().to_string();
        assert!(error.contains("only one of"), "{tool} {input}: {error}");
    }
    let patch = json!({ "cwd": "/p", "toolName": "apply_patch", "toolArgs": { "patch": "a", "input": "b" } });
    assert!(HookEvent::read(Agent::Copilot, patch.to_string().as_bytes()).is_err());
    let command = json!({
        "hook_event_name": "BeforeTool", "cwd": "/p", "tool_name": "run_shell_command",
        "tool_input": { "command": "ls", "dir_path": "a", "directory": "/b" },
    });
    assert!(HookEvent::read(Agent::Gemini, command.to_string().as_bytes()).is_err());
    // Further members are checked too.
    let write =
        json!({ "file_path": "a", "content": "", "path": "/home/dev/.config/countersign/x" });
    let is = judge(&everything(), Agent::Claude, "Write", &write);
    assert_eq!(is, Is::Denied);
}
