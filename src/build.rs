//! Runs when the program is built: lists the files of the page without their comments, and makes a release smaller.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

type BuildResult<T> = Result<T, Box<dyn Error>>;

const PAGE: &str = "web";

fn main() -> BuildResult<()> {
    pack_relocations();
    if env::var_os("CARGO_FEATURE_GATEWAY").is_none() {
        return Ok(());
    }
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={PAGE}");
    let mut names = Vec::new();
    let page = root.join(PAGE);
    list(&page, &page, &mut names)?;
    names.sort();
    let mut code = "&[\n".to_owned();
    for name in names {
        let mut path = page.join(&name);
        if path.extension().is_some_and(|it| it == "js") && !name.starts_with("vendor/") {
            let module = without_comments(&fs::read_to_string(&path)?);
            path = out.join(PAGE).join(&name);
            fs::create_dir_all(path.parent().ok_or("a module is in a directory")?)?;
            fs::write(&path, module)?;
        }
        let path = path.to_str().ok_or("the project's path is not UTF-8")?;
        writeln!(code, "    ({name:?}, include_bytes!({path:?})),")?;
    }
    code.push_str("]\n");
    fs::write(out.join("page_files.rs"), code)?;
    Ok(())
}

/// Saves 1.4 MB of a release. The loader of glibc knows the format since 2.36, which the systems that we name have.
fn pack_relocations() {
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|it| it == value);
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if is_glibc && is("PROFILE", "release") {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn list(page: &Path, directory: &Path, names: &mut Vec<String>) -> BuildResult<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.strip_prefix(page)?.to_str();
        let name = name.ok_or("a file of the page has a name that is not UTF-8")?;
        if path.is_dir() && name != "tests" {
            list(page, &path, names)?;
        } else if path.is_file() && !is_for_tools(name) {
            names.push(name.to_owned());
        }
    }
    Ok(())
}

/// A module without the comments that begin a line, which are a quarter of what a browser loads. Nothing is a comment inside a template
/// of several lines, which begins at the end of a line.
fn without_comments(module: &str) -> String {
    let mut kept = String::with_capacity(module.len());
    let mut is_template = false;
    let mut lines = module.lines();
    while let Some(line) = lines.next() {
        let start = line.trim_start();
        let rest = if is_template || !(start.starts_with("//") || start.starts_with("/**")) {
            line
        } else if start.starts_with("//") {
            ""
        } else {
            let mut block = std::iter::once(line).chain(lines.by_ref());
            let ending = block.find_map(|line| line.split_once("*/"));
            ending.map_or("", |(_, rest)| rest.trim_start())
        };
        if is_template || !rest.is_empty() {
            let is_odd = rest.matches('`').count() % 2 == 1;
            is_template = is_odd != is_template && (is_template || rest.ends_with('`'));
            kept.push_str(rest);
            kept.push('\n');
        }
    }
    kept
}

/// Read by the compiler and the tests, not by browsers.
fn is_for_tools(name: &str) -> bool {
    let tools = [
        "biome.json",
        "package.json",
        "tsconfig.json",
        "vendor/README.md",
    ];
    name.ends_with(".d.ts") || tools.contains(&name)
}
