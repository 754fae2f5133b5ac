//! A table of what was used lately, in bounded memory.
//!
//! Invariant: it holds at most as many entries as it may, and forgets none that is among the most
//! recently used half of them. There are two generations: what is used moves to the young one; once
//! that is full, the old one goes as a whole, so that no order has to be kept.
use std::{borrow::Borrow, collections::HashMap, hash::Hash, mem};

/// What was used lately.
#[derive(Debug)]
pub struct Recent<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    /// How many one generation holds.
    half: usize,
}

impl<K: Hash + Eq, V> Recent<K, V> {
    /// An empty table for up to `capacity` entries, which should be even and at least 2.
    pub fn new(capacity: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            half: (capacity / 2).max(1),
        }
    }

    /// The value of that key, which counts as a use.
    pub fn use_of<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if !self.young.contains_key(key) {
            let (key, value) = self.old.remove_entry(key)?;
            self.put(key, value);
        }
        self.young.get_mut(key)
    }

    /// Puts a value in place of the one that the key had.
    pub fn put(&mut self, key: K, value: V) {
        self.old.remove(&key);
        if self.young.len() >= self.half && !self.young.contains_key(&key) {
            self.turn();
        }
        self.young.insert(key, value);
    }

    /// Removes a key and gives its value.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.young.remove(key).or_else(|| self.old.remove(key))
    }

    /// Forgets what was not used since the last turn.
    pub fn turn(&mut self) {
        self.old = mem::take(&mut self.young);
    }

    /// How many entries there are.
    pub fn count(&self) -> usize {
        self.young.len() + self.old.len()
    }
}
