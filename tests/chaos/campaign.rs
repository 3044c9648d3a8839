//! The course of a run: a calm phase, then one fault after another, each until everybody has got
//! over it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

use super::check::BOUND;
use super::cluster::Cluster;
use super::crew::Crew;
use super::failover;
use super::faults::{self, Target};
use super::figures::{self, FACTOR};
use super::options::Options;
use super::record::{Book, Span};
use super::report::Line;

/// How long the calm phase lasts.
const CALM: Duration = Duration::from_secs(20);
/// How long after a fault the next one begins, at least.
const REST: Duration = Duration::from_secs(6);
/// How long an exchange may take that no fault disturbs.
const LONG: Duration = Duration::from_secs(8);
/// How often each entrance is probed until it accepts.
const PROBES: Duration = Duration::from_millis(100);

/// Runs all of it; a line for each fault.
pub async fn run(
    options: &Options,
    cluster: &mut Cluster,
    crew: &Arc<Crew>,
) -> anyhow::Result<Vec<Line>> {
    let book = Arc::clone(&crew.clients.book);
    let from = book.now() + Duration::from_secs(3);
    println!("calm for {} s", CALM.as_secs());
    cluster.hold(CALM).await?;
    let calm = (from, book.now());
    let mut lines = vec![calm_line(&book, calm)];
    let mut chosen = chosen(options)?;
    let end = book.now() + Duration::from_secs(options.seconds);
    let over = |book: &Book| match options.exchanges {
        Some(exchanges) => book.count() >= exchanges,
        None => book.now() >= end,
    };
    // The first round is always finished, so that no fault is left out.
    for name in &chosen {
        lines.push(endure(name, cluster, crew, calm).await?);
    }
    loop {
        crew.clients.random.shuffle(&mut chosen);
        for name in &chosen {
            if over(&book) {
                return Ok(lines);
            }
            lines.push(endure(name, cluster, crew, calm).await?);
        }
    }
}

fn chosen(options: &Options) -> anyhow::Result<Vec<String>> {
    let all = options.all_faults().iter().map(|(name, _)| *name);
    if options.faults.is_empty() {
        return Ok(all.map(str::to_owned).collect());
    }
    for name in &options.faults {
        anyhow::ensure!(
            all.clone().any(|one| one == name),
            "there is no fault {name}; --list shows all"
        );
    }
    Ok(options.faults.clone())
}

fn calm_line(book: &Book, (from, to): (Duration, Duration)) -> Line {
    let record = book.lock();
    let p99 = figures::p99(&record, from, to, figures::ALL);
    let exchanges = record.exchanges.iter();
    Line {
        fault: "(calm)".to_owned(),
        begun: Duration::ZERO,
        exchanges: exchanges.filter(|e| e.begun >= from).count(),
        errors: figures::errors(&record, from, to),
        remarks: vec![format!("p99 of calls: {:.1} ms", p99.unwrap_or(f64::NAN))],
        ..Line::default()
    }
}

/// One fault, from its injection until everybody has got over it.
async fn endure(
    name: &str,
    cluster: &mut Cluster,
    crew: &Arc<Crew>,
    calm: (Duration, Duration),
) -> anyhow::Result<Line> {
    let book = &crew.clients.book;
    let begun = book.now();
    println!("{:7.1} s  {name}", begun.as_secs_f64());
    let exits = |cluster: &Cluster| cluster.nodes.iter().map(|node| node.exits).sum::<usize>();
    let exits_before = exits(cluster);
    let effect = match faults::inject(name, cluster, crew).await? {
        Ok(effect) => effect,
        Err(why) => {
            println!("           skipped: {why}");
            return Ok(Line {
                fault: name.to_owned(),
                begun,
                remarks: vec![format!("skipped: {why}")],
                ..Line::default()
            });
        }
    };
    let ended = book.now();
    book.lock().spans.push(Span {
        begun,
        ended,
        crash: effect.crash,
    });
    let probing = tokio::spawn(back(Arc::clone(crew)));
    let waiting = settle(cluster, book, ended).await?;
    let back_at = probing.await?;
    let mut found = None;
    if cluster.database.patroni.is_some() {
        found = failover::restore(name, &mut cluster.database).await?;
    } else if name == "failover" {
        cluster.database.add_standby().await?;
    }
    let settled = book.now();
    let mut line = describe(book, name, (begun, ended, settled), calm);
    line.remarks = effect.remarks;
    match found {
        Some(Ok(remark)) => line.remarks.push(remark),
        Some(Err(missed)) => line.missed.push(missed),
        None => {}
    }
    let since = match effect.target {
        Target::BackAfterBegin(_) => begun,
        _ => ended,
    };
    line.back = back_at.map(|at| at.saturating_sub(since));
    match effect.target {
        Target::BackAfterEnd(most) | Target::BackAfterBegin(most) => {
            if line.back.is_none_or(|back| back > most) {
                let most = most.as_secs();
                line.missed.push(format!("service back within {most} s"));
            }
        }
        Target::Unaffected(through) => {
            let record = book.lock();
            let under = figures::p99(&record, begun, ended, through);
            let before = figures::p99(&record, calm.0, calm.1, through);
            line.unrelated = under.zip(before).map(|(under, before)| under / before);
            if line.unrelated.is_none_or(|factor| factor > FACTOR) {
                let what = format!("p99 of unrelated calls: {under:.1?} ms, calm {before:.1?} ms");
                line.missed.push(what);
            }
        }
        Target::None => {}
    }
    if line.errors.contains_key("500") {
        line.missed.push("no answer 500".to_owned());
    }
    let exited = exits(cluster) - exits_before;
    if exited > 0 {
        line.missed
            .push(format!("nodes ended by themselves: {exited}"));
    }
    if waiting > 0 {
        line.remarks
            .push(format!("{waiting} exchanges left waiting"));
    }
    let back = line.back.map_or("never".to_owned(), |b| {
        format!("after {:.2} s", b.as_secs_f64())
    });
    println!(
        "           taken away after {:.1} s, back {back}",
        ended.saturating_sub(begun).as_secs_f64()
    );
    Ok(line)
}

fn describe(
    book: &Book,
    name: &str,
    (begun, ended, settled): (Duration, Duration, Duration),
    calm: (Duration, Duration),
) -> Line {
    let record = book.lock();
    let usual = figures::p99(&record, calm.0, calm.1, figures::ALL).unwrap_or(f64::NAN);
    let exchanges = record.exchanges.iter();
    Line {
        fault: name.to_owned(),
        begun,
        exchanges: exchanges.filter(|e| e.begun >= begun).count(),
        errors: figures::errors(&record, begun, settled),
        normal: figures::normal(&record, ended, settled, usual),
        ..Line::default()
    }
}

/// Waits until everybody has got over the fault who was there before its end, or began so soon
/// after it that service was not back yet. How many have not, past the bound.
async fn settle(cluster: &mut Cluster, book: &Book, ended: Duration) -> anyhow::Result<usize> {
    cluster.hold(REST).await?;
    loop {
        let before = book.now().saturating_sub(LONG).max(ended);
        let waiting = book.unfinished(before).len();
        if waiting == 0 || book.now() > ended + BOUND + Duration::from_secs(1) {
            return Ok(waiting);
        }
        cluster.hold(Duration::from_millis(250)).await?;
    }
}

/// When every entrance had accepted a submission again that was made from now on.
async fn back(crew: Arc<Crew>) -> Option<Duration> {
    let entrances = 0..crew.clients.entrances.len();
    let all = join_all(entrances.map(|entrance| first_accepted(&crew, entrance)));
    let all = timeout(BOUND * 2, all).await.ok()?;
    all.into_iter().max()
}

/// A probe may hang, so the next one does not wait for it.
async fn first_accepted(crew: &Arc<Crew>, entrance: usize) -> Duration {
    let (accepted, mut first) = tokio::sync::mpsc::channel(1);
    let probes = async {
        loop {
            let (crew, accepted) = (Arc::clone(crew), accepted.clone());
            tokio::spawn(async move {
                if crew.probe(entrance).await {
                    let _ = accepted.try_send(crew.clients.book.now());
                }
            });
            sleep(PROBES).await;
        }
    };
    tokio::select! {
        () = probes => Duration::MAX,
        at = first.recv() => at.unwrap_or(Duration::MAX),
    }
}
