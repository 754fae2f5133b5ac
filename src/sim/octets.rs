//! Bytes as scripts write them: text where they are text, base64 where they are not.
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

/// Any bytes. In JSON: a string for UTF-8, `{"base64": "…"}` for all else, and, for reading only,
/// `{"json": …}` for a document that is to be sent as such.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Octets(pub Bytes);

impl Serialize for Octets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.collect_map([("base64", STANDARD.encode(&self.0))]),
        }
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if let Value::String(text) = value {
            return Ok(text.into());
        }
        if let Some(text) = value.get("base64").and_then(Value::as_str) {
            let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
            return Ok(bytes.into());
        }
        match value.get("json") {
            Some(document) => Ok(document.to_string().into()),
            None => Err(D::Error::custom(
                r#"expected text, {"base64": "…"} or {"json": …}"#,
            )),
        }
    }
}

impl From<&str> for Octets {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Octets {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<Vec<u8>> for Octets {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for Octets {
    fn from(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl<const N: usize> From<&[u8; N]> for Octets {
    fn from(bytes: &[u8; N]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }
}

impl From<Bytes> for Octets {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl From<Value> for Octets {
    fn from(document: Value) -> Self {
        document.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expect: &[u8], written: &str) {
        let got: Octets = serde_json::from_str(json).unwrap();
        assert_eq!(&got.0[..], expect);
        assert_eq!(serde_json::to_string(&got).unwrap(), written);
    }

    #[test]
    fn bytes_are_read_and_written_in_every_form() {
        check(r#""a\r\n한""#, "a\r\n한".as_bytes(), r#""a\r\n한""#);
        check(r#"{"base64":"/w=="}"#, b"\xff", r#"{"base64":"/w=="}"#);
        check(
            r#"{"json":{"b":1,"a":2}}"#,
            b"{\"b\":1,\"a\":2}",
            r#""{\"b\":1,\"a\":2}""#,
        );
    }

    #[test]
    fn other_forms_are_refused() {
        assert!(serde_json::from_str::<Octets>("7").is_err());
        assert!(serde_json::from_str::<Octets>(r#"{"base64":"*"}"#).is_err());
    }
}
