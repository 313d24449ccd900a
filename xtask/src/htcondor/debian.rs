//! A Debian with HTCondor in a directory.
//!
//! The current HTCondor is in Debian's unstable suite only, and installing it would change the machine: hence a
//! root of its own.

use crate::run;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What Debian signs with.
pub(super) const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// HTCondor runs no jobs of root.
pub(super) const USER: &str = "researcher";

/// Makes the root, in this process's namespaces. It gets its name when it is complete, so that one that was
/// interrupted is never used.
pub(super) fn make(root: &Path) -> Result<(), String> {
    println!("making a Debian with HTCondor in {}, once", root.display());
    let new = root.with_extension("new");
    let _ = fs::remove_dir_all(&new);
    let settings = said_by("apt-config", &["dump"]);
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", "--include=ca-certificates"]).arg(format!("--keyring={KEYRING}"));
    debootstrap.envs(proxies(&settings)).arg("sid").arg(&new).args(mirror(&apt_sources()));
    run(&mut debootstrap)?;
    let write = |path: &str, text: &str| fs::write(new.join(path), text).map_err(|e| format!("{path}: {e}"));
    let inside = |arguments: &[&str]| {
        let mut command = Command::new("chroot");
        command.arg(&new).args(arguments).envs(proxies(&settings));
        run(command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C"))
    };
    run(Command::new("mount").args(["-t", "proc", "proc"]).arg(new.join("proc")))?;
    // Installing it must not start it.
    write("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")?;
    inside(&["chmod", "755", "/usr/sbin/policy-rc.d"])?;
    write("etc/apt/apt.conf.d/99machine", &fetching(&settings))?;
    inside(&["apt-get", "update", "-qq"])?;
    inside(&["apt-get", "install", "-y", "-qq", "--no-install-recommends", "minicondor"])?;
    inside(&["useradd", "--create-home", USER])?;
    // It will have no network, and would wait for name servers.
    write("etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\n")?;
    write("etc/hosts", "127.0.0.1 localhost\n")?;
    fs::rename(&new, root).map_err(|e| format!("{}: {e}", root.display()))
}

/// The texts that say where this machine gets its packages from.
fn apt_sources() -> String {
    let parts = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|e| e.path());
    let files = std::iter::once("/etc/apt/sources.list".into()).chain(parts);
    files.filter_map(|f| fs::read_to_string(f).ok()).collect::<Vec<_>>().join("\n")
}

/// The mirror of Debian that the machine uses, if it is a Debian. Otherwise debootstrap knows one.
fn mirror(sources: &str) -> Option<&str> {
    let lines = sources.lines().filter(|l| l.starts_with("deb ") || l.starts_with("URIs:"));
    let mut words = lines.flat_map(str::split_whitespace).map(|w| w.trim_end_matches('/'));
    words.find(|w| w.starts_with("http") && w.ends_with("/debian"))
}

/// How apt fetches on this machine. Its mirror may need that: old ones are refused unless they are allowed.
fn fetching(settings: &str) -> String {
    let wanted = ["Acquire::http::", "Acquire::https::", "Acquire::Check-Valid-Until "];
    let lines = settings.lines().filter(|l| wanted.iter().any(|w| l.starts_with(w)));
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// The proxies of apt, as the variables that other programs look at.
fn proxies(settings: &str) -> Vec<(String, String)> {
    let value = |line: &str, protocol: &str| {
        let value = line.strip_prefix(&format!("Acquire::{protocol}::Proxy \""))?.strip_suffix("\";")?;
        (!value.is_empty() && value != "DIRECT").then(|| (format!("{protocol}_proxy"), value.to_owned()))
    };
    settings.lines().flat_map(|l| ["http", "https"].into_iter().filter_map(move |p| value(l, p))).collect()
}

fn said_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{fetching, mirror, proxies};

    #[test]
    fn the_mirror_of_the_machine_is_used() {
        let new = "Types: deb\nURIs: http://a.example/debian-security\n\nURIs: http://a.example/debian/\n";
        assert_eq!(mirror(new), Some("http://a.example/debian"));
        assert_eq!(
            mirror("# deb http://no.example/debian x\ndeb [a=b] http://b.example/debian x main"),
            Some("http://b.example/debian")
        );
        assert_eq!(mirror("deb http://c.example/ubuntu noble main"), None);
    }

    #[test]
    fn settings_of_apt_are_used() {
        let settings = "Acquire \"\";\nAcquire::http::Proxy \"http://p:1\";\nAcquire::https::Proxy \"DIRECT\";\nAPT::X \"1\";\n";
        assert_eq!(proxies(settings), [("http_proxy".to_owned(), "http://p:1".to_owned())]);
        assert_eq!(fetching(settings).lines().count(), 2);
    }
}
