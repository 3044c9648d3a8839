//! The names of environment variables.

use figment::providers::Env;

pub(super) const ENV_PREFIX: &str = "COUNTERSIGN_";

/// Variables with our prefix that are not keys: the command line and `countersign dev` read them.
const OTHER_VARIABLES: [&str; 4] = ["config_file", "postgres_bin", "profile", "profiles"];

/// The variable that sets a key, or `COUNTERSIGN_SECTION__…` for a whole section.
pub(super) fn variable(path: &[String]) -> String {
    let rest = if path.len() == 1 { "__…" } else { "" };
    let name = path.join("__").to_uppercase();
    format!("{ENV_PREFIX}{name}{rest}")
}

/// The variables with our prefix that name no section, in lower case and without the prefix. They
/// may belong to a script around the gateway, so they are no error.
pub(super) fn variables_without_section() -> Vec<String> {
    let variables = Env::prefixed(ENV_PREFIX).ignore(&OTHER_VARIABLES);
    let variables = variables.filter(|name| !name.as_str().contains("__"));
    variables.iter().map(|(name, _)| name.to_string()).collect()
}
