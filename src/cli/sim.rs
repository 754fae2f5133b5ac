//! `fairlane sim`: the simulated provider alone.
use crate::sim::{Config, Help, Sim};
use std::net::SocketAddr;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Where it listens.
    #[arg(long, default_value = "127.0.0.1:9100", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Answer without any delay, for measurements.
    #[arg(long)]
    fast: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let config = if arguments.fast {
        Config::default()
    } else {
        Config::lifelike()
    };
    let config = Config {
        listen: arguments.listen,
        ..config
    };
    super::serve::runtime()?.block_on(async {
        let sim = Sim::start(config).await?;
        eprintln!("simulated provider on {}\n\n{Help}", sim.base_url());
        tokio::signal::ctrl_c().await?;
        sim.stop().await;
        Ok(())
    })
}
