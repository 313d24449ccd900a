//! Many small objects in one answer, framed: for each id asked for, in that order, a byte that says whether it is
//! there, its size, and its content.

use crate::outline::BLOCK;
use std::io::{self, Read};

/// How many objects are asked for at a time.
pub(crate) const MOST: usize = 16 << 10;

/// The longest list of ids.
pub(crate) const LONGEST_REQUEST: u64 = (MOST * 32) as u64;

/// The largest object in a bundle. Larger ones are worth a request of their own.
pub(crate) const LARGEST: u64 = BLOCK;

/// The bytes before each object.
pub(crate) const HEADER: usize = 9;

/// What comes before an object, or in place of one that is not there.
pub(crate) fn header(size: Option<u64>) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    if let Some(size) = size {
        header[0] = 1;
        header[1..].copy_from_slice(&size.to_le_bytes());
    }
    header
}

/// Reads the next object of a bundle into a buffer. Says whether it was there.
pub(crate) fn read(from: &mut dyn Read, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut header = [0; HEADER];
    from.read_exact(&mut header)?;
    let mut size = [0; 8];
    size.copy_from_slice(&header[1..]);
    let size = u64::from_le_bytes(size);
    if header[0] > 1 || size > LARGEST || (header[0] == 0 && size > 0) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the frame of an object is malformed"));
    }
    buffer.resize(size as usize, 0);
    from.read_exact(buffer)?;
    Ok(header[0] == 1)
}
