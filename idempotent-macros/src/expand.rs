//! From what is meant to the tokens that do it.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;

use crate::checked::{Argument, Captured, Checked, Handle, Key, Name, OnError, Setting};
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
///         key(&mut call, "order.id", &order.id);
///         argument(&mut call, "order", &order, &[]);
///         call
///     };
///     let begun = begin::<Result<Receipt, ChargeError>, _>(call, &Retry).await;
///     match begun {
///         Begun::Answer(answer) => answer,
///         Begun::Run(running) => run::<Result<Receipt, ChargeError>, _, _>(running, Retry, Box::pin(async move {
///             if false { let never: Result<Receipt, ChargeError> = loop {}; return never; }
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
    let body = framed(frame, quote!(#inner_attributes #prelude #call #rest));
    let mut output = function.head.clone();
    output.extend([TokenTree::Group(body)]);
    output
}

/// Generated names: resolved at the macro, so that no code of the user can see them, or be seen.
struct Names {
    hidden: TokenStream,
    runtime: TokenStream,
    call: Ident,
    policy: Ident,
    begun: Ident,
}

impl Names {
    fn new(runtime: &TokenStream) -> Self {
        let module = concat!(
            "__v",
            env!("CARGO_PKG_VERSION_MAJOR"),
            "_",
            env!("CARGO_PKG_VERSION_MINOR"),
            "_",
            env!("CARGO_PKG_VERSION_PATCH")
        );
        let module = generated(module);
        Self {
            hidden: quote_spanned!(Span::mixed_site()=> #runtime::#module),
            runtime: runtime.clone(),
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
                quote_spanned!(Span::mixed_site()=> #hidden::key(&mut #call, #text, #value);)
            })
            .collect(),
    };
    let of_type = checked
        .type_counts
        .then(|| quote_spanned!(Span::mixed_site()=> #hidden::of_type::<Self>(&mut #call);));
    let arguments = checked.arguments.iter().map(|argument| fingerprinted(argument, names));
    let mutable = mutable(checked);
    // `_ctx` may be fingerprinted, and the reborrow `&*order` names the type behind the reference in messages.
    quote_spanned! {Span::mixed_site()=>
        #[allow(clippy::used_underscore_binding, clippy::borrow_deref_ref)]
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
    let Names { hidden, runtime, .. } = names;
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
            quote!(.on_crash(#runtime::OnCrash::#variant))
        }
        Setting::OnMissingKey(variant) => {
            let variant = generated(variant);
            quote!(.on_missing_key(#runtime::OnMissingKey::#variant))
        }
    });
    quote_spanned!(Span::mixed_site()=> #hidden::Site::new(#name)#(#settings)*)
}

/// `argument(&mut call, "order", &order, &[&["requested_at"]]);`
fn fingerprinted(argument: &Argument, names: &Names) -> TokenStream {
    let Names { hidden, call, .. } = names;
    let Argument { cfgs, name, value, skip } = argument;
    let skip = skip.iter().map(|names| quote!(&[#(#names),*]));
    quote_spanned! {Span::mixed_site()=>
        #(#cfgs)*
        #hidden::argument(&mut #call, #name, #value, &[#(#skip),*]);
    }
}

/// Reserves, and either gives the answer that is there or runs the body.
fn begin_and_run(body: &Body, checked: &Checked, names: &Names) -> TokenStream {
    let Names { hidden, call, begun, .. } = names;
    let output = &checked.output;
    let (answer, running) = (generated("__idempotent_answer"), generated("__idempotent_running"));
    let run = generated(if checked.detached { "run_detached" } else { "run" });
    // What these two ask of the return type is asked where it is declared.
    let begin = located(quote!(#hidden::begin), output.span());
    let run = located(quote!(#hidden::#run), output.span());
    let (policy_statement, policy) = on_error(checked, names);
    // One context throughout: the compiler joins no spans of two, and points at the whole attribute instead.
    let policy_reference = located(quote_spanned!(Span::mixed_site()=> &#policy), policy.span());
    let reconciled = reconciled(checked, names, &policy_reference);
    let pin = pinned(checked);
    let owned = owned(checked);
    let block = wrapped(&body.block, &quote!(#pin #owned));
    let async_move = quote_spanned!(Span::mixed_site().located_at(body.place)=> async move);
    if let Some(connection) = &checked.transaction {
        let body = quote!(#async_move #block);
        let parts = transaction::Parts { hidden, call, connection, output, policy: &policy_reference, body };
        let in_transaction = transaction::begin_and_run(parts);
        return quote!(#policy_statement #in_transaction);
    }
    quote_spanned! {Span::mixed_site()=>
        #policy_statement
        let #begun = #begin::<#output, _>(#call, #policy_reference).await;
        #reconciled
        match #begun {
            #hidden::Begun::Answer(#answer) => #answer,
            #hidden::Begun::Run(#running) => {
                #run::<#output, _, _>(#running, #policy, #hidden::Boxed::pin(#async_move #block)).await
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
    let reconcile = located(quote_spanned!(Span::mixed_site()=> #hidden::reconcile), future.span());
    Some(quote_spanned! {Span::mixed_site()=>
        #[allow(clippy::used_underscore_binding)]
        let #begun = match #begun {
            #hidden::Begun::Run(#running) if #running.is_after_another() => {
                #reconcile::<#output, _, _>(#running, #policy, #future).await
            }
            #begun => #begun,
        };
    })
}

/// The policy for a returned `Err`: a statement that makes it, and what it is then called.
fn on_error(checked: &Checked, names: &Names) -> (TokenStream, TokenStream) {
    let Names { hidden, policy, .. } = names;
    let output = &checked.output;
    match &checked.on_error {
        OnError::Policy(name, place) => {
            let name = generated(name);
            (TokenStream::new(), located(quote_spanned!(Span::mixed_site()=> #hidden::#name), *place))
        }
        OnError::Decide(function) => {
            let decide = quote! {#hidden::decided::<<#output as #hidden::Fallible>::Err, _, _>};
            let decide = located(decide, function.span());
            (quote!(let #policy = #decide(#function);), policy.to_token_stream())
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
fn located(tokens: TokenStream, place: Span) -> TokenStream {
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

/// Tells the async block its type, so that `?` finds its error and a wrong value is blamed where it stands.
///
/// Located at the declared type: that is where a message says that the type comes from.
fn pinned(checked: &Checked) -> TokenStream {
    let output = &checked.output;
    let span = Span::mixed_site().located_at(output.span());
    let never = Ident::new("__idempotent_never", span);
    quote_spanned! {span=>
        #[allow(unreachable_code, clippy::diverging_sub_expression, clippy::empty_loop, clippy::let_unit_value)]
        if false {
            let #never: #output = loop {};
            return #never;
        }
    }
}

/// Makes the async block own the arguments, all of each.
///
/// An async block drops its variables first, then what it captured, in the order in which it first names it. So the
/// arguments are dropped as those of the plain function are, also the ones that the body does not use.
fn owned(checked: &Checked) -> TokenStream {
    let captured = checked.captured.iter().map(|Captured { cfgs, ident, .. }| {
        quote_spanned! {Span::mixed_site()=>
            #[allow(clippy::used_underscore_binding, clippy::let_underscore_untyped)]
            #(#cfgs)*
            let _ = &#ident;
        }
    });
    let rebound = checked.rebound.iter().map(|Captured { cfgs, mutability, ident }| {
        quote_spanned! {Span::mixed_site()=>
            #[allow(clippy::used_underscore_binding, clippy::no_effect_underscore_binding)]
            #(#cfgs)*
            let #mutability #ident = #ident;
        }
    });
    quote!(#(#captured)* #(#rebound)*)
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
