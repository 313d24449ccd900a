//! Just enough of HTTP/1.1 to serve objects: reading the head of a request, strictly.
//!
//! Whatever is not plain is refused rather than interpreted: two readers that disagree about where a request ends
//! are how one is smuggled past the other.

use std::ops::Range;

/// The longest head of a request.
pub(crate) const LONGEST_HEAD: usize = 16 << 10;

/// The head of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The bytes that follow the head.
    pub(crate) body: u64,
    pub(crate) range: Option<String>,
    pub(crate) token: Option<String>,
    /// What the client has already.
    pub(crate) known: Option<String>,
    /// What the client wants a range of, if it says so.
    pub(crate) range_of: Option<String>,
    pub(crate) close: bool,
    /// Waits for a word before it sends its body.
    pub(crate) expects: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
}

/// Why a request is refused: a status and a sentence.
pub(crate) type Refusal = (u16, &'static str);

impl Request {
    /// Reads the head of a request: everything up to and with the empty line.
    pub(crate) fn read(head: &[u8]) -> Result<Self, Refusal> {
        let bad = |why| (400, why);
        let plain = |b: &u8| (b' '..=b'~').contains(b) || matches!(b, b'\r' | b'\n' | b'\t');
        if !head.iter().all(plain) {
            return Err(bad("the head has bytes that are not text"));
        }
        let text = std::str::from_utf8(head).map_err(|_| bad("the head is not text"))?;
        let text = text.strip_suffix("\r\n\r\n").ok_or(bad("the head has no end"))?;
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let words: Vec<&str> = first.split(' ').collect();
        let [method, path, version] = words[..] else { return Err(bad("a request is three words")) };
        if version != "HTTP/1.1" {
            return Err((505, "only HTTP/1.1 is spoken here"));
        }
        let method = match method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            _ => return Err((501, "only GET, HEAD and POST are known here")),
        };
        if !path.starts_with('/') {
            return Err(bad("a path begins with a slash"));
        }
        let mut request = Self {
            method,
            path: path.to_owned(),
            body: 0,
            range: None,
            token: None,
            known: None,
            range_of: None,
            close: false,
            expects: false,
        };
        let mut hosts = 0;
        let mut length = None;
        for line in lines {
            if line.contains(['\r', '\n']) {
                return Err(bad("a line has an end of its own kind"));
            }
            let (name, value) = line.split_once(':').ok_or(bad("a header has no colon"))?;
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
                return Err(bad("the name of a header is not plain"));
            }
            let value = value.trim_matches([' ', '\t']);
            let once = |place: &mut Option<String>| match place.replace(value.to_owned()) {
                None => Ok(()),
                Some(_) => Err(bad("a header is there twice")),
            };
            match name.to_ascii_lowercase().as_str() {
                "host" => hosts += 1,
                "content-length" => once(&mut length)?,
                "transfer-encoding" => return Err((501, "bodies have a Content-Length here")),
                "range" => once(&mut request.range)?,
                "if-none-match" => once(&mut request.known)?,
                "if-range" => once(&mut request.range_of)?,
                "authorization" => {
                    once(&mut request.token)?;
                    let bearer =
                        value.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
                    request.token = Some(bearer.map_or(String::new(), |(_, token)| token.trim().to_owned()));
                }
                "connection" => request.close |= value.eq_ignore_ascii_case("close"),
                "expect" if value.eq_ignore_ascii_case("100-continue") => request.expects = true,
                "expect" => return Err((417, "nothing else can be expected")),
                _ => {}
            }
        }
        if hosts != 1 {
            return Err(bad("a request names one host"));
        }
        if let Some(length) = length {
            if length.is_empty() || !length.bytes().all(|b| b.is_ascii_digit()) {
                return Err(bad("a Content-Length is a number"));
            }
            request.body = length.parse().map_err(|_| bad("a Content-Length is a number"))?;
        }
        Ok(request)
    }
}

/// What a client asks for of something that has a size.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Whole,
    Part(Range<u64>),
    /// Nothing that there is.
    Nothing,
}

/// Reads the value of a `Range` header. One range is answered; what is not understood is ignored, as the standard says.
pub(crate) fn wanted(range: &str, size: u64) -> Wanted {
    let Some(range) = range.strip_prefix("bytes=") else { return Wanted::Whole };
    let Some((first, last)) = range.split_once('-') else { return Wanted::Whole };
    let number = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // A number that is too large for us is larger than every file.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if last < first => return Wanted::Whole,
        (Some(first), Some(last)) => first..last.saturating_add(1).min(size),
        (Some(first), None) if last.is_empty() => first..size,
        (None, Some(count)) if first.is_empty() => size.saturating_sub(count)..size,
        _ => return Wanted::Whole,
    };
    if part.start < part.end { Wanted::Part(part) } else { Wanted::Nothing }
}

/// The words that go with a status.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        206 => "Partial Content",
        304 => "Not Modified",
        401 => "Unauthorized",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Bad Request",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Request, u16> {
        Request::read(text.as_bytes()).map_err(|(status, _)| status)
    }

    #[test]
    fn a_plain_request_is_read() {
        let text = "GET /data/x HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2\r\nAuthorization: Bearer t\r\nconnection: close\r\n\r\n";
        let request = read(text).unwrap();
        assert_eq!((request.method, request.path.as_str(), request.body), (Method::Get, "/data/x", 0));
        assert_eq!((request.range.as_deref(), request.token.as_deref()), (Some("bytes=1-2"), Some("t")));
        assert!(request.close);
        assert_eq!(read("POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 64\r\n\r\n").unwrap().body, 64);
    }

    #[test]
    fn what_is_not_plain_is_refused() {
        for (text, status) in [
            ("\r\n\r\n", 400),
            ("GET /\r\n\r\n", 400),
            ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/1.0\r\nHost: a\r\n\r\n", 505),
            ("GET / HTTP/2\r\nHost: a\r\n\r\n", 505),
            ("BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
            ("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: \u{1}\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: ä\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
            ("POST / HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\n\r\n", 417),
        ] {
            assert_eq!(read(text).map(|_| ()), Err(status), "{text:?}");
        }
        assert!(Request::read(b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n").is_err());
    }

    #[test]
    fn ranges_are_those_of_the_standard() {
        for (range, expected) in [
            ("bytes=0-0", Wanted::Part(0..1)),
            ("bytes=2-5", Wanted::Part(2..6)),
            ("bytes=2-500", Wanted::Part(2..10)),
            ("bytes=2-", Wanted::Part(2..10)),
            ("bytes=-3", Wanted::Part(7..10)),
            ("bytes=-300", Wanted::Part(0..10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=99999999999999999999999-", Wanted::Nothing),
            ("bytes=5-99999999999999999999999", Wanted::Part(5..10)),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=5-2", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
        ] {
            assert_eq!(wanted(range, 10), expected, "{range}");
        }
        assert_eq!(wanted("bytes=0-", 0), Wanted::Nothing);
    }
}
