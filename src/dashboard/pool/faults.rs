//! What a plan refuses, at the field that it is about and in the reader's language.
use super::typed::Typed;
use crate::{
    dashboard::{error::Trouble, form::Faults, setup::secret_fault, shell::Shell},
    document::single::Refusal,
    domain::{
        pool::document::Mistake,
        secret::Secret,
        settings::{Kind, Name},
    },
};

/// A refusal as faults of fields. There is nothing to mend where the thing is gone.
pub(super) fn faults(shell: &Shell, refusal: Refusal, typed: &Typed) -> Result<Faults, Trouble> {
    let mut faults = Faults::default();
    match refusal {
        Refusal::Missing => return Err(Trouble::NotFound),
        Refusal::NameTaken(_) => faults.add("name", shell.t("pool-name-taken")),
        Refusal::SecretTaken(by) => faults.add("secret", shell.t("secret-taken").text("name", by)),
        Refusal::Mistakes(mistakes) => {
            for mistake in mistakes {
                fault(shell, &mut faults, &mistake, typed);
            }
        }
    }
    Ok(faults)
}

pub(super) fn fault(shell: &Shell, faults: &mut Faults, mistake: &Mistake, typed: &Typed) {
    let field = mistake.path.split(['.', '[']).next().unwrap_or_default();
    let limit = || shell.t("account-limit-fault").num("max", max_limit());
    let line = typed.line(&mistake.path).unwrap_or(1);
    match field {
        "name" => faults.add("name", shell.t("account-name-fault")),
        "base_url" => faults.add("base_url", shell.t("account-base-url-fault")),
        "protocols" => faults.add("protocols", shell.t("account-protocol-fault")),
        "accounts" => faults.add("accounts", shell.t("pool-choice-gone")),
        "endpoints" => faults.add("endpoints", shell.t("pool-endpoints-fault")),
        "stream_limit" => faults.add("stream_limit", limit()),
        "create_limit" => faults.add("create_limit", limit()),
        "job_limit" => faults.add("job_limit", limit()),
        "quota_scope" => faults.add("quota_scope", shell.t("pool-scope-fault")),
        "models" => faults.add("models", shell.t("pool-models-fault").num("line", line)),
        "headers" => faults.add("headers", shell.t("pool-headers-fault").num("line", line)),
        "priority" => faults.add("priority", shell.t("pool-priority-fault")),
        "weight" => faults.add("weight", shell.t("pool-weight-fault")),
        _ => match Secret::clean(typed.get("secret")) {
            Err(error) if field == "secret" => faults.add("secret", secret_fault(shell, error)),
            _ => faults.add("name", shell.t("pool-refused").text("what", mistake)),
        },
    }
}

fn max_limit() -> i64 {
    match Name::AccountStreamLimit.declaration().kind {
        Kind::Integer { max, .. } => max,
        _ => i64::from(u32::MAX),
    }
}
