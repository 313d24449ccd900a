//! Files, whole or in part.

use super::Problem;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::io::SeekFrom;
use std::path::Path;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// How much is read at a time.
const CHUNK: u64 = 256 << 10;

/// The first and last byte of `bytes=a-b`, `bytes=a-` or `bytes=-n`.
pub(super) fn parse_range(range: &str, size: u64) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = match (first.trim(), last.trim()) {
        ("", n) => (size.saturating_sub(n.parse().ok()?), size.checked_sub(1)?),
        (a, "") => (a.parse().ok()?, size.checked_sub(1)?),
        (a, b) => (a.parse().ok()?, b.parse::<u64>().ok()?.min(size.checked_sub(1)?)),
    };
    (first <= last).then_some((first, last))
}

/// What a request wants of something that has so many bytes: all of it, or a part.
pub(super) fn wanted(headers: &HeaderMap, size: u64) -> Result<Option<(u64, u64)>, Box<Response>> {
    let range = headers.get(header::RANGE).and_then(|h| h.to_str().ok());
    // Of nothing there are no parts, and all of it is quickly said.
    let Some(range) = range.filter(|_| size > 0) else { return Ok(None) };
    parse_range(range, size).map(Some).ok_or_else(|| {
        let total = format!("bytes */{size}");
        let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, format!("it has {size} bytes"));
        Box::new(([(header::CONTENT_RANGE, total)], problem).into_response())
    })
}

/// Sends a file that is here.
pub(super) async fn send_file(path: &Path, headers: &HeaderMap) -> Result<Response, Problem> {
    let name = path.display().to_string();
    let file = File::open(path).await.map_err(|e| absent(&name, &e))?;
    send(file, &name, headers).await
}

fn absent(name: &str, e: &std::io::Error) -> Problem {
    Problem::new(StatusCode::CONFLICT, format!("{name} is not on this instance: {e}"))
}

/// Sends a file, or the part of it that was asked for. What it is called decides nothing: a browser never takes it for a
/// page.
pub(super) async fn send(mut file: File, name: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    let absent = |e: std::io::Error| absent(name, &e);
    let meta = file.metadata().await.map_err(absent)?;
    if !meta.is_file() {
        return Err(Problem::new(StatusCode::CONFLICT, format!("{name} is no file")));
    }
    let size = meta.len();
    let part = match wanted(headers, size) {
        Ok(part) => part,
        Err(refusal) => return Ok(*refusal),
    };
    let (first, last) = part.unwrap_or((0, size.saturating_sub(1)));
    file.seek(SeekFrom::Start(first)).await.map_err(absent)?;
    let length = if size == 0 { 0 } else { last + 1 - first };
    let pieces = stream::unfold((file, length), |(mut file, left)| async move {
        let mut chunk = vec![0; CHUNK.min(left) as usize];
        match file.read(&mut chunk).await {
            Ok(0) => None,
            Ok(n) => {
                chunk.truncate(n);
                Some((Ok(chunk), (file, left - n as u64)))
            }
            Err(e) => Some((Err(e), (file, 0))),
        }
    });
    let kind = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    let body = Body::from_stream(pieces);
    Ok(match part {
        Some(_) => {
            let content = [(header::CONTENT_RANGE, format!("bytes {first}-{last}/{size}"))];
            (StatusCode::PARTIAL_CONTENT, kind, content, body).into_response()
        }
        None => (kind, body).into_response(),
    })
}

#[cfg(test)]
mod tests {
    use super::parse_range;

    #[test]
    fn ranges_are_those_of_http() {
        assert_eq!(parse_range("bytes=0-9", 100), Some((0, 9)));
        assert_eq!(parse_range("bytes=90-", 100), Some((90, 99)));
        assert_eq!(parse_range("bytes=-5", 100), Some((95, 99)));
        assert_eq!(parse_range("bytes=50-500", 100), Some((50, 99)));
        assert_eq!(parse_range("bytes=-500", 100), Some((0, 99)));
        for wrong in ["bytes=100-", "bytes=9-3", "lines=1-2", "bytes=a-b", "bytes=0-"] {
            let size = if wrong == "bytes=0-" { 0 } else { 100 };
            assert_eq!(parse_range(wrong, size), None, "{wrong}");
        }
    }
}
