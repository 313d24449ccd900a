//! What flows along links: files, directories, values, and lists of these.

use catena_model::Name;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// The type of a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `file`, `directory`, `string`, `integer`, `number`, `boolean`, or any other word.
    Base(Name),
    /// `[t]`.
    List(Box<Type>),
}

/// Fits everywhere.
const ANY: &str = "any";

impl Type {
    /// The type of files.
    pub fn file() -> Self {
        Self::Base(Name::new_static("file"))
    }

    /// Anything.
    pub fn any() -> Self {
        Self::Base(Name::new_static(ANY))
    }

    /// A list of these.
    #[must_use]
    pub fn list(self) -> Self {
        Self::List(Box::new(self))
    }

    /// Whether something of this type can go where the other is wanted.
    pub fn fits(&self, wanted: &Self) -> bool {
        let is_any = |t: &Self| matches!(t, Self::Base(name) if name == ANY);
        match (self, wanted) {
            (Self::List(a), Self::List(b)) => a.fits(b),
            // A directory is the list of the files in it to everyone who asks for a list.
            (Self::Base(name), Self::List(b)) if name == catena_model::DIRECTORY => Self::file().fits(b),
            // A whole number is a number, and every value is a text.
            (Self::Base(a), Self::Base(b)) if a == "integer" && matches!(b.as_str(), "number" | "float") => {
                true
            }
            (a, Self::Base(b)) if a.is_value() && matches!(b.as_str(), "string" | "value") => true,
            (a, b) => a == b || is_any(a) || is_any(b),
        }
    }

    /// Whether it is the content of a file that counts, and not the file.
    pub fn is_value(&self) -> bool {
        let values = ["value", "string", "integer", "float", "number", "boolean"];
        matches!(self, Self::Base(name) if values.contains(&name.as_str()))
    }

    /// Whether it is a directory, or a list of the files in one.
    pub fn is_directory(&self) -> bool {
        match self {
            Self::Base(name) => name == catena_model::DIRECTORY,
            Self::List(_) => true,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base(name) => f.write_str(name),
            Self::List(inner) => write!(f, "[{inner}]"),
        }
    }
}

impl FromStr for Type {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(inner) = text.strip_prefix('[') {
            let inner =
                inner.strip_suffix(']').ok_or_else(|| format!("a `]` is missing in the type `{text}`"))?;
            return inner.parse::<Self>().map(Self::list);
        }
        let good = |c: char| c.is_ascii_alphanumeric() || "_-./+".contains(c);
        if text.is_empty() || !text.chars().all(good) {
            return Err(format!("`{text}` is no type; write a word such as `file`, or `[file]` for a list"));
        }
        Ok(Self::Base(Name::new(text)))
    }
}

impl Serialize for Type {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Type {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
