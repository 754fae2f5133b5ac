//! What the request log says of an account's quota: of the whole, or of each credential; with its
//! evidence and the switch.
use crate::{
    dashboard::{State, shell::Shell},
    domain::{
        ids::CredentialId,
        pool::{Account, QuotaScope, edges::Contents},
        quota::{self, Verdict},
    },
    store::StoreError,
};

/// The verdict in words.
pub(super) struct Quota {
    pub(super) token: &'static str,
    pub(super) icon: &'static str,
    pub(super) says: String,
    /// What that rests on; nothing where there is nothing.
    pub(super) evidence: Vec<String>,
    /// Where the setting is switched, and the words on the button; nothing where it fits.
    pub(super) switch: Option<(String, String)>,
}

impl Quota {
    /// Looks at the newest answers to the account's credentials.
    pub(super) async fn look(
        state: &State,
        shell: &Shell,
        account: &Account,
        contents: &Contents,
    ) -> Result<Self, StoreError> {
        let answers = state.store().answers(account.id).await?;
        Ok(Self::new(shell, account, contents, &quota::judge(&answers)))
    }

    fn new(shell: &Shell, account: &Account, contents: &Contents, verdict: &Verdict) -> Self {
        let name = |id: CredentialId| {
            let found = contents.credentials.iter().find(|c| c.id == id);
            found.map_or_else(|| id.to_string(), |c| c.name.to_string())
        };
        let mut evidence = Vec::new();
        if let Some(pair) = verdict.newest {
            let key = match verdict.scope {
                Some(QuotaScope::Credential) => "quota-pair-apart",
                _ => "quota-pair-together",
            };
            let text = shell.t(key).text("limited", name(pair.limited));
            let text = text.text("neighbour", name(pair.neighbour));
            evidence.push(text.text("at", shell.date_time(pair.at_ms)).to_string());
        }
        if verdict.apart + verdict.together > 0 {
            let text = shell.t("quota-counts").num("apart", verdict.apart);
            evidence.push(text.num("together", verdict.together).to_string());
        }
        let fits = verdict
            .scope
            .is_none_or(|scope| scope == account.quota_scope);
        let says = match verdict.scope {
            None if verdict.limited == 0 => "quota-no-limits",
            None => "quota-unclear",
            Some(QuotaScope::Account) => "quota-per-account",
            Some(QuotaScope::Credential) => "quota-per-credential",
        };
        let switch = verdict.scope.filter(|_| !fits).map(|scope| {
            let (verb, words) = match scope {
                QuotaScope::Account => ("share-limits", "quota-share"),
                QuotaScope::Credential => ("part-limits", "quota-part"),
            };
            let address = format!("/pool/accounts/{}/{verb}", account.id);
            (address, shell.t(words).to_string())
        });
        let (token, icon) = match (verdict.scope, fits) {
            (None, _) => ("info", "info"),
            (Some(_), true) => ("ok", "ok"),
            (Some(_), false) => ("warn", "ambiguous"),
        };
        Self {
            token,
            icon,
            says: shell.t(says).to_string(),
            evidence,
            switch,
        }
    }
}

/// Every verdict, for an account whose limits apply to it as a whole.
#[cfg(test)]
pub(super) fn samples(shell: &Shell, contents: &Contents) -> Vec<Quota> {
    use crate::domain::quota::Pair;

    let pair = Pair {
        limited: CredentialId::from_u128(3),
        neighbour: CredentialId::from_u128(99),
        at_ms: 1_796_000_585_000,
    };
    let verdict = |scope: Option<QuotaScope>, limited| Verdict {
        scope,
        apart: usize::from(scope == Some(QuotaScope::Credential)) * 2,
        together: usize::from(scope == Some(QuotaScope::Account)),
        newest: scope.map(|_| pair),
        limited,
    };
    let verdicts = [
        verdict(None, 0),
        verdict(None, 3),
        verdict(Some(QuotaScope::Account), 3),
        verdict(Some(QuotaScope::Credential), 3),
    ];
    let apart = Account {
        quota_scope: QuotaScope::Credential,
        ..contents.accounts[0].clone()
    };
    let all = [&contents.accounts[0], &apart];
    all.iter()
        .flat_map(|account| verdicts.map(|v| Quota::new(shell, account, contents, &v)))
        .collect()
}
