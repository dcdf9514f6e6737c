//! The queue in front of a word: a plain state machine, without async, runtime or clock. Every call takes the time.
//!
//! # How it works
//!
//! Slots are given when they are due, to the head of a first-in first-out line; nothing is booked on arrival.
//!
//! - Nobody waits and a slot is due: one exchange on the word, no lock ([`Queue::pass`]).
//! - Otherwise the caller enters the line under a lock ([`Queue::enter`]) and sets the `waiting` bit of the word, by exchange.
//!   From then until the line is empty only the holder of the lock writes the word, so nobody overtakes.
//! - Every call advances the queue: it grants all slots that are due, in order, and wakes each waiter once. So no waiter
//!   depends on another being polled: an absent head costs those behind it at most one interval.
//! - Whoever waits is told until when ([`Step::Wait`]) and asks again then. The first two in line are woken if a change made
//!   that instant too late.
//!
//! # Invariants
//!
//! 1. The `waiting` bit is set if and only if the line is not empty or the queue is closed.
//! 2. A place is in the slab until its owner collects the answer or leaves, and granted at most once.
//! 3. A grant that is given back is the last one that the word knows; otherwise it counts as used, since another departure in
//!    its place would be one too many in that interval.
//!
//! # Ordering
//!
//! The word orders itself, see [`Cell`](crate::cell::Cell). [`Kept`] stands beside each set of the cell and by the same rules:
//! written before the word names the version, so that a request is never judged by the largest n of one quota and the rate of
//! another. `closed` is written before the `waiting` bit that makes callers look at it.

mod change;

use std::task::Waker;
use std::time::Duration;

use super::line::{Key, Line, State};
use super::pace::{Law, Pace, Settings};
use super::wakers::Wakers;
use crate::algorithm::Gcra;
use crate::quota::Quota;
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use crate::time::Nanos;
use crate::word::{VERSIONS, Word};

/// A permit, as the queue knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) struct Grant {
    n: u64,
    /// The word right after it, and which of the changes of the quota it came after: versions come round.
    after: Word,
    change: u64,
    /// Whether the schedule was behind before it.
    behind: bool,
}

impl Grant {
    const NOTHING: Self = Self { n: 0, after: Word::from_bits(0), change: 0, behind: false };

    pub(crate) fn permits(&self) -> u64 {
        self.n
    }
}

/// The answer to [`Queue::enter`].
#[derive(Debug)]
#[must_use]
pub(crate) enum Entered {
    Granted(Grant),
    /// Ask again with [`Queue::step`] at that instant, or when woken.
    Waits(Key, Nanos),
}

/// The answer to [`Queue::step`].
#[derive(Debug)]
#[must_use]
pub(crate) enum Step {
    /// The place is given up with it.
    Granted(Grant),
    /// The place is given up with it.
    Refused(Refused),
    /// Ask again at that instant, or when woken.
    Wait(Nanos),
}

/// A law's word, and those who wait for it.
#[derive(Debug)]
pub(crate) struct Queue<A = Gcra> {
    law: A,
    settings: Settings,
    /// What the queue keeps of each version of the quota.
    versions: [Kept; VERSIONS],
    /// The permits that those in line ask for together, for refusals that don't take the lock.
    weight: AtomicU64,
    closed: AtomicBool,
    guarded: Mutex<Guarded>,
}

/// One version of the quota, beside its set in the cell.
#[derive(Debug)]
struct Kept {
    /// The largest n.
    largest: AtomicU64,
    /// How many changes came before it.
    change: AtomicU64,
}

impl Kept {
    fn new(largest: u64, change: u64) -> Self {
        Self { largest: AtomicU64::new(largest), change: AtomicU64::new(change) }
    }
}

/// What the lock guards.
#[derive(Debug, Default)]
struct Guarded {
    line: Line,
    /// See [`Law::deepest`].
    deepest: u64,
    /// What the last grant before the last changes left: how many changes came before it, its word, and what has become of that
    /// word through the changes. By this it can still be told from an earlier one.
    carried: Option<(u64, Word, Word)>,
    /// The latest time at which the lock was taken.
    latest: Nanos,
}

impl<A: Law> Queue<A> {
    /// A queue in front of `law` as it is.
    pub(crate) fn new(law: A, settings: Settings) -> Self {
        let largest = A::largest(&law.cell().quota(), &settings);
        let deepest = A::deepest(&law.cell().load().1, largest, Word::default());
        Self {
            law,
            settings,
            versions: std::array::from_fn(|_| Kept::new(largest, 0)),
            weight: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            guarded: Mutex::new(Guarded { deepest, ..Guarded::default() }),
        }
    }

    /// The law behind the queue.
    pub(crate) fn law(&self) -> &A {
        &self.law
    }

    /// The law, for a queue in which nobody is left.
    pub(crate) fn into_law(self) -> A {
        self.law
    }

    /// An instant that callers have told, and near which the law was changed last.
    pub(crate) fn latest(&self) -> Nanos {
        self.guarded.lock().latest
    }

    /// The quota that was set last.
    pub(crate) fn quota(&self) -> Quota {
        self.law.cell().quota()
    }

    /// How many wait, after what is due has been granted.
    pub(crate) fn waiting(&self, now: Nanos) -> usize {
        self.locked(now, |guarded, _| guarded.line.waiting())
    }

    /// Whether [`close`](Self::close) was called.
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: pairs with the Release in `close`.
        self.closed.load(Ordering::Acquire)
    }

    /// Takes a slot that is due while nobody waits. Takes the lock only where the head of the line may be due.
    pub(crate) fn try_acquire(&self, n: u64, now: Nanos) -> Result<Grant, Refused> {
        loop {
            if let Some(grant) = self.pass(n, now) {
                return Ok(grant);
            }
            match self.refusal_without_lock(n, now) {
                Answer::Refused(refused) => return Err(refused),
                Answer::Changed => {}
                Answer::Unclear => break,
            }
        }
        self.locked(now, |guarded, _| match self.arrive(guarded, n, now)? {
            Arrival::Granted(grant) => Ok(grant),
            Arrival::MustWait(word, pace) => Err(too_soon(pace, word, n, guarded.line.weight())),
        })
    }

    /// Tells what [`try_acquire`](Self::try_acquire) would answer, and takes nothing.
    pub(crate) fn peek(&self, n: u64, now: Nanos) -> Result<(), Refused> {
        if n == 0 {
            return Ok(());
        }
        self.locked(now, |guarded, _| {
            let (word, pace) = self.look(guarded, now);
            let capacity = self.largest(word);
            if n > capacity {
                return Err(Refused::ExceedsCapacity { asked: n, capacity });
            }
            if !word.is_waiting() && pace.pass(word, n).is_some() {
                return Ok(());
            }
            Err(too_soon(pace, word, n, guarded.line.weight()))
        })
    }

    /// What a newcomer would find: nothing while others wait, and the times at which it would be his turn behind them.
    pub(crate) fn snapshot(&self, now: Nanos) -> Snapshot {
        self.locked(now, |guarded, _| {
            let (word, pace) = self.look(guarded, now);
            let (limit, ahead) = (self.largest(word), guarded.line.weight());
            let wait = |n| pace.wait(pace.slot_behind(word, ahead, n));
            Snapshot {
                limit,
                remaining: if word.is_waiting() { 0 } else { pace.remaining(word) },
                retry_after: if limit == 0 { None } else { wait(1) },
                reset_after: wait(limit),
            }
        })
    }

    /// Takes the permits that are there while nobody waits, `n` at most; perhaps none.
    pub(crate) fn acquire_up_to(&self, n: u64, now: Nanos) -> Grant {
        loop {
            let (word, pace) = self.load(now);
            if word.is_waiting() {
                // Nothing is there behind others; but they may all be due.
                if self.waiting(now) > 0 || self.is_closed() {
                    return Grant::NOTHING;
                }
                continue;
            }
            let n = n.min(pace.remaining(word)).min(self.largest(word));
            if n == 0 {
                if self.law.cell().still(word) {
                    return Grant::NOTHING;
                }
                continue;
            }
            match self.pass_from(word, pace, n) {
                Some(Some(grant)) => return grant,
                // Somebody was faster: this looks again at what is there.
                Some(None) => {}
                // The origin must move, or a pause is over.
                None => self.locked(now, |guarded, _| {
                    self.look(guarded, now);
                }),
            }
        }
    }

    /// A slot that is due while nobody waits: one exchange, no lock.
    #[inline]
    pub(crate) fn pass(&self, n: u64, now: Nanos) -> Option<Grant> {
        if n == 0 {
            return (!self.is_closed()).then_some(Grant::NOTHING);
        }
        loop {
            let (word, pace) = self.load(now);
            if let Some(grant) = self.pass_from(word, pace, n)? {
                return Some(grant);
            }
        }
    }

    /// The same from a word that was just seen: `Some(None)` if it is another one by now.
    #[inline]
    fn pass_from(&self, word: Word, pace: A::Pace<'_>, n: u64) -> Option<Option<Grant>> {
        if word.is_waiting() || pace.must_rebase() || pace.is_past_a_pause() || n > self.largest(word) {
            return None;
        }
        let next = pace.pass(word, n)?;
        // Read before the exchange, which proves it.
        let grant = self.grant(n, word, next);
        // Unlimited costs nothing, and writes nothing.
        let done =
            if next == word { self.law.cell().still(word) } else { self.law.exchange(&pace, word, next).is_ok() };
        Some(done.then_some(grant))
    }

    /// The refusal of a request that [`pass`](Self::pass) did not grant, if it is certain without the lock.
    fn refusal_without_lock(&self, n: u64, now: Nanos) -> Answer {
        let (word, pace) = self.load(now);
        let (waiting, largest) = (word.is_waiting(), self.largest(word));
        // Relaxed: an estimate, of waiters that come and go.
        let ahead = if waiting { self.weight.load(Ordering::Relaxed) } else { 0 };
        // At the head there may be a single permit; no other request is due before that.
        let due = pace.is_due(pace.slot(word, if waiting { 1 } else { n }));
        let unclear =
            pace.must_rebase() || pace.is_past_a_pause() || (waiting && (due || n > largest || self.is_closed()));
        if !self.law.cell().still(word) {
            Answer::Changed
        } else if unclear {
            Answer::Unclear
        } else if n > largest {
            Answer::Refused(Refused::ExceedsCapacity { asked: n, capacity: largest })
        } else if due {
            // It has become due since `pass` looked.
            Answer::Changed
        } else {
            Answer::Refused(too_soon(pace, word, n, ahead.into()))
        }
    }

    /// Asks for `n` permits: granted if nobody waits and the slot is due, else a place in line.
    ///
    /// Refused at once, without a trace, if the place would lie beyond `deadline` or the line is full.
    pub(crate) fn enter(&self, n: u64, now: Nanos, deadline: Option<Nanos>, waker: Waker) -> Result<Entered, Refused> {
        // Outlives the lock if it isn't kept: dropping it runs code of the executor.
        let mut waker = Some(waker);
        self.locked(now, |guarded, _| {
            loop {
                let (word, pace) = match self.arrive(guarded, n, now)? {
                    Arrival::Granted(grant) => return Ok(Entered::Granted(grant)),
                    Arrival::MustWait(word, pace) => (word, pace),
                };
                let slot = pace.slot_behind(word, guarded.line.weight(), n);
                let due = pace.instant(slot);
                // Behind the last instant of the clock nothing is due, and no deadline either.
                let never = pace.wait(slot).is_none() || now == Nanos::MAX;
                if let Some(deadline) = deadline.filter(|deadline| *deadline < due || never) {
                    return Err(too_late(pace, word, n, slot, deadline));
                }
                let waiting = guarded.line.waiting();
                if waiting >= self.settings.places {
                    return Err(Refused::QueueFull { waiting, estimated_wait: pace.wait(slot) });
                }
                if !word.is_waiting() {
                    // Relaxed: an estimate; before the bit, so that no refusal tells of less.
                    self.weight.store(n, Ordering::Relaxed);
                }
                // The bit is set by exchange. If a grant comes first, this caller looks again; if the exchange comes first,
                // the grant fails, and its caller finds the bit and lines up behind.
                if word.is_waiting() || self.law.exchange(&pace, word, word.with_waiting(true)).is_ok() {
                    let armed = deadline.map_or(due, |deadline| due.min(deadline));
                    return Ok(Entered::Waits(guarded.line.push(n, deadline, armed, waker.take()), armed));
                }
            }
        })
    }

    /// A newcomer under the lock: closed, too large, granted, or behind the others.
    fn arrive(&self, guarded: &mut Guarded, n: u64, now: Nanos) -> Result<Arrival<A::Pace<'_>>, Refused> {
        if self.is_closed() {
            return Err(Refused::Closed);
        }
        let capacity = self.largest(self.look(guarded, now).0);
        if n > capacity {
            return Err(Refused::ExceedsCapacity { asked: n, capacity });
        }
        loop {
            let (word, pace) = self.look(guarded, now);
            if word.is_waiting() {
                return Ok(Arrival::MustWait(word, pace));
            }
            let Some(next) = pace.pass(word, n) else { return Ok(Arrival::MustWait(word, pace)) };
            if self.law.exchange(&pace, word, next).is_ok() {
                return Ok(Arrival::Granted(self.grant(n, word, next)));
            }
        }
    }

    /// Asks what became of a place: collects the answer, or says until when to wait and whom to wake.
    pub(crate) fn step(&self, key: Key, now: Nanos, waker: Waker) -> Step {
        self.locked_for(Some(key), now, |guarded, wakers| {
            let step = self.answer(guarded, key, now);
            match step {
                Step::Wait(_) => guarded.line.set_waker(key, waker),
                Step::Granted(_) => wakers.discard(Some(waker)),
                Step::Refused(_) => {
                    wakers.discard(Some(waker));
                    self.grant_due(guarded, now, wakers);
                }
            }
            step
        })
    }

    fn answer(&self, guarded: &mut Guarded, key: Key, now: Nanos) -> Step {
        let (word, pace) = self.look(guarded, now);
        let ahead = guarded.line.ahead(key);
        let head = guarded.line.is_driver(key).then(|| guarded.line.head()).flatten().map(|(_, head)| head.n);
        // A key is stepped only by its owner, who gives it up with the answer.
        let Some(entry) = guarded.line.get(key) else { return Step::Refused(Refused::Closed) };
        let n = entry.n;
        let step = match entry.state {
            State::Granted(grant) => Step::Granted(grant),
            State::Refused(refused) => Step::Refused(refused),
            State::Waiting => {
                let slot = pace.slot_behind(word, ahead, n);
                // All slots up to now have been given.
                let Some(deadline) = entry.deadline.filter(|deadline| *deadline <= now) else {
                    let slot = head.map_or(slot, |n| pace.slot(word, n));
                    entry.armed = entry.no_later(pace.instant(slot));
                    return Step::Wait(entry.armed);
                };
                Step::Refused(too_late(pace, word, n, slot, deadline))
            }
        };
        guarded.line.remove(key);
        if let Step::Granted(grant) = step {
            self.note_late_collection(pace, word, grant);
        }
        step
    }

    /// A permit that is collected so late that the slot after it has come already leaves the schedule behind, if nobody took a
    /// slot since.
    fn note_late_collection(&self, pace: A::Pace<'_>, word: Word, grant: Grant) {
        if !word.is_waiting() && word.same_field(grant.after) && pace.is_behind(word) {
            // If the exchange fails somebody has just taken the next slot, and has settled this himself.
            let _ = self.law.exchange(&pace, word, word.with_behind(true));
        }
    }

    /// Gives up a place. One in line leaves no trace; a grant that was not collected is given back if no later one was made.
    pub(crate) fn leave(&self, key: Key, now: Nanos) {
        self.locked(now, |guarded, wakers| {
            let Some(entry) = guarded.line.remove(key) else { return };
            wakers.discard(entry.waker);
            if let State::Granted(grant) = entry.state {
                self.take_back(guarded, grant, now);
            }
            self.grant_due(guarded, now, wakers);
        });
    }

    /// Gives back a grant that was not used, if no later one was made; otherwise it counts as used.
    pub(crate) fn give_back(&self, grant: Grant, now: Nanos) {
        self.locked(now, |guarded, wakers| {
            self.take_back(guarded, grant, now);
            self.grant_due(guarded, now, wakers);
        });
    }

    fn take_back(&self, guarded: &mut Guarded, grant: Grant, now: Nanos) {
        let (word, pace) = self.look(guarded, now);
        let unchanged = grant.change == self.change_of(word);
        let after = match guarded.carried {
            _ if unchanged => grant.after,
            Some((change, granted, now)) if change == grant.change && granted.same_field(grant.after) => now,
            _ => return,
        };
        if word.same_field(after) {
            if !unchanged {
                // The next grant may leave this very word.
                guarded.carried = None;
            }
            // If the exchange fails, a later grant was made.
            let _ = self.law.exchange(&pace, word, pace.without(word, grant.n, grant.behind));
        }
    }

    /// The time after which a request of `n` that enters the line now would be granted; `None` if never at this quota, or closed.
    pub(crate) fn estimated_wait(&self, n: u64, now: Nanos) -> Option<Duration> {
        self.locked(now, |guarded, _| {
            if n == 0 && !self.is_closed() {
                return Some(Duration::ZERO);
            }
            let (word, pace) = self.look(guarded, now);
            if self.is_closed() || n > self.largest(word) {
                return None;
            }
            pace.wait(pace.slot_behind(word, guarded.line.weight(), n))
        })
    }

    /// Ends all waits without a grant, and refuses all that come. Grants already made stand.
    pub(crate) fn close(&self, now: Nanos) {
        self.locked(now, |guarded, wakers| {
            // Release: pairs with the Acquire in `is_closed`; before the bit, so that who finds the bit finds this.
            self.closed.store(true, Ordering::Release);
            guarded.line.refuse(|_| Some(Refused::Closed), wakers);
            loop {
                let (word, pace) = self.load(now);
                if word.is_waiting() || self.law.exchange(&pace, word, word.with_waiting(true)).is_ok() {
                    return;
                }
            }
        });
    }

    /// Takes the lock, grants what is due, does `work`, and wakes whoever is to be woken after the lock is released.
    fn locked<R>(&self, now: Nanos, work: impl FnOnce(&mut Guarded, &mut Wakers) -> R) -> R {
        self.locked_for(None, now, work)
    }

    /// The same on behalf of a waiter, who needs no wake-up for what it is about to learn.
    fn locked_for<R>(&self, caller: Option<Key>, now: Nanos, work: impl FnOnce(&mut Guarded, &mut Wakers) -> R) -> R {
        let mut wakers = Wakers::default();
        let mut guarded = self.guarded.lock();
        guarded.latest = guarded.latest.max(now);
        let drives = caller.is_some_and(|key| guarded.line.is_driver(key));
        if let Some(entry) = caller.and_then(|key| guarded.line.get(key)) {
            wakers.discard(entry.waker.take());
        }
        let granted = self.grant_due(&mut guarded, now, &mut wakers);
        if let (Some(caller), Some(granted)) = (caller, granted) {
            if drives || granted.overdue {
                guarded.line.note_absent(caller, granted.key);
            }
        }
        self.forget_a_past_pause(&mut guarded, now);
        let result = work(&mut guarded, &mut wakers);
        self.publish_weight(&guarded);
        drop(guarded);
        wakers.call();
        result
    }

    /// Grants all slots that are due, in order, clears the `waiting` bit if nobody is left, and wakes the first two of those
    /// who are if their timers would end too late. Says who was granted last.
    fn grant_due(&self, guarded: &mut Guarded, now: Nanos, wakers: &mut Wakers) -> Option<Granted> {
        let (word, pace) = self.look(guarded, now);
        if !word.is_waiting() {
            return None;
        }
        let mut last = None;
        let line = &mut guarded.line;
        let mut next = word;
        while let Some((key, head)) = line.head() {
            let n = head.n;
            let slot = pace.slot(next, n);
            if !pace.is_due(slot) {
                break;
            }
            // In time means that the slot is, however late a timer tells of it.
            let state = if head.deadline.is_some_and(|deadline| deadline < pace.instant(slot)) {
                State::Refused(Refused::DeadlineTooSoon { wait: Duration::ZERO })
            } else {
                last = Some(Granted { key, overdue: pace.is_overdue(slot) });
                let before = next;
                next = pace.depart(next, n);
                State::Granted(self.grant(n, before, next))
            };
            wakers.wake(line.settle(key, state));
        }
        next = next.with_waiting(!line.is_empty() || self.is_closed());
        if next != word {
            // Nobody else writes the word while its bit is set and the lock is held.
            let published = self.law.exchange(&pace, word, next);
            debug_assert!(published.is_ok(), "the word changed under the lock");
        }
        line.rearm_first_two(wakers, |ahead, n| pace.instant(pace.slot_behind(next, ahead, n)));
        last
    }

    /// The word, and its version at `now`.
    #[inline]
    fn load(&self, now: Nanos) -> (Word, A::Pace<'_>) {
        let (word, record) = self.law.cell().load();
        (word, self.law.pace(word, record, now, &self.settings))
    }

    /// The same with an origin that leaves room for what is granted now.
    fn look(&self, guarded: &mut Guarded, now: Nanos) -> (Word, A::Pace<'_>) {
        loop {
            let (word, pace) = self.load(now);
            if !pace.must_rebase() {
                return (word, pace);
            }
            self.change(guarded, |version| (self.law.rebased(version, now, &self.settings), None));
        }
    }

    /// The largest n of the version of `word`.
    fn largest(&self, word: Word) -> u64 {
        // Acquire: pairs with the Release in `change`; as the fields of a set.
        self.versions[word.version()].largest.load(Ordering::Acquire)
    }

    /// How many changes came before the version of `word`.
    fn change_of(&self, word: Word) -> u64 {
        // Acquire: as in `largest`.
        self.versions[word.version()].change.load(Ordering::Acquire)
    }

    fn grant(&self, n: u64, before: Word, after: Word) -> Grant {
        Grant { n, after, change: self.change_of(after), behind: before.is_behind() }
    }

    /// Ends a pause for good once its time is over and what it held has been granted: it must not come back with a clock that is
    /// set back, since by then others have left.
    fn forget_a_past_pause(&self, guarded: &mut Guarded, now: Nanos) {
        if self.look(guarded, now).1.is_past_a_pause() {
            self.change(guarded, |version| (self.law.resumed(version), None));
        }
    }

    fn publish_weight(&self, guarded: &Guarded) {
        // Relaxed: an estimate for refusals.
        self.weight.store(u64::try_from(guarded.line.weight()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// A head that was granted, and whether its slot had come so long ago that it must have been absent.
struct Granted {
    key: Key,
    overdue: bool,
}

/// What can be said without the lock.
enum Answer {
    Refused(Refused),
    /// Somebody was granted, or changed something: look again.
    Changed,
    /// The lock has to decide.
    Unclear,
}

/// What meets a newcomer that is not refused outright.
enum Arrival<P> {
    Granted(Grant),
    MustWait(Word, P),
}

/// The refusal of a request that does not want to wait, behind `ahead` permits.
fn too_soon(pace: impl Pace, word: Word, n: u64, ahead: u128) -> Refused {
    let remaining = if word.is_waiting() { 0 } else { pace.remaining(word) };
    match pace.wait(pace.slot_behind(word, ahead, n)) {
        Some(retry_after) if pace.is_held() => Refused::Paused { asked: n, retry_after },
        Some(retry_after) => Refused::TooSoon { asked: n, remaining, retry_after },
        None => Refused::Never { asked: n, remaining },
    }
}

/// The refusal of a request whose slot lies beyond its deadline.
fn too_late<P: Pace>(pace: P, word: Word, n: u64, slot: P::Slot, deadline: Nanos) -> Refused {
    let remaining = if word.is_waiting() { 0 } else { pace.remaining(word) };
    match pace.wait(slot) {
        Some(retry_after) if pace.is_held_at(deadline) => Refused::Paused { asked: n, retry_after },
        Some(wait) => Refused::DeadlineTooSoon { wait },
        None => Refused::Never { asked: n, remaining },
    }
}
