//! The embedded files: all of `web` but its tests and comments, linked with each other, and small.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use countersign::page::{page, policy};

/// The files that load first, compressed, in bytes.
const FIRST_LOAD: usize = 100 << 10;

fn text(name: &str) -> String {
    let file = page().versioned.get(name).or(page().fixed.get(name));
    let file = file.unwrap_or_else(|| panic!("no {name}"));
    String::from_utf8(file.content.to_vec()).unwrap()
}

/// Resolves `link` in the file of this name.
fn resolved(from: &str, link: &str) -> String {
    let mut parts: Vec<_> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop().unwrap()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// The modules that a module names: those that load with it, and those that load when they are
/// needed.
fn imports(name: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let text = text(name);
    let code = text.lines().filter(|line| {
        let line = line.trim_start();
        !line.starts_with("//") && !line.starts_with('*') && !line.starts_with("/*")
    });
    let (mut with, mut later) = (BTreeSet::new(), BTreeSet::new());
    for line in code {
        for (opening, found) in [("from \".", &mut with), ("import(\".", &mut later)] {
            for rest in line.split(opening).skip(1) {
                let link = rest.split('"').next().unwrap();
                found.insert(resolved(name, &format!(".{link}")));
            }
        }
    }
    (with, later)
}

fn is_a(extension: &str, name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|it| it == extension)
}

/// The lines of a module but for comments and empty ones. A comment that ends within a line of code
/// is taken out of it.
fn without_comments(module: &str) -> String {
    let mut is_comment = false;
    let mut kept = Vec::new();
    for line in module.lines() {
        let start = line.trim_start();
        is_comment |= start.starts_with("/**");
        let code = match start.split_once("*/") {
            Some((_, code)) if is_comment => code.trim_start(),
            _ if is_comment || start.starts_with("//") => "",
            _ => line,
        };
        is_comment &= !start.contains("*/");
        if !code.is_empty() {
            kept.push(code.to_owned() + "\n");
        }
    }
    kept.concat()
}

#[test]
fn all_of_the_page_is_embedded_and_nothing_else() {
    let root = Path::new(crate::deployment::ROOT).join("web");
    let mut directories = vec![root.clone()];
    let mut expected = BTreeMap::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(&root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if [
                "tests",
                "biome.json",
                "bytes.d.ts",
                "vendor/README.md",
                "vendor/decode.d.ts",
                "package.json",
                "tsconfig.json",
            ]
            .contains(&name.as_str())
            {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else {
                let mut content = std::fs::read(path).unwrap();
                if is_a("js", &name) && !name.starts_with("vendor/") {
                    content = without_comments(&String::from_utf8(content).unwrap()).into();
                }
                expected.insert(name, content);
            }
        }
    }
    expected.remove("index.html").unwrap();
    let files = page().versioned.iter().chain(&page().fixed);
    let embedded = files.map(|(name, file)| (name.clone(), file.content.to_vec()));
    assert_eq!(embedded.collect::<BTreeMap<_, _>>(), expected);
    let routes = countersign::http::routes();
    for name in page().fixed.keys() {
        let path = match name.split_once('/') {
            Some((directory, _)) => format!("/{directory}/{{file}}"),
            None => format!("/{name}"),
        };
        assert!(routes.iter().any(|(_, at)| *at == path), "no route {path}");
    }
}

#[test]
fn every_link_of_the_page_leads_to_a_file() {
    let index = std::str::from_utf8(&page().index.content).unwrap();
    let mut links = Vec::new();
    for attribute in [" href=\"", " src=\""] {
        let found = index.split(attribute).skip(1);
        links.extend(found.map(|rest| rest.split('"').next().unwrap()));
    }
    assert!(links.len() >= 5, "{links:?}");
    let directory = format!("page/{}/", page().version);
    for link in links {
        let found = match link.strip_prefix(&directory) {
            Some(name) => page().versioned.contains_key(name),
            None => page().fixed.contains_key(link),
        };
        assert!(found, "{link}");
    }
    for name in page().versioned.keys().filter(|name| is_a("js", name)) {
        let (with, later) = imports(name);
        for module in with.iter().chain(&later) {
            assert!(page().versioned.contains_key(module), "{name}: {module}");
        }
    }
}

#[test]
fn what_loads_first_is_small() {
    let mut waiting = vec!["app.js".to_owned(), "views/inbox.js".to_owned()];
    let mut first = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        if first.insert(name.clone()) {
            waiting.extend(imports(&name).0);
        }
    }
    assert!(
        first.contains("views/inboxlist.js") && first.len() > 50,
        "{first:?}"
    );
    let styles = page().versioned.keys().filter(|name| is_a("css", name));
    first.extend(styles.cloned());
    let size = |name: &String| {
        let file = &page().versioned[name];
        file.gzipped().unwrap_or(&file.content).len()
    };
    let size = first.iter().map(size).sum::<usize>() + page().index.gzipped().unwrap().len();
    assert!(size < FIRST_LOAD, "{size} bytes: {first:?}");
}

#[test]
fn the_policy_allows_what_the_page_does_and_no_more() {
    let mut policies = BTreeSet::new();
    for name in page().versioned.keys().chain(page().fixed.keys()) {
        if is_a("png", name) {
            continue;
        }
        let text = text(name);
        let found = text.split("createPolicy(\"").skip(1);
        policies.extend(found.map(|rest| rest.split('"').next().unwrap().to_owned()));
        for banned in [
            "innerHTML",
            "eval(",
            "new Function",
            "setAttribute(\"style\"",
            "insertAdjacentHTML",
        ] {
            assert!(!text.contains(banned), "{name}: {banned}");
        }
    }
    let policy = policy(["https://id.example.com", "wss://other.example.com"]);
    let rule = |name: &str| {
        let mut rules = policy.split("; ").filter_map(|rule| rule.split_once(' '));
        rules.find(|(rule, _)| *rule == name).unwrap().1.to_owned()
    };
    let policies = policies.into_iter().collect::<Vec<_>>();
    assert_eq!(rule("trusted-types"), policies.join(" "));
    assert_eq!(
        rule("connect-src"),
        "'self' https://id.example.com wss://other.example.com"
    );
    let index = std::str::from_utf8(&page().index.content).unwrap();
    assert!(!index.contains("<style") && !index.contains("<script>") && !index.contains(" style="));
}
