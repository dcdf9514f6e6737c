//! What a refusal says.

use std::time::Duration;

use super::case;
use crate::isolate::isolated;
use crate::peers::{governor, ratelimit, throttle_net, tollgate};
use crate::record::{Case, Row};
use crate::suites::Size;

/// A system by name, and what makes it say something.
type Say = (&'static str, fn() -> String);

/// Four permits where three fit: a message that has numbers in it must have the four that were asked for.
pub(crate) fn too_large(size: Size) -> Case {
    let systems: [Say; 4] = [
        ("tollgate", tollgate::too_large),
        ("governor", governor::too_large),
        ("throttle-net", throttle_net::too_large),
        ("ratelimit", ratelimit::too_large),
    ];
    let rows = systems.map(|(system, say)| match isolated(size.limit(Duration::from_secs(10)), say) {
        Ok(said) => {
            let lawful = said.contains('4') || !said.contains(|letter: char| letter.is_ascii_digit());
            Row::new(system).flag("lawful", lawful).words("said", said)
        }
        Err(failure) => Row::failed(system, failure),
    });
    let about =
        "Four permits at once where three fit. A message that names numbers must name the four that were asked for.";
    case("too_large", about, rows.into())
}
