//! A pool edit from the operator's wish to its being in force, in a large pool.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot set up has failed"
)]

use divan::Bencher;
use fairlane::{
    document::{
        read_json,
        single::{Which, plan_one},
    },
    domain::{
        pool::{Credential, document::Mode},
        settings::Layer,
    },
    reload::Reload,
    store::Store,
};
use serde_json::{Map, Value, json};

fn main() {
    divan::main();
}

const MODELS: usize = 50;

fn document(credentials: usize) -> Value {
    let models: Vec<Value> = (0..MODELS)
        .map(|n| json!({"model": format!("model-{n}")}))
        .collect();
    let accounts: Vec<Value> = (0..credentials.div_ceil(10))
        .map(|n| json!({"name": format!("account-{n}")}))
        .collect();
    let credential = |n: usize| {
        json!({
            "name": format!("credential-{n}"), "secret": format!("sk-benchmark-{n:08}"),
            "accounts": [format!("account-{}", n / 10)], "endpoints": ["one"], "models": models,
        })
    };
    json!({
        "endpoints": [{"name": "one", "base_url": "https://api.example.com", "protocols": ["openai"]}],
        "accounts": accounts,
        "credentials": (0..credentials).map(credential).collect::<Vec<_>>(),
    })
}

#[divan::bench(args = [100, 10_000], sample_count = 10)]
fn edit_one_credential(bencher: Bencher<'_, '_>, credentials: usize) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("bench.db")).unwrap();
    let document = read_json(document(credentials).to_string().as_bytes()).unwrap();
    store.import_blocking(document, Mode::Merge).unwrap();
    let reload = Reload::first(&store, Layer::default()).unwrap();
    let id = reload.configuration().pool().credentials()[credentials / 2].id;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let mut limit = 0;
    bencher.bench_local(|| {
        limit += 1;
        runtime.block_on(async {
            let said = Map::from_iter([("stream_limit".to_owned(), json!(limit))]);
            let planned = store.change_pool(move |existing, tools| {
                plan_one::<Credential>(existing, tools, Which::Stored(id), said)
            });
            planned.await.unwrap().unwrap();
            reload.now().await.unwrap();
        });
        let pool = reload.configuration().pool();
        let edited = pool.credentials().iter().find(|c| c.id == id).unwrap();
        assert_eq!(edited.stream_limit, Some(limit));
    });
}
