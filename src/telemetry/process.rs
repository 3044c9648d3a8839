//! Figures of this process, from `/proc`; on other systems there are none.

pub fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

pub fn open_descriptors() -> Option<usize> {
    let directory = std::path::Path::new("/proc/self/fd");
    // Newer kernels report the count as the directory's size; older ones report 0, and the entries
    // have to be listed.
    match directory.metadata().ok()?.len() {
        0 => {
            let listed = directory.read_dir().ok()?.count();
            // One of them is the directory itself, being read.
            Some(listed.saturating_sub(1))
        }
        count => usize::try_from(count).ok(),
    }
}

pub fn max_descriptors() -> Option<usize> {
    let limits = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE);
    let (soft, _) = limits.ok()?;
    Some(usize::try_from(soft).unwrap_or(usize::MAX))
}
