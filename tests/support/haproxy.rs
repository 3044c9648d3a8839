//! The real `HAProxy` with the configuration we ship, on this machine: a name server that knows the
//! nodes, a certificate made on the spot, and a way through TLS for clients that only speak plain
//! HTTP.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, UdpSocket};

use super::tls::{Authority, Files, TlsClient};

/// The configuration we ship.
pub const CONFIGURATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/haproxy/haproxy.cfg");

/// `HAProxy`, which is not on every user's PATH.
pub fn haproxy() -> &'static str {
    let usual = ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy"];
    let found = usual.into_iter().find(|path| Path::new(path).exists());
    found.unwrap_or("haproxy")
}

/// Its major version.
pub fn major_version() -> u32 {
    let output = Command::new(haproxy()).arg("-v").output();
    let said = String::from_utf8(output.expect("it runs").stdout).expect("text");
    let (_, version) = said.split_once("version ").expect("a version");
    let major = version.split('.').next();
    major.and_then(|major| major.parse().ok()).expect("numbers")
}

/// A balancer in front of nodes that share a port.
pub struct Balancer {
    /// Where it serves, with TLS.
    pub url: String,
    /// The signer of its certificate.
    pub authority: Arc<Authority>,
    names: Arc<Names>,
    own: SocketAddr,
    process: Child,
    _files: Files,
}

impl Balancer {
    /// Starts one and waits until it has found a node that is ready. `settings` are more of its
    /// variables.
    pub async fn start(nodes: &[String], settings: &[(&str, &str)]) -> Self {
        let nodes: Vec<SocketAddr> = nodes
            .iter()
            .map(|url| url.replace("http://", "").parse().expect("an address"))
            .collect();
        let port = nodes.first().expect("a node").port();
        let names = Names::serve(nodes.iter().map(SocketAddr::ip)).await;
        let authority = Arc::new(Authority::new("balancers"));
        let pair = authority.server();
        let files = Files::with(&pair);
        let both = format!("{}{}", pair.certificate, pair.key);
        let (front, own) = (free_port().await, free_port().await);
        // It ends with its standard input, however this process dies.
        let process = Command::new("sh")
            .args(["-c", "\"$@\" & cat >/dev/null; kill $!; wait", "sh"])
            .args([haproxy(), "-db", "-f", CONFIGURATION])
            .env("CERTIFICATE", files.put("both.pem", &both))
            .env("NODES", format!("gateway.test:{port}"))
            .env("DNS", names.address.to_string())
            .env("BIND", front.to_string())
            .env("OWN", own.to_string())
            .env("MAXCONN", "400")
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(heard())
            .stderr(heard())
            .spawn()
            .expect("a shell");
        let balancer = Self {
            url: format!("https://{front}"),
            authority,
            names,
            own,
            process,
            _files: files,
        };
        balancer.sees(nodes.len()).await;
        balancer
    }

    /// Waits until so many nodes are up for it.
    pub async fn sees(&self, nodes: usize) {
        self.shows("active_servers", nodes).await;
    }

    /// Waits until so many calls are under way.
    pub async fn serves(&self, calls: usize) {
        self.shows("current_sessions", calls).await;
    }

    /// Waits until a gauge about the nodes has this value.
    async fn shows(&self, gauge: &str, value: usize) {
        let what = format!("the balancer's {gauge} is {value}");
        super::until(&what, Duration::from_secs(20), async || {
            let Ok(answer) = super::get(format!("http://{}/metrics", self.own)).await else {
                return false;
            };
            let name = format!("haproxy_backend_{gauge}{{proxy=\"nodes\"}} ");
            let text = answer.text().await.unwrap_or_default();
            let found = text.lines().find_map(|line| line.strip_prefix(&name));
            found == Some(&value.to_string())
        })
        .await;
    }

    /// Makes the nodes' name mean these.
    pub fn name(&self, urls: &[String]) {
        let addresses = urls.iter().map(|url| {
            let address = url.replace("http://", "");
            address.parse::<SocketAddr>().expect("an address").ip()
        });
        *self.names.known.lock().expect("no panic") = addresses.collect();
    }

    /// A plain address for clients that do not speak TLS: each connection goes on to the balancer
    /// through TLS.
    pub async fn plain_url(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (authority, target) = (Arc::clone(&self.authority), self.url.clone());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (authority, target) = (Arc::clone(&authority), target.clone());
                tokio::spawn(async move {
                    let tls = TlsClient::trusting(&authority).connect(&target).await;
                    if let Ok(mut server) = tls {
                        drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
                    }
                });
            }
        });
        url
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        drop(self.process.wait());
    }
}

/// Its output, shown only if logs are asked for.
fn heard() -> Stdio {
    match std::env::var_os("TEST_LOG") {
        Some(_) => Stdio::inherit(),
        None => Stdio::null(),
    }
}

/// A port that was free just now.
async fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address")
}

/// A name server that answers every question for an IPv4 address with the same list, as Docker's
/// does for a service.
struct Names {
    address: SocketAddr,
    known: Mutex<Vec<IpAddr>>,
}

impl Names {
    async fn serve(known: impl Iterator<Item = IpAddr>) -> Arc<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let names = Arc::new(Self {
            address: socket.local_addr().expect("an address"),
            known: Mutex::new(known.collect()),
        });
        let serving = Arc::clone(&names);
        tokio::spawn(async move {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                if let Some(answer) = serving.answer(&question[..length]) {
                    drop(socket.send_to(&answer, from).await);
                }
            }
        });
        names
    }

    /// RFC 1035: the question comes back, then a record for each address, which names it by a
    /// pointer to the question.
    fn answer(&self, asked: &[u8]) -> Option<Vec<u8>> {
        const HEADER: usize = 12;
        const A: [u8; 2] = [0, 1];
        let name = asked.get(HEADER..)?.iter().position(|byte| *byte == 0)? + 1;
        let question = asked.get(HEADER..HEADER + name + 4)?;
        let known = self.known.lock().expect("no panic");
        let found: Vec<Ipv4Addr> = known
            .iter()
            .filter(|_| question[name..name + 2] == A)
            .filter_map(|address| match address {
                IpAddr::V4(address) => Some(*address),
                IpAddr::V6(_) => None,
            })
            .collect();
        let count = u8::try_from(found.len()).ok()?;
        let mut answer = vec![asked[0], asked[1], 0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0];
        answer.extend_from_slice(question);
        for address in found {
            answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
            answer.extend_from_slice(&address.octets());
        }
        Some(answer)
    }
}
