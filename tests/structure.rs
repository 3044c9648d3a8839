//! The shape of the code: files stay short, and no two of them import each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module: its crate, then its path.
type Module = Vec<String>;

const MAX_LINES: usize = 400;
/// Crates that the program re-exports under another name.
const ALIASES: [(&str, &[&str]); 6] = [
    ("agent", &["countersign_agents"]),
    ("client", &["countersign_client"]),
    ("clock", &["countersign_protocol", "clock"]),
    ("e2e", &["countersign_e2e"]),
    ("jitter", &["countersign_protocol", "jitter"]),
    ("protocol", &["countersign_protocol"]),
];

fn sources() -> Vec<(Module, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut roots = vec![(root.join("src"), "countersign".to_owned())];
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let name = path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .replace('-', "_");
        roots.push((path.join("src"), name));
    }
    let mut found = Vec::new();
    for (start, name) in roots {
        let mut directories = vec![start.clone()];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|it| it == "rs") {
                    let inner = path.strip_prefix(&start).unwrap().with_extension("");
                    let parts = inner.iter().map(|part| part.to_str().unwrap().to_owned());
                    let parts = parts.filter(|part| !["mod", "lib", "main"].contains(&&**part));
                    let parts: Vec<_> = parts.collect();
                    let is_binary = parts
                        .first()
                        .is_some_and(|it| it == "commands" || it == "dev");
                    let own = if is_binary { "binary" } else { &name };
                    let module = [own.to_owned()].into_iter().chain(parts).collect();
                    let text = std::fs::read_to_string(&path).unwrap();
                    let shown = path.strip_prefix(root).unwrap().display().to_string();
                    found.push((module, shown, text));
                }
            }
        }
    }
    found
}

/// The paths that a `use` names, each with the name that it gets.
fn expand(tree: &str, prefix: &[String], found: &mut Vec<(Module, String)>) {
    let tree = tree.trim();
    if let Some((head, inner)) = tree.split_once('{') {
        let head = head
            .split("::")
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let prefix: Module = prefix
            .iter()
            .cloned()
            .chain(head.map(str::to_owned))
            .collect();
        let inner = inner.strip_suffix('}').unwrap_or(inner);
        let (mut depth, mut start) = (0, 0);
        for (at, character) in inner.char_indices() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    expand(&inner[start..at], &prefix, found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        expand(&inner[start..], &prefix, found);
    } else if !tree.is_empty() {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let parts = path.split("::").map(|part| part.trim().to_owned());
        let mut parts: Module = prefix.iter().cloned().chain(parts).collect();
        if parts.last().is_some_and(|last| last == "self") {
            parts.pop();
        }
        let name = if alias.is_empty() {
            parts.last().unwrap()
        } else {
            alias
        };
        let name = name.trim().to_owned();
        found.push((parts, name));
    }
}

struct SourceFile {
    shown: String,
    /// Without comments and imports.
    code: String,
    /// Public imports.
    facades: BTreeSet<String>,
    imports: BTreeMap<String, Module>,
    items: BTreeSet<String>,
}

fn read(shown: String, text: &str) -> SourceFile {
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    let text = lines.collect::<Vec<_>>().join("\n");
    let (mut code, mut imports, mut facades) = (String::new(), BTreeMap::new(), BTreeSet::new());
    let mut items = BTreeSet::new();
    let mut pending = String::new();
    for line in text.lines() {
        let bare = line.trim_start();
        let (is_public, inner) = match bare.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => {
                (true, rest.split_once(") ").map_or("", |it| it.1))
            }
            Some(rest) if rest.starts_with(' ') => (true, rest.trim_start()),
            _ => (false, bare),
        };
        if !pending.is_empty() || inner.starts_with("use ") {
            if pending.is_empty() {
                pending = format!("{}{}", if is_public { "+" } else { "-" }, &inner[4..]);
            } else {
                pending.push_str(bare);
            }
            if let Some(tree) = pending.strip_suffix(';') {
                let mut paths = Vec::new();
                expand(&tree[1..], &[], &mut paths);
                for (path, name) in paths {
                    if tree.starts_with('+') {
                        facades.insert(name.clone());
                    }
                    imports.insert(name, path);
                }
                pending.clear();
            }
            continue;
        }
        let mut words = inner.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '!');
        let mut word = words.next().unwrap_or_default();
        while ["async", "const", "unsafe"].contains(&word) {
            let next = words.next().unwrap_or_default();
            if next
                .chars()
                .all(|c| c.is_uppercase() || c.is_numeric() || c == '_')
            {
                items.insert(next.to_owned());
            }
            word = next;
        }
        let kinds = [
            "struct",
            "enum",
            "trait",
            "type",
            "fn",
            "static",
            "macro_rules!",
        ];
        if kinds.contains(&word) {
            items.extend(words.next().map(str::to_owned));
        }
        if !inner.starts_with("mod ") {
            code.push_str(line);
            code.push('\n');
        }
    }
    SourceFile {
        shown,
        code,
        facades,
        imports,
        items,
    }
}

fn absolute(path: &[String], at: &Module, files: &BTreeMap<Module, SourceFile>) -> Option<Module> {
    let own = |parts: &[String]| parts.to_vec();
    let found = match path.first()?.as_str() {
        "crate" => [own(&at[..1]), own(&path[1..])].concat(),
        "self" => [own(at), own(&path[1..])].concat(),
        "super" => {
            let up = path.iter().take_while(|part| *part == "super").count();
            [own(&at[..at.len().checked_sub(up)?]), own(&path[up..])].concat()
        }
        first if first.starts_with("countersign") => own(path),
        first => {
            let child = [own(at), vec![first.to_owned()]].concat();
            files
                .contains_key(&child)
                .then(|| [own(at), own(path)].concat())?
        }
    };
    let alias = |(name, to): &(&str, &[&str])| {
        let is_alias = found[0] == "countersign" && found.get(1).is_some_and(|it| it == name);
        let to = to.iter().map(|part| (*part).to_owned());
        is_alias.then(|| to.chain(found[2..].iter().cloned()).collect())
    };
    Some(ALIASES.iter().find_map(alias).unwrap_or(found))
}

/// The file that defines an item; `None` for a module, or for something of another crate.
fn owner(path: &[String], files: &BTreeMap<Module, SourceFile>, depth: usize) -> Option<Module> {
    if depth > 8 || files.contains_key(path) {
        return None;
    }
    let at = (1..path.len())
        .rev()
        .find(|length| files.contains_key(&path[..*length]))?;
    let (module, name) = (path[..at].to_vec(), &path[at]);
    let file = &files[&module];
    match file.imports.get(name) {
        Some(import) if !file.items.contains(name) => {
            let target = absolute(import, &module, files)?;
            owner(&[&target[..], &path[at + 1..]].concat(), files, depth + 1)
        }
        // A root only declares modules: an unknown name in it is a macro's, or a word of a text.
        _ => (module.len() > 1 || file.items.contains(name)).then_some(module),
    }
}

fn imports_of(at: &Module, files: &BTreeMap<Module, SourceFile>) -> BTreeSet<Module> {
    let file = &files[at];
    let mut paths = BTreeSet::new();
    for (name, path) in &file.imports {
        let is_used = file
            .code
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|it| it == name);
        if is_used || !file.facades.contains(name) {
            paths.extend(absolute(path, at, files));
        }
    }
    let separator = |c: char| !c.is_alphanumeric() && c != '_' && c != ':';
    for word in file
        .code
        .split(separator)
        .filter(|word| word.contains("::"))
    {
        let parts = word.split("::").filter(|part| !part.is_empty());
        let parts: Module = parts
            .map(|part| part.trim_matches(':').to_owned())
            .collect();
        let first = parts.first().and_then(|first| file.imports.get(first));
        let path = match first {
            Some(import) => absolute(import, at, files).map(|it| [&it[..], &parts[1..]].concat()),
            None => absolute(&parts, at, files),
        };
        paths.extend(path);
    }
    let owners = paths.iter().filter_map(|path| owner(path, files, 0));
    owners.filter(|owner| owner != at).collect()
}

#[test]
fn files_are_short() {
    let long = sources()
        .into_iter()
        .filter(|(_, _, text)| text.lines().count() > MAX_LINES);
    let long: Vec<_> = long.map(|(_, shown, _)| shown).collect();
    assert!(long.is_empty(), "longer than {MAX_LINES} lines: {long:?}");
}

#[test]
fn no_files_import_each_other() {
    let files: BTreeMap<_, _> = sources()
        .into_iter()
        .map(|(module, shown, text)| (module, read(shown, &text)))
        .collect();
    let mut edges: BTreeMap<_, _> = files
        .keys()
        .map(|at| (at, imports_of(at, &files)))
        .collect();
    assert!(
        edges.values().map(BTreeSet::len).sum::<usize>() > 1_000,
        "{}",
        edges.len()
    );
    // A file that imports nothing that is left, or that nothing left imports, is in no circle.
    loop {
        let imported: BTreeSet<_> = edges.values().flatten().cloned().collect();
        let left: BTreeSet<_> = edges.keys().map(|at| (*at).clone()).collect();
        let before = edges.len();
        edges.retain(|at, to| !to.is_disjoint(&left) && imported.contains(*at));
        if edges.len() == before {
            break;
        }
    }
    let circles: Vec<_> = edges
        .iter()
        .map(|(at, to)| {
            let to = to
                .iter()
                .filter(|to| edges.contains_key(to))
                .map(|to| &files[to].shown);
            format!("{} imports {:?}", files[*at].shown, to.collect::<Vec<_>>())
        })
        .collect();
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn only_the_transport_knows_axum() {
    for (module, shown, text) in sources() {
        let is_transport = module
            .get(1)
            .is_some_and(|part| ["http", "app"].contains(&&**part));
        assert!(is_transport || !text.contains("axum"), "{shown}");
    }
}
