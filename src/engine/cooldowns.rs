//! Cooldowns as the operator sees them: of an account as a whole, wherever they are counted.
//!
//! Invariant: an account whose limits apply to each of its credentials has its cooldowns on these.
use super::{admission::Admission, configuration::Configuration};
use crate::domain::{
    admission::{Standing, Subject},
    cooldown::Stage,
    pool::{Pool, QuotaScope},
};

/// Where the cooldowns of a subject are counted.
fn subjects(pool: &Pool, subject: Subject) -> Vec<Subject> {
    let mut all = vec![subject];
    if let Subject::Account(id) = subject {
        let account = pool.accounts().iter().find(|a| a.id == id);
        if account.is_some_and(|a| a.quota_scope == QuotaScope::Credential) {
            let charged = pool.credentials().iter();
            let charged = charged.filter(|c| c.accounts.contains(&id));
            all.extend(charged.map(|c| Subject::Credential(c.id)));
        }
    }
    all
}

/// Whether anything of it cools, waits for its single shot or has that out.
pub fn is_limited(standing: &Standing) -> bool {
    let mut models = standing.models.iter().map(|(_, cooldown)| cooldown);
    standing.cooldown.stage() != Stage::Open || models.any(|c| c.stage() != Stage::Open)
}

fn limited(configuration: &Configuration, subject: Subject) -> (&Admission, Vec<Subject>) {
    let admission = configuration.admission();
    let mut all = subjects(&configuration.pool(), subject);
    all.retain(|s| admission.standing(*s).is_some_and(|s| is_limited(&s)));
    (admission, all)
}

/// Whether there is anything to clear.
pub fn is_any(configuration: &Configuration, subject: Subject) -> bool {
    !limited(configuration, subject).1.is_empty()
}

/// Ends the cooldowns of a subject. Gives whether there were any.
pub fn clear(configuration: &Configuration, subject: Subject) -> bool {
    let (admission, all) = limited(configuration, subject);
    let mut has_cleared = false;
    for subject in all {
        has_cleared |= admission.clear_cooldown(subject);
    }
    has_cleared
}
