//! Files of others that the tests use: each is the one that was published.
use std::{fmt::Write as _, fs, path::Path};

/// The checker of accessibility.
pub(crate) const AXE: &str = include_str!("vendor/axe-core-4.14.1.min.js");

#[test]
fn vendored_files_are_as_published() {
    let sums = include_str!("vendor/axe-core-4.14.1.sha256");
    assert_eq!(sums.lines().count(), 3);
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/vendor");
    for line in sums.lines() {
        let (expected, file) = line.split_once("  ").unwrap();
        let bytes = fs::read(place.join(file)).unwrap();
        let mut sum = String::new();
        for byte in fairlane::digest::sha256(&bytes) {
            write!(sum, "{byte:02x}").unwrap();
        }
        assert_eq!(sum, expected, "{file}");
    }
}
