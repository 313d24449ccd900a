//! Where a server runs: on the machine itself, or on a host of a net.

use crate::net::Host;
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::sync::Arc;

#[derive(Clone)]
pub(crate) enum Place {
    Here,
    On(Arc<Host>),
}

impl Place {
    /// Where clients find what runs there.
    pub(crate) fn address(&self) -> Ipv4Addr {
        match self {
            Self::Here => Ipv4Addr::LOCALHOST,
            Self::On(host) => host.address(),
        }
    }

    /// What a server listens on, so that its clients find it. Nobody else is on the network of a host.
    pub(crate) fn listen(&self) -> Ipv4Addr {
        match self {
            Self::Here => Ipv4Addr::LOCALHOST,
            Self::On(_) => Ipv4Addr::UNSPECIFIED,
        }
    }

    /// Stands before a command that is to run there.
    pub(crate) fn prefix(&self) -> Vec<OsString> {
        match self {
            Self::Here => Vec::new(),
            Self::On(host) => host.prefix().into(),
        }
    }

    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match self {
            Self::Here => Command::new(program),
            Self::On(host) => host.command(program, [""; 0]),
        }
    }

    /// A connection to what runs there.
    pub(crate) fn connect(&self, port: u16) -> io::Result<TcpStream> {
        match self {
            Self::Here => TcpStream::connect((Ipv4Addr::LOCALHOST, port)),
            Self::On(host) => host.connect((Ipv4Addr::LOCALHOST, port).into()),
        }
    }
}
