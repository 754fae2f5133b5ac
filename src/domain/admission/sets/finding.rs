//! How the set of a request is found, made, and let go again.
use super::{Asked, Set, SetId, Sets, set::Member};
use crate::domain::{
    admission::{demand::Demand, selection::View},
    pool::EdgeIndex,
};
use rustc_hash::FxHashMap;

/// So many sets are kept at least; beyond that, those that nobody has needed lately are let go.
const KEPT: usize = 64;

impl Sets {
    /// The set of a request's candidates.
    pub(in crate::domain::admission) fn of(&mut self, view: View<'_>, demand: &Demand) -> SetId {
        let scope = self.scope_of(demand);
        let offers = view.layout.offers(demand);
        let model = demand.model.as_deref();
        // Models that no catalog lists are served alike, unless each has its own cooldown.
        let is_apart = offers.is_listed() || view.layout.is_per_model;
        let name = model.filter(|_| is_apart).unwrap_or_default();
        let asked = Asked {
            protocol: demand.protocol,
            scope,
            has_model: model.is_some(),
        };
        let known = self.by_asked.get(&asked).and_then(|names| names.get(name));
        let known = known.copied();
        let id = known.unwrap_or_else(|| self.make(view, demand));
        if known.is_none() {
            let names = self.by_asked.entry(asked).or_default();
            names.insert(name.into(), id);
        }
        if let Some(set) = self.all.get_mut(id) {
            set.is_used = true;
        }
        id
    }

    fn scope_of(&mut self, demand: &Demand) -> u32 {
        let Some((key, accounts)) = demand
            .key
            .as_ref()
            .and_then(|k| Some((k.id, k.accounts.as_ref()?)))
        else {
            return 0;
        };
        if let Some(known) = self.scopes.get(&key) {
            return *known;
        }
        let mut accounts = accounts.clone();
        accounts.sort_unstable();
        let next = u32::try_from(self.scope_numbers.len() + 1).unwrap_or(u32::MAX);
        let number = *self.scope_numbers.entry(accounts).or_insert(next);
        self.scopes.insert(key, number);
        number
    }

    fn make(&mut self, view: View<'_>, demand: &Demand) -> SetId {
        let pool = &view.layout.pool;
        let in_scope = |edge: &EdgeIndex| pool.is_in_scope(pool.edge(*edge), demand.scope());
        let edges: Vec<EdgeIndex> = view
            .layout
            .offers(demand)
            .edges()
            .filter(in_scope)
            .collect();
        let model = demand.model.clone().filter(|_| view.layout.is_per_model);
        if model.is_none()
            && let Some(id) = self.by_edges.get(edges.as_slice())
        {
            return *id;
        }
        self.let_go();
        let mut set = Set {
            needs_several: !edges.is_empty(),
            model,
            ..Set::default()
        };
        let mut places: FxHashMap<u32, usize> = FxHashMap::default();
        for edge in &edges {
            let gates = view.layout.gates(*edge);
            set.needs_several &= gates.spans_several();
            for gate in &gates.shared {
                let place = *places.entry(gate.subject).or_insert(set.members.len());
                match set.members.get_mut(place) {
                    Some(member) => member.add(*edge, gate.ordinary),
                    None => set.members.push(Member {
                        subject: gate.subject,
                        ordinary: gate.ordinary,
                        edges: vec![*edge],
                        serves: false,
                    }),
                }
            }
        }
        set.accounts = u32::try_from(set.members.len()).unwrap_or(u32::MAX);
        let is_shared = set.model.is_none();
        let id = self.all.insert(set);
        if is_shared {
            self.by_edges.insert(edges.into(), id);
        }
        self.enrol(view, id);
        id
    }

    /// Makes room: those that nobody waits for and nobody has asked for since the last time go.
    fn let_go(&mut self) {
        if self.all.len() < KEPT {
            return;
        }
        let is_idle = |set: &Set| set.groups.is_empty() && !set.is_used;
        let idle = self.all.iter().filter(|(_, set)| is_idle(set));
        let idle: Vec<SetId> = idle.map(|(id, _)| id).collect();
        for id in &idle {
            self.forget(*id);
        }
        for (_, set) in &mut self.all {
            set.is_used = false;
        }
        self.by_asked.retain(|_, names| {
            names.retain(|_, id| !idle.contains(id));
            !names.is_empty()
        });
        self.by_edges.retain(|_, id| !idle.contains(id));
    }

    fn forget(&mut self, id: SetId) {
        let Some(set) = self.all.try_remove(id) else {
            return;
        };
        for member in &set.members {
            if let Some(sets) = self.by_subject.get_mut(member.subject as usize) {
                sets.retain(|(set, _)| *set != id);
            }
        }
        for (_, other) in &mut self.all {
            other.overlaps.remove(&id);
        }
    }
}
