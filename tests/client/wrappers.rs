use countersign::client::shell::wrappers::runs_another;

#[test]
fn programs_that_run_another_are_known_by_name_path_and_version() {
    for program in [
        "bash",
        "/bin/sh",
        "./env",
        "/usr/bin/env",
        "sudo",
        "xargs",
        "bash-5.2",
        "bash5",
        "ksh93",
        "BASH",
        "cmd.exe",
        "/lib64/ld-linux-x86-64.so.2",
        "FOO=bar",
        "PATH=/tmp",
        "-c",
        "",
        "/usr/bin/",
        "find",
        "timeout",
        ".",
    ] {
        assert!(runs_another(program), "{program}");
    }
}

#[test]
fn programs_that_only_look_like_them_are_not() {
    for program in [
        "git",
        "/usr/bin/git",
        "make",
        "ls",
        "cargo",
        "python3",
        "envsubst",
        "shasum",
        "7z",
    ] {
        assert!(!runs_another(program), "{program}");
    }
}
