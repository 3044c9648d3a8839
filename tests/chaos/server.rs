//! One PostgreSQL server, as a process that can be crashed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use nix::sys::signal::Signal;
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::process::Child;
use tokio::time::{Instant, sleep, timeout};

use super::programs::{Postgres, free_port, is_root, run, send, text};

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Room for the data of a run: memory is taken as it is used.
const ROOM: &str = "size=8g";
/// The size of the disk for the log of changes. Only what is written takes room.
const DISK: &str = "4G";
/// Processes are killed, never the machine, so nothing has to be flushed to disk.
pub const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 300
shared_buffers = 128MB
fsync = off
full_page_writes = off
max_wal_size = 1GB
wal_keep_size = 512MB
log_min_error_statement = panic
wal_retrieve_retry_interval = 200ms
wal_receiver_timeout = 5s
wal_sender_timeout = 5s
include_if_exists = 'synchronous.conf'
";

pub struct Server {
    pub port: u16,
    home: PathBuf,
    programs: Postgres,
    process: Option<Child>,
    generation: usize,
    log: PathBuf,
    /// The file system of the log of changes, where we may mount one.
    disk: Option<PathBuf>,
}

impl Server {
    /// A place for a server. The data is on a file system of its own where we may mount one.
    pub fn new(programs: &Postgres, directory: &Path, name: &str) -> anyhow::Result<Self> {
        let home = directory.join(name);
        programs.make_directory(&home)?;
        if is_root() {
            run("mount", &["-t", "tmpfs", "-o", ROOM, "tmpfs", text(&home)?])?;
            programs.make_directory(&home)?;
        }
        let disk = directory.join(format!("{name}-disk"));
        let mounted = is_root() && mount_disk(programs, &disk).is_ok();
        Ok(Self {
            port: free_port()?,
            home,
            programs: programs.clone(),
            process: None,
            generation: 0,
            log: directory.join(format!("{name}.log")),
            disk: mounted.then_some(disk),
        })
    }

    pub fn id(&self) -> Option<u32> {
        self.process.as_ref().and_then(Child::id)
    }

    pub fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// The log of changes has another file system: a server that cannot write it stops at once.
    fn new_wal(&mut self) -> PathBuf {
        self.generation += 1;
        let name = format!("wal-{}", self.generation);
        match &self.disk {
            Some(disk) => disk.join(name),
            None => self.log.with_extension(name),
        }
    }

    /// Makes the data of a first primary.
    pub async fn initialise(&mut self) -> anyhow::Result<()> {
        let wal = self.new_wal();
        self.programs.make_directory(&wal)?;
        let data = self.data();
        let arguments = ["-D", text(&data)?, "--waldir", text(&wal)?];
        let options = [
            "-U",
            "countersign",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ];
        self.programs
            .run("initdb", &[&arguments[..], &options[..]].concat())
            .await?;
        let file = data.join("postgresql.conf");
        let settings = std::fs::read_to_string(&file)? + SETTINGS;
        Ok(std::fs::write(file, settings)?)
    }

    /// Replaces its data by a copy of another server's, as its standby.
    pub async fn copy_from(&mut self, primary: u16) -> anyhow::Result<()> {
        let (data, wal) = (self.data(), self.new_wal());
        if data.exists() {
            let old = std::fs::read_link(data.join("pg_wal"))?;
            std::fs::remove_dir_all(old)?;
            std::fs::remove_dir_all(&data)?;
        }
        self.programs.make_directory(&wal)?;
        let from = format!(
            "host=127.0.0.1 port={primary} user=countersign application_name=standby gssencmode=disable"
        );
        let arguments = ["-d", &from, "-D", text(&data)?, "--waldir", text(&wal)?];
        let options = ["-R", "-X", "stream", "-c", "fast", "--no-sync"];
        self.programs
            .run("pg_basebackup", &[&arguments[..], &options[..]].concat())
            .await?;
        self.synchronise(false)
    }

    /// Whether commits wait for the standby, from the next reload on.
    pub fn synchronise(&self, on: bool) -> anyhow::Result<()> {
        let setting = if on {
            "synchronous_standby_names = 'standby'\n"
        } else {
            ""
        };
        let file = self.data().join("synchronous.conf");
        std::fs::write(&file, setting)?;
        if is_root() {
            run("chmod", &["644", text(&file)?])?;
        }
        Ok(())
    }

    /// Starts it and waits until it answers. Remains of a crash may stop it at first.
    pub async fn start(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let ended = match &mut self.process {
                Some(process) => process.try_wait()?.is_some(),
                None => true,
            };
            if ended {
                let log = File::options().create(true).append(true).open(&self.log)?;
                let process = self
                    .programs
                    .command("postgres")
                    .arg("-D")
                    .arg(self.data())
                    .args(["-p", &self.port.to_string()])
                    .stdout(log.try_clone()?)
                    .stderr(log)
                    .spawn()?;
                self.process = Some(process);
            }
            if self.connect("postgres").await.is_ok() {
                return Ok(());
            }
            anyhow::ensure!(
                Instant::now() < deadline,
                "PostgreSQL did not start; see {}",
                self.log.display()
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Kills it as a crash would.
    pub async fn crash(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGKILL).await
    }

    /// Stops it as its package would, for a restart.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::SIGINT).await
    }

    async fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        if let Some(mut process) = self.process.take() {
            send(process.id(), signal);
            process.wait().await?;
        }
        Ok(())
    }

    /// A connection of the superuser, past all links.
    pub async fn connect(&self, database: &str) -> anyhow::Result<PgConnection> {
        let url = self.url("countersign", database);
        Ok(timeout(Duration::from_secs(5), PgConnection::connect(&url)).await??)
    }

    pub fn url(&self, user: &str, database: &str) -> String {
        let port = self.port;
        format!("postgres://{user}@127.0.0.1:{port}/{database}?sslmode=disable")
    }

    pub async fn execute(&self, database: &str, sql: &str) -> anyhow::Result<()> {
        let mut connection = self.connect(database).await?;
        connection.execute(sqlx::AssertSqlSafe(sql)).await?;
        Ok(())
    }

    /// One text.
    pub async fn ask(&self, sql: &str) -> anyhow::Result<Option<String>> {
        let mut connection = self.connect("postgres").await?;
        let answer = sqlx::query_scalar(sqlx::AssertSqlSafe(sql));
        Ok(answer.fetch_optional(&mut connection).await?)
    }

    /// Has nothing written to the log of changes, or lets it go on.
    pub fn freeze_disk(&self, frozen: bool) -> anyhow::Result<()> {
        let disk = self.disk.as_deref().context("it is not mounted")?;
        let action = if frozen { "--freeze" } else { "--unfreeze" };
        run("fsfreeze", &[action, text(disk)?]).map(drop)
    }

    /// Leaves no room on its file system, or gives all of it back.
    pub fn fill_disk(&self, full: bool) -> anyhow::Result<()> {
        let home = text(&self.home)?;
        let size = if full {
            let used = run("df", &["--output=used", "-k", home])?;
            let used = used.lines().last().context("df said nothing")?;
            format!("remount,size={}k", used.trim().parse::<u64>()? + 64)
        } else {
            format!("remount,{ROOM}")
        };
        run("mount", &["-o", &size, home]).map(drop)
    }
}

/// Mounts a file as a file system.
fn mount_disk(programs: &Postgres, disk: &Path) -> anyhow::Result<()> {
    let image = disk.with_extension("image");
    let (disk_name, image) = (text(disk)?, text(&image)?);
    run("truncate", &["--size", DISK, image])?;
    run("mkfs.ext4", &["-q", "-F", image])?;
    programs.make_directory(disk)?;
    run("mount", &["-o", "loop", image, disk_name])?;
    programs.make_directory(disk)
}

impl Drop for Server {
    /// The directory cannot be removed while something is mounted in it.
    fn drop(&mut self) {
        // A file system that is frozen keeps everyone waiting who writes to it, and cannot be
        // unmounted.
        drop(self.freeze_disk(false));
        if let Some(disk) = self.disk.as_deref().and_then(Path::to_str) {
            drop(run("umount", &["--lazy", disk]));
        }
        if let (true, Some(home)) = (is_root(), self.home.to_str()) {
            drop(run("umount", &["--lazy", home]));
        }
    }
}
