//! Who may operate this instance: the password, the sessions that it opens, and the set-up before
//! there is a password.
//!
//! Invariants: passwords and what opens a session are stored as hashes and compared in constant
//! time; a session ends with its time, by hand, or when the password changes; the first password
//! can be set once, by somebody at the machine or with the token that the process printed.
mod origin;
mod password;
mod throttle;

use crate::{
    clock, digest,
    domain::{ids::SessionId, pool::BaseUrl, settings::Name},
    entropy,
    peer::{Peer, Sender, TrustedProxies},
    reload::Reload,
    store::{Store, StoreError, sessions::Session},
};
use http::{HeaderMap, HeaderValue, Method, header};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use subtle::ConstantTimeEq as _;

pub use self::password::{
    HashError, MAX_BYTES, MIN_CHARACTERS, PasswordError, check as check_password, hash_blocking,
};

/// The cookie that holds a session.
pub const COOKIE: &str = "fairlane_session";

/// What the token of the set-up begins with.
const SETUP_TOKEN: &str = "setup-";

/// What a browser says of itself is kept up to this length.
const USER_AGENT_CHARACTERS: usize = 200;

/// Who may operate; cheap to clone.
#[derive(Clone, Debug)]
pub struct Access(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Store,
    reload: Reload,
    hasher: password::Hasher,
    throttle: throttle::Throttle,
    proxies: TrustedProxies,
    public_url: Option<BaseUrl>,
    /// The hash of the set-up token; `None` once it has been used.
    setup: Mutex<Option<[u8; 32]>>,
}

/// What a login came to.
#[derive(Debug)]
pub enum Login {
    /// The cookie's value of the session that was opened.
    Opened(String),
    /// The password is not it.
    Wrong,
    /// Too many were tried; come again after this.
    TooMany(Duration),
    /// No password was ever set.
    NotSetUp,
}

/// What setting the first password came to.
#[derive(Debug)]
pub enum SetUp {
    /// It is set; the cookie's value of the session that was opened.
    Done(String),
    /// There is a password already.
    Already,
    /// The token is missing or not the one that was printed.
    WrongToken,
    /// Too many tokens were tried; come again after this.
    TooMany(Duration),
    /// The password cannot be taken.
    Refused(PasswordError),
}

/// Why access could not be decided.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AccessError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A password could not be hashed or compared.
    #[error("a password could not be hashed")]
    Hashing,
}

impl Access {
    /// Access to the instance of that store.
    pub fn new(
        store: Store,
        reload: Reload,
        proxies: TrustedProxies,
        public_url: Option<BaseUrl>,
    ) -> Self {
        Self(Arc::new(Shared {
            store,
            reload,
            hasher: password::Hasher::default(),
            throttle: throttle::Throttle::default(),
            proxies,
            public_url,
            setup: Mutex::default(),
        }))
    }

    /// Sets the first password if there is none yet; one that is set stays.
    pub async fn set_first_password(&self, password: &str) -> Result<(), AccessError> {
        if self.is_set_up().await? {
            return Ok(());
        }
        let hash = self.0.hasher.hash(password).await?;
        self.0.store.set_first_password_hash(hash).await?;
        Ok(())
    }

    /// Mints the token that lets somebody elsewhere set the first password; `None` if there is a
    /// password already. A later one replaces an earlier one.
    pub async fn offer_set_up(&self) -> Result<Option<String>, AccessError> {
        if self.is_set_up().await? {
            return Ok(None);
        }
        let token = entropy::secret(SETUP_TOKEN);
        *self.setup() = Some(digest::sha256(token.as_bytes()));
        Ok(Some(token))
    }

    /// Whether there is a password.
    pub async fn is_set_up(&self) -> Result<bool, AccessError> {
        Ok(self.0.store.password_hash().await?.is_some())
    }

    /// Who sent a request with these headers.
    pub fn sender(&self, peer: Peer, headers: &HeaderMap) -> Sender {
        self.0.proxies.sender(peer, headers)
    }

    /// Where the operator says that this instance is to be reached.
    pub fn public_url(&self) -> Option<&BaseUrl> {
        self.0.public_url.as_ref()
    }

    /// Whether a request must be refused because another site may have made the browser send it.
    pub fn is_forged(&self, method: &Method, headers: &HeaderMap) -> bool {
        let has_session = cookie(headers).is_some();
        origin::is_forged(method, headers, self.public_url(), has_session)
    }

    /// Sets the first password, for somebody at the machine or with the printed token.
    pub async fn set_up(
        &self,
        sender: &Sender,
        token: &str,
        password: &str,
        user_agent: &str,
    ) -> Result<SetUp, AccessError> {
        if self.is_set_up().await? {
            return Ok(SetUp::Already);
        }
        if !sender.is_local {
            if let Err(wait) = self.0.throttle.admit(sender.address, false) {
                return Ok(SetUp::TooMany(wait));
            }
            if !self.is_setup_token(token) {
                self.0.throttle.failed(sender.address);
                return Ok(SetUp::WrongToken);
            }
        }
        if let Err(error) = password::check(password) {
            return Ok(SetUp::Refused(error));
        }
        let hash = self.0.hasher.hash(password).await?;
        if !self.0.store.set_first_password_hash(hash).await? {
            return Ok(SetUp::Already);
        }
        *self.setup() = None;
        self.0.throttle.succeeded(sender.address);
        Ok(SetUp::Done(self.open(sender, user_agent).await?))
    }

    fn is_setup_token(&self, token: &str) -> bool {
        let presented = digest::sha256(token.trim().as_bytes());
        let expected = *self.setup();
        expected.is_some_and(|hash| bool::from(hash.ct_eq(&presented)))
    }

    /// Opens a session if `password` is the operator's.
    pub async fn log_in(
        &self,
        sender: &Sender,
        password: &str,
        user_agent: &str,
    ) -> Result<Login, AccessError> {
        let Some(stored) = self.0.store.password_hash().await? else {
            return Ok(Login::NotSetUp);
        };
        let address = sender.address.to_string();
        let is_known = sender.is_local || self.0.store.has_session_from(address).await?;
        if let Err(wait) = self.0.throttle.admit(sender.address, is_known) {
            return Ok(Login::TooMany(wait));
        }
        if !self.0.hasher.verify(password, stored).await? {
            self.0.throttle.failed(sender.address);
            return Ok(Login::Wrong);
        }
        self.0.throttle.succeeded(sender.address);
        Ok(Login::Opened(self.open(sender, user_agent).await?))
    }

    async fn open(&self, sender: &Sender, user_agent: &str) -> Result<String, AccessError> {
        let secret = entropy::secret("");
        let now = clock::unix_millis();
        let session = Session {
            id: SessionId::from_u128(entropy::uuid7()),
            hash: digest::sha256(secret.as_bytes()),
            address: sender.address.to_string(),
            user_agent: user_agent.chars().take(USER_AGENT_CHARACTERS).collect(),
            created_at: now,
            expires_at: now.saturating_add(self.ttl_ms()),
        };
        self.0.store.add_session(session).await?;
        Ok(secret)
    }

    /// The session that the request's cookie opens, if its time is not over.
    pub async fn session(&self, headers: &HeaderMap) -> Result<Option<Session>, StoreError> {
        let Some(secret) = cookie(headers) else {
            return Ok(None);
        };
        let hash = digest::sha256(secret.as_bytes());
        let found = self.0.store.session(hash).await?;
        let now = clock::unix_millis();
        // A shorter time that was set meanwhile holds for sessions that are open already.
        let ends_at = |s: &Session| s.expires_at.min(s.created_at.saturating_add(self.ttl_ms()));
        Ok(found.filter(|session| now < ends_at(session)))
    }

    /// Ends a session.
    pub async fn log_out(&self, id: SessionId) -> Result<(), StoreError> {
        self.0.store.remove_session(id).await.map(drop)
    }

    /// The cookie that gives a session to the browser.
    pub fn session_cookie(&self, sender: &Sender, secret: &str) -> Option<HeaderValue> {
        let seconds = self.ttl_ms() / 1000;
        set_cookie(sender, secret, seconds)
    }

    /// The cookie that takes it away again.
    pub fn no_session_cookie(sender: &Sender) -> Option<HeaderValue> {
        set_cookie(sender, "", 0)
    }

    fn ttl_ms(&self) -> i64 {
        let settings = self.0.reload.configuration().settings();
        let hours = settings.integer(Name::SessionTtlHours);
        i64::try_from(hours * 3_600_000).unwrap_or(i64::MAX)
    }

    fn setup(&self) -> std::sync::MutexGuard<'_, Option<[u8; 32]>> {
        self.0.setup.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn set_cookie(sender: &Sender, value: &str, seconds: i64) -> Option<HeaderValue> {
    let secure = if sender.is_tls { "; Secure" } else { "" };
    let text =
        format!("{COOKIE}={value}; HttpOnly; SameSite=Lax; Path=/; Max-Age={seconds}{secure}");
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The session cookie of a request; an empty one is none.
fn cookie(headers: &HeaderMap) -> Option<&str> {
    let values = headers.get_all(header::COOKIE).iter();
    let mut pairs = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let found = pairs.find(|(name, _)| *name == COOKIE);
    found.map(|(_, value)| value).filter(|v| !v.is_empty())
}

#[cfg(test)]
mod tests;
