//! Files that are never free: Countersign's own, the settings of the hooks, and secrets.

use std::path::{Component, Path, PathBuf};

use crate::agent::Agent;
use crate::event::ToolAction;

/// Where the agent works. All but `directory` with links followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkDirectories {
    /// As the agent names it.
    pub directory: PathBuf,
    /// The repository that it is in, or the directory itself.
    pub project: PathBuf,
    pub home: Option<PathBuf>,
    /// Countersign's own files: profiles with keys, and the policy.
    pub own: PathBuf,
    /// The program that asks.
    pub program: Option<PathBuf>,
    /// Directories that agents use instead of the usual one, such as `.claude`, and which one that
    /// is.
    pub moved: Vec<(PathBuf, &'static str)>,
}

/// A file or directory that a call names: as it is written, and where it really is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPath {
    pub path: PathBuf,
    pub real: PathBuf,
}

/// Settings that decide whether agents ask, besides those of each agent.
const OWN_SETTINGS: [&str; 2] = [".countersign.toml", ".env"];

/// A change of these makes an agent, git, a shell, an editor or a build tool run something later,
/// without being told to. Reading them does no harm. `*` stands for the end of a name, or for its
/// beginning.
const RUN_LATER: &str = "
    *.code-workspace *.pth *.sublime-project .aider.conf.yml .amazonq .amp .augment .autoenv*
    .bash_login .bash_logout .bash_profile .bashrc .bazeliskrc .bazelrc .bazelversion .buildkite
    .bundle/config .cargo/config .cargo/config.toml .circleci .cirrus.yml .claude .clinerules
    .codex .config/autostart .config/dotnet-tools.json .config/fish .config/git .config/lefthook*
    .config/mise* .config/systemd/user .continue .copilot .crush* .cursor .devcontainer
    .devcontainer.json .dir-locals-2.el .dir-locals.el .direnv .drone.yml .envrc .eslintrc* .exrc
    .factory .fleet .forgejo/workflows .gdbinit .gemini .git .gitconfig .gitea/workflows .githooks
    .github/actions .github/workflows .gitlab-ci.yaml .gitlab-ci.yml .gitmodules .gitpod.yml .helix
    .hg .husky .idea .iflow .irbrc .jj .junie .kiro .lazy.lua .lefthook* .lintstagedrc* .lldbinit
    .local.vimrc .local/bin .local/lib .lvimrc .mcp.json .mise .mise.local.toml .mise.toml .mvn
    .npmrc .nvim .nvim.lua .nvimrc .opencode .openhands .overcommit.yml .pdbrc .pnp.cjs .pnp.js
    .pnp.loader.mjs .pnpmfile.cjs .pre-commit-config.yaml .prettierrc* .profile .pryrc .pylintrc
    .pypirc .pythonrc .qwen .roo .ropeproject .rspec .rubocop.yml .sl .stylelintrc* .tool-versions
    .trae .travis.yml .vim .vimrc .vs .vscode .windsurf .woodpecker* .yarn/plugins .yarn/releases
    .yarn/sdks .yarn/unplugged .yarnrc .yarnrc.yml .zed .zlogin .zlogout .zprofile .zshenv .zshrc
    Directory.Build.props Directory.Build.rsp Directory.Build.targets Directory.Packages.props
    Jenkinsfile appveyor.yml azure-pipelines.yaml azure-pipelines.yml bitbucket-pipelines.yml
    bunfig.toml commitlint.config.* crush.json default.nix devbox.json devenv.nix eslint.config.*
    flake.nix global.json gradle.properties gradle/wrapper gradlew lefthook* lint-staged.config.*
    mise.local.toml mise.toml mvnw nuget.config pnpm-workspace.yaml prettier.config.* pylintrc
    rust-toolchain rust-toolchain.toml shell.nix sitecustomize.py stylelint.config.* tools/bazel
    usercustomize.py
";

/// A change of these makes git or a program of the project run something. As words of a command
/// they are common.
const EDITED: &str = ".venv HEAD node_modules venv";

/// In the home directory.
const SECRETS: &str = "
    .aws .azure .config/gcloud .config/gh .docker/config.json .git-credentials .gnupg .kube
    .netrc .npmrc .password-store .pypirc .ssh
";

impl WorkDirectories {
    /// An absolute path without `.` and `..`, links not followed; `~/` is the home directory.
    pub fn absolute(&self, text: &str) -> PathBuf {
        let written = self.expanded(text);
        normal(&written.unwrap_or_else(|| self.directory.join(text)))
    }

    /// Every path that it can mean, with `..` left in it: some agents know `~/` and `file://`, to
    /// others they are names like any other.
    pub fn readings(&self, text: &str) -> Vec<PathBuf> {
        let literal = self.directory.join(text);
        [literal].into_iter().chain(self.expanded(text)).collect()
    }

    fn expanded(&self, text: &str) -> Option<PathBuf> {
        if let Some(path) = text.strip_prefix("file://") {
            return Some(self.directory.join(path));
        }
        let below = text.strip_prefix('~')?;
        match below.strip_prefix('/') {
            Some(below) => Some(self.home.as_ref()?.join(below.trim_start_matches('/'))),
            None if below.is_empty() => self.home.clone(),
            None => None,
        }
    }

    fn is_own(&self, path: &Path) -> bool {
        begins_with(path, &self.own)
    }

    /// Whether a search that begins there would come upon Countersign's own files or secrets.
    fn is_above_own(&self, path: &Path) -> bool {
        let secret = |home: &PathBuf| begins_with(&home.join(".aws"), path);
        begins_with(&self.own, path) || self.home.as_ref().is_some_and(secret)
    }

    fn is_secret(&self, path: &Path) -> bool {
        let is_below = |home: &PathBuf| {
            let mut secrets = SECRETS.split_ascii_whitespace();
            secrets.any(|it| begins_with(path, &home.join(it)))
        };
        self.home.as_ref().is_some_and(is_below)
    }

    fn is_hook_setting(&self, path: &Path) -> bool {
        let of_agents = Agent::ALL.into_iter().map(Agent::definition);
        let of_agents = of_agents.flat_map(|agent| agent.protected.iter().copied());
        self.is_one_of(of_agents.chain(OWN_SETTINGS), path)
    }

    /// Whether a path has one of these within it, or ends where one begins. A moved directory
    /// counts as the usual one.
    fn is_one_of<'s>(&self, mut settings: impl Iterator<Item = &'s str>, path: &Path) -> bool {
        let usual = self.moved.iter().filter_map(|(directory, usual)| {
            let rest = path.strip_prefix(directory).ok()?;
            Some(parts(&Path::new(usual).join(rest)))
        });
        let paths: Vec<_> = usual.chain([parts(path)]).collect();
        settings.any(|setting| {
            let setting = parts(Path::new(setting));
            paths.iter().any(|path| has_setting(path, &setting))
        })
    }

    /// Whether a command works in the agent's own directory or in that of the project.
    pub fn is_usual_directory(&self, directory: Option<&str>) -> bool {
        directory.is_none_or(|directory| {
            let path = self.directory.join(directory);
            // The system follows links before it takes out `..`.
            let climbs = path.components().any(|part| part == Component::ParentDir);
            !climbs && (normal(&path) == normal(&self.directory) || path == self.project)
        })
    }

    /// Whether it is the agent's own directory, by a name that means nothing else.
    pub fn is_own_directory(&self, path: &Path) -> bool {
        path == Path::new(".") || (path.is_absolute() && path == self.directory)
    }

    /// The project, unless secrets or Countersign's own files are in it.
    pub fn named_project(&self) -> Option<&str> {
        let project = self.project.to_str()?;
        (!self.is_above_own(&self.project)).then_some(project)
    }

    fn is_in_project(&self, path: &Path) -> bool {
        path.starts_with(&self.project) && !self.is_above_own(&self.project)
    }
}

impl NamedPath {
    fn either(&self, is: impl Fn(&Path) -> bool) -> bool {
        is(&self.path) || is(&self.real)
    }

    pub fn is_own(&self, places: &WorkDirectories) -> bool {
        self.either(|path| places.is_own(path))
    }

    /// Why a person has to be asked, regardless of the policy. `edits` says whether the call writes
    /// files that it names.
    pub fn always_asked(
        &self,
        places: &WorkDirectories,
        action: &ToolAction,
        edits: bool,
    ) -> Option<&'static str> {
        let is_in = |table: &str| {
            self.either(|path| places.is_one_of(table.split_ascii_whitespace(), path))
        };
        let may_change = action.may_change_files();
        if self.either(|path| places.is_hook_setting(path)) {
            Some("it touches settings that decide whether agents ask")
        } else if (may_change && is_in(RUN_LATER)) || (edits && is_in(EDITED)) {
            Some(
                "it touches a file that makes an agent, git, a shell or another tool run something later",
            )
        } else if may_change && self.either(|path| places.program.as_deref() == Some(path)) {
            Some("it touches Countersign's own program")
        } else if self.either(|path| places.is_secret(path)) {
            Some("it touches a place for secrets")
        } else if self.either(|path| places.is_above_own(path)) {
            Some("it touches a directory with secrets and Countersign's own files")
        } else {
            None
        }
    }

    pub fn is_in_project(&self, places: &WorkDirectories) -> bool {
        places.is_in_project(&self.real)
    }

    pub fn is_within(&self, directory: &Path) -> bool {
        self.real.starts_with(directory)
    }

    /// Whether it is there, below it, or above it.
    pub fn touches(&self, place: &Path) -> bool {
        self.either(|path| begins_with(path, place) || begins_with(place, path))
    }
}

/// In lower case: some file systems do not tell the cases apart.
fn parts(path: &Path) -> Vec<String> {
    let text = |part: Component| part.as_os_str().to_string_lossy().to_lowercase();
    path.components().map(text).collect()
}

fn begins_with(path: &Path, place: &Path) -> bool {
    parts(path).starts_with(&parts(place))
}

fn has_setting(path: &[String], setting: &[String]) -> bool {
    // A directory such as `.github` alone has other things in it.
    let shared = [
        "etc", "gradle", "library", "tools", ".config", ".github", ".gitea",
    ];
    let is_of_agents = !shared.contains(&&*setting[0]);
    (0..path.len()).any(|at| {
        let rest = &path[at..];
        let fits = (rest.iter().zip(setting)).all(|(part, it)| is_named(part, it));
        fits && (rest.len() >= setting.len() || is_of_agents)
    })
}

fn is_named(part: &str, pattern: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => part.ends_with(end),
        (_, Some(beginning)) => part.starts_with(beginning),
        _ => part == pattern,
    }
}

/// Without `.` and `..`, links not followed.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            component => normal.push(component),
        }
    }
    normal
}
