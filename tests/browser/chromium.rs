//! Chromium under its own driver: one driver for all tests, a browser with an empty profile for
//! each device of an approver.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use serde_json::json;
use tokio::sync::SemaphorePermit;

use super::webdriver::{Browser, SEATS, Session};

pub struct Chromium;

struct Driver {
    url: String,
    _process: Child,
}

/// It ends with its standard input, however this process dies, and the browsers with it: they are
/// its children at pipes.
fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let mut process = Command::new("sh")
            .args(["-c", "\"$@\" & cat >/dev/null; kill $!; wait", "sh"])
            .args(["chromedriver", "--port=0"])
            // Files outside the profile, such as crash reports, must not end up in the user's home.
            .env("HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/chromium"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_CACHE_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let mut lines = lines.map(|line| line.expect("text"));
        let port = lines.find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        let port = port.expect("chromedriver, of the package chromium-driver, starts");
        // Reads the rest of the output, so that the driver never blocks on it.
        std::thread::spawn(move || lines.for_each(drop));
        Driver {
            url: format!("http://127.0.0.1:{port}"),
            _process: process,
        }
    })
}

/// The browser that the driver is made for: Debian's, that of another distribution, or Google's own
/// package.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let wanted = major_version("chromedriver".as_ref()).expect("chromedriver");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let names = ["google-chrome", "chromium", "chromium-browser"];
        let mut files = names
            .iter()
            .flat_map(|name| places.iter().map(move |place| place.join(name)));
        let found = files.find(|file| major_version(file).as_ref() == Some(&wanted));
        found.unwrap_or_else(|| panic!("chromedriver {wanted} needs Chromium {wanted}"))
    })
}

/// Of a program that says its name and version, such as `ChromeDriver 120.0.6099.224 (…)`.
fn major_version(program: &Path) -> Option<String> {
    let said = Command::new(program).arg("--version").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let mut words = said.split_whitespace();
    let version = words.find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    version.split('.').next().map(str::to_owned)
}

impl Chromium {
    /// As many browsers as a test needs, at once: tests that wait for a second one could wait for
    /// each other.
    pub async fn start<const N: usize>() -> [Browser; N] {
        let mut seats = Vec::new();
        let mut all = SEATS.acquire_many(N.try_into().unwrap()).await.unwrap();
        while let Some(seat) = all.split(1) {
            seats.push(seat);
        }
        let mut browsers = Vec::new();
        for seat in seats {
            browsers.push(Self::on(seat, &[]).await);
        }
        browsers.try_into().unwrap_or_else(|_| unreachable!())
    }

    /// A browser whose camera shows this video (Y4M), and which allows the page to use it.
    pub async fn with_camera(video: &Path) -> Browser {
        let seat = SEATS.acquire().await.unwrap();
        let flags = [
            "--use-fake-ui-for-media-stream".to_owned(),
            "--use-fake-device-for-media-stream".to_owned(),
            format!("--use-file-for-fake-video-capture={}", video.display()),
        ];
        Self::on(seat, &flags).await
    }

    async fn on(seat: SemaphorePermit<'static>, more: &[String]) -> Browser {
        let directory = tempfile::tempdir().unwrap();
        let downloads = directory.path().join("downloads");
        std::fs::create_dir(&downloads).unwrap();
        let profile = directory.path().join("profile");
        let mut flags = vec![
            "--headless".to_owned(),
            format!("--user-data-dir={}", profile.display()),
            // The browser ends when the driver's end of the pipe is closed.
            "--remote-debugging-pipe".to_owned(),
            "--window-size=1280,900".to_owned(),
        ];
        flags.extend(
            [
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-dev-shm-usage",
                "--disable-gpu",
                "--disable-quic",
                "--disable-sync",
                "--no-first-run",
                "--no-proxy-server",
            ]
            .map(str::to_owned),
        );
        flags.extend_from_slice(more);
        if nix::unistd::geteuid().is_root() {
            flags.push("--no-sandbox".to_owned());
        }
        let (driver, program) = tokio::task::spawn_blocking(|| (&driver().url, program()))
            .await
            .unwrap();
        let capabilities = json!({
            "browserName": "chrome",
            "goog:chromeOptions": {
                "binary": program,
                "args": flags,
                "prefs": { "download.default_directory": downloads, "download.prompt_for_download": false, "intl.accept_languages": "en-US" },
            },
            // Those that tests make on the spot.
            "acceptInsecureCerts": true,
            "goog:loggingPrefs": { "browser": "ALL" },
            "timeouts": { "script": 60_000, "pageLoad": 60_000 },
        });
        let session = Session::start(driver, capabilities).await;
        // As a window that a person looks at, also after another site has led back to the page.
        let focused = json!({ "enabled": true });
        session
            .devtools("Emulation.setFocusEmulationEnabled", focused)
            .await;
        Browser {
            session,
            downloads,
            _directory: directory,
            _seat: seat,
        }
    }
}
