//! Clients by the prefix of their address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const V4_BITS: u8 = 32;
const V6_BITS: u8 = 128;

/// The network that an address lies in, as a key: of IPv6 the first 64 bits, of IPv4 the whole address.
///
/// Nobody has a single IPv6 address. A host is given a whole network and may use as many of its addresses as it likes ([RFC 7934],
/// [RFC 8273]); a home or an office is given at least a /64 of its own, mostly more ([RFC 6177]). A limit by IPv6 address limits
/// nobody: a client has 2^64 of them, and fills the table with as many as he likes. So limit by prefix, and take a shorter one where
/// a site should count as one: see [`IpPrefixes`].
///
/// An IPv4 address written as an IPv6 one (`::ffff:192.0.2.1`), as sockets that take both tell it, counts as the IPv4 address.
///
/// It is a small value, `Copy`, ordered by address, and displayed as usual: `2001:db8:1:2::/64`.
///
/// [RFC 6177]: https://www.rfc-editor.org/rfc/rfc6177
/// [RFC 7934]: https://www.rfc-editor.org/rfc/rfc7934
/// [RFC 8273]: https://www.rfc-editor.org/rfc/rfc8273
///
/// # Examples
///
/// ```
/// use std::net::IpAddr;
/// use tollgate::{IpPrefix, Keyed, ManualClock, Quota};
///
/// let logins = Keyed::<IpPrefix>::token_bucket(Quota::per_minute(5)).clock(ManualClock::new()).build()?;
/// for attempt in 1..=5 {
///     let address: IpAddr = format!("2001:db8:1:2::{attempt}").parse()?;
///     logins.try_acquire(&IpPrefix::of(address))?;
/// }
/// let another: IpAddr = "2001:db8:1:2:3:4:5:6".parse()?;
/// assert!(logins.try_acquire(&IpPrefix::of(another)).is_err()); // the same client
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpPrefix {
    /// With zeros after the prefix.
    address: IpAddr,
    length: u8,
}

impl IpPrefix {
    /// The first 64 bits of an IPv6 address, or an IPv4 address.
    #[must_use]
    pub fn of(address: impl Into<IpAddr>) -> Self {
        IpPrefixes::new().of(address)
    }

    /// The first address of the network.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits all its addresses share.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::net::Ipv6Addr;
    /// use tollgate::IpPrefix;
    ///
    /// let client = IpPrefix::of("2001:db8::1".parse::<Ipv6Addr>()?);
    /// assert_eq!((client.address().to_string().as_str(), client.length()), ("2001:db8::", 64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// How long the prefixes are by which clients are known. Without more, [`IpPrefix::of`] will do.
///
/// A /56 or a /48 is what providers give to one site. A /64 may be too narrow against somebody who has one of them: he has 256 or
/// 65,536 budgets.
///
/// # Examples
///
/// ```
/// use std::net::Ipv6Addr;
/// use tollgate::IpPrefixes;
///
/// let sites = IpPrefixes::new().v6(56)?;
/// let address: Ipv6Addr = "2001:db8:1:2ff::1".parse()?;
/// assert_eq!(sites.of(address).to_string(), "2001:db8:1:200::/56");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPrefixes {
    v4: u8,
    v6: u8,
}

impl IpPrefixes {
    /// Prefixes of 64 bits for IPv6, and whole addresses for IPv4.
    #[must_use]
    pub const fn new() -> Self {
        Self { v4: V4_BITS, v6: 64 }
    }

    /// Takes prefixes of `bits` bits of IPv4 addresses. With 0, all of them are one key.
    ///
    /// # Errors
    ///
    /// [`PrefixTooLong`] for more than 32.
    pub const fn v4(self, bits: u8) -> Result<Self, PrefixTooLong> {
        if bits > V4_BITS {
            return Err(PrefixTooLong { asked: bits, most: V4_BITS });
        }
        Ok(Self { v4: bits, ..self })
    }

    /// Takes prefixes of `bits` bits of IPv6 addresses. With 0, all of them are one key.
    ///
    /// # Errors
    ///
    /// [`PrefixTooLong`] for more than 128.
    pub const fn v6(self, bits: u8) -> Result<Self, PrefixTooLong> {
        if bits > V6_BITS {
            return Err(PrefixTooLong { asked: bits, most: V6_BITS });
        }
        Ok(Self { v6: bits, ..self })
    }

    /// The network of an address.
    #[must_use]
    pub fn of(self, address: impl Into<IpAddr>) -> IpPrefix {
        match address.into().to_canonical() {
            IpAddr::V4(v4) => {
                // A shift by all bits leaves none.
                let mask = u32::MAX.checked_shl(V4_BITS.saturating_sub(self.v4).into()).unwrap_or(0);
                IpPrefix { address: Ipv4Addr::from_bits(v4.to_bits() & mask).into(), length: self.v4 }
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(V6_BITS.saturating_sub(self.v6).into()).unwrap_or(0);
                IpPrefix { address: Ipv6Addr::from_bits(v6.to_bits() & mask).into(), length: self.v6 }
            }
        }
    }
}

impl Default for IpPrefixes {
    fn default() -> Self {
        Self::new()
    }
}

/// A prefix was to be longer than an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrefixTooLong {
    /// The bits that were asked for.
    pub asked: u8,
    /// The bits of an address.
    pub most: u8,
}

impl fmt::Display for PrefixTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a prefix of {} bits: an address has {}", self.asked, self.most)
    }
}

impl std::error::Error for PrefixTooLong {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn v6(address: &str) -> Ipv6Addr {
        address.parse().unwrap()
    }

    #[test]
    fn a_prefix_keeps_its_bits_and_no_others() {
        let all = Ipv6Addr::from_bits(u128::MAX);
        for (bits, expected) in [
            (0, "::/0"),
            (1, "8000::/1"),
            (63, "ffff:ffff:ffff:fffe::/63"),
            (64, "ffff:ffff:ffff:ffff::/64"),
            (65, "ffff:ffff:ffff:ffff:8000::/65"),
            (127, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127"),
            (128, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128"),
        ] {
            let prefix = IpPrefixes::new().v6(bits).unwrap().of(all);
            assert_eq!((prefix.to_string().as_str(), prefix.length()), (expected, bits));
        }
        for (bits, expected) in
            [(0, "0.0.0.0/0"), (1, "128.0.0.0/1"), (31, "255.255.255.254/31"), (32, "255.255.255.255/32")]
        {
            let prefix = IpPrefixes::new().v4(bits).unwrap().of(Ipv4Addr::BROADCAST);
            assert_eq!((prefix.to_string().as_str(), prefix.length()), (expected, bits));
        }
    }

    #[test]
    fn addresses_are_one_key_exactly_if_they_share_the_prefix() {
        let address = v6("2001:db8:1:2:3:4:5:6").to_bits();
        for bits in 0..=V6_BITS {
            let prefixes = IpPrefixes::new().v6(bits).unwrap();
            for flipped in 0..V6_BITS {
                // The first bit is the highest.
                let other = Ipv6Addr::from_bits(address ^ (1 << (V6_BITS - 1 - flipped)));
                let same = prefixes.of(other) == prefixes.of(Ipv6Addr::from_bits(address));
                assert_eq!(same, flipped >= bits, "bit {flipped} of a prefix of {bits}");
            }
        }
    }

    #[test]
    fn without_more_it_is_64_bits_or_an_ipv4_address() {
        assert_eq!(IpPrefix::of(v6("2001:db8:1:2:3:4:5:6")).to_string(), "2001:db8:1:2::/64");
        assert_eq!(IpPrefix::of(Ipv4Addr::new(192, 0, 2, 7)).to_string(), "192.0.2.7/32");
        assert_eq!(IpPrefixes::default(), IpPrefixes::new());
    }

    #[test]
    fn an_ipv4_address_is_one_however_it_is_written() {
        let plain = Ipv4Addr::new(192, 0, 2, 7);
        for prefixes in [IpPrefixes::new(), IpPrefixes::new().v4(24).unwrap().v6(0).unwrap()] {
            assert_eq!(prefixes.of(plain.to_ipv6_mapped()), prefixes.of(plain));
        }
        // The network of all IPv4 addresses is not that of all IPv6 addresses.
        let none = IpPrefixes::new().v4(0).unwrap().v6(0).unwrap();
        assert_ne!(none.of(plain), none.of(Ipv6Addr::UNSPECIFIED));
    }

    #[test]
    fn a_prefix_longer_than_an_address_is_refused() {
        let error = IpPrefixes::new().v6(129).unwrap_err();
        assert_eq!(error, PrefixTooLong { asked: 129, most: 128 });
        assert_eq!(error.to_string(), "a prefix of 129 bits: an address has 128");
        assert_eq!(IpPrefixes::new().v4(33), Err(PrefixTooLong { asked: 33, most: 32 }));
    }

    #[test]
    fn prefixes_are_ordered_by_address_and_hashed() {
        let mut prefixes = ["2001:db8:2::", "::1", "2001:db8:1::"].map(|address| IpPrefix::of(v6(address)));
        prefixes.sort();
        assert_eq!(prefixes.map(|prefix| prefix.to_string()), ["::/64", "2001:db8:1::/64", "2001:db8:2::/64"]);
        assert_eq!(prefixes[1].address(), IpAddr::V6(v6("2001:db8:1::")));
        assert_eq!(prefixes.into_iter().collect::<HashSet<_>>().len(), 3);
    }
}
