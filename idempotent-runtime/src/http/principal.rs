//! Whose key it is: two clients that choose the same key must never meet.

use std::fmt;
use std::sync::Arc;

use http::request::Parts;

/// On whose behalf a request is made. It is a part of every record's key, so nobody is ever shown another's response.
///
/// There is no default: either the application says how to find it, or that there is only one.
///
/// ```
/// use idempotent_runtime::http::Principal;
///
/// #[derive(Clone)]
/// struct Account { id: u64 } // put into the extensions by the layer that checks who is calling
///
/// let principal = Principal::of(|request| request.extensions.get::<Account>().map(|account| account.id.to_string()));
/// # let _ = (principal, Principal::single_tenant());
/// ```
#[derive(Clone)]
pub struct Principal(Kind);

#[derive(Clone)]
enum Kind {
    SingleTenant,
    Found { find: Find, missing: Missing },
}

type Find = Arc<dyn Fn(&Parts) -> Option<String> + Send + Sync>;

#[derive(Clone, Debug)]
enum Missing {
    Refuse,
    Bypass,
    Shared(Arc<str>),
}

/// Whose keys a request uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Everyone,
    /// What it is called, and whether it is one who was found, or the bucket of those who were not.
    Of(&'static str, Arc<str>),
    Refused,
    Bypassed,
}

impl Principal {
    /// All requests come from one client, or from clients that may see each other's responses.
    pub fn single_tenant() -> Self {
        Self(Kind::SingleTenant)
    }

    /// The principal as `find` sees it: the id of an account, a tenant, or both. Not a token, since the same client comes
    /// with another one after it was refreshed.
    ///
    /// The layer has to be inside the one that checks who is calling. A request of which `find` says nothing, or an empty
    /// text, is refused with 401.
    pub fn of(find: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Kind::Found { find: Arc::new(find), missing: Missing::Refuse })
    }

    /// Requests without a principal are let through unprotected.
    #[must_use]
    pub fn or_bypass(self) -> Self {
        self.or(Missing::Bypass)
    }

    /// Requests without a principal share the keys of `bucket`, and so may see each other's responses. Ask for long keys
    /// then, so that they cannot be guessed.
    #[must_use]
    pub fn or_shared(self, bucket: impl Into<Arc<str>>) -> Self {
        self.or(Missing::Shared(bucket.into()))
    }

    fn or(self, missing: Missing) -> Self {
        match self.0 {
            Kind::SingleTenant => self,
            Kind::Found { find, .. } => Self(Kind::Found { find, missing }),
        }
    }

    pub(super) fn scope(&self, request: &Parts) -> Scope {
        let Kind::Found { find, missing } = &self.0 else { return Scope::Everyone };
        match (find(request).filter(|found| !found.trim().is_empty()), missing) {
            (Some(found), _) => Scope::Of("principal", found.into()),
            (None, Missing::Shared(bucket)) => Scope::Of("shared", Arc::clone(bucket)),
            (None, Missing::Bypass) => Scope::Bypassed,
            (None, Missing::Refuse) => Scope::Refused,
        }
    }

    /// What the published policy says of it.
    pub(super) fn described(&self) -> &'static str {
        match &self.0 {
            Kind::SingleTenant => "all clients share one set of keys",
            Kind::Found { missing: Missing::Refuse, .. } => "each principal has keys of its own",
            Kind::Found { missing: Missing::Bypass, .. } => {
                "each principal has keys of its own; requests without one are not protected"
            }
            Kind::Found { missing: Missing::Shared(_), .. } => {
                "each principal has keys of its own; requests without one share theirs"
            }
        }
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Principal").field(&self.described()).finish()
    }
}
