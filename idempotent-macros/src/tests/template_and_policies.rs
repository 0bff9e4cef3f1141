async fn charge(order: &Order) -> Reply {
    let __idempotent_call = {
        static __IDEMPOTENT_SITE: ::idempotent_runtime::__v0_1_0::Site = ::idempotent_runtime::__v0_1_0::Site::new(
                ::core::concat!(::core::module_path!(), "::", "charge"),
            )
            .template("charge-{}")
            .lease_ms(60000u64)
            .wait_ms(5000u64)
            .version(3u32)
            .on_crash(::idempotent_runtime::__v0_1_0::OnCrash::Retry)
            .on_missing_key(::idempotent_runtime::__v0_1_0::OnMissingKey::Run);
        let mut __idempotent_call = ::idempotent_runtime::__v0_1_0::prepare(
            &__IDEMPOTENT_SITE,
            ::idempotent_runtime::__v0_1_0::current(),
        );
        ::idempotent_runtime::__v0_1_0::key(
            &mut __idempotent_call,
            &order.id,
            "order.id",
        );
        ::idempotent_runtime::__v0_1_0::argument(
            &mut __idempotent_call,
            &*order,
            "order",
            &[&["requested_at"], &["some-name"]],
        );
        __idempotent_call
    };
    let __idempotent_policy = ::idempotent_runtime::__v0_1_0::replayed(
        ::idempotent_runtime::__v0_1_0::error_of::<Reply>(),
    );
    let __idempotent_begun = ::idempotent_runtime::__v0_1_0::begin::<
        Reply,
        _,
    >(__idempotent_call, &__idempotent_policy)
        .await;
    match __idempotent_begun {
        ::idempotent_runtime::__v0_1_0::Begun::Answer(__idempotent_answer) => {
            __idempotent_answer
        }
        ::idempotent_runtime::__v0_1_0::Begun::Run(__idempotent_running) => {
            ::idempotent_runtime::__v0_1_0::run::<
                Reply,
                _,
                _,
            >(
                    __idempotent_running,
                    __idempotent_policy,
                    ::idempotent_runtime::__v0_1_0::Boxed::pin(async move {
                        if false {
                            return ::idempotent_runtime::__v0_1_0::pinned::<Reply>();
                        }
                        let _ = &order;
                        { Ok(pay(order).await?) }
                    }),
                )
                .await
        }
    }
}
