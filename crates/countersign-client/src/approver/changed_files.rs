//! The files that a patch changes, for a summary of it. Lines inside a hunk are never taken for
//! names of files.

use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileChange {
    Create,
    Edit,
    Delete,
    Rename,
    /// It is not known which.
    Change,
}

pub(super) struct ChangedFile {
    pub change: FileChange,
    pub path: String,
    /// Of a renamed file.
    pub from: String,
}

/// The files that an agent's machine lists.
pub(super) fn named_files(payload: &Map<String, Value>) -> Vec<ChangedFile> {
    let directory = payload.get("directory").and_then(Value::as_str);
    let base = directory.map(|it| format!("{it}/")).filter(|it| it != "/");
    let files = payload.get("files").and_then(Value::as_array);
    let mut found = Vec::new();
    for file in files.into_iter().flatten() {
        let Some(path) = file["path"].as_str().filter(|it| !it.is_empty()) else {
            continue;
        };
        let inside = base.as_deref().and_then(|base| path.strip_prefix(base));
        let is_new = file.get("sha256").is_some_and(Value::is_null);
        let change = if is_new {
            FileChange::Create
        } else {
            FileChange::Change
        };
        let path = inside.unwrap_or(path).to_owned();
        found.push(ChangedFile {
            change,
            path,
            from: String::new(),
        });
    }
    found
}

pub(super) fn changed_files(patch: &str) -> Vec<ChangedFile> {
    let mut reader = PatchReader::default();
    let mut lines = patch.split('\n').peekable();
    while let Some(line) = lines.next() {
        if reader.is_content(line) {
            continue;
        }
        if let Some(names) = line.strip_prefix("diff --git ") {
            reader.begin(git_path(names));
        } else if let Some(name) = line.strip_prefix("rename from ") {
            reader.rename_from(name);
        } else if let Some(name) = line.strip_prefix("rename to ") {
            reader.name(FileChange::Rename, name);
        } else if let Some(name) = line.strip_prefix("copy to ") {
            reader.name(FileChange::Create, name);
        } else if line.starts_with("new file mode ") {
            reader.change(FileChange::Create);
        } else if line.starts_with("deleted file mode ") {
            reader.change(FileChange::Delete);
        } else if let (Some(old), Some(new)) = (
            line.strip_prefix("--- "),
            lines.peek().and_then(|next| next.strip_prefix("+++ ")),
        ) {
            reader.both(file_name(old, "a/"), file_name(new, "b/"));
            lines.next();
        } else if line.starts_with("@@ -") {
            reader.hunk(line);
        }
    }
    let mut files = reader.files;
    files.retain(|file| !file.path.is_empty());
    files
}

#[derive(Default)]
struct PatchReader {
    files: Vec<ChangedFile>,
    /// Lines of the hunk that are still to come, of the old and of the new file.
    left: (u64, u64),
    /// The last file has been begun by `diff --git`, and has no names of its own yet.
    is_open: bool,
}

impl PatchReader {
    fn is_content(&mut self, line: &str) -> bool {
        let (old, new) = self.left;
        if old == 0 && new == 0 {
            return false;
        }
        let taken = match line.chars().next() {
            None | Some(' ') => (1, 1),
            Some('-') => (1, 0),
            Some('+') => (0, 1),
            Some('\\') => (0, 0),
            Some(_) => {
                self.left = (0, 0);
                return false;
            }
        };
        self.left = (old.saturating_sub(taken.0), new.saturating_sub(taken.1));
        true
    }

    fn begin(&mut self, path: String) {
        self.is_open = true;
        self.files.push(ChangedFile {
            change: FileChange::Edit,
            from: path.clone(),
            path,
        });
    }

    fn change(&mut self, change: FileChange) {
        if let Some(file) = self.files.last_mut().filter(|_| self.is_open) {
            file.change = change;
        }
    }

    fn rename_from(&mut self, name: &str) {
        if let Some(file) = self.files.last_mut().filter(|_| self.is_open) {
            name.clone_into(&mut file.from);
        }
    }

    fn name(&mut self, change: FileChange, name: &str) {
        if let Some(file) = self.files.last_mut().filter(|_| self.is_open) {
            file.change = change;
            name.clone_into(&mut file.path);
        }
    }

    fn both(&mut self, old: Option<String>, new: Option<String>) {
        if !self.is_open {
            self.begin(String::new());
            if let (Some(old), Some(new)) = (&old, &new)
                && old != new
            {
                self.change(FileChange::Rename);
            }
        }
        if old.is_none() {
            self.change(FileChange::Create);
        } else if new.is_none() {
            self.change(FileChange::Delete);
        }
        self.is_open = false;
        if let Some(file) = self.files.last_mut() {
            file.from = old.clone().unwrap_or_default();
            file.path = new.or(old).unwrap_or_default();
        }
    }

    /// `@@ -1,2 +3,4 @@`; a count that is missing is one.
    fn hunk(&mut self, line: &str) {
        let mut parts = line.split(' ').skip(1);
        let mut count = |sign: char| {
            let range = parts.next()?.strip_prefix(sign)?;
            range
                .split_once(',')
                .map_or(Some(1), |(_, it)| it.parse().ok())
        };
        if let (Some(old), Some(new)) = (count('-'), count('+')) {
            self.left = (old, new);
        }
        self.is_open = false;
    }
}

/// `a/NAME b/NAME`: nothing if the names differ, since other lines then say them.
fn git_path(names: &str) -> String {
    let half = names.len().saturating_sub(1) / 2;
    let (old, new) = (names.get(..half), names.get(half + 1..));
    let old = old.and_then(|it| it.strip_prefix("a/"));
    let new = new.and_then(|it| it.strip_prefix("b/"));
    match (old, new) {
        (Some(old), Some(new)) if old == new => old.to_owned(),
        _ => String::new(),
    }
}

fn file_name(text: &str, prefix: &str) -> Option<String> {
    let name = text.split('\t').next().unwrap_or_default();
    (name != "/dev/null").then(|| name.strip_prefix(prefix).unwrap_or(name).to_owned())
}
