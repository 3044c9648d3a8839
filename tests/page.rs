//! The approvers' page as every node serves it: whole, compressed, cached for good under names that
//! change with the content, and allowed to do nothing but what it does.

mod files;
mod origins;

use std::io::Read as _;
use std::net::IpAddr;

use countersign::config::{Config, TlsMode};
use countersign::page::page;
use flate2::read::GzDecoder;
use reqwest::Method;
use reqwest::header::HeaderMap;

use crate::support::{Answer, Client, Cluster, http};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; \
    trusted-types countersign-worker; frame-ancestors 'none'";
const FOR_GOOD: &str = "public, max-age=31536000, immutable";

/// An answer whose body may be compressed.
async fn fetch(
    cluster: &Cluster,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, HeaderMap, Vec<u8>) {
    let url = format!("{}{path}", cluster.urls()[0]);
    let call = http().build().unwrap().request(method, url);
    let call = headers
        .iter()
        .fold(call, |call, (name, value)| call.header(*name, *value));
    let answer = call.send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    (status, headers, answer.bytes().await.unwrap().into())
}

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut content).unwrap();
    content
}

/// Every path of the page, its type, and whether browsers may keep it for good.
fn paths() -> Vec<(String, &'static str, bool)> {
    let page = page();
    let fixed = page.fixed.iter();
    let fixed = fixed.map(|(name, file)| (format!("/{name}"), file.media_type, false));
    let versioned = page.versioned.iter().map(|(name, file)| {
        let path = format!("/page/{}/{name}", page.version);
        (path, file.media_type, true)
    });
    let index = ("/".to_owned(), "text/html; charset=utf-8", false);
    fixed.chain(versioned).chain([index]).collect()
}

#[track_caller]
fn is_restricted(answer: &Answer) {
    assert_eq!(answer.header("content-security-policy"), Some(POLICY));
    for (name, value) in [
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    let permitted = answer.header("permissions-policy").unwrap();
    for feature in permitted.split(", ") {
        let expected = if feature.starts_with("camera=") {
            "=(self)"
        } else {
            "=()"
        };
        assert!(feature.ends_with(expected), "{feature}");
    }
    for feature in ["camera", "microphone", "geolocation", "payment", "usb"] {
        assert!(permitted.contains(&format!("{feature}=(")), "{feature}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_file_is_served_with_its_type_its_caching_and_its_restrictions() {
    let cluster = Cluster::start(1).await;
    let nobody = cluster.client(None);
    for (path, media_type, is_kept) in paths() {
        let answer = nobody.get(&path).await.expect(200);
        assert_eq!(answer.header("content-type"), Some(media_type), "{path}");
        let caching = if is_kept { FOR_GOOD } else { "no-cache" };
        assert_eq!(answer.header("cache-control"), Some(caching), "{path}");
        is_restricted(&answer);
        // A client that has the file is told so, by its tag and nothing else.
        let tag = answer.header("etag").unwrap();
        let again = |known: String| {
            let call = nobody.call(Method::GET, &path);
            call.header("if-none-match", &known).send()
        };
        for known in [
            tag.to_owned(),
            tag.trim_start_matches("W/").to_owned(),
            format!("\"x\", {tag}"),
            "*".to_owned(),
        ] {
            let same = again(known).await.expect(304);
            assert_eq!(same.text, "", "{path}");
            assert_eq!(same.header("etag"), Some(tag), "{path}");
            assert_eq!(same.header("cache-control"), Some(caching), "{path}");
            is_restricted(&same);
        }
        for other in ["\"x\"", "x", tag.trim_end_matches('"')] {
            let whole = again(other.to_owned()).await.expect(200);
            assert_eq!(whole.text, answer.text, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_compressed_for_whoever_takes_it() {
    let cluster = Cluster::start(1).await;
    for (path, media_type, _) in paths() {
        let plain = fetch(&cluster, Method::GET, &path, &[]).await;
        assert!(!plain.1.contains_key("content-encoding"), "{path}");
        let varies = plain
            .1
            .get("vary")
            .is_some_and(|vary| vary == "Accept-Encoding");
        // Tiny files do not get smaller.
        assert!(
            varies || plain.2.len() < 400 || media_type == "image/png",
            "{path}"
        );
        for accepted in [
            "gzip",
            "br, GZIP;q=0.5",
            "x-gzip",
            "deflate;q=1, gzip ; q=1.0",
        ] {
            let asked = [("accept-encoding", accepted)];
            let (status, headers, bytes) = fetch(&cluster, Method::GET, &path, &asked).await;
            assert_eq!(status, 200);
            assert_eq!(headers.get("etag"), plain.1.get("etag"), "{path}");
            assert_eq!(headers.get("vary"), plain.1.get("vary"), "{path}");
            assert_eq!(headers["content-type"], media_type);
            if !varies {
                assert_eq!(bytes, plain.2, "{path}");
                continue;
            }
            assert_eq!(headers["content-encoding"], "gzip", "{path}");
            assert!(bytes.len() < plain.2.len(), "{path}");
            assert_eq!(unzipped(&bytes), plain.2, "{path}");
        }
        for refused in [
            "gzip;q=0",
            "gzip; q=0.000",
            "br",
            "identity",
            "gzipped",
            "*;q=0",
        ] {
            let asked = [("accept-encoding", refused)];
            let (_, headers, bytes) = fetch(&cluster, Method::GET, &path, &asked).await;
            assert!(!headers.contains_key("content-encoding"), "{refused}");
            assert_eq!(bytes, plain.2, "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn head_tells_the_same_without_the_content_and_other_methods_are_refused() {
    let cluster = Cluster::start(1).await;
    let nobody = cluster.client(None);
    for (path, ..) in paths() {
        for asked in [&[][..], &[("accept-encoding", "gzip")]] {
            let (_, mut whole, content) = fetch(&cluster, Method::GET, &path, asked).await;
            let (status, mut head, nothing) = fetch(&cluster, Method::HEAD, &path, asked).await;
            assert_eq!((status, nothing), (200, Vec::new()), "{path}");
            assert_eq!(head["content-length"], content.len().to_string(), "{path}");
            for one in ["date", "x-request-id"] {
                whole.remove(one);
                head.remove(one);
            }
            assert_eq!(head, whole, "{path}");
        }
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
            let refused = nobody.call(method, &path).send().await;
            let refused = refused.refused(405, "METHOD_NOT_ALLOWED");
            assert_eq!(refused.header("allow"), Some("GET,HEAD"), "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_part_of_this_version_is_not_there() {
    let cluster = Cluster::start(1).await;
    let nobody = cluster.client(None);
    let version = &page().version;
    let other = version.chars().rev().collect::<String>();
    for path in [
        format!("/page/{other}/app.js"),
        format!("/page/{other}/core/approver.js"),
        format!("/page/{version}"),
        format!("/page/{version}/"),
        format!("/page/{version}/none.js"),
        format!("/page/{version}/core/none.js"),
        format!("/page/{version}/core"),
        format!("/page/{version}//app.js"),
        format!("/page/{version}/tests/run.js"),
        format!("/page/{version}/tsconfig.json"),
        format!("/page/{version}/index.html"),
        format!("/page/{version}/sw.js"),
        format!("/page/{version}/core/%2e%2e%2fapp.js"),
        format!("/page/{version}/%2e%2e/app.js"),
        format!("/page/{version}/core%2Fapprover.js"),
        format!("/page/{version}x/app.js"),
        "/page/app.js".to_owned(),
        "/page".to_owned(),
        "/app.js".to_owned(),
        "/index.html".to_owned(),
        "/icon-none.png".to_owned(),
        "/icons/none.png".to_owned(),
        "/icons".to_owned(),
    ] {
        let refused = nobody.get(&path).await.refused(404, "NOT_FOUND");
        assert_eq!(refused.header("cache-control"), Some("no-store"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_the_page_serves_none_of_it() {
    let cluster = Cluster::with(1, |config| config.page.enabled = false).await;
    let nobody = cluster.client(None);
    for (path, ..) in paths().into_iter().filter(|(path, ..)| path != "/") {
        nobody.get(&path).await.refused(404, "NOT_FOUND");
    }
    let landing = nobody.get("/").await.expect(200);
    assert!(landing.text.contains("href=\"/docs\""));
}

/// Behind a proxy that terminates TLS.
async fn proxied(change: impl Fn(&mut Config)) -> Cluster {
    Cluster::with(1, |config| {
        config.tls.mode = TlsMode::Upstream;
        config.tls.proxies = vec![IpAddr::from([127, 0, 0, 1]).into()];
        change(config);
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_office_behind_one_address_loads_the_page_at_once() {
    let cluster = proxied(|config| {
        config.rates.enabled = true;
        (config.rates.address, config.rates.address_burst) = (1, 5);
    })
    .await;
    let nobody = cluster.client(None);
    let from_office = async |path: &str| {
        let call = nobody.call(Method::GET, path);
        let call = call.header("x-forwarded-proto", "https");
        call.header("x-forwarded-for", "192.0.2.7").send().await
    };
    for (path, ..) in paths().into_iter().filter(|(.., is_kept)| *is_kept) {
        from_office(&path).await.expect(200);
    }
    // Files that are asked for each time count like any call.
    for path in ["/", "/sw.js"] {
        let mut last = from_office(path).await;
        for _ in 0..10 {
            last = from_office(path).await;
        }
        let refused = last.refused(429, "RATE_LIMITED");
        assert!(refused.header("ratelimit").unwrap().contains("address"));
    }
    // Without TLS in front there is no page.
    nobody.get("/").await.refused(403, "FORBIDDEN");
    let path = format!("/page/{}/app.js", page().version);
    nobody.get(&path).await.refused(403, "FORBIDDEN");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_serves_the_same_page() {
    let cluster = Cluster::start(2).await;
    let nobody: Client = cluster.client(None);
    for (path, ..) in paths() {
        let [one, other] = [nobody.on(0).get(&path).await, nobody.on(1).get(&path).await];
        assert_eq!(one.text, other.text, "{path}");
        assert_eq!(one.header("etag"), other.header("etag"), "{path}");
    }
}
