//! The page of the approvers (`web`), embedded into the binary. Files are found under a directory
//! whose name changes with their content, so that browsers may keep them for good; `index.html`
//! leads there.

mod headers;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{LazyLock, OnceLock};

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Bytes;
use sha2::{Digest as _, Sha256};

pub use self::headers::{CACHING, HEADERS, policy};
use crate::protocol::hex;

/// Names below `web` and contents; `build.rs` lists them.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// So many bytes of a SHA-256 name a version.
const VERSION_BYTES: usize = 8;

/// The first line of `index.html` after which the page can be told more about itself.
const HEAD: &str = "<meta charset=\"utf-8\">\n";

static PAGE: LazyLock<ApproverPage> = LazyLock::new(ApproverPage::embedded);

pub fn page() -> &'static ApproverPage {
    &PAGE
}

pub struct PageFile {
    pub content: Bytes,
    pub media_type: &'static str,
    pub hash: [u8; 32],
    /// Compressed when it is first asked for.
    gzipped: OnceLock<Option<Bytes>>,
}

impl PageFile {
    fn new(media_type: &'static str, content: Bytes) -> Self {
        Self {
            media_type,
            hash: Sha256::digest(&content).into(),
            content,
            gzipped: OnceLock::new(),
        }
    }

    /// The content compressed with gzip, if that makes it smaller.
    pub fn gzipped(&self) -> Option<&Bytes> {
        let compress = || {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&self.content).ok()?;
            let gzipped = encoder.finish().ok()?;
            (gzipped.len() < self.content.len()).then(|| gzipped.into())
        };
        self.gzipped.get_or_init(compress).as_ref()
    }
}

pub struct ApproverPage {
    /// Over all names and contents.
    pub hash: [u8; 32],
    /// The beginning of the hash.
    pub version: String,
    /// By their names below `page/<version>/`.
    pub versioned: BTreeMap<String, PageFile>,
    /// By the names that browsers expect or others link to: the service worker, the manifest,
    /// icons, what must be found whichever version a node has.
    pub fixed: BTreeMap<String, PageFile>,
    pub index: PageFile,
    source: String,
}

impl ApproverPage {
    fn embedded() -> Self {
        let files = FILES.iter();
        let files = files.map(|(name, content)| ((*name).to_owned(), Bytes::from_static(content)));
        let mut files: BTreeMap<String, Bytes> = files.collect();
        let mut hash = Sha256::new();
        for (name, content) in &files {
            for part in [name.as_bytes(), content] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
        }
        let hash: [u8; 32] = hash.finalize().into();
        let version = hex::encode(&hash[..VERSION_BYTES]);
        let source = files.remove("index.html").unwrap_or_default();
        let source = String::from_utf8_lossy(&source).into_owned();
        let (mut versioned, mut fixed) = (BTreeMap::new(), BTreeMap::new());
        for (name, content) in files {
            let Some(media_type) = media_type(&name) else {
                continue;
            };
            let files = if is_fixed(&name) {
                &mut fixed
            } else {
                &mut versioned
            };
            files.insert(name, PageFile::new(media_type, content));
        }
        let mut page = Self {
            hash,
            version,
            versioned,
            fixed,
            index: html(String::new()),
            source,
        };
        page.index = html(page.index_with(""));
        page
    }

    /// `index.html` with this in its head. Its links lead to the files of this version.
    fn index_with(&self, head: &str) -> String {
        let mut index = self.source.clone();
        for name in self.versioned.keys() {
            let there = format!("=\"page/{}/{name}\"", self.version);
            index = index.replace(&format!("=\"{name}\""), &there);
        }
        index.replacen(HEAD, &format!("{HEAD}{head}"), 1)
    }

    /// `index.html` for another host than the gateway's, with more in its head: this, what the page
    /// may do in case the host does not say it, and where the gateways are. All of it must be HTML.
    pub fn index_elsewhere(&self, head: &str, gateways: &[&str], policy: &str) -> String {
        // Only a header can say who may frame a page.
        let policy = policy.replace(headers::NOBODY_FRAMES, "");
        let policy =
            format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n");
        let gateways = match gateways.join(" ").as_str() {
            "" => String::new(),
            all => format!("<meta name=\"countersign-gateways\" content=\"{all}\">\n"),
        };
        self.index_with(&format!("{policy}{head}{gateways}"))
    }
}

fn html(text: String) -> PageFile {
    PageFile::new("text/html; charset=utf-8", Bytes::from(text))
}

fn is_fixed(name: &str) -> bool {
    name.starts_with("icons/")
        || ["sw.js", "reload.js", "manifest.webmanifest", "icon.svg"].contains(&name)
}

/// `None` for files that are not part of the page.
fn media_type(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "png" => Some("image/png"),
        "txt" => Some("text/plain; charset=utf-8"),
        "webmanifest" => Some("application/manifest+json"),
        _ => None,
    }
}
