//! What the wire promises, over real sockets of this machine.

mod helper;
mod hostile;
mod streams;
mod talk;
mod twins;
