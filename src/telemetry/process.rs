//! What the system says of this process, from `/proc`; elsewhere nothing.

/// Bytes of memory that are resident.
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

pub fn open_descriptors() -> Option<usize> {
    let directory = std::path::Path::new("/proc/self/fd");
    // Newer kernels tell by the directory's size; older ones say 0, and there they have to be listed.
    match directory.metadata().ok()?.len() {
        0 => {
            let listed = directory.read_dir().ok()?.count();
            // One of them reads the directory.
            Some(listed.saturating_sub(1))
        }
        count => usize::try_from(count).ok(),
    }
}

/// Most descriptors that may be open.
pub fn most_descriptors() -> Option<u64> {
    let limits = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE);
    limits.ok().map(|(soft, _)| soft)
}
