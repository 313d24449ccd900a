//! The workbench: the files of the web application in `web/`, as they are served.
//!
//! They are built with Node when this crate is built. Without Node there is one page, which says how to get the others.

/// A file of the workbench.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// What it is, as HTTP says it.
    pub kind: &'static str,
    /// Differs whenever the content does.
    pub tag: &'static str,
    /// The content.
    pub bytes: &'static [u8],
    /// Whether the content is compressed with gzip.
    pub is_gzip: bool,
    /// Another content would have another name, so it never changes.
    pub is_named_by_content: bool,
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The file at a path, such as `index.html`.
pub fn asset(path: &str) -> Option<Asset> {
    let found = ASSETS.binary_search_by(|(name, _)| (*name).cmp(path)).ok()?;
    Some(ASSETS[found].1)
}

/// Why there is no workbench, if there is none.
pub fn missing() -> Option<&'static str> {
    MISSING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_first_page_with_or_without_node() {
        let page = asset("index.html").unwrap();
        assert!(page.kind.starts_with("text/html") && !page.bytes.is_empty());
        assert!(asset("../Cargo.toml").is_none());
        assert_eq!(missing().is_none(), ASSETS.len() > 1);
    }
}
