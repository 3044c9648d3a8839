//! Warnings before a hook is installed.

use std::path::Path;

use countersign::agent::Agent;
use countersign::agent::install::hooks::InstallRequest;
use countersign::agent::install::places::InstallScope;
use countersign::client::profile::ProfileFile;

pub fn warnings(agent: Agent, request: &InstallRequest) -> anyhow::Result<Vec<String>> {
    let mut warnings = Vec::new();
    if request.remove {
        return Ok(warnings);
    }
    let program = request.hook.program.display();
    if is_passing(&request.hook.program) {
        warnings.push(format!(
            "{program} is in a temporary or build directory. If it disappears, every call is denied: install the program \
             first, for example in /usr/local/bin"
        ));
    }
    if request.hook.limiter.is_none() && !agent.definition().limits_hook {
        warnings.push(
            "this system has no timeout command, so only the agent can end a hook that hangs, and some agents then go ahead \
             with the call"
                .to_owned(),
        );
    }
    if request.scope == InstallScope::Project {
        warnings.push(format!(
            "a project's files are shared: they will name {program}, which must exist wherever they are used"
        ));
    }
    if request.hook.guard.is_some() {
        // The guard has the profile.
        return Ok(warnings);
    }
    let name = request.hook.profile.clone();
    let name = name.or_else(|| std::env::var("COUNTERSIGN_PROFILE").ok());
    let file = ProfileFile::named(name.as_deref().unwrap_or("default"))?;
    match file.load() {
        Ok(profile) if profile.enforcer.is_some() => {}
        Ok(_) => warnings.push(format!(
            "the profile {} has no enforcer, so every call is denied until you join: countersign join LINK",
            file.path().display()
        )),
        Err(error) => warnings.push(format!("every call is denied for now: {error}")),
    }
    Ok(warnings)
}

/// Whether a program is in a place where it will not stay.
pub fn is_passing(program: &Path) -> bool {
    let own = std::env::temp_dir();
    let temporary = [Path::new("/tmp"), Path::new("/var/tmp"), &own];
    let is_built = program
        .components()
        .any(|part| part.as_os_str() == "target");
    is_built || temporary.iter().any(|place| program.starts_with(place))
}
