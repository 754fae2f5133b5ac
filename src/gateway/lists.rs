//! Lists of what lives on upstream: a key sees its own things only.
//!
//! Invariants: what this key did not make is never shown, nor what nobody is known to have made; an
//! answer that cannot be read as a list is not passed on; a list that could not be gathered whole is
//! a failure, never a short list.
//!
//! What a key made may live on several accounts. They are asked one after the other, in the order in
//! which their credentials were added, until there is something to show; each account's things stand
//! together in the provider's own order. The end of a page is a thing that has an owner, which is
//! where the next page goes on. Things on accounts that are gone, or out of the key's scope, are not
//! listed.
use super::{
    call::{Answered, Call},
    listing,
    outgoing::Outgoing,
    owned::{Ties, unreadable, unwritten},
    refuse::Refused,
    relay,
    ticket::Ticket,
};
use crate::{
    domain::{
        admission::Demand,
        ids::CredentialId,
        owners::{ObjectKind, OwnerRow},
        pool::{ClientKey, EdgeRef},
        reason::Reason,
    },
    engine::{
        admission::Lease,
        dispatch::{Dispatched, dispatch},
        held::{Held, Patience},
        owners::Maker,
    },
    ports::Answer,
    protocol::owned::{
        self, Filtered, Making, Paging, empty_list, filter_list, join_pages, query_after,
    },
};
use http::{HeaderName, HeaderValue, Method, header, response};
use std::{
    cell::Cell,
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// How many pages of upstream's one page of a client's may cost. A provider's page has up to a
/// hundred things, or ten thousand.
const MOST_PAGES: usize = 16;

/// The longest page that is read: ten thousand things, each with some text.
const LIST_BYTES: usize = 16 << 20;

/// What describes upstream's bytes, which are not the ones that the client gets.
const OF_OTHER_BYTES: [HeaderName; 4] = [
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::ETAG,
    header::LAST_MODIFIED,
];

/// What is asked for, and of whom.
struct Plan {
    /// The caller's objects, and where each lives.
    own: HashMap<Arc<str>, CredentialId>,
    /// Who is asked, in order.
    asked: Vec<CredentialId>,
    /// Where in the list of the first of them.
    place: Option<String>,
    /// Whether the client goes backwards, so that only the first is asked, in the client's words.
    is_backwards: bool,
    limit: usize,
}

/// What has been gathered.
#[derive(Default)]
struct Gathered {
    pages: Vec<Vec<u8>>,
    count: usize,
    /// Whether the client is told that there is more, and what upstream's last page said of that.
    has_more: bool,
    last_had_more: bool,
    /// The last answer without its body; the client gets its head.
    last: Option<(response::Parts, EdgeRef, Option<Lease>)>,
}

/// A page of upstream's, less what is not to be seen.
struct Page {
    filtered: Filtered,
    /// Whether something was left out for want of room.
    is_cut: bool,
    from: (response::Parts, EdgeRef, Option<Lease>),
}

/// What a question came to.
enum Read {
    Page(Box<Page>),
    /// An answer of its own, to be passed on.
    Refusal(Box<Dispatched>),
}

impl Call<'_> {
    /// The list of the key's own things of that kind.
    pub(super) async fn list(
        &self,
        ticket: &mut Ticket,
        key: Option<Arc<ClientKey>>,
        kind: ObjectKind,
    ) -> Result<Answered, Refused> {
        let owners = &self.door.gateway.owners;
        let id = key.as_ref().map(|k| k.id);
        let rows = owners.own_objects(kind, id).await.map_err(unreadable)?;
        let plan = self.plan(rows, key.as_deref())?;
        // A head alone could only tell how long the list is that nobody may see.
        if plan.asked.is_empty() || self.parts.method == Method::HEAD {
            return Ok(listing::whole(ticket, empty_list(self.route.protocol)));
        }
        let dispatched = self.gather(ticket, key, &plan).await?;
        let (head, source) = relay::Source::new(self.route, dispatched, self.policy.idle, ticket);
        Ok(Answered::Relayed(head, source))
    }

    fn plan(&self, rows: Vec<OwnerRow>, key: Option<&ClientKey>) -> Result<Plan, Refused> {
        let paging = Paging::read(self.route.protocol, self.parts.uri.query());
        let own: HashMap<Arc<str>, CredentialId> = rows
            .into_iter()
            .map(|row| (row.object.id, row.owner.credential))
            .collect();
        let mut asked = self.reachable(own.values().copied().collect(), key);
        let is_backwards = paging.before.is_some();
        let place = paging.after.or(paging.before);
        if let Some(place) = &place {
            let owner = own.get(&**place).ok_or_else(Refused::owner_unknown)?;
            let at = asked.iter().position(|c| c == owner);
            asked.drain(..at.unwrap_or(asked.len()));
        }
        if is_backwards {
            asked.truncate(1);
        }
        Ok(Plan {
            own,
            asked,
            place,
            is_backwards,
            limit: paging.limit.unwrap_or(usize::MAX).max(1),
        })
    }

    /// Those of the credentials that can be asked on behalf of that key, the oldest first.
    fn reachable(
        &self,
        owners: BTreeSet<CredentialId>,
        key: Option<&ClientKey>,
    ) -> Vec<CredentialId> {
        let pool = self.door.gateway.configuration.pool();
        let scope = key.and_then(|k| k.accounts.as_deref());
        let is_reachable = |owner: &CredentialId| {
            pool.edges_of(*owner)
                .map(|index| pool.edge(index))
                .any(|edge| {
                    let endpoint = pool.endpoint(edge);
                    endpoint.protocols.contains(&self.route.protocol)
                        && pool.is_in_scope(edge, scope)
                })
        };
        owners.into_iter().filter(is_reachable).collect()
    }

    /// Asks until there is something to show, or nobody is left to be asked.
    async fn gather(
        &self,
        ticket: &Ticket,
        key: Option<Arc<ClientKey>>,
        plan: &Plan,
    ) -> Result<Dispatched, Refused> {
        let mut gathered = Gathered::default();
        let mut place = plan.place.clone();
        let mut asked = plan.asked.iter().copied().peekable();
        for _ in 0..MOST_PAGES {
            let Some(owner) = asked.peek().copied() else {
                break;
            };
            let ties = Ties::to(owner, key.as_deref());
            let demand = self.demand(ticket.id(), (key.clone(), None), ties);
            let answer = self.ask(ticket, demand, (plan, place.take())).await?;
            let room = plan.limit.saturating_sub(gathered.count);
            let page = match self.read((plan, owner, room), answer).await? {
                Read::Page(page) => page,
                Read::Refusal(answer) => return Ok(*answer),
            };
            self.bind_files(&page, ties).await?;
            let filtered = &page.filtered;
            place = filtered.cursor.clone().filter(|_| filtered.has_more);
            if place.is_none() {
                asked.next();
            }
            let is_left = page.is_cut || (asked.peek().is_some() && !plan.is_backwards);
            let goes_on = place.is_some();
            gathered.take(*page, is_left);
            let is_full = gathered.count >= plan.limit;
            if plan.is_backwards || is_full || (gathered.count > 0 && goes_on) {
                break;
            }
        }
        gathered.answer()
    }

    /// Asks one account for a page.
    async fn ask(
        &self,
        ticket: &Ticket,
        demand: Demand,
        (plan, place): (&Plan, Option<String>),
    ) -> Result<Dispatched, Refused> {
        let mut outgoing = Outgoing::prepare(self, None, self.policy.timeouts).await?;
        if !plan.is_backwards {
            let query = self.parts.uri.query();
            outgoing.query = Some(query_after(self.route.protocol, query, place.as_deref()));
        }
        let rules = self.rules(&ticket.live);
        let sent = dispatch(self.way(), demand, rules, &ticket.live, &outgoing);
        Ok(sent.await?)
    }

    /// What an answer shows of what `owner` has of the caller's.
    async fn read(
        &self,
        (plan, owner, room): (&Plan, CredentialId, usize),
        dispatched: Dispatched,
    ) -> Result<Read, Refused> {
        if !dispatched.answer.head.status.is_success() {
            return Ok(Read::Refusal(Box::new(dispatched)));
        }
        let Answer { head, body } = dispatched.answer;
        let held = Held::read(body, Patience::Between(self.policy.idle), LIST_BYTES).await;
        let codings = head.headers.get_all(header::CONTENT_ENCODING);
        let document = held.document(codings.iter().map(HeaderValue::as_bytes));
        let left = Cell::new(room);
        let is_cut = Cell::new(false);
        let is_shown = |id: &str| {
            if plan.own.get(id) != Some(&owner) {
                return false;
            }
            is_cut.set(is_cut.get() || left.get() == 0);
            let has_room = left.get() > 0;
            left.set(left.get().saturating_sub(1));
            has_room
        };
        let document = document.filter(|_| held.is_whole());
        let filtered = document.and_then(|document| filter_list(&document, is_shown));
        let page = Page {
            filtered: filtered.ok_or_else(unlisted)?,
            is_cut: is_cut.get(),
            from: (head, dispatched.edge, dispatched.lease),
        };
        Ok(Read::Page(Box::new(page)))
    }

    /// Things on a list may name files that were made meanwhile.
    async fn bind_files(&self, page: &Page, ties: Ties) -> Result<(), Refused> {
        if owned::making(self.route.operation) != Making::BeforeAnswer {
            return Ok(());
        }
        let made = owned::made(self.route.operation, &page.filtered.body);
        let maker = Maker::at(ties.key, &page.from.1);
        let owners = &self.door.gateway.owners;
        owners.bind_durably(made, maker).await.map_err(unwritten)
    }
}

impl Gathered {
    /// Adds a page; `is_left` tells whether the client has reason to come back.
    fn take(&mut self, page: Page, is_left: bool) {
        let Page { filtered, from, .. } = page;
        self.count += filtered.kept;
        self.has_more = is_left || filtered.has_more;
        self.last_had_more = filtered.has_more;
        self.pages.push(filtered.body);
        self.last = Some(from);
    }

    fn answer(mut self) -> Result<Dispatched, Refused> {
        // To go on from nothing is not possible.
        let has_more = self.has_more && self.count > 0;
        let is_as_it_came = self.pages.len() == 1 && has_more == self.last_had_more;
        let body = if is_as_it_came {
            self.pages.pop()
        } else {
            join_pages(&self.pages, has_more)
        };
        let (Some(body), Some((mut head, edge, lease))) = (body, self.last) else {
            return Err(unlisted());
        };
        for name in OF_OTHER_BYTES {
            head.headers.remove(name);
        }
        let body = Box::pin(Held::whole(body));
        Ok(Dispatched {
            answer: Answer { head, body },
            edge,
            lease,
        })
    }
}

fn unlisted() -> Refused {
    Refused::new(
        Reason::UpstreamAmbiguous,
        "What the provider answered cannot be read as a list, so that it is not known what of it this key may see.",
    )
}
