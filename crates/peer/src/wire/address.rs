//! Where peers are.

use libp2p_core::Multiaddr;
use libp2p_core::multiaddr::Protocol;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The addresses of `host:port`.
pub(crate) async fn resolve(place: &str) -> io::Result<Vec<SocketAddr>> {
    let found: Vec<_> = tokio::net::lookup_host(place).await?.collect();
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    Ok(found)
}

/// In the words of libp2p.
pub(crate) fn multiaddr(address: SocketAddr) -> Multiaddr {
    Multiaddr::from(address.ip()).with(Protocol::Tcp(address.port()))
}

/// From the words of libp2p, if it is TCP over IP: there is nothing else here.
pub(crate) fn socket(address: &Multiaddr) -> Option<SocketAddr> {
    let mut parts = address.iter();
    let ip = match parts.next()? {
        Protocol::Ip4(ip) => IpAddr::V4(ip),
        Protocol::Ip6(ip) => IpAddr::V6(ip),
        _ => return None,
    };
    match parts.next()? {
        Protocol::Tcp(port) => Some(SocketAddr::new(ip, port)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_back_as_they_were() {
        for text in ["127.0.0.1:80", "[::1]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(socket(&multiaddr(address)), Some(address));
        }
        assert_eq!(socket(&"/ip4/1.2.3.4/udp/5".parse().unwrap()), None);
        assert_eq!(socket(&"/dns/host/tcp/5".parse().unwrap()), None);
        assert_eq!(socket(&Multiaddr::empty()), None);
    }

    #[tokio::test]
    async fn names_are_looked_up() {
        assert!(resolve("localhost:7").await.unwrap().iter().all(|a| a.ip().is_loopback() && a.port() == 7));
        assert!(resolve("localhost").await.is_err());
    }
}
