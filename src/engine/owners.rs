//! Who owns what, as requests ask it: a bounded memory of what was made and used lately, in front of
//! the store.
//!
//! Invariants: what was learned is known at once, before it is on disk; what must not be lost is on
//! disk before anybody is told of it. That an object is unknown is never remembered, since it may be
//! made the next moment. Both mutexes are held for a look-up only, never across an await.
use crate::{
    clock::{Instant, unix_millis},
    domain::{
        ids::KeyId,
        owners::{
            Binding, Object, ObjectKind, Owner, OwnerRow, Recent, Reference, Sighting,
            affinity::{self, Affinities, AffinityKey, Moment, Preferred},
            resolve,
        },
        pool::EdgeRef,
    },
    ports::{OwnerStore, Unstored},
};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How many objects are kept in memory: some 20 MiB. The half that surely stays is more than can
/// wait for the disk, so that what is not there yet is here.
const RECENT: usize = 65_536;

/// Who makes something, and where it will live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maker {
    /// The client key; `None` is a keyless request.
    pub key: Option<KeyId>,
    /// The edge that makes it.
    pub owner: Owner,
}

impl Maker {
    /// On behalf of that key, on that edge.
    pub fn at(key: Option<KeyId>, edge: &EdgeRef) -> Self {
        Self {
            key,
            owner: Owner {
                credential: edge.credential().id,
                endpoint: Some(edge.endpoint().id),
            },
        }
    }
}

/// Who owns what; cheap to clone.
#[derive(Clone)]
pub struct Owners(Arc<Shared>);

struct Shared {
    store: Arc<dyn OwnerStore>,
    recent: Mutex<Recent<Object, OwnerRow>>,
    affinities: Mutex<Affinities>,
    /// What the milliseconds of affinities count from.
    started_at: Instant,
}

impl fmt::Debug for Owners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owners").finish_non_exhaustive()
    }
}

impl Owners {
    /// Nothing in memory yet; what `store` knows is known.
    pub fn new(store: Arc<dyn OwnerStore>) -> Self {
        Self(Arc::new(Shared {
            store,
            recent: Mutex::new(Recent::new(RECENT)),
            affinities: Mutex::new(Affinities::new(affinity::CAPACITY)),
            started_at: Instant::now(),
        }))
    }

    /// Where a request of `caller` must go that names these objects. Touches the disk only for those
    /// that are not in memory; fails if it cannot be read.
    pub async fn resolve(
        &self,
        references: &[Reference],
        caller: Option<KeyId>,
    ) -> Result<Binding, Unstored> {
        if references.is_empty() {
            return Ok(Binding::None);
        }
        let mut sightings = self.remembered(references, caller);
        self.look_up(references, caller, &mut sightings).await?;
        let roles = references.iter().map(|reference| reference.role);
        Ok(resolve(roles.zip(sightings)))
    }

    /// An answer that is on its way has made these: known from now on, on disk soon.
    pub fn learned(&self, objects: Vec<Object>, maker: Maker) {
        for object in objects {
            let row = self.remember(object, maker);
            // The store counts what it cannot take.
            self.0.store.try_bind(row);
        }
    }

    /// An answer that is held back has made these: known and on disk when this succeeds. If it
    /// fails, they are not known, and the client must not be told of them.
    pub async fn bind_durably(&self, objects: Vec<Object>, maker: Maker) -> Result<(), Unstored> {
        if objects.is_empty() {
            return Ok(());
        }
        let rows = objects.into_iter().map(|object| row(object, maker));
        let rows: Vec<OwnerRow> = rows.collect();
        self.0.store.bind(rows.clone()).await?;
        let mut recent = self.recent();
        for row in rows {
            recent.put(row.object.clone(), row);
        }
        Ok(())
    }

    /// What the caller made is gone.
    pub async fn forget(&self, object: Object, caller: Option<KeyId>) -> Result<(), Unstored> {
        self.drop_recent(&object, caller);
        self.0.store.forget(object.clone(), caller).await?;
        // A request that looked it up meanwhile may have brought it back.
        self.drop_recent(&object, caller);
        Ok(())
    }

    /// What the caller made of a kind of which there are lists.
    pub async fn own_objects(
        &self,
        kind: ObjectKind,
        caller: Option<KeyId>,
    ) -> Result<Vec<OwnerRow>, Unstored> {
        self.0.store.own_objects(kind, caller).await
    }

    /// The edge that this conversation prefers, if it was used within `ttl`; asking renews it.
    pub fn preferred(&self, key: AffinityKey, ttl: Duration) -> Option<Preferred> {
        let moment = self.moment(ttl);
        self.affinities().preferred(key, moment)
    }

    /// This conversation was served by `edge`, and prefers it from now on.
    pub fn prefer(&self, key: AffinityKey, edge: Preferred, ttl: Duration) {
        let moment = self.moment(ttl);
        self.affinities().prefer(key, edge, moment);
    }

    /// What memory alone says of each of these.
    fn remembered(&self, references: &[Reference], caller: Option<KeyId>) -> Vec<Sighting> {
        let mut recent = self.recent();
        let rows = references
            .iter()
            .map(|r| Sighting::of(recent.use_of(&r.object).map(|row| &*row), caller));
        rows.collect()
    }

    /// Asks the store for what memory does not know as the caller's. What another key made may have
    /// been made by this one as well, under the same id.
    async fn look_up(
        &self,
        references: &[Reference],
        caller: Option<KeyId>,
        sightings: &mut [Sighting],
    ) -> Result<(), Unstored> {
        let named = references.iter().map(|reference| &reference.object);
        let (objects, open): (Vec<&Object>, Vec<&mut Sighting>) = named
            .zip(sightings)
            .filter(|(_, sighting)| !matches!(sighting, Sighting::Own(_)))
            .unzip();
        if objects.is_empty() {
            return Ok(());
        }
        let asked = objects.iter().copied().cloned().collect();
        let stored = self.0.store.sightings(asked, caller).await?;
        for ((object, sighting), stored) in objects.into_iter().zip(open).zip(stored) {
            match stored {
                Sighting::Own(owner) => {
                    self.remember(object.clone(), Maker { key: caller, owner });
                    *sighting = stored;
                }
                Sighting::Foreign => *sighting = stored,
                // What is in memory may not be on disk yet.
                Sighting::Never => {}
            }
        }
        Ok(())
    }

    fn remember(&self, object: Object, maker: Maker) -> OwnerRow {
        let row = row(object, maker);
        self.recent().put(row.object.clone(), row.clone());
        row
    }

    fn drop_recent(&self, object: &Object, caller: Option<KeyId>) {
        let mut recent = self.recent();
        if recent.use_of(object).is_some_and(|row| row.key == caller) {
            recent.remove(object);
        }
    }

    fn moment(&self, ttl: Duration) -> Moment {
        let age = Instant::now().saturating_duration_since(self.0.started_at);
        Moment {
            now_ms: millis(age),
            ttl_ms: millis(ttl),
        }
    }

    fn recent(&self) -> MutexGuard<'_, Recent<Object, OwnerRow>> {
        self.0.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn affinities(&self) -> MutexGuard<'_, Affinities> {
        let affinities = self.0.affinities.lock();
        affinities.unwrap_or_else(PoisonError::into_inner)
    }
}

fn row(object: Object, maker: Maker) -> OwnerRow {
    OwnerRow {
        object,
        owner: maker.owner,
        key: maker.key,
        made_at: unix_millis(),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
