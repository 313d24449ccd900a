//! What nobody can guess.

use std::fmt::Write;
use std::io;

/// So many random bytes, in hexadecimal: for tokens and keys.
pub fn random_hex(bytes: usize) -> io::Result<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut text = String::with_capacity(2 * bytes);
    for byte in random {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_are_as_long_as_asked_for() {
        let (one, other) = (random_hex(16).unwrap(), random_hex(16).unwrap());
        assert_ne!(one, other);
        assert!(one.len() == 32 && one.bytes().all(|b| b.is_ascii_hexdigit()), "{one}");
    }
}
