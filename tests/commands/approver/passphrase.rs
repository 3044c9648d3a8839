//! Keys under a passphrase: they are used with it, and without it by nobody.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{Ran, asked, prepared, run};
use crate::client::people::{ClientScene, command};

/// As a file of one's own.
fn write(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// The same command with a passphrase from a file.
fn with(world: &ClientScene, passphrase: &str, arguments: &[&str]) -> Ran {
    let file = world.directory.path().join("passphrase");
    write(&file, &format!("{passphrase}\nnot this line\n"));
    let mut command = prepared(world, "laptop", arguments);
    command.env("COUNTERSIGN_PASSPHRASE_FILE", file);
    command.output().unwrap().into()
}

fn set(world: &ClientScene, current: Option<&str>, new: &str) -> Ran {
    let file = world.directory.path().join("new");
    write(&file, new);
    let arguments = ["passphrase", "--new-file", file.to_str().unwrap()];
    match current {
        Some(current) => with(world, current, &arguments),
        None => run(world, "laptop", &arguments),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passphrase_is_needed_for_everything_that_uses_the_keys() {
    let (world, asking) = asked(command(&["git", "push"])).await;
    let file = world.file("laptop");
    let text = || std::fs::read_to_string(file.path()).unwrap();
    let plain = text();
    let key = plain.split("signing_key = \"").nth(1).unwrap();
    let key = key.split('"').next().unwrap().to_owned();

    let short = set(&world, None, "1234567").expect(64);
    assert!(short.err.contains("at least 8"), "{}", short.err);
    assert_eq!(text(), plain, "nothing was changed");
    set(&world, None, "correct horse battery").expect(0);
    assert!(!text().contains(&key) && !text().contains("decryption_key"));

    for arguments in [
        &["inbox"][..],
        &["devices"],
        &["pairings"],
        &["approve", "x"],
    ] {
        let refused = run(&world, "laptop", arguments).expect(78);
        assert!(
            refused.err.contains("COUNTERSIGN_PASSPHRASE_FILE"),
            "{}",
            refused.err
        );
        let refused = with(&world, "correct horse", arguments).expect(78);
        assert!(refused.err.contains("wrong passphrase"), "{}", refused.err);
    }
    let id = asking.request_id.clone();
    with(&world, "correct horse battery", &["approve", &id]).expect(0);
    asking.end().await.1.unwrap();

    set(&world, Some("wrong"), "another passphrase").expect(78);
    set(&world, Some("correct horse battery"), "another passphrase").expect(0);
    with(&world, "correct horse battery", &["inbox"]).expect(78);
    with(&world, "another passphrase", &["inbox"]).expect(0);
    run(&world, "laptop", &["passphrase", "--remove"]).expect(78);
    let file_of = world.directory.path().join("exposed");
    write(&file_of, "another passphrase");
    std::fs::set_permissions(&file_of, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut exposed = prepared(&world, "laptop", &["inbox"]);
    exposed.env("COUNTERSIGN_PASSPHRASE_FILE", &file_of);
    let exposed = Ran::from(exposed.output().unwrap()).expect(78);
    assert!(exposed.err.contains("chmod 600"), "{}", exposed.err);
    with(&world, "another passphrase", &["passphrase", "--remove"]).expect(0);
    run(&world, "laptop", &["inbox"]).expect(0);
    assert!(text().contains(&key), "the same device");
}

#[tokio::test(flavor = "multi_thread")]
async fn sealed_keys_are_those_of_the_device_that_the_profile_names() {
    let (world, asking) = asked(command(&["git", "push"])).await;
    set(&world, None, "correct horse battery").expect(0);
    let other = world.approver("bob", "other").await;
    let file = world.file("laptop");
    let text = std::fs::read_to_string(file.path()).unwrap();
    let (before, rest) = text.split_once("bundle = \"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    let swapped = other.bundle().to_text().unwrap();
    std::fs::write(
        file.path(),
        format!("{before}bundle = \"{swapped}\"{after}"),
    )
    .unwrap();
    with(&world, "correct horse battery", &["inbox"]).expect(78);
    std::fs::write(file.path(), &text).unwrap();
    with(&world, "correct horse battery", &["inbox"]).expect(0);
    let id = asking.request_id.clone();
    with(&world, "correct horse battery", &["reject", &id]).expect(0);
    assert!(asking.end().await.1.is_err());
}
