//! One private PostgreSQL for the whole test run, and a database of its own for every test.

use std::io::{BufRead as _, BufReader};
use std::process::{self, Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign::store::database::schema;
use sqlx::{Connection as _, PgConnection};
use tokio::sync::OnceCell;

/// A server. It ends when our end of its standard input does, however this process dies.
pub struct Server {
    /// Where it is, with a database that has no schema yet.
    pub url: String,
    /// Where its standby is, if it has one.
    pub standby: Option<String>,
    _script: Option<Child>,
}

impl Server {
    /// Starts one.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one, and a standby that follows it.
    pub fn with_standby() -> Self {
        Self::start_with(&["--standby"])
    }

    fn start_with(options: &[&str]) -> Self {
        let mut script = Command::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/scripts/with-postgres"
        ))
        .args(options)
        .args(["sh", "-c", "echo \"$DATABASE_URL $STANDBY_URL\"; cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("scripts/with-postgres starts");
        let mut urls = String::new();
        BufReader::new(script.stdout.take().expect("a pipe"))
            .read_line(&mut urls)
            .expect("a URL");
        assert!(urls.starts_with("postgres://"), "PostgreSQL did not start");
        let mut urls = urls.split_whitespace().map(str::to_owned);
        Self {
            url: urls.next().expect("a URL"),
            standby: urls.next(),
            _script: Some(script),
        }
    }

    /// The one that `make test-run` has started and waits for, if it did.
    fn given() -> Option<Self> {
        Some(Self {
            url: std::env::var("TEST_DATABASE_URL").ok()?,
            standby: None,
            _script: None,
        })
    }
}

/// The one that most tests share.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        super::raise_file_limit();
        Server::given().unwrap_or_else(Server::start)
    })
}

/// The URL of a database on the server.
fn url_of(name: &str) -> String {
    let (base, _) = server()
        .url
        .rsplit_once('/')
        .expect("a URL with a database");
    format!("{base}/{name}")
}

/// A database of a test's own, migrated.
#[derive(Debug, Clone)]
pub struct Database {
    /// Where it is.
    pub url: String,
}

/// The database that others are copies of. Several processes may use one server.
fn template() -> String {
    format!("template_{}", process::id())
}

impl Database {
    /// A copy of the migrated template.
    pub async fn create() -> Self {
        static TEMPLATE: OnceCell<()> = OnceCell::const_new();
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        // Copying refuses to work while another copy of the same template is being made.
        static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        TEMPLATE
            .get_or_init(|| async {
                Self::empty(&template()).await;
                schema::migrate(&url_of(&template()))
                    .await
                    .expect("migrations apply");
            })
            .await;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (name, template) = (format!("test_{}_{number}", process::id()), template());
        let _turn = TURN.lock().await;
        let mut connection = PgConnection::connect(&server().url)
            .await
            .expect("a connection");
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
            "create database {name} template {template}"
        )))
        .execute(&mut connection)
        .await
        .expect("a database");
        Self { url: url_of(&name) }
    }

    /// A database without a schema.
    pub async fn empty(name: &str) -> Self {
        let mut connection = PgConnection::connect(&server().url)
            .await
            .expect("a connection");
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!("create database {name}")))
            .execute(&mut connection)
            .await
            .expect("a database");
        Self { url: url_of(name) }
    }

    /// A connection of the test's own.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url)
            .await
            .expect("a connection")
    }

    /// Runs statements.
    pub async fn run(&self, sql: &str) {
        let mut connection = self.connect().await;
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&mut connection)
            .await
            .expect("the statements run");
    }

    /// One number.
    pub async fn number(&self, sql: &str) -> i64 {
        let mut connection = self.connect().await;
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .fetch_one(&mut connection)
            .await
            .expect("a number")
    }

    /// One text.
    pub async fn text(&self, sql: &str) -> String {
        let mut connection = self.connect().await;
        sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .fetch_one(&mut connection)
            .await
            .expect("a text")
    }

    /// How many exchanges came to each state: `decided 2,pendingApproval 3`.
    pub async fn transitions(&self) -> String {
        let counts = "select string_agg(to_state || ' ' || n, ',' order by to_state)
                        from (select to_state, count(*) as n from exchange_events group by to_state) c";
        self.text(counts).await
    }

    /// How many rows each table has.
    pub async fn counts(&self) -> Vec<(String, i64)> {
        let mut counts = Vec::new();
        for table in self.tables().await {
            let count = self.number(&format!("select count(*) from {table}")).await;
            counts.push((table, count));
        }
        counts
    }

    /// The text of every row of every table, line by line.
    pub async fn everything(&self) -> String {
        let mut all = String::new();
        for table in self.tables().await {
            let rows = format!("select coalesce(string_agg(t::text, chr(10)), '') from {table} t");
            all.push_str(&self.text(&rows).await);
            all.push('\n');
        }
        all
    }

    /// Every table but those that nodes write to now and then, on their own.
    async fn tables(&self) -> Vec<String> {
        let names = "select string_agg(tablename, ',' order by tablename) from pg_tables
                      where schemaname = 'public' and tablename not in ('nodes', 'enforcers', 'sweep_leases')";
        let names = self.text(names).await;
        names.split(',').map(str::to_owned).collect()
    }

    /// Rows of a table that were read since the statistics were reset, as far as backends have
    /// reported them: at the latest when they end.
    pub async fn rows_read(&self, table: &str) -> i64 {
        let read = format!(
            "select (coalesce(sum(i.idx_tup_read), 0) + max(t.seq_tup_read))::bigint
               from pg_stat_user_tables t left join pg_stat_user_indexes i using (relid)
              where t.relname = '{table}'"
        );
        self.number(&read).await
    }

    /// A transaction of the test's own that has locked an exchange, as a statement of some other
    /// node would.
    pub async fn locking(&self, request: &str) -> PgConnection {
        let mut connection = self.connect().await;
        let lock = format!(
            "begin; select from exchanges where request_id = '{request}' for no key update"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(lock))
            .execute(&mut connection)
            .await
            .expect("a lock");
        connection
    }

    /// A transaction of the test's own that has done this.
    pub async fn holding(&self, sql: &str) -> PgConnection {
        let mut connection = self.connect().await;
        finish(&mut connection, &format!("begin; {sql}")).await;
        connection
    }

    /// A transaction of the test's own that holds up every writer of this table, in the middle of
    /// the statement.
    pub async fn holding_writes(&self, table: &str) -> PgConnection {
        let hold = format!(
            "create function hold_up() returns trigger language plpgsql
                 as 'begin perform pg_advisory_xact_lock(7); return new; end';
             create trigger hold_up before insert or update on {table} for each row execute function hold_up()"
        );
        self.run(&hold).await;
        self.holding("select pg_advisory_xact_lock(7)").await
    }

    /// Waits until a statement with these words, among the first that the server shows, waits for a
    /// lock.
    pub async fn blocked_in(&self, words: &str) {
        let waiting = format!(
            "select count(*) from pg_stat_activity
              where datname = current_database() and wait_event_type = 'Lock' and strpos(query, $${words}$$) > 0
                and pid <> pg_backend_pid()"
        );
        super::until("it waits", Duration::from_secs(10), async || {
            self.number(&waiting).await > 0
        })
        .await;
    }

    /// Waits until this many backends of the database wait for a lock.
    pub async fn blocked(&self, count: i64) {
        let waiting = "select count(*) from pg_stat_activity
                        where datname = current_database() and wait_event_type = 'Lock'";
        super::until("a statement waits", Duration::from_secs(10), async || {
            self.number(waiting).await >= count
        })
        .await;
    }
}

/// Ends a test's own transaction.
pub async fn finish(connection: &mut PgConnection, how: &str) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(how))
        .execute(connection)
        .await
        .expect("the transaction ends");
}
