//! What others call this machine.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

/// The address under which this machine reaches another one: the others reach it there too. Of a name with several
/// addresses those of IPv4 come first, because 0.0.0.0 is where machines listen if nothing is said.
pub fn address_towards(other: impl ToSocketAddrs) -> Option<IpAddr> {
    let mut all: Vec<SocketAddr> = other.to_socket_addrs().ok()?.collect();
    all.sort_by_key(SocketAddr::is_ipv6);
    all.into_iter().find_map(way_to)
}

fn way_to(to: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    // Nothing is sent: the system only looks up the way.
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn a_machine_reaches_itself_at_the_address_it_asks_for() {
        assert_eq!(address_towards("127.0.0.1:9"), Some(Ipv4Addr::LOCALHOST.into()));
        // Not every machine speaks it.
        let found = address_towards((Ipv6Addr::LOCALHOST, 9));
        assert!(found.is_none_or(|ip| ip == Ipv6Addr::LOCALHOST), "{found:?}");
        let both: [SocketAddr; 2] = [(Ipv6Addr::LOCALHOST, 9).into(), (Ipv4Addr::LOCALHOST, 9).into()];
        assert_eq!(address_towards(&both[..]), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(address_towards("nobody"), None);
    }
}
