//! What every word does about a pause, and how it is looked at.

use crate::cell::{Cell, Next, Record, Version};
use crate::word::Word;

/// One version of a quota that may tell of a pause.
pub(crate) trait Pausable: Record {
    /// Whether it tells of a pause, over or not.
    fn held(&self) -> bool;

    /// The same version without it.
    fn released(self) -> Self;
}

/// The quota as it counts for `word`: a pause is over for good once anything was granted after its end, so that it does not
/// come back with a clock that is set back. The word tells in its `behind` flag, which a limiter has no other use for.
#[inline]
pub(crate) fn in_force<R: Pausable>(word: Word, record: R) -> R {
    if word.is_behind() { record.released() } else { record }
}

/// The word after a grant under the quota in force.
#[inline]
pub(crate) fn granted<R: Pausable>(word: Word, record: &R, field: u64) -> Word {
    // A branch, since it is seldom taken and stands on the way to the exchange.
    if record.held() { word.with_field(field).with_behind(true) } else { word.with_field(field) }
}

/// The word and the quota in force.
#[inline]
pub(crate) fn load<R: Pausable>(cell: &Cell<R>) -> (Word, R) {
    let (word, record) = cell.load();
    (word, in_force(word, record))
}

/// Answers from one consistent reading, without a write.
pub(crate) fn look<R: Pausable, T>(cell: &Cell<R>, answer: impl Fn(&R, u64) -> T) -> T {
    loop {
        let (word, record) = load(cell);
        let answer = answer(&record, word.field());
        if cell.still(word) {
            return answer;
        }
    }
}

/// Starts another version, made from the quota in force, unless there is nothing to change.
pub(crate) fn change<R: Pausable>(cell: &Cell<R>, next: impl Fn(Version<R>) -> Result<Next<R>, NothingToChange>) {
    let changed = cell.replace(|version| {
        let record = in_force(version.word, version.record);
        next(Version { record, ..version }).map(|next| Next { word: next.word.with_behind(false), ..next })
    });
    // Nothing to change is what was asked for too.
    let (Ok(()) | Err(NothingToChange)) = changed;
}

/// Why no version follows: the one that stands is what was asked for.
pub(crate) struct NothingToChange;
