//! Headers that restrict the page in a browser.

/// The headers of every file of the page, beside its `Content-Security-Policy`.
pub const HEADERS: [(&str, &str); 6] = [
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(self), accelerometer=(), autoplay=(), display-capture=(), encrypted-media=(), fullscreen=(), geolocation=(), \
         gyroscope=(), hid=(), magnetometer=(), microphone=(), midi=(), payment=(), picture-in-picture=(), \
         publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()",
    ),
];

/// The `Cache-Control` of versioned files, whose names stand for one content, and that of the
/// others, which are asked for each time so that a new version takes effect.
pub const CACHING: [&str; 2] = ["public, max-age=31536000, immutable", "no-cache"];

/// The only part of the policy that has no effect inside a page.
pub(super) const NOBODY_FRAMES: &str = "; frame-ancestors 'none'";

/// The `Content-Security-Policy`: the page's own files and nothing else, and connections to its own
/// host and these origins.
///
/// `'self'` includes the WebSockets of the same host in every browser that has the cryptography the
/// page needs.
pub fn policy<'o>(connect: impl IntoIterator<Item = &'o str>) -> String {
    let mut origins = "'self'".to_owned();
    for origin in connect {
        origins.push(' ');
        origins.push_str(origin);
    }
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src {origins}; worker-src 'self'; \
         manifest-src 'self'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; \
         trusted-types countersign-worker{NOBODY_FRAMES}"
    )
}
