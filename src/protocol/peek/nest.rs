//! Which brackets are open, one bit each, so that depth costs next to nothing and no stack.

/// The open brackets of a JSON text.
#[derive(Debug, Default)]
pub(super) struct Nest {
    depth: usize,
    /// The innermost brackets up to a multiple of 64; a set bit is an object.
    inner: u64,
    /// Those outside of them, 64 at a time.
    outer: Vec<u64>,
}

impl Nest {
    /// How many brackets are open.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the innermost open bracket is an object's.
    pub(super) fn in_object(&self) -> bool {
        self.depth > 0 && self.inner & 1 == 1
    }

    pub(super) fn open(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.inner);
        }
        self.inner = self.inner << 1 | u64::from(is_object);
        self.depth += 1;
    }

    pub(super) fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.inner >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.inner = self.outer.pop().unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_remembered_to_any_depth() {
        let mut nest = Nest::default();
        let is_object = |n: usize| n.is_multiple_of(3) || n.is_multiple_of(7);
        for n in 0..1000 {
            nest.open(is_object(n));
        }
        for n in (0..1000).rev() {
            assert_eq!((nest.depth(), nest.in_object()), (n + 1, is_object(n)));
            nest.close();
        }
        assert_eq!((nest.depth(), nest.in_object()), (0, false));
    }
}
