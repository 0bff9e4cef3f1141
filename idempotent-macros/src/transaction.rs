//! `transaction = tx`: the argument that is the caller's own transaction, and the call inside it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, Type};

use crate::args::Args;
use crate::checked::no_argument;
use crate::errors::Errors;
use crate::expand::{located, of_output};
use crate::function::Function;

/// The argument that is a connection.
pub(crate) struct Connection {
    pub(crate) name: Ident,
    /// Where its type stands.
    pub(crate) place: Span,
}

/// The argument that `transaction` names.
pub(crate) fn argument(args: &Args, function: &Function, errors: &mut Errors) -> Option<Connection> {
    let value = args.transaction.as_ref()?;
    stands_alone(args, errors);
    let name = match (value.string(), value.bare()) {
        (Some(text), _) => text.value(),
        (None, Expr::Path(path)) if path.path.get_ident().is_some() => {
            path.path.get_ident().map(|name| name.unraw().to_string()).unwrap_or_default()
        }
        (None, other) => {
            errors.at(
                other,
                "expected the name of an argument for `transaction`, for example `transaction = tx`",
            );
            return None;
        }
    };
    let Some(binding) = function.bindings.iter().find(|binding| binding.name == name) else {
        errors.at(&value.expr, no_argument(&name, function));
        return None;
    };
    let exclusive = match binding.whole.as_ref().map(ungrouped) {
        Some(Type::Reference(reference)) if reference.mutability.is_some() => Some(reference),
        _ => None,
    };
    let Some(reference) = exclusive else {
        errors.at(
            &value.expr,
            format!(
                "`{name}` is not a `&mut` reference; the caller begins the transaction and commits it, so take \
                 `{name}: &mut sqlx::Transaction<'_, sqlx::Postgres>` or `{name}: &mut sqlx::PgConnection`"
            ),
        );
        return None;
    };
    Some(Connection { name: binding.ident.clone(), place: reference.elem.span() })
}

/// The type without the groups that `macro_rules!` put around it.
fn ungrouped(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => ungrouped(&group.elem),
        Type::Paren(paren) => ungrouped(&paren.elem),
        ty => ty,
    }
}

/// A transaction is its own lease, ends with its caller, and leaves nothing behind to ask about.
fn stands_alone(args: &Args, errors: &mut Errors) {
    let because = |keyword: &Ident, reason: &str| {
        (keyword.clone(), format!("`{keyword}` and `transaction` exclude each other; {reason}"))
    };
    let wrong = [
        args.lease
            .as_ref()
            .map(|value| because(&value.keyword, "a transaction holds its key for as long as it is open")),
        args.on_crash.as_ref().map(|value| {
            because(&value.keyword, "a crash rolls the transaction back, and the next call runs")
        }),
        args.reconcile.as_ref().map(|value| {
            because(
                &value.keyword,
                "a crash rolls the transaction back, so that there is nothing to ask about",
            )
        }),
        args.detached.as_ref().map(|keyword| {
            because(keyword, "the body works on the caller's connection, so it runs in the caller")
        }),
    ];
    for (keyword, message) in wrong.into_iter().flatten() {
        errors.at(&keyword, message);
    }
}

/// What a call in a transaction is made of.
pub(crate) struct Parts<'a> {
    pub(crate) hidden: &'a TokenStream,
    pub(crate) call: &'a Ident,
    pub(crate) connection: &'a Connection,
    pub(crate) output: &'a Type,
    pub(crate) policy: &'a TokenStream,
    /// `async move { …the body… }`
    pub(crate) body: TokenStream,
}

/// Output:
/// ```text
/// let entered = enter_in(call, connection(&mut *tx)).await;
/// match begun_in::<Result<Receipt, ChargeError>, _>(entered, &Retry) {
///     BegunIn::Answer(answer) => answer,
///     BegunIn::Run(running, closing) => {
///         let answer = {
///             let tx = &mut *tx;
///             run_in(&running, async move { …the body… }).await
///         };
///         let ending = closing.ending(&running, &Retry, &answer);
///         let recorded = record_in(running, ending, connection(&mut *tx)).await;
///         closing.answer(recorded, answer)
///     }
/// }
/// ```
pub(crate) fn begin_and_run(parts: Parts<'_>) -> TokenStream {
    let Parts { hidden, call, connection: Connection { name, place }, output, policy, body } = parts;
    let local = |name| Ident::new(name, Span::mixed_site());
    let (entered, running, closing) =
        (local("__idempotent_entered"), local("__idempotent_running"), local("__idempotent_closing"));
    let (ending, recorded, answer) =
        (local("__idempotent_ending"), local("__idempotent_recorded"), local("__idempotent_answer"));
    let arguments = quote_spanned!(Span::mixed_site()=> #entered, #policy);
    let begun = of_output(hidden, "begun_in", output, 1, arguments);
    let answered = located(answer.to_token_stream(), output.span());
    let connection = quote_spanned!(Span::mixed_site()=> #hidden::connection(&mut *#name));
    let connection = located(connection, *place);
    quote_spanned! {Span::mixed_site()=>
        let #entered = #hidden::enter_in(#call, #connection).await;
        match #begun {
            #hidden::BegunIn::Answer(#answer) => #answered,
            #hidden::BegunIn::Run(#running, #closing) => {
                let #answer = {
                    let #name = &mut *#name;
                    #hidden::run_in(&#running, #body).await
                };
                let #ending = #closing.ending(&#running, #policy, &#answer);
                let #recorded = #hidden::record_in(#running, #ending, #connection).await;
                #closing.answer(#recorded, #answer)
            }
        }
    }
}
