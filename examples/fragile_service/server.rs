//! The service behind HTTP on a loopback port.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::service::{Answer, Call, PEACE, Service, Tally};

/// The service and the clock by which it judges.
#[derive(Debug)]
pub(crate) struct Host {
    opened: Instant,
    service: Mutex<Service>,
}

impl Host {
    /// Opens a service.
    pub(crate) fn open(service: Service) -> Arc<Self> {
        Arc::new(Self { opened: Instant::now(), service: Mutex::new(service) })
    }

    /// Returns the counts so far.
    pub(crate) fn tally(&self) -> Tally {
        self.service.lock().tally()
    }

    /// Returns all calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.service.lock().calls().to_vec()
    }

    /// Returns the times of all calls so far, counted from the opening.
    pub(crate) fn arrivals(&self) -> Vec<Duration> {
        self.service.lock().calls().iter().map(|call| call.at).collect()
    }

    /// Answers the calls of one connection until the caller hangs up.
    pub(crate) async fn serve(self: Arc<Self>, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let answer = service_fn(|_: Request<Incoming>| {
            let answer = self.answer();
            async move { Ok::<_, Infallible>(answer) }
        });
        // A broken connection is counted by the caller, which sees it too.
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
    }

    fn answer(&self) -> Response<Full<Bytes>> {
        let answer = {
            let mut service = self.service.lock();
            // Read under the lock, so that the times come in order.
            service.answer(self.opened.elapsed())
        };
        let (status, body) = match answer {
            Answer::Served => (StatusCode::OK, "served\n"),
            Answer::AsksForPeace => (StatusCode::TOO_MANY_REQUESTS, "asks for peace\n"),
            Answer::Down => (StatusCode::SERVICE_UNAVAILABLE, "fallen over\n"),
        };
        let mut response = Response::new(Full::from(body));
        *response.status_mut() = status;
        if answer == Answer::AsksForPeace {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(PEACE.as_secs()));
        }
        response
    }
}

/// A server that listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    /// One task that accepts connections and owns those that serve them: dropping the set ends them all.
    _accepting: JoinSet<()>,
}

impl Server {
    /// Listens on a free loopback port for calls to `host`.
    pub(crate) async fn start(host: Arc<Host>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, host));
        Ok(Self { address, _accepting: accepting })
    }

    /// Returns where the server listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn accept(listener: TcpListener, host: Arc<Host>) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(Arc::clone(&host).serve(stream));
            }
            // The caller has hung up again, or files are short for a moment.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::law::Law;

    #[tokio::test(start_paused = true)]
    async fn a_call_is_answered_200_and_one_too_many_503() {
        let host = Host::open(Service::new(Law::new(1, 1, Duration::ZERO)));
        let (mut near, far) = duplex(4_096);
        let call = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let last = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        near.write_all(&[&call[..], &last[..]].concat()).await.unwrap();
        Arc::clone(&host).serve(far).await;

        let mut answers = String::new();
        near.read_to_string(&mut answers).await.unwrap();
        let (first, second) = (answers.find("HTTP/1.1 200 OK"), answers.find("HTTP/1.1 503 Service Unavailable"));
        assert!(first.is_some() && first < second, "{answers}");
        assert_eq!(host.tally(), Tally { served: 1, refused: 1, falls: 1, asked: 0 });
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_asked_for_peace_is_answered_429_with_the_time() {
        let law = Law::new(1, 1, Duration::ZERO);
        let host = Host::open(Service::new(law).asking_for_peace(Duration::ZERO, law));
        let (mut near, far) = duplex(4_096);
        near.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
        Arc::clone(&host).serve(far).await;

        let mut answer = String::new();
        near.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{answer}");
        assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    }
}
