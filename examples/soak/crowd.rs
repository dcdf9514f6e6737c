//! 100,000 who wait at once.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tollgate::{Quota, Shaper};

use crate::Run;
use crate::churn::runtime;
use crate::director::{CATCH_UP, Director};
use crate::ledger::Ends;
use crate::memory;
use crate::violation::{STUCK, Violation, becomes, same};

/// How many wait at once.
const CROWD: usize = 100_000;
/// How many of them leave in each of two storms.
const LEAVERS: usize = CROWD / 4;

/// Grants nobody anything while a crowd gathers: an hour is longer than that takes.
const STILL: Quota = Quota::per_hour(1);
const SLOW: Quota = Quota::per_second(20_000);
const FAST: Quota = Quota::per_second(100_000).burst(50);

/// Sends crowds to one shaper until the time is over, and closes it under the last one.
pub(crate) fn run(run: &Arc<Run>) -> Result<String, Violation> {
    let runtime = runtime(Builder::new_multi_thread().worker_threads(2))?;
    let shaper = Arc::new(Shaper::builder(STILL).initial(0).catch_up(CATCH_UP).build());
    let mut sizes = Vec::new();
    let mut share = (0, 0);
    loop {
        let crowd = Crowd::gather(&shaper, run, &runtime)?;
        sizes.extend(memory::resident());
        if run.is_over() {
            crowd.send_home()?;
            break;
        }
        let (granted, most) = crowd.serve()?;
        share = (share.0 + granted, share.1 + most);
    }
    run.crowd.close()?;
    let grown = flat(&sizes)?;
    let Ends { granted, refused, cancelled, .. } = run.crowd.ends();
    Ok(format!(
        "{} crowds of {CROWD}: {granted} granted, {refused} sent home, {cancelled} cancelled; \
         {} permits of the {} that the law allows while it is paced; {grown}",
        run.crowd.asked() / CROWD as u64,
        share.0,
        share.1
    ))
}

/// Those who wait, and how things stood before they came.
struct Crowd<'a> {
    shaper: &'a Arc<Shaper>,
    run: &'a Run,
    runtime: &'a Runtime,
    before: Ends,
    tasks: JoinSet<()>,
    handles: Vec<AbortHandle>,
}

impl<'a> Crowd<'a> {
    /// Waits until all are in line.
    fn gather(shaper: &'a Arc<Shaper>, run: &'a Arc<Run>, runtime: &'a Runtime) -> Result<Self, Violation> {
        let mut tasks = JoinSet::new();
        let before = run.crowd.ends();
        let task = || {
            let (shaper, run) = (Arc::clone(shaper), Arc::clone(run));
            async move {
                let request = run.crowd.ask();
                match shaper.acquire_owned().await {
                    Ok(permit) => request.granted(permit.permits()),
                    Err(_) => request.refused(),
                }
            }
        };
        let handles = (0..CROWD).map(|_| tasks.spawn_on(task(), runtime.handle())).collect();
        becomes("waiting", || shaper.waiting(), CROWD)?;
        Ok(Self { shaper, run, runtime, before, tasks, handles })
    }

    /// Storms of cancellations, changes of the pace, and in the end permits for all who stayed.
    fn serve(self) -> Result<(u128, u128), Violation> {
        let (shaper, ledger) = (self.shaper, &self.run.crowd);
        // Those who leave leave no trace, and nobody else does.
        self.storm(..LEAVERS);
        let cancelled = || ledger.ends().cancelled - self.before.cancelled;
        becomes("cancelled", cancelled, LEAVERS as u64)?;
        becomes("waiting after a quarter has left", || shaper.waiting(), CROWD - LEAVERS)?;

        // The shaper is empty: it was unlimited before, or began so.
        let paid = ledger.permits();
        let mut director = Director::new(&**shaper, ledger, STILL, paid);
        director.set_quota(SLOW);
        thread::scope(|scope| {
            scope.spawn(|| self.storm(LEAVERS..2 * LEAVERS));
            for quota in [SLOW, FAST, Quota::per_second(0), SLOW, FAST] {
                director.set_quota(quota);
                thread::sleep(Duration::from_millis(10));
                director.check()?;
                director.pause_for(Duration::from_millis(5));
                director.set_quota(FAST);
                director.refund(10);
                thread::sleep(Duration::from_millis(7));
                director.check()?;
                director.pause_for(Duration::from_secs(3_600));
                thread::sleep(Duration::from_millis(1));
                director.check()?;
                director.resume();
            }
            Ok(())
        })?;
        let (granted, most) = (ledger.permits() - paid, director.most() - u128::from(paid));

        shaper.set_quota(Quota::UNLIMITED);
        self.end()?;
        // Leaving it starts empty.
        shaper.set_quota(STILL);
        same("permits after unlimited ones", shaper.acquire_up_to(1).permits(), 0)?;
        Ok((u128::from(granted), most))
    }

    /// Closes the shaper while a storm of cancellations comes.
    fn send_home(self) -> Result<(), Violation> {
        thread::scope(|scope| {
            scope.spawn(|| self.storm(..LEAVERS));
            self.shaper.close();
        });
        let before = self.before;
        let run = self.run;
        self.end()?;
        same("granted by a closed shaper", run.crowd.ends().granted, before.granted)
    }

    fn storm(&self, who: impl std::slice::SliceIndex<[AbortHandle], Output = [AbortHandle]>) {
        self.handles[who].iter().for_each(AbortHandle::abort);
    }

    /// Waits until all have ended.
    fn end(mut self) -> Result<(), Violation> {
        let all = async {
            while let Some(ended) = self.tasks.join_next().await {
                if let Err(error) = ended
                    && error.is_panic()
                {
                    return Err(Violation::new("one who waited panicked"));
                }
            }
            Ok(())
        };
        let ended = self.runtime.block_on(async { timeout(STUCK, all).await });
        ended.unwrap_or_else(|_| Err(Violation::new(format!("stuck: {} were not told", self.tasks.len()))))?;
        same("waiting after all have ended", self.shaper.waiting(), 0)
    }
}

/// Finds that the process, each time with a whole crowd in line, did not grow. The first two crowds are for warming up.
fn flat(sizes: &[u64]) -> Result<String, Violation> {
    let mebibytes = sizes.iter().map(|size| format!("{}", size >> 20)).collect::<Vec<_>>().join(" ");
    let (warm, later) = sizes.split_at(sizes.len().min(2));
    let (Some(warm), Some(last)) = (warm.iter().max(), later.last()) else {
        return Ok(format!("too few crowds to say whether memory is flat ({mebibytes} MiB)"));
    };
    // What an allocator keeps varies.
    let most = warm + warm / 4 + (32 << 20);
    if *last > most {
        return Err(Violation::new(format!("memory grew from crowd to crowd: {mebibytes} MiB")));
    }
    Ok(format!("{} MiB with the second crowd in line and {} MiB with the last", sizes[1] >> 20, last >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_found_and_noise_is_not() {
        let sizes = |mebibytes: &[u64]| mebibytes.iter().map(|size| size << 20).collect::<Vec<_>>();
        for (mebibytes, is_flat) in [
            (&[][..], true),
            (&[100, 900], true),
            (&[90, 100, 157], true),
            (&[90, 100, 158], false),
            (&[100, 90, 110, 300, 120], true),
        ] {
            assert_eq!(flat(&sizes(mebibytes)).is_ok(), is_flat, "{mebibytes:?}");
        }
    }
}
