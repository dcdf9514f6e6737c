//! The laws as statements about what was granted, in the order in which it took effect. They need no state and no reference.
//!
//! A time earlier than one before it counts as that one; for windows, as the start of that one's window.

use super::reference::Window;

/// Permits, and the time told. None where a pause begins or ends, which uses its time too.
pub(crate) type Grant = (u64, u64);

/// Says what is wrong with the last of some grants, all of them under one quota.
pub(crate) type Statement = fn(&[Grant], Window) -> Result<(), String>;

/// The grants with the times that count.
fn in_order(grants: &[Grant]) -> Vec<(u128, u128)> {
    let mut newest = 0;
    let counting = grants.iter().map(|&(n, now)| {
        newest = newest.max(now);
        (n.into(), newest.into())
    });
    counting.collect()
}

fn sum(grants: &[(u128, u128)], is_meant: impl Fn(u128) -> bool) -> u128 {
    grants.iter().filter(|grant| is_meant(grant.1)).map(|grant| grant.0).sum()
}

fn at_most(what: &str, count: u128, most: u128) -> Result<(), String> {
    if count <= most { Ok(()) } else { Err(format!("{count} {what}, and {most} are lawful")) }
}

/// At most `limit` per window.
pub(crate) fn fixed_window(grants: &[Grant], window: Window) -> Result<(), String> {
    let grants = in_order(grants);
    let Some(&(_, last)) = grants.last() else { return Ok(()) };
    let same = |then: u128| then / window.length == last / window.length;
    at_most("in one window", sum(&grants, same), window.limit.into())
}

/// At most `limit` in every span `(t-W, t]`.
pub(crate) fn sliding_log(grants: &[Grant], window: Window) -> Result<(), String> {
    let grants = in_order(grants);
    let Some(&(_, last)) = grants.last() else { return Ok(()) };
    at_most("in one span", sum(&grants, |then| then + window.length > last), window.limit.into())
}

/// `previous*(W - elapsed) + current*W <= limit*W` after each grant; and so never more in the span `(t-W, t]` than the limit and
/// the part of the previous window's count that the weight left out, `previous*elapsed/W`.
pub(crate) fn sliding_counter(told: &[Grant], window: Window) -> Result<(), String> {
    let grants = in_order(told);
    let (Some(&(_, newest)), Some(&(_, now))) = (grants.last(), told.last()) else { return Ok(()) };
    let index = newest / window.length;
    // Within its window a time that went back counts as itself, but not if a pause began or ended meanwhile.
    let now = told.iter().filter(|grant| grant.0 == 0).map(|grant| grant.1).fold(now, u64::max);
    let elapsed = u128::from(now).saturating_sub(index * window.length);
    let previous = sum(&grants, |then| then / window.length + 1 == index);
    let current = sum(&grants, |then| then / window.length == index);
    let (limit, length) = (u128::from(window.limit), window.length);
    at_most("W-fold", previous * (length - elapsed) + current * length, limit * length)?;
    let now = index * length + elapsed;
    let in_span = sum(&grants, |then| then + length > now);
    at_most("in one span", in_span, limit + previous * elapsed / length)
}
