//! The names that a pattern binds.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Attribute, Pat, Type};

/// A name that the function's arguments bind.
pub(crate) struct Binding {
    /// Without `r#`.
    pub(crate) name: String,
    pub(crate) ident: Ident,
    /// The `#[cfg]`s of its argument: the name is there only when they hold.
    pub(crate) cfgs: Vec<Attribute>,
    /// Not a part of another name, as `id` is in `order @ Order { id, .. }`.
    pub(crate) outermost: bool,
    /// The type of the argument, where the name is all of it.
    pub(crate) whole: Option<Type>,
}

/// Every name that `pat` binds, in the order of the source.
pub(crate) fn bindings(pat: &Pat, ty: &Type, cfgs: &[Attribute]) -> Vec<Binding> {
    let mut idents = Vec::new();
    walk(pat, true, &mut idents);
    let whole = |ident: &Ident| matches!(pat, Pat::Ident(name) if name.ident == *ident).then(|| ty.clone());
    idents
        .into_iter()
        .map(|(ident, outermost)| Binding {
            name: ident.unraw().to_string(),
            whole: whole(&ident),
            ident,
            cfgs: cfgs.to_vec(),
            outermost,
        })
        .collect()
}

fn walk(pat: &Pat, outermost: bool, idents: &mut Vec<(Ident, bool)>) {
    match pat {
        Pat::Ident(name) => {
            idents.push((name.ident.clone(), outermost));
            if let Some((_, inner)) = &name.subpat {
                walk(inner, false, idents);
            }
        }
        Pat::Paren(pat) => walk(&pat.pat, outermost, idents),
        Pat::Reference(pat) => walk(&pat.pat, outermost, idents),
        Pat::Type(pat) => walk(&pat.pat, outermost, idents),
        Pat::Struct(pat) => pat.fields.iter().for_each(|field| walk(&field.pat, outermost, idents)),
        Pat::Tuple(pat) => pat.elems.iter().for_each(|pat| walk(pat, outermost, idents)),
        Pat::TupleStruct(pat) => pat.elems.iter().for_each(|pat| walk(pat, outermost, idents)),
        Pat::Slice(pat) => pat.elems.iter().for_each(|pat| walk(pat, outermost, idents)),
        // Every alternative binds the same names.
        Pat::Or(pat) => pat.cases.iter().take(1).for_each(|pat| walk(pat, outermost, idents)),
        _ => {}
    }
}
