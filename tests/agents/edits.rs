//! Edits as differences to the file on disk, and edits that cannot be shown because they do not fit
//! it.

use countersign::agent::{Agent, BaseFile, HookEvent, MAX_PAYLOAD_BYTES};
use serde_json::{Value, json};

fn base(path: &str, content: Option<&[u8]>) -> BaseFile {
    BaseFile {
        given: path.to_owned(),
        path: path.to_owned(),
        real: path.to_owned(),
        content: content.map(<[u8]>::to_vec),
    }
}

fn claude(tool: &str, input: &Value) -> HookEvent {
    let text = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/p", "tool_name": tool,
        "tool_input": input,
    });
    HookEvent::read(Agent::Claude, text.to_string().as_bytes()).unwrap()
}

fn propose(tool: &str, input: &Value, content: Option<&[u8]>) -> Result<Value, String> {
    let event = claude(tool, input);
    let call = event.call().unwrap();
    let bases: Vec<_> = call
        .changed_files()?
        .iter()
        .map(|path| base(path, content))
        .collect();
    let proposal = call.propose(Agent::Claude, "/p", &bases)?;
    assert_eq!(proposal.artifact_type, "patch.review");
    Ok(Value::Object(proposal.payload))
}

fn edit(old: &str, new: &str, content: Option<&[u8]>) -> Result<Value, String> {
    let input = json!({ "file_path": "/p/f", "old_string": old, "new_string": new });
    propose("Edit", &input, content)
}

#[test]
fn an_edit_that_does_not_fit_the_file_is_refused_before_anyone_is_asked() {
    for (old, content, expected) in [
        ("x", Some(&b"a\nb\n"[..]), "does not contain it"),
        ("x", None, "does not exist"),
        ("a", Some(b"a a\n"), "contains it 2 times"),
        ("", Some(b"a\n"), "the text to replace is empty"),
        ("a", Some(b"a\xff"), "not UTF-8 text"),
    ] {
        let error = edit(old, "y", content).unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("/p/f"), "{error}");
    }
    let all = |count: Option<u64>| {
        let text = json!({
            "hook_event_name": "BeforeTool", "cwd": "/p", "tool_name": "replace",
            "tool_input": {
                "file_path": "/p/f", "old_string": "a", "new_string": "b",
                "expected_replacements": count,
            },
        });
        let event = HookEvent::read(Agent::Gemini, text.to_string().as_bytes()).unwrap();
        let bases = [base("/p/f", Some(b"a a\n"))];
        event.call().unwrap().propose(Agent::Gemini, "/p", &bases)
    };
    assert!(all(Some(3)).unwrap_err().contains("2 times instead of 3"));
    assert!(all(Some(2)).is_ok());
    assert!(all(None).is_err());
}

#[test]
fn edits_apply_one_after_the_other() {
    let input = json!({ "file_path": "/p/f", "edits": [
        { "old_string": "a", "new_string": "b" },
        { "old_string": "b", "new_string": "c", "replace_all": true },
    ] });
    let shown = propose("MultiEdit", &input, Some(b"a\nb\n")).unwrap();
    assert!(
        shown["patch"]
            .as_str()
            .unwrap()
            .ends_with("-a\n-b\n+c\n+c\n"),
        "{shown}"
    );
    // The first edit makes the second one ambiguous.
    let input = json!({ "file_path": "/p/f", "edits": [
        { "old_string": "a", "new_string": "b" },
        { "old_string": "b", "new_string": "c" },
    ] });
    assert!(
        propose("MultiEdit", &input, Some(b"a\nb\n"))
            .unwrap_err()
            .contains("2 times")
    );
}

#[test]
fn ends_of_lines_stay_as_they_are_and_are_shown() {
    let shown = edit("a\nb", "c\nd", Some(b"a\r\nb\r\n")).unwrap();
    let patch = shown["patch"].as_str().unwrap();
    assert!(patch.ends_with("-a\r\n-b\r\n+c\r\n+d\r\n"), "{patch:?}");
    let shown = edit("b", "c", Some(b"a\nb")).unwrap();
    let patch = shown["patch"].as_str().unwrap();
    assert!(patch.contains("No newline at end of file"), "{patch:?}");
}

#[test]
fn new_empty_and_binary_files_are_marked() {
    let created = edit("", "new\n", None).unwrap();
    assert_eq!(created["files"][0]["sha256"], Value::Null);
    assert!(
        created["patch"]
            .as_str()
            .unwrap()
            .starts_with("--- /dev/null\n+++ b/f\n")
    );
    let filled = edit("", "new\n", Some(b"")).unwrap();
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(filled["files"][0]["sha256"], empty);
    let input = json!({ "file_path": "/p/f", "content": "text\n" });
    let replaced = propose("Write", &input, Some(b"\x00\xff\x01")).unwrap();
    let patch = replaced["patch"].as_str().unwrap();
    assert!(
        patch.starts_with("Binary file f (3 bytes) is replaced\n"),
        "{patch}"
    );
    assert!(patch.ends_with("+text\n"), "{patch}");
}

#[test]
fn where_a_link_leads_is_shown() {
    let event = claude("Write", &json!({ "file_path": "/p/link", "content": "x" }));
    let linked = BaseFile {
        real: "/etc/passwd".to_owned(),
        ..base("/p/link", Some(b"root\n"))
    };
    let proposal = event
        .call()
        .unwrap()
        .propose(Agent::Claude, "/p", &[linked])
        .unwrap();
    let file = &proposal.payload["files"][0];
    assert_eq!(
        (&file["path"], &file["realPath"]),
        (&"/p/link".into(), &"/etc/passwd".into())
    );
}

#[test]
fn cells_that_are_not_there_are_refused() {
    let notebook = br#"{"cells":[{"id":"c1","source":"x"},{"source":["y\n","z"]}]}"#;
    let change = |cell: Option<&str>, mode: &str, content: Option<&[u8]>| {
        let input = json!({
            "notebook_path": "/p/n", "cell_id": cell, "edit_mode": mode, "new_source": "new",
        });
        propose("NotebookEdit", &input, content)
    };
    for (cell, mode, content, expected) in [
        (Some("c9"), "replace", Some(&notebook[..]), "no cell"),
        (None, "replace", Some(notebook), "which cell"),
        (None, "delete", Some(notebook), "which cell"),
        (Some("c1"), "replace", None, "does not exist"),
        (Some("c1"), "replace", Some(b"{}"), "no cells"),
        (Some("c1"), "replace", Some(b"x"), "not a notebook"),
    ] {
        let error = change(cell, mode, content).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    for (cell, mode, expected) in [
        (Some("c1"), "replace", "-x\n"),
        (Some("cell-1"), "delete", "-y\n-z\n"),
        (Some("c1"), "insert", "(new cell after c1)"),
        (None, "insert", "(new first cell)"),
    ] {
        let shown = change(cell, mode, Some(notebook)).unwrap();
        assert!(
            shown["patch"].as_str().unwrap().contains(expected),
            "{shown}"
        );
    }
}

#[test]
fn patches_must_name_files_that_exist() {
    let propose = |patch: &str, content: Option<&[u8]>| {
        let text = json!({
            "hook_event_name": "PreToolUse", "cwd": "/p", "tool_name": "apply_patch",
            "tool_input": { "command": patch },
        });
        let event = HookEvent::read(Agent::Codex, text.to_string().as_bytes()).unwrap();
        let call = event.call().unwrap();
        let bases: Vec<_> = call
            .changed_files()
            .unwrap()
            .iter()
            .map(|path| base(path, content))
            .collect();
        call.propose(Agent::Codex, "/p", &bases)
    };
    assert!(
        propose("nothing", None)
            .unwrap_err()
            .contains("names no file")
    );
    for heading in ["Update", "Delete"] {
        let patch = format!("*** Begin Patch\n*** {heading} File: a\n*** End Patch");
        assert!(
            propose(&patch, None)
                .unwrap_err()
                .contains("a does not exist")
        );
        assert!(propose(&patch, Some(b"x")).is_ok());
    }
    let moved = "*** Begin Patch\n*** Update File: a\n*** Move to: b c\n@@\n-x\n+y\n+*** Add File: z\n*** End Patch";
    let proposal = propose(moved, Some(b"x")).unwrap();
    let files: Vec<_> = proposal.payload["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert_eq!(files, ["a", "b c"]);
    assert_eq!(proposal.payload["patch"], moved);
}

#[test]
fn more_than_can_be_sent_is_refused_with_that_reason() {
    let input = json!({ "file_path": "/p/f", "content": "x\n".repeat(MAX_PAYLOAD_BYTES / 2) });
    let error = propose("Write", &input, None).unwrap_err();
    assert!(error.contains(&MAX_PAYLOAD_BYTES.to_string()), "{error}");
    // One line in a large file is little to read.
    let large = "line\n".repeat(1_000_000) + "last\n";
    assert!(edit("last", "end", Some(large.as_bytes())).is_ok());
}

#[test]
fn what_is_shown_is_what_claude_code_and_opencode_write() {
    // Claude Code takes the end of the line too if nothing is put in its place.
    for (old, all, content, expected) in [
        ("b", false, "a\nb\nc\n", " a\n-b\n c\n"),
        ("b\n", false, "a\nb\nc\n", " a\n-b\n c\n"),
        ("b", false, "a b c\n", "-a b c\n+a  c\n"),
        ("b", true, "b\nb c\n", "-b\n b c\n"),
    ] {
        let input = json!({
            "file_path": "/p/f", "old_string": old, "new_string": "", "replace_all": all,
        });
        let shown = propose("Edit", &input, Some(content.as_bytes())).unwrap();
        let patch = shown["patch"].as_str().unwrap();
        assert!(patch.ends_with(expected), "{patch}");
    }
    // opencode takes some of these for other texts.
    let opencode = |new: &str, all: bool| {
        let text = json!({
            "event": "tool.execute.before", "sessionID": "s", "tool": "edit", "directory": "/p",
            "args": { "filePath": "/p/f", "oldString": "a", "newString": new, "replaceAll": all },
        });
        HookEvent::read(Agent::Opencode, text.to_string().as_bytes())
    };
    for new in ["$$", "$&", "x$`", "$'"] {
        let error = opencode(new, true).unwrap_err().to_string();
        assert!(error.contains("newString"), "{error}");
        assert!(opencode(new, false).is_ok());
    }
    assert!(opencode("x", true).is_ok());
}

#[test]
fn an_edit_that_makes_far_more_of_a_file_is_refused() {
    let large = "a".repeat(4 << 20);
    let edit = json!({ "old_string": "a", "new_string": "b".repeat(1_000), "replace_all": true });
    let mut input = edit.clone();
    input["file_path"] = "/p/f".into();
    let error = propose("Edit", &input, Some(large.as_bytes())).unwrap_err();
    assert!(error.contains("too large"), "{error}");
    // Many edits of a large file are as much to do.
    let edits = vec![json!({ "old_string": "x", "new_string": "x" }); 20_000];
    let input = json!({ "file_path": "/p/f", "edits": edits });
    let error = propose("MultiEdit", &input, Some((large + "x").as_bytes())).unwrap_err();
    assert!(error.contains("too many edits"), "{error}");
}

#[test]
fn patches_that_could_be_about_other_files_are_refused() {
    let changed = |patch: &str| {
        let text = json!({
            "hook_event_name": "PreToolUse", "cwd": "/p", "tool_name": "apply_patch",
            "tool_input": { "command": patch },
        });
        let event = HookEvent::read(Agent::Codex, text.to_string().as_bytes()).unwrap();
        let files = event.call().unwrap().changed_files();
        files.map(|files| files.len())
    };
    for (path, expected) in [
        ("a ", "white space"),
        (" a", "white space"),
        ("a\t", "invisible"),
        ("a\u{feff}", "invisible"),
        ("a\u{85}", "invisible"),
        ("a\rb", "invisible"),
        ("a\u{200b}b", "invisible"),
        ("~/a", "absolute path"),
    ] {
        for heading in ["Add File", "Update File", "Delete File"] {
            let patch = format!("*** Begin Patch\n*** {heading}: {path}\n+x\n*** End Patch");
            let error = changed(&patch).unwrap_err();
            assert!(error.contains(expected), "{path:?}: {error}");
        }
    }
    let mark = "*** Begin Patch\n\u{feff}*** Add File: a\n*** End Patch";
    assert_eq!(changed(mark), Ok(1));
    assert_eq!(
        changed("*** Begin Patch\r\n*** Add File: a b\r\n+x\r\n"),
        Ok(1)
    );
    let many = |count: usize| {
        let heading = |number: usize| format!("*** Add File: {number}");
        (0..count).map(heading).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(changed(&many(512)), Ok(512));
    assert!(changed(&many(40_000)).unwrap_err().contains("512"));
}
