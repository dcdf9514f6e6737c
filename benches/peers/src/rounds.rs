//! Runs several systems in turns, so that a noisy minute of the machine meets them all.

use std::sync::Arc;
use std::time::Duration;

use crate::isolate::{Failure, isolated};

/// A system and what is measured of it, once a round.
pub(crate) struct Contender<T> {
    /// Begins with the crate's name.
    pub(crate) system: &'static str,
    pub(crate) measure: Arc<dyn Fn() -> T + Send + Sync>,
}

impl<T> Contender<T> {
    pub(crate) fn new(system: &'static str, measure: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Self { system, measure: Arc::new(measure) }
    }
}

/// What came of a system: a measurement for each round, or why there is none.
pub(crate) type Measured<T> = (&'static str, Result<Vec<T>, Failure>);

/// Measures all contenders once a round, each time beginning with the next one: A B C, B C A, ... Each measurement runs on a thread
/// of its own and may take as long as `limit` says when it begins; one that fails is out.
pub(crate) fn in_turns<T: Send + 'static>(
    rounds: usize,
    limit: impl Fn() -> Duration,
    contenders: Vec<Contender<T>>,
) -> Vec<Measured<T>> {
    let mut outcomes: Vec<Measured<T>> = contenders.iter().map(|one| (one.system, Ok(Vec::new()))).collect();
    for round in 0..rounds {
        for turn in 0..contenders.len() {
            let index = (turn + round) % contenders.len();
            let outcome = &mut outcomes[index].1;
            if let Ok(measured) = outcome {
                let measure = Arc::clone(&contenders[index].measure);
                match isolated(limit(), move || measure()) {
                    Ok(measurement) => measured.push(measurement),
                    Err(failure) => *outcome = Err(failure),
                }
            }
        }
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn contenders_take_turns_and_one_that_fails_is_out() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let seen = |name: &'static str| {
            let order = Arc::clone(&order);
            Contender::new(name, move || {
                let mut order = order.lock().unwrap();
                order.push(name);
                order.len()
            })
        };
        let broken = Contender::new("broken", || panic!("it does not work"));
        let outcomes = in_turns(3, || Duration::from_secs(60), vec![seen("a"), broken, seen("b")]);
        assert_eq!(*order.lock().unwrap(), ["a", "b", "b", "a", "b", "a"]);
        assert_eq!(outcomes[0], ("a", Ok(vec![1, 4, 6])));
        assert_eq!(outcomes[1], ("broken", Err(Failure::Panicked("it does not work".to_owned()))));
        assert_eq!(outcomes[2], ("b", Ok(vec![2, 3, 5])));
    }
}
