//! One shape of function in each file.

#![allow(missing_debug_implementations, reason = "props")]
#![allow(
    clippy::wildcard_imports,
    clippy::drop_non_drop,
    clippy::needless_arbitrary_self_type,
    clippy::items_after_statements
)]

pub mod arguments_named_like_options;
pub mod associated_fn;
pub mod async_trait;
pub mod async_trait_not_send;
pub mod async_trait_patterns;
pub mod async_trait_store;
pub mod attribute_below;
pub mod attributes_on_arguments;
pub mod blanket_conversions;
pub mod body_names;
pub mod borrowed_arguments;
pub mod boxed_by_hand;
pub mod boxed_error;
pub mod cfg_arguments;
pub mod closures;
pub mod configured;
pub mod const_generics;
pub mod control_flow;
pub mod dead_code;
pub mod deprecated;
pub mod detached;
pub mod diverging;
pub mod documented;
pub mod durations;
pub mod fingerprint;
pub mod generics;
pub mod glob_shadows_macros;
pub mod higher_ranked;
pub mod impl_trait_argument;
pub mod inner_attributes;
pub mod items_in_body;
pub mod key_expressions;
pub mod key_from_self;
pub mod key_methods_and_indices;
pub mod key_several;
pub mod key_template;
pub mod key_whole;
pub mod last_expression;
pub mod layout;
pub mod lifetimes_elided;
pub mod lifetimes_named;
pub mod lint_levels;
pub mod lints;
pub mod lints_of_few;
pub mod macro_fragments;
pub mod macro_hygiene;
pub mod macro_item;
pub mod macro_literals;
pub mod macro_made_fn;
pub mod many_arguments;
pub mod modules_named_like_crates;
pub mod moved_argument;
pub mod mut_argument;
pub mod mut_argument_rebound;
pub mod nested_calls;
pub mod nested_fn;
pub mod no_implicit_prelude;
pub mod not_send;
pub mod on_error;
pub mod other_attributes;
pub mod other_options;
pub mod own_methods;
pub mod pattern_ref;
pub mod patterns;
pub mod patterns_of_extractors;
pub mod plain;
pub mod qualified_paths;
pub mod question_mark;
pub mod raw_identifiers;
pub mod receiver_body_from_elsewhere;
pub mod receiver_in_macro_made_impl;
pub mod receiver_in_macros;
pub mod receiver_mut_reference;
pub mod receiver_mut_self;
pub mod receiver_partly_moved;
pub mod receiver_smart_pointers;
pub mod receiver_typed;
pub mod reconcile;
pub mod recursion;
pub mod reexported;
pub mod references;
pub mod result_alias;
pub mod result_alias_of_another_name;
pub mod self_type;
pub mod send;
pub mod shadowed_prelude;
pub mod skip;
pub mod skipped_needs_no_trait;
pub mod store;
pub mod trait_impl;
pub mod trait_impl_generic;
pub mod unnamed_argument_not_fingerprinted;
pub mod unused_arguments;
pub mod where_clause;
