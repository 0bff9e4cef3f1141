//! The names that a pattern binds.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Attribute, Pat, PatIdent, Token, Type};

/// A name that the function's arguments bind.
pub(crate) struct Binding {
    /// Without `r#`.
    pub(crate) name: String,
    pub(crate) ident: Ident,
    /// The `mut` of an argument without attributes; a lint level given there would not reach a second binding.
    pub(crate) mutability: Option<Token![mut]>,
    /// The `#[cfg]`s of its argument: the name is there only when they hold.
    pub(crate) cfgs: Vec<Attribute>,
    /// Not a part of another name, as `id` is in `order @ Order { id, .. }`.
    pub(crate) outermost: bool,
    /// The type of the argument, where the name is all of it.
    pub(crate) whole: Option<Type>,
}

/// Every name that `pat` binds, in the order of the source. `attributes` are those of the argument.
pub(crate) fn bindings(pat: &Pat, ty: &Type, attributes: &[Attribute]) -> Vec<Binding> {
    let cfgs: Vec<Attribute> =
        attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect();
    let plain = cfgs.len() == attributes.len();
    let mut names = Vec::new();
    walk(pat, true, &mut names);
    names
        .into_iter()
        .map(|(name, outermost)| Binding {
            name: name.ident.unraw().to_string(),
            ident: name.ident.clone(),
            mutability: name.mutability.filter(|_| plain && name.by_ref.is_none()),
            cfgs: cfgs.clone(),
            outermost,
            whole: matches!(pat, Pat::Ident(_)).then(|| ty.clone()).filter(|_| outermost),
        })
        .collect()
}

fn walk<'a>(pat: &'a Pat, outermost: bool, names: &mut Vec<(&'a PatIdent, bool)>) {
    match pat {
        Pat::Ident(name) => {
            names.push((name, outermost));
            if let Some((_, inner)) = &name.subpat {
                walk(inner, false, names);
            }
        }
        Pat::Paren(pat) => walk(&pat.pat, outermost, names),
        Pat::Reference(pat) => walk(&pat.pat, outermost, names),
        Pat::Type(pat) => walk(&pat.pat, outermost, names),
        Pat::Struct(pat) => pat.fields.iter().for_each(|field| walk(&field.pat, outermost, names)),
        Pat::Tuple(pat) => pat.elems.iter().for_each(|pat| walk(pat, outermost, names)),
        Pat::TupleStruct(pat) => pat.elems.iter().for_each(|pat| walk(pat, outermost, names)),
        Pat::Slice(pat) => pat.elems.iter().for_each(|pat| walk(pat, outermost, names)),
        // Every alternative binds the same names.
        Pat::Or(pat) => pat.cases.iter().take(1).for_each(|pat| walk(pat, outermost, names)),
        _ => {}
    }
}
