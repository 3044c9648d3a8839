//! Runs when the program is built: lists the files of the page, and makes a release smaller.

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
        let path = page.join(&name);
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
