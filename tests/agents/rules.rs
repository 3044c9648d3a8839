//! `[[rule]]`: which calls it is about, however they are spelt, and that a further rule never makes
//! anything easier.

use std::time::Duration;

use countersign::agent::{
    Agent, HookEvent, HookPolicy, OwnPolicy, PolicyJudgement, demands_unseen,
};
use countersign::client::enforcer::{CommentDuty, RuleDemand};
use countersign::client::profile::ProfileFile;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use super::inputs::{named, places};
use super::policy::{Is, bash, judge, parse, read};

const FREE: &str =
    "[allow]\ntools = [\"read\", \"command\", \"read.commands\", \"edit.project\"]\n";

fn demands(policy: &HookPolicy, tool: &str, input: &Value) -> Vec<RuleDemand> {
    let event = json!({
        "hook_event_name": "PreToolUse", "cwd": "/srv/project", "tool_name": tool, "tool_input": input,
    });
    let event = HookEvent::read(Agent::Claude, event.to_string().as_bytes()).unwrap();
    let (call, places) = (event.call().unwrap(), places());
    let names = call.named_paths().map(|names| named(&places, &names));
    policy.demands(Agent::Claude, call, names.as_deref())
}

fn of_command(policy: &HookPolicy, command: &str) -> usize {
    demands(policy, "Bash", &json!({ "command": command })).len()
}

#[test]
fn a_command_is_under_the_rule_however_it_is_spelt() {
    let rule = "[[rule]]\ncommands = [\"terraform apply\"]\napprovals = 2\n";
    let policy = parse(&format!("{FREE}{rule}"));
    for command in [
        "terraform apply",
        "terraform  'apply' -auto-approve",
        "terraform -chdir=prod apply",
        "/usr/local/bin/terraform apply",
        "./terraform.exe apply",
        "TERRAFORM apply",
        "ls && terraform apply",
        "ls | terraform apply",
        "sh -c 'terraform apply'",
        "env A=b terraform apply",
        "A=b terraform apply",
        "sudo terraform apply",
        "countersign run -- terraform apply",
        "t=terraform; $t apply",
        "terra\"form\" apply",
        "terraform appl\\y",
        "$(echo terraform) apply",
        "terraform apply &",
        "xargs terraform apply",
        "python3 -c x",
        "find . -exec terraform apply ;",
        "for x in a; do terraform apply; done",
        "terraform\napply",
        "aws-vault exec prod -- terraform apply",
        "git rebase -x 'terraform apply' HEAD~1",
        "make '--eval=x:;terraform apply' x",
        "compgen -C 'terraform apply'",
        "test -v 'a[$(x)]'",
        "terraform-1.9 apply",
        "terraform1.9 apply",
        "echo x | python3 /dev/stdin",
        "git commit -m 'terraform apply'",
    ] {
        assert_eq!(bash(&policy, command), Is::AlwaysAsked, "{command}");
        assert_eq!(of_command(&policy, command), 1, "{command}");
    }
    for command in [
        "ls",
        "terraform plan",
        "find . -name x",
        "cat a | sed -n 1,2p",
        "grep -n 'terraform apply' a",
        "echo terraform apply",
    ] {
        assert_eq!(bash(&policy, command), Is::Free, "{command}");
        assert_eq!(of_command(&policy, command), 0, "{command}");
    }
    // A switch that changes how a command runs.
    let input = json!({ "command": "ls", "dangerouslyDisableSandbox": true });
    assert_eq!(demands(&policy, "Bash", &input).len(), 1);
}

#[test]
fn a_subcommand_is_under_the_rule_by_another_name_too() {
    let policy = parse("[[rule]]\ncommands = [\"git push\"]\n");
    for command in [
        "git push",
        "git -c alias.p=push p origin main",
        "/usr/lib/git-core/git-push origin main",
    ] {
        assert_eq!(of_command(&policy, command), 1, "{command}");
    }
    assert_eq!(of_command(&policy, "git pull"), 0);
    // A rule about a program that only reads.
    let policy = parse("[[rule]]\ncommands = [\"git log\"]\n");
    assert_eq!(of_command(&policy, "git log -p"), 1);
}

#[test]
fn a_tool_of_an_unknown_kind_is_under_every_rule_that_it_could_be_about() {
    for rule in [
        "commands = [\"terraform apply\"]",
        "paths = [\"/srv/project/infra\"]",
        "tools = [\"mcp\"]",
        "tools = [\"command\"]",
    ] {
        let policy = parse(&format!("[[rule]]\n{rule}\n"));
        let input = json!({ "keys": "{enter}" });
        assert_eq!(demands(&policy, "WriteShell", &input).len(), 1, "{rule}");
    }
    let policy = parse("[[rule]]\ntools = [\"Other*\"]\n");
    assert!(demands(&policy, "WriteShell", &json!({})).is_empty());
}

#[test]
fn a_call_over_mcp_is_under_the_rule_by_its_input() {
    let policy = parse("[[rule]]\ncommands = [\"terraform apply\"]\n");
    for input in [
        json!({ "command": "terraform apply" }),
        json!({ "command": "terraform\tapply\n" }),
        json!({ "args": ["/opt/terraform", { "x": ["-auto", "apply"] }] }),
    ] {
        let found = demands(&policy, "mcp__shell__exec", &input);
        assert_eq!(found.len(), 1, "{input}");
    }
    let plan = json!({ "command": "terraform plan" });
    assert!(demands(&policy, "mcp__shell__exec", &plan).is_empty());
}

/// The rules of a policy about a payload, as a guard finds them.
fn of_payload(rule: &str, payload: &Value) -> usize {
    let file = ProfileFile::at("/home/guard/profile.toml".into());
    let policy = OwnPolicy {
        source: "policy.toml".to_owned(),
        text: Some(format!("[[rule]]\n{rule}\n")),
    };
    let payload = payload.as_object().unwrap();
    demands_unseen(payload, Some("/home/dave".into()), &file, &policy)
        .unwrap()
        .len()
}

#[test]
fn a_guard_knows_the_home_of_its_caller() {
    let rule = "paths = [\"~/secrets\"]";
    for (name, count) in [
        ("/home/dave/secrets/a", 1),
        ("~/secrets", 1),
        ("/home/guard/secrets/a", 0),
    ] {
        let read =
            json!({ "kind": "command", "command": format!("cat {name}"), "directory": "/srv" });
        assert_eq!(of_payload(rule, &read), count, "{name}");
        let patch = json!({ "kind": "patch", "patch": "x", "files": [{ "path": name }] });
        assert_eq!(of_payload(rule, &patch), count, "{name}");
    }
}

#[test]
fn a_payload_that_says_two_things_is_under_every_rule() {
    let command = "commands = [\"terraform apply\"]";
    for (payload, count) in [
        (json!({ "kind": "command", "command": "ls" }), 0),
        (json!({ "kind": "command", "argv": ["ls"] }), 0),
        (
            json!({ "kind": "command", "argv": ["terraform", "apply"] }),
            1,
        ),
        (
            json!({ "kind": "command", "command": "ls", "argv": ["x"] }),
            1,
        ),
        (json!({ "kind": "something" }), 1),
    ] {
        assert_eq!(of_payload(command, &payload), count, "{payload}");
    }
    let paths = "paths = [\"/srv/project\"]";
    for (files, count) in [
        (json!([]), 1),
        (json!([{ "path": "/srv/project/a" }]), 1),
        (json!([{ "path": "/opt/a" }]), 0),
    ] {
        let payload = json!({ "kind": "patch", "patch": "x", "files": files });
        assert_eq!(of_payload(paths, &payload), count, "{payload}");
    }
}

#[test]
fn only_a_payload_that_asks_and_shows_no_call_is_a_question() {
    let questions = json!([{ "question": "Which?" }]);
    let plain = json!({ "kind": "question", "questions": questions });
    assert_eq!(of_payload("approvals = 2", &plain), 0);
    let empty = json!({ "kind": "question", "questions": [] });
    assert_eq!(of_payload("approvals = 2", &empty), 1);
    for name in [
        "argv", "command", "files", "input", "mcp", "patch", "program", "text",
    ] {
        let mut payload = plain.clone();
        payload[name] = "x".into();
        assert_eq!(of_payload("approvals = 2", &payload), 1, "{payload}");
    }
}

#[test]
fn a_command_that_changes_its_directory_is_under_rules_about_paths() {
    let policy = parse("[[rule]]\npaths = [\"/opt/prod\"]\n");
    for command in [
        "cd /var && rm -rf ../opt/prod/x",
        "cd - && rm x",
        "cd; rm x",
        "popd; rm x",
        "make -C /var ../opt/prod/x",
        "cd / && rm -rf opt/prod/x",
    ] {
        assert_eq!(of_command(&policy, command), 1, "{command}");
    }
    for command in ["cd src && rm x", "rm ../x", "make -C src x"] {
        assert_eq!(of_command(&policy, command), 0, "{command}");
    }
}

#[test]
fn a_path_is_under_the_rule_however_it_is_spelt() {
    let rule = "[[rule]]\npaths = [\"/srv/project/infra\"]\napprovals = 2\n";
    let policy = parse(&format!("{FREE}{rule}"));
    for path in [
        "infra/a",
        "/srv/project/infra/a",
        "x/../infra/a",
        "INFRA/a",
        "infra",
        "file:///srv/project/infra/a",
        " infra/a",
        "~root/a",
    ] {
        assert_eq!(read(&policy, path), Is::AlwaysAsked, "{path}");
        let found = demands(&policy, "Read", &json!({ "file_path": path }));
        assert_eq!(found.len(), 1, "{path}");
    }
    for command in [
        "cat infra/a",
        "tar -C infra -x",
        "cat in*/a",
        "cd infra; cat a",
        "cat \"$HOME\"/a",
        "sh -c 'cat infra/a'",
        "ls > infra/a",
    ] {
        assert_eq!(of_command(&policy, command), 1, "{command}");
    }
    assert_eq!(read(&policy, "src/a"), Is::Free);
    let edit = json!({ "file_path": "infra/a", "content": "x" });
    assert_eq!(
        judge(&policy, Agent::Claude, "Write", &edit),
        Is::AlwaysAsked
    );
}

#[test]
fn a_rule_without_matchers_is_about_every_call_that_is_asked_and_no_other() {
    let policy = parse("[[rule]]\napprovals = 2\n");
    assert_eq!(bash(&policy, "make"), Is::AlwaysAsked);
    assert_eq!(of_command(&policy, "make"), 1);
    assert_eq!(read(&policy, "a"), Is::Free);
    // An answer permits nothing.
    let ask = json!({ "questions": [{ "question": "Which?", "options": [] }] });
    assert!(demands(&policy, "AskUserQuestion", &ask).is_empty());
    // A rule never turns a denial into a question.
    let policy = parse("changes = \"deny\"\n[[rule]]\ncommands = [\"make\"]\n");
    assert_eq!(bash(&policy, "make"), Is::Denied);
    // Every rule that matches counts.
    let rules = "[[rule]]\ncommands = [\"make\"]\nfrom = [\"alice\"]\ncomment = \"approve\"\n[[rule]]\ntools = [\"command\"]\napprovals = 3\nrejections = 2\nescalate = [{ after = \"3m\", from = [\"dave\"] }]\n";
    let found = demands(&parse(rules), "Bash", &json!({ "command": "make" }));
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].comment, CommentDuty::Approve);
    assert_eq!((found[1].approvals, found[1].rejections), (3, 2));
    assert_eq!(found[1].escalate[0].after_seconds, 180);
}

#[test]
fn a_rule_that_makes_no_sense_is_refused() {
    for (rule, expected) in [
        (
            "from = [\"team:payments\", \"alice\"]",
            "either people or one team",
        ),
        (
            "from = [\"team:payments\", \"team:oncall\"]",
            "either people or one team",
        ),
        ("from = [\"team:\"]", "neither the id of an approver nor"),
        ("from = [\"\"]", "neither the id of an approver nor"),
        ("approvals = 0", "1 to 56"),
        ("approvals = 57", "1 to 56"),
        ("rejections = 0", "1 to 56"),
        (
            "approvals = 2\nfrom = [\"alice\", \"alice\"]",
            "names 1 people",
        ),
        ("comment = \"often\"", "unknown variant"),
        ("commands = [\"rm -rf\"]", "leave them out"),
        ("commands = [\"a | b\"]", "more than plain words"),
        ("paths = [\"infra\"]", "must begin with /"),
        ("tools = [\"read.commands\"]", "cannot have a rule"),
        ("tools = [\"question\"]", "cannot have a rule"),
        (
            "escalate = [{ after = \"9m\", from = [\"a\"] }]",
            "9 minutes",
        ),
        ("escalate = [{ after = \"1m\", from = [] }]", "needs people"),
        (
            "escalate = [{ after = \"2m\", from = [\"a\"] }, { after = \"1m\", from = [\"b\"] }]",
            "longer than the one before",
        ),
        ("approval = 2", "unknown field"),
        ("park = \"25h\"", "at most 24h"),
        ("park = \"0h\"", "expected a number"),
        (
            "park = \"1h\"\nescalate = [{ after = \"1h\", from = [\"a\"] }]",
            "or than park",
        ),
    ] {
        let problem = HookPolicy::parse(&format!("[[rule]]\n{rule}\n"), &places()).unwrap_err();
        assert!(problem.contains(expected), "{rule}: {problem}");
    }
}

#[test]
fn a_rule_may_name_a_team_and_escalate_to_another_one() {
    let rule = "[[rule]]\nfrom = [\"team:payments\"]\napprovals = 3\nescalate = [{ after = \"3m\", from = [\"team:oncall\"] }]\n";
    let policy = parse(rule);
    assert_eq!(bash(&policy, "make"), Is::AlwaysAsked);
    let found = demands(&policy, "Bash", &json!({ "command": "make" }));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].approvals, 3);
    assert!(found[0].from.contains("team:payments"));
    assert!(found[0].escalate[0].from.contains("team:oncall"));
}

#[test]
fn a_rule_that_parks_may_ask_further_people_until_then() {
    let policy = parse(
        "[[rule]]\ncommands = [\"make\"]\npark = \"4h\"\nescalate = [{ after = \"3h\", from = [\"a\"] }]\n[[rule]]\npark = \"24h\"\n[[rule]]\napprovals = 2\n",
    );
    let of =
        |command| RuleDemand::park_time(&demands(&policy, "Bash", &json!({ "command": command })));
    assert_eq!(
        of("make"),
        Some(Duration::from_secs(4 * 3_600)),
        "the shortest"
    );
    assert_eq!(of("true"), Some(Duration::from_secs(24 * 3_600)));
    assert_eq!(RuleDemand::park_time(&[RuleDemand::new(2, [])]), None);
    let shown: Vec<_> = policy.command_rules().map(|(_, demand)| demand).collect();
    assert!(
        shown[0].ends_with("; open for 14400 s, also after the call"),
        "{shown:?}"
    );
}

#[test]
fn a_project_has_rules_that_only_add() {
    let mut policy = parse(FREE);
    let rule = "[[rule]]\npaths = [\"infra\"]\napprovals = 2\n";
    let project = "/srv/project".as_ref();
    policy.tighten(rule, &places(), project).unwrap();
    assert_eq!(read(&policy, "infra/a"), Is::AlwaysAsked);
    assert_eq!(read(&policy, "src/a"), Is::Free);
    // How many people a rule with a mistake demands is not known.
    for text in [
        "[[rule]]\nescalate = [{ after = \"1m\", from = [\"a\"] }]",
        "[[rule]]\nrejections = 2",
        "[[rule]]\npark = \"1h\"",
        "[[rule]]\napproval = 2",
        "[[rule]]\napprovals = 2\n[ask]\ncomands = [\"make\"]",
        "[[rule]]\napprovals = 2\n[ask",
        "rule = 2",
    ] {
        let mut policy = parse(FREE);
        let problem = policy.tighten(text, &places(), project).unwrap_err();
        assert!(
            problem.starts_with("/srv/project/.countersign.toml: "),
            "{text}: {problem}"
        );
    }
}

fn any_rule() -> impl Strategy<Value = String> {
    let matcher = select(vec![
        "",
        "commands = [\"make\"]",
        "commands = [\"git push\"]",
        "paths = [\"/srv/project/a\"]",
        "tools = [\"command\"]",
        "tools = [\"read\"]",
    ]);
    let from = subsequence(vec!["\"alice\"", "\"bob\"", "\"carol\""], 2..=3);
    (matcher, from, 1..3_u32).prop_map(|(matcher, from, approvals)| {
        let from = from.join(", ");
        format!("[[rule]]\n{matcher}\nfrom = [{from}]\napprovals = {approvals}\n")
    })
}

fn strictness(is: &Is) -> u8 {
    match is {
        Is::Free => 0,
        Is::Asked => 1,
        Is::AlwaysAsked => 2,
        Is::Denied => 3,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_further_rule_never_makes_a_call_easier(
        base in select(vec!["", FREE, "changes = \"deny\"\n"]),
        rules in proptest::collection::vec(any_rule(), 0..3),
        further in any_rule(),
        command in select(vec!["make", "git push", "git -C x push", "ls a", "cat a/b", "$x", "sh -c make", "ls"]),
    ) {
        let fewer = format!("{base}{}", rules.concat());
        let (more, fewer) = (parse(&format!("{fewer}{further}")), parse(&fewer));
        let input = json!({ "command": command });
        let (then, now) = (demands(&fewer, "Bash", &input), demands(&more, "Bash", &input));
        prop_assert_eq!(&now[..then.len()], &then[..]);
        prop_assert!(strictness(&bash(&more, command)) >= strictness(&bash(&fewer, command)));
        if now.len() > then.len() {
            prop_assert_ne!(bash(&more, command), Is::Asked);
        }
    }
}

#[test]
fn a_judged_call_says_which_rule_it_is_under() {
    let policy =
        parse("[[rule]]\ncommands = [\"make\"]\nfrom = [\"alice\", \"bob\"]\napprovals = 2\n");
    let event = json!({
        "hook_event_name": "PreToolUse", "cwd": "/srv/project", "tool_name": "Bash", "tool_input": { "command": "make" },
    });
    let event = HookEvent::read(Agent::Claude, event.to_string().as_bytes()).unwrap();
    let (judgement, parts) =
        policy.explain(Agent::Claude, event.call().unwrap(), &places(), Some(&[]));
    assert_eq!(judgement, PolicyJudgement::AlwaysAsked);
    let reason = &parts.last().unwrap().reason;
    assert_eq!(
        reason,
        "a rule of the policy needs 2 approvals from alice, bob"
    );
    assert!(parts.iter().all(|part| part.entry.is_none()));
}

#[test]
fn the_example_in_the_guide_is_a_policy() {
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/teams.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, example) = guide.split_once("```toml\n").unwrap();
    let policy = parse(example.split_once("```").unwrap().0);
    assert_eq!(of_command(&policy, "terraform apply"), 1);
}
