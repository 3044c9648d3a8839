//! nginx takes the configuration we ship without a warning.

use std::process::Command;

use super::read;
use crate::support::tls::{Authority, Files};

/// nginx, which is not on every user's PATH.
fn nginx() -> Command {
    let usual = "/usr/sbin/nginx";
    let found = std::path::Path::new(usual).exists();
    Command::new(if found { usual } else { "nginx" })
}

/// The version that is installed, as numbers.
fn version() -> Vec<u32> {
    let output = nginx().arg("-v").output().expect("nginx is installed");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, version) = said.split_once("nginx/").expect("a version");
    let numbers = version.split(|c: char| !c.is_ascii_digit());
    numbers.map_while(|number| number.parse().ok()).collect()
}

#[test]
fn nginx_takes_its_configuration_without_a_warning() {
    let mut text = read("deploy/nginx/nginx.conf");
    let (line, old) = ("        http2 on;\n", "listen 8443 ssl http2;");
    assert!(text.contains(line) && text.contains(&format!("`{old}`")));
    if version() < vec![1, 25, 1] {
        // As its comment says.
        text = text.replace(line, "").replace("listen 8443 ssl;", old);
    }
    let pair = Authority::new("servers").server();
    let files = Files::with(&pair);
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path().display();
    let certificate = files.put("nginx-cert.pem", &pair.certificate);
    let key = files.put("nginx-key.pem", &pair.key);
    let text = text
        .replace("/etc/countersign/cert.pem", certificate.to_str().unwrap())
        .replace("/etc/countersign/key.pem", key.to_str().unwrap())
        .replace("/var/log/nginx/access.log", &format!("{here}/access.log"))
        // Warnings are told here, though not in production.
        .replace("error_log stderr crit;", "error_log stderr warn;");
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let paths = kinds.map(|kind| format!("    {kind}_temp_path {here}/{kind};\n"));
    let text = text.replacen("http {\n", &format!("http {{\n{}", paths.concat()), 1);
    let output = nginx()
        .args(["-t", "-g", &format!("pid {here}/pid;"), "-c"])
        .arg(files.put("nginx.conf", &text))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && !said.contains("[warn]"),
        "{said}"
    );
}
