//! The callers: tasks that call the service over and over, each over a connection that it keeps.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{HOST, RETRY_AFTER};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::pace::{NoPermit, Pace};

/// What went wrong on the side of the callers.
///
/// All are plain counters that are read for display, hence `Relaxed`.
#[derive(Debug, Default)]
pub(crate) struct Mishaps {
    errors: AtomicU64,
    refusals: AtomicU64,
    given_up: AtomicU64,
}

impl Mishaps {
    /// Returns how many calls and attempts to connect failed.
    pub(crate) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Returns how many permits the shaper refused.
    pub(crate) fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Returns how many waits for a permit were dropped.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Relaxed)
    }
}

/// Opens a connection to the service.
pub(crate) async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Calls the service at `address`, one call at a time, until the task is aborted. A lost connection is opened again.
pub(crate) async fn call(address: SocketAddr, mut stream: TcpStream, mut pace: Pace, mishaps: Arc<Mishaps>) {
    while converse(stream, &mut pace, &mishaps).await.is_err() {
        stream = loop {
            mishaps.errors.fetch_add(1, Ordering::Relaxed);
            match connect(address).await {
                Ok(stream) => break stream,
                Err(_) => sleep(Duration::from_millis(10)).await,
            }
        };
    }
}

/// Calls over one connection until it breaks, or until the shaper grants nothing any more.
async fn converse<S>(stream: S, pace: &mut Pace, mishaps: &Mishaps) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut service, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends when `service` is dropped, and its error is that of the call that it breaks.
    tokio::spawn(connection);
    loop {
        // The connection first: a permit is to be used as soon as it is there.
        service.ready().await?;
        match pace.permit().await {
            Ok(()) => {}
            Err(NoPermit::GaveUp) => {
                mishaps.given_up.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            Err(NoPermit::Refused(refused)) => {
                mishaps.refusals.fetch_add(1, Ordering::Relaxed);
                match refused.retry_after() {
                    Some(wait) => sleep(wait).await,
                    None => return Ok(()),
                }
                continue;
            }
        }
        // Whether it was served or refused is counted by the service.
        let response = service.send_request(request()).await?;
        if let Some(span) = retry_after(&response) {
            pace.pause_for(span);
        }
        response.into_body().collect().await?;
    }
}

fn request() -> Request<Empty<Bytes>> {
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = Uri::from_static("/");
    request.headers_mut().insert(HOST, hyper::header::HeaderValue::from_static("localhost"));
    request
}

/// The time for which the service asks for peace, if it does.
fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    if response.status() != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::duplex;
    use tokio::net::TcpListener;
    use tokio::task::{JoinSet, yield_now};

    use super::*;
    use crate::law::Law;
    use crate::pace::CATCH_UP;
    use crate::report::Outcome;
    use crate::server::Host;
    use crate::service::{Service, Tally};

    /// Connects callers to the service through pipes in memory, so that the paused clock alone decides what happens when.
    fn callers(tasks: u64, pace: &mut Pace, host: &Arc<Host>) -> JoinSet<()> {
        let mut callers = JoinSet::new();
        for _ in 0..tasks {
            let (near, far) = duplex(4_096);
            let mut pace = pace.for_another();
            callers.spawn(Arc::clone(host).serve(far));
            callers.spawn(async move {
                converse(near, &mut pace, &Mishaps::default()).await.unwrap();
            });
        }
        callers
    }

    #[tokio::test(start_paused = true)]
    async fn shaped_callers_get_the_rate_and_topple_nothing() {
        let host = Host::open(Service::new(Law::new(500, 51, CATCH_UP)));
        let _callers = callers(50, &mut Pace::shaped(500), &host);
        sleep(Duration::from_secs(4)).await;

        let tally = host.tally();
        assert_eq!((tally.refused, tally.falls), (0, 0));
        assert!((2_000..=2_001).contains(&tally.served), "{tally:?}");
        let arrivals = host.arrivals();
        assert!(arrivals.windows(2).all(|pair| pair[1] - pair[0] == Duration::from_millis(2)), "{arrivals:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn callers_shaped_a_tenth_too_fast_topple_it_when_they_have_used_up_the_allowance() {
        // 500 a second against 450: the surplus of 50 a second reaches 51 + 450 * 0.005 = 53.25 calls after 1.045 s.
        let host = Host::open(Service::new(Law::new(450, 51, CATCH_UP)));
        let _callers = callers(50, &mut Pace::shaped(500), &host);
        sleep(Duration::from_millis(1_000)).await;
        assert_eq!(host.tally().falls, 0);
        sleep(Duration::from_millis(100)).await;
        assert_eq!(host.tally().falls, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn unlimited_callers_topple_it_every_time_it_is_up_again() {
        // 51 + 500 * 0.005 = 53.5 calls at one instant
        let host = Host::open(Service::new(Law::new(500, 51, CATCH_UP)));
        let _callers = callers(50, &mut Pace::Unlimited, &host);
        for falls in 1..=3 {
            while host.tally().refused < 1_000 * falls {
                yield_now().await;
            }
            let Tally { served, falls: fell, .. } = host.tally();
            assert_eq!((served, fell), (53 * falls, falls));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_retry_after_holds_hurried_callers_who_then_leave_at_the_pace_and_not_in_a_burst() {
        let (peace, asked) = (Duration::from_secs(1), Duration::from_millis(500));
        let service = Service::new(Law::new(500, 51, CATCH_UP));
        let host = Host::open(service.asking_for_peace(asked, Law::new(0, 1, peace)));
        let _callers = callers(50, &mut Pace::hurried(500, 50, 1), &host);
        sleep(Duration::from_secs(3)).await;

        let tally = host.tally();
        assert_eq!((tally.asked, tally.refused, tally.falls), (1, 1, 0));
        let arrivals = host.arrivals();
        assert!(arrivals.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_millis(2)), "{arrivals:?}");
        // Nobody called from the one that was answered 429 until the second was over, and then they were all there again.
        let first = arrivals.iter().position(|&at| at >= asked).unwrap();
        assert!(arrivals[first + 1] - arrivals[first] >= Duration::from_millis(1_002), "{arrivals:?}");
        assert!(arrivals.len() - first > 600, "{}", arrivals.len());
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_go_on_while_it_asks_for_peace_topple_it() {
        let service = Service::new(Law::new(500, 51, CATCH_UP));
        let peace = Law::new(0, 51, Duration::ZERO);
        let host = Host::open(service.asking_for_peace(Duration::from_millis(500), peace));
        let mut pace = Pace::shaped(500);
        let _callers = callers(50, &mut pace, &host);
        let Pace::Shaped(shaper) = &pace else { unreachable!("it was made so") };
        while host.tally().asked == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        sleep(Duration::from_millis(1)).await;
        shaper.resume();
        // One every 2 ms: the 51 are used up after 102 ms.
        sleep(Duration::from_millis(98)).await;
        assert_eq!(host.tally().falls, 0);
        sleep(Duration::from_millis(10)).await;
        assert_eq!(host.tally().falls, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_shaper_ends_the_caller_and_counts_as_a_refusal() {
        let host = Host::open(Service::new(Law::new(1, 2, CATCH_UP)));
        let (near, far) = duplex(4_096);
        let mut service = JoinSet::new();
        service.spawn(Arc::clone(&host).serve(far));
        let mut pace = Pace::shaped(500);
        let Pace::Shaped(shaper) = &pace else { unreachable!("it was made so") };
        shaper.close();

        let mishaps = Mishaps::default();
        converse(near, &mut pace, &mishaps).await.unwrap();
        assert_eq!((mishaps.refusals(), mishaps.errors()), (1, 0));
        let outcome = Outcome::new("shaped", 500, &host.arrivals(), host.tally(), &mishaps);
        assert_eq!(serde_json::to_value(outcome).unwrap()["refused"], 1);
    }

    #[tokio::test]
    async fn a_lost_connection_is_counted_and_opened_again() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mishaps = Arc::new(Mishaps::default());
        let stream = connect(address).await.unwrap();
        let mut caller = JoinSet::new();
        caller.spawn(call(address, stream, Pace::Unlimited, Arc::clone(&mishaps)));

        drop(listener.accept().await.unwrap());
        let _second = listener.accept().await.unwrap();
        assert_eq!(mishaps.errors(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_connection_ends_the_conversation_with_an_error() {
        let (near, far) = duplex(4_096);
        drop(far);
        assert!(converse(near, &mut Pace::Unlimited, &Mishaps::default()).await.is_err());
    }
}
