//! Finds places in JSON.

/// A step into a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Key(&'static str),
    Item(usize),
}

/// The line and column of the value at a path of JSON that is well-formed; as far as the path goes, if it does not exist.
/// Only what is wrong needs a place, so nothing needs to be kept while a text is read.
pub(super) fn locate(text: &str, path: &[Step]) -> (usize, usize) {
    let mut scan = Scan { text: text.as_bytes(), at: 0 };
    scan.blank();
    for step in path {
        let start = scan.at;
        let found = match step {
            Step::Key(key) => scan.enter_object(key),
            Step::Item(number) => scan.enter_list(*number),
        };
        if found.is_none() {
            scan.at = start;
            break;
        }
    }
    let before = String::from_utf8_lossy(&scan.text[..scan.at.min(scan.text.len())]);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Scan<'t> {
    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blank(&mut self) {
        while self.next().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Goes past a byte and what is blank behind it.
    fn take(&mut self, byte: u8) -> Option<()> {
        if self.next()? != byte {
            return None;
        }
        self.at += 1;
        self.blank();
        Some(())
    }

    /// Goes past a string; what is between its quotes.
    fn string(&mut self) -> Option<&'t [u8]> {
        let start = self.at + 1;
        self.at = start;
        while self.next()? != b'"' {
            self.at += if self.next()? == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        self.text.get(start..self.at - 1)
    }

    /// Goes past a value.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0;
        loop {
            match self.next()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
            if depth == 0 && matches!(self.next()?, b',' | b'}' | b']') {
                return Some(());
            }
        }
    }

    fn enter_object(&mut self, key: &str) -> Option<()> {
        self.take(b'{')?;
        loop {
            if self.next()? != b'"' {
                return None;
            }
            let found = self.string()? == key.as_bytes();
            self.blank();
            self.take(b':')?;
            if found {
                return Some(());
            }
            self.skip()?;
            self.take(b',')?;
        }
    }

    fn enter_list(&mut self, number: usize) -> Option<()> {
        self.take(b'[')?;
        for _ in 0..number {
            self.skip()?;
            self.take(b',')?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::Step::{Item, Key};
    use super::*;

    #[test]
    fn values_are_found_whatever_stands_before_them() {
        let text = "{ \"a\\\"b\": \"}{][,\",\n  \"x\" : {\"y\": [1, {\"z\": []} , \"ö\", true ]}}";
        assert_eq!(locate(text, &[Key("x"), Key("y"), Item(3)]), (2, 36));
        assert_eq!(locate(text, &[Key("x"), Key("y"), Item(1), Key("z")]), (2, 25));
        assert_eq!(locate(text, &[Key("x"), Key("nowhere")]), (2, 9), "as far as it goes");
        assert_eq!(locate(text, &[]), (1, 1));
        assert_eq!(locate("{\"a", &[Key("a"), Item(7)]), (1, 1));
    }
}
