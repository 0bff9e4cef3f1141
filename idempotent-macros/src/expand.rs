//! From what is meant to the tokens that do it.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use crate::checked::{Argument, Captured, Checked, Handle, Key, Name, OnError, Runtime, Setting};
use crate::function::{Body, Frame, Function};
use crate::transaction;

/// Input:
/// ```text
/// #[idempotent(key = "order.id", ttl = "24h", skip(gateway))]
/// async fn charge(gateway: &Gateway, order: Order) -> Result<Receipt, ChargeError> {
///     gateway.charge(order).await
/// }
/// ```
/// Output (names shortened):
/// ```text
/// async fn charge(gateway: &Gateway, order: Order) -> Result<Receipt, ChargeError> {
///     let call = {
///         static SITE: Site = Site::new(concat!(module_path!(), "::", "charge")).ttl_ms(86400000u64);
///         let mut call = prepare(&SITE, current());
///         key(&mut call, &order.id, "order.id");
///         argument(&mut call, &order, "order", &[]);
///         call
///     };
///     let begun = begin::<Result<Receipt, ChargeError>, _>(call, &Retry).await;
///     match begun {
///         Begun::Answer(answer) => answer,
///         Begun::Run(running) => run::<Result<Receipt, ChargeError>, _, _>(running, Retry, Box::pin(async move {
///             if false { return pinned::<Result<Receipt, ChargeError>>(); }
///             let _ = &order;
///             let _ = &gateway;
///             { gateway.charge(order).await }
///         })).await,
///     }
/// }
/// ```
pub(crate) fn expand(function: &Function, checked: &Checked) -> TokenStream {
    let names = Names::new(&checked.runtime);
    let call = prepare(checked, &names);
    let rest = begin_and_run(&function.body, checked, &names);
    let Body { inner_attributes, prelude, frame, .. } = &function.body;
    let import = &names.import;
    let body = framed(frame, quote!(#inner_attributes #import #prelude #call #rest));
    let mut output = function.head.clone();
    output.extend([TokenTree::Group(body)]);
    output
}

/// Generated names: resolved at the macro, so that no code of the user can see them, or be seen.
struct Names {
    /// The runtime's module for generated code.
    hidden: TokenStream,
    /// What makes it known, where it is at a path that the user gave.
    import: TokenStream,
    call: Ident,
    policy: Ident,
    begun: Ident,
}

impl Names {
    fn new(runtime: &Runtime) -> Self {
        let module = concat!(
            "__v",
            env!("CARGO_PKG_VERSION_MAJOR"),
            "_",
            env!("CARGO_PKG_VERSION_MINOR"),
            "_",
            env!("CARGO_PKG_VERSION_PATCH")
        );
        let module = generated(module);
        let (hidden, import) = match runtime {
            Runtime::Dependency(name) => {
                let name = generated(name);
                (quote_spanned!(Span::mixed_site()=> ::#name::#module), TokenStream::new())
            }
            // Named once: if it is wrong, that is said once.
            Runtime::Given(path) => {
                let hidden = generated("__idempotent_runtime");
                let import = quote_spanned!(Span::mixed_site()=> use #path::#module as #hidden;);
                (hidden.into_token_stream(), import)
            }
        };
        Self {
            hidden,
            import,
            call: generated("__idempotent_call"),
            policy: generated("__idempotent_policy"),
            begun: generated("__idempotent_begun"),
        }
    }
}

fn generated(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// `let call = …;`: key and fingerprint, before the body can change what they are taken from.
fn prepare(checked: &Checked, names: &Names) -> TokenStream {
    let Names { hidden, call, .. } = names;
    let site = generated("__IDEMPOTENT_SITE");
    let value = site_value(checked, names);
    let handle = match &checked.handle {
        Handle::Current => quote_spanned!(Span::mixed_site()=> #hidden::current()),
        Handle::Given(handle) => quote_spanned!(Span::mixed_site()=> #hidden::handle(#handle)),
    };
    let key = match &checked.key {
        Key::Whole => quote_spanned!(Span::mixed_site()=> #call.key_from_fingerprint();),
        Key::Parts(parts) => parts
            .iter()
            .map(|part| {
                let (text, value) = (&part.text, &part.value);
                quote_spanned!(Span::mixed_site()=> #hidden::key(&mut #call, #value, #text);)
            })
            .collect(),
    };
    let of_type = checked
        .type_counts
        .then(|| quote_spanned!(Span::mixed_site()=> #hidden::of_type::<Self>(&mut #call);));
    let arguments = checked.arguments.iter().map(|argument| fingerprinted(argument, names));
    let mutable = mutable(checked);
    let underscored = used_all_the_same(checked.captured.iter().chain(&checked.rebound));
    quote_spanned! {Span::mixed_site()=>
        #underscored
        let #call = {
            static #site: #hidden::Site = #value;
            let mut #call = #hidden::prepare(&#site, #handle);
            #of_type
            #key
            #(#arguments)*
            #mutable
            #call
        };
    }
}

/// `Site::new(concat!(module_path!(), "::", "charge")).ttl_ms(86400000u64)`
fn site_value(checked: &Checked, names: &Names) -> TokenStream {
    let Names { hidden, .. } = names;
    let name = match &checked.name {
        Name::Given(name) => quote!(#name),
        Name::InModule(name) => {
            quote_spanned!(Span::mixed_site()=> ::core::concat!(::core::module_path!(), "::", #name))
        }
    };
    let settings = checked.settings.iter().map(|setting| match setting {
        Setting::Milliseconds(method, ms) => {
            let method = generated(method);
            quote!(.#method(#ms))
        }
        Setting::Version(version) => quote!(.version(#version)),
        Setting::Template(text) => quote!(.template(#text)),
        Setting::Detached => quote!(.detached()),
        Setting::Reconciles => quote!(.reconciles()),
        Setting::OnCrash(variant) => {
            let variant = generated(variant);
            quote!(.on_crash(#hidden::OnCrash::#variant))
        }
        Setting::OnMissingKey(variant) => {
            let variant = generated(variant);
            quote!(.on_missing_key(#hidden::OnMissingKey::#variant))
        }
    });
    quote_spanned!(Span::mixed_site()=> #hidden::Site::new(#name)#(#settings)*)
}

/// `argument(&mut call, &order, "order", &[&["requested_at"]]);`
fn fingerprinted(argument: &Argument, names: &Names) -> TokenStream {
    let Names { hidden, call, .. } = names;
    let Argument { cfgs, name, value, skip } = argument;
    let skip = skip.iter().map(|names| quote!(&[#(#names),*]));
    quote_spanned! {Span::mixed_site()=>
        #(#cfgs)*
        #hidden::argument(&mut #call, #value, #name, &[#(#skip),*]);
    }
}

/// Reserves, and either gives the answer that is there or runs the body.
fn begin_and_run(body: &Body, checked: &Checked, names: &Names) -> TokenStream {
    let Names { hidden, call, begun, .. } = names;
    let output = &checked.output;
    let (policy_statement, policy) = on_error(checked, names);
    // One context throughout: the compiler joins no spans of two, and points at the whole attribute instead.
    let policy_reference = located(quote_spanned!(Span::mixed_site()=> &#policy), policy.span());
    let (pin, owned) = (pinned(checked, names), owned(checked));
    let block = wrapped(&body.block, &quote!(#pin #owned));
    // In the user's own context: the compiler names no variable of a block that another crate's macro made.
    let async_move = quote_spanned!(body.place=> async move);
    if let Some(connection) = &checked.transaction {
        let body = quote!(#async_move #block);
        let parts = transaction::Parts { hidden, call, connection, output, policy: &policy_reference, body };
        let in_transaction = transaction::begin_and_run(parts);
        return quote!(#policy_statement #in_transaction);
    }
    let (answer, running) = (generated("__idempotent_answer"), generated("__idempotent_running"));
    let boxed = quote_spanned!(Span::mixed_site()=> #hidden::Boxed::pin(#async_move #block));
    let begin = of_output(hidden, "begin", output, 1, quote!(#call, #policy_reference));
    let run = if let Some(keyword) = checked.detached {
        let body = called(path(hidden, "detachable", output, 1, keyword), boxed, keyword);
        let arguments = quote_spanned!(Span::mixed_site()=> #running, #policy, #body);
        of_output(hidden, "run_detached", output, 2, arguments)
    } else {
        let arguments = quote_spanned!(Span::mixed_site()=> #running, #policy, #boxed);
        of_output(hidden, "run", output, 2, arguments)
    };
    let reconciled = reconciled(checked, names, &policy_reference);
    // A result that borrows is found out where it is returned.
    let answered = located(answer.to_token_stream(), output.span());
    quote_spanned! {Span::mixed_site()=>
        #policy_statement
        let #begun = #begin.await;
        #reconciled
        match #begun {
            #hidden::Begun::Answer(#answer) => #answered,
            #hidden::Begun::Run(#running) => {
                #run.await
            }
        }
    }
}

/// Asks the application before a second run; the arguments are only borrowed, for the body is still to come.
///
/// Output:
/// ```text
/// let begun = match begun {
///     Begun::Run(running) if running.is_after_another() => {
///         reconcile::<Result<Receipt, ChargeError>, _, _>(running, &Retry, gateway.find(&order.id)).await
///     }
///     begun => begun,
/// };
/// ```
fn reconciled(checked: &Checked, names: &Names, policy: &TokenStream) -> Option<TokenStream> {
    let Names { hidden, begun, .. } = names;
    let future = checked.reconcile.as_ref()?;
    let running = generated("__idempotent_running");
    let output = &checked.output;
    let asked = path(hidden, "asked", output, 1, future.span());
    let asked = called(asked, future.clone(), last(future.clone()));
    let arguments = quote_spanned!(Span::mixed_site()=> #running, #policy, #asked);
    let reconcile = of_output(hidden, "reconcile", output, 2, arguments);
    let underscored = used_all_the_same(checked.captured.iter().chain(&checked.rebound));
    Some(quote_spanned! {Span::mixed_site()=>
        #underscored
        let #begun = match #begun {
            #hidden::Begun::Run(#running) if #running.is_after_another() => {
                #reconcile.await
            }
            #begun => #begun,
        };
    })
}

/// The policy for a returned `Err`: a statement that makes it, and what it is then called.
fn on_error(checked: &Checked, names: &Names) -> (TokenStream, TokenStream) {
    let Names { hidden, policy, .. } = names;
    let error = of_output(hidden, "error_of", &checked.output, 0, TokenStream::new());
    match &checked.on_error {
        OnError::Policy(name, place) => {
            let name = generated(name);
            (TokenStream::new(), located(quote_spanned!(Span::mixed_site()=> #hidden::#name), *place))
        }
        OnError::Replay(place) => {
            let replayed = located(quote_spanned!(Span::mixed_site()=> #hidden::replayed), *place);
            let replayed = called(replayed, error, *place);
            (quote!(let #policy = #replayed;), policy.to_token_stream())
        }
        OnError::Decide(function) => {
            let decide = located(quote_spanned!(Span::mixed_site()=> #hidden::decided), function.span());
            let decide = called(decide, quote!(#error, #function), function.span());
            (quote!(let #policy = #decide;), policy.to_token_stream())
        }
    }
}

/// Input: `{ …statements… }`. Output: `{ …first… { …statements… } }`.
fn wrapped(block: &Group, first: &TokenStream) -> TokenTree {
    let mut statements = block.clone();
    let ends_one = |token| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';');
    if !block.stream().into_iter().any(ends_one) {
        // A block around one expression is a lint, where its braces are the user's, who did not write it.
        statements.set_span(Span::mixed_site().located_at(block.span()));
    }
    // The new ones take their place: the body of a function, to debuggers and to coverage.
    group(Delimiter::Brace, quote!(#first #statements), block.span()).into()
}

/// The tokens, so that messages about them point at `place`.
pub(crate) fn located(tokens: TokenStream, place: Span) -> TokenStream {
    let moved = |mut token: TokenTree| {
        if let TokenTree::Group(group) = &token {
            let stream = located(group.stream(), place);
            token = Group::new(group.delimiter(), stream).into();
        }
        token.set_span(token.span().located_at(place));
        token
    };
    tokens.into_iter().map(moved).collect()
}

/// A call of the runtime whose messages point at the return type: what several ask of it is then said once.
pub(crate) fn of_output(
    hidden: &TokenStream,
    name: &str,
    output: &Type,
    inferred: usize,
    arguments: TokenStream,
) -> TokenStream {
    called(path(hidden, name, output, inferred, output.span()), arguments, last(output.to_token_stream()))
}

/// `runtime::name::<Result<T, E>, _>`, so that messages about it point at `place`, and those about the type where it stands.
fn path(hidden: &TokenStream, name: &str, output: &Type, inferred: usize, place: Span) -> TokenStream {
    let span = Span::mixed_site().located_at(place);
    let (hidden, name) = (located(hidden.clone(), place), Ident::new(name, span));
    let inferred = (0..inferred).map(|_| quote_spanned!(span=> , _));
    quote_spanned!(span=> #hidden::#name::<#output #(#inferred)*>)
}

/// `function(arguments)`, so that messages about all of it reach from `function` to `end`.
fn called(function: TokenStream, arguments: TokenStream, end: Span) -> TokenStream {
    let parentheses = group(Delimiter::Parenthesis, arguments, Span::mixed_site().located_at(end));
    let mut call = function;
    call.extend([TokenTree::Group(parentheses)]);
    call
}

/// Where the last token stands.
fn last(tokens: TokenStream) -> Span {
    tokens.into_iter().last().map_or_else(Span::call_site, |token| token.span())
}

/// Tells the async block its type, so that `?` finds its error and a wrong value is blamed where it stands.
///
/// Located at the declared type: that is where a message says that the type comes from.
fn pinned(checked: &Checked, names: &Names) -> TokenStream {
    let output = &checked.output;
    let pinned = of_output(&names.hidden, "pinned", output, 0, TokenStream::new());
    quote_spanned! {Span::mixed_site().located_at(output.span())=>
        if false {
            return #pinned;
        }
    }
}

/// Makes the async block own the arguments, all of each.
///
/// An async block drops its variables first, then what it captured, in the order in which it first names it. So the
/// arguments are dropped as those of the plain function are, also the ones that the body does not use.
fn owned(checked: &Checked) -> TokenStream {
    let captured = checked.captured.iter().map(|name| {
        let Captured { cfgs, ident, .. } = name;
        let underscored = used_all_the_same([name]);
        quote_spanned! {Span::mixed_site()=>
            #underscored
            #(#cfgs)*
            let _ = &#ident;
        }
    });
    let rebound = checked.rebound.iter().map(|name| {
        let Captured { cfgs, mutability, ident } = name;
        let underscored = used_all_the_same([name]);
        quote_spanned! {Span::mixed_site()=>
            #underscored
            #[allow(clippy::shadow_same)]
            #(#cfgs)*
            let #mutability #ident = #ident;
        }
    });
    quote!(#(#captured)* #(#rebound)*)
}

/// `#[allow(…)]` for what clippy says of a name such as `_ctx` that is used.
///
/// Only where there is such a name: under a `#![forbid(clippy::all)]` every `allow` is a message of its own.
fn used_all_the_same<'n>(names: impl IntoIterator<Item = &'n Captured>) -> Option<TokenStream> {
    let is_underscored = |name: &Captured| {
        let name = name.ident.to_string();
        name.starts_with('_') && !name.starts_with("__")
    };
    names.into_iter().any(is_underscored).then(|| {
        quote_spanned! {Span::mixed_site()=>
            #[allow(clippy::used_underscore_binding, clippy::no_effect_underscore_binding)]
        }
    })
}

/// Uses the `mut` of the signature, which the body does not: it has a binding of its own, judged by the same lint.
fn mutable(checked: &Checked) -> TokenStream {
    let rebound = checked.rebound.iter().filter(|name| name.mutability.is_some());
    rebound
        .map(|Captured { cfgs, ident, .. }| quote_spanned!(Span::mixed_site()=> #(#cfgs)* let _ = &mut #ident;))
        .collect()
}

/// The new statements, inside what stood around the old ones.
fn framed(frame: &Frame, statements: TokenStream) -> Group {
    match frame {
        Frame::Braces(span) => group(Delimiter::Brace, statements, *span),
        Frame::Boxed { braces, call, parentheses, keywords, block } => {
            let block = group(Delimiter::Brace, statements, *block);
            let argument = group(Delimiter::Parenthesis, quote!(#keywords #block), *parentheses);
            group(Delimiter::Brace, quote!(#call #argument), *braces)
        }
    }
}

fn group(delimiter: Delimiter, stream: TokenStream, span: Span) -> Group {
    let mut group = Group::new(delimiter, stream);
    group.set_span(span);
    group
}
