//! Every recorded input of the real agents is understood.

use std::path::Path;

use countersign::agent::{Agent, EventKind, HookEvent};

/// The result of a tool's call, by the name of the file after the event.
fn class(tool: &str) -> &'static str {
    match tool {
        "Bash" | "bash" | "run_shell_command" => "command",
        "Write" | "Edit" | "write" | "edit" | "create" | "write_file" | "replace"
        | "apply_patch" => "edit",
        "mcp" => "mcp",
        "ExitPlanMode" => "plan",
        "WebFetch" | "web_fetch" => "web",
        "Read" | "read" | "view" => "read",
        "Agent" | "task" | "spawn_agent" => "internal",
        _ => "other",
    }
}

#[test]
fn every_recorded_input_is_understood() {
    let mut calls = 0;
    for agent in Agent::ALL {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/recorded");
        // Cursor's agent is not on npm.
        let Ok(files) = std::fs::read_dir(root.join(agent.as_str())) else {
            assert_eq!(agent, Agent::Cursor);
            continue;
        };
        for file in files {
            let file = file.unwrap().path();
            let name = file.file_stem().unwrap().to_str().unwrap();
            let (event, tool) = name.split_once('-').unwrap_or((name, ""));
            let tool = tool
                .trim_end_matches("-background")
                .trim_end_matches("-subagent");
            let read = HookEvent::read(agent, &std::fs::read(&file).unwrap());
            if event.eq_ignore_ascii_case("PermissionRequest") {
                // It is not installed for this event, and must not pass it by.
                assert!(read.is_err(), "{agent} {name}");
                continue;
            }
            let read = read.unwrap_or_else(|error| panic!("{agent} {name}: {error}"));
            assert!(read.session.is_some(), "{agent} {name}");
            assert_eq!(read.directory.as_deref(), Some("/home/dev/project"));
            match event {
                "PreToolUse" | "preToolUse" | "BeforeTool" | "tool.execute.before" => {
                    let call = read.call().unwrap_or_else(|| panic!("{agent} {name}"));
                    let mut expected = class(tool);
                    // These two do not tell the tools of MCP servers from their own.
                    if expected == "mcp" && matches!(agent, Agent::Copilot | Agent::Opencode) {
                        expected = "other";
                    }
                    assert_eq!(call.action.class(), expected, "{agent} {name}");
                    calls += 1;
                }
                "SessionStart" | "sessionStart" | "session.created" => {
                    assert_eq!(read.kind, EventKind::SessionStart, "{agent} {name}");
                }
                "SessionEnd" | "sessionEnd" => {
                    let is_end = matches!(read.kind, EventKind::SessionEnd);
                    assert!(is_end, "{agent} {name}");
                }
                "UserPromptSubmit" | "userPromptSubmitted" | "BeforeAgent" => {
                    assert_eq!(read.kind, EventKind::Prompt, "{agent} {name}");
                }
                "Stop" if agent == Agent::Codex => {
                    assert_eq!(read.kind, EventKind::TurnEnd, "{agent} {name}");
                    assert!(read.turn.is_some(), "{agent} {name}");
                }
                _ => assert_eq!(read.kind, EventKind::Other, "{agent} {name}"),
            }
        }
    }
    assert!(calls > 30, "{calls}");
}

/// One file pins the versions; what users read names the same ones.
#[test]
fn the_guides_name_the_versions_that_are_measured() {
    let pinned: serde_json::Value =
        serde_json::from_str(include_str!("../live/package.json")).unwrap();
    let overview = include_str!("../../docs/agents/README.md");
    for (agent, package, guide) in [
        (
            Agent::Claude,
            "@anthropic-ai/claude-code",
            include_str!("../../docs/agents/claude.md"),
        ),
        (
            Agent::Codex,
            "@openai/codex",
            include_str!("../../docs/agents/codex.md"),
        ),
        (
            Agent::Copilot,
            "@github/copilot",
            include_str!("../../docs/agents/copilot.md"),
        ),
        (
            Agent::Gemini,
            "@google/gemini-cli",
            include_str!("../../docs/agents/gemini.md"),
        ),
        (
            Agent::Opencode,
            "opencode-ai",
            include_str!("../../docs/agents/opencode.md"),
        ),
    ] {
        let version = pinned["dependencies"][package].as_str().unwrap();
        let measured = agent.definition().measured.unwrap();
        for text in [
            guide,
            overview,
            measured,
            include_str!("recorded/README.md"),
        ] {
            assert!(text.contains(version), "{agent} {version}");
        }
    }
}
