async fn charge(tx: &mut Transaction<'_, Postgres>, order: Order) -> Reply {
    let __idempotent_call = {
        static __IDEMPOTENT_SITE: ::idempotent_runtime::__v0_1_0::Site = ::idempotent_runtime::__v0_1_0::Site::new(
            ::core::concat!(::core::module_path!(), "::", "charge"),
        );
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
            &order,
            "order",
            &[],
        );
        __idempotent_call
    };
    let __idempotent_policy = ::idempotent_runtime::__v0_1_0::decided(
        ::idempotent_runtime::__v0_1_0::error_of::<Reply>(),
        decide,
    );
    let __idempotent_entered = ::idempotent_runtime::__v0_1_0::enter_in(
            __idempotent_call,
            ::idempotent_runtime::__v0_1_0::connection(&mut *tx),
        )
        .await;
    match ::idempotent_runtime::__v0_1_0::begun_in::<
        Reply,
        _,
    >(__idempotent_entered, &__idempotent_policy) {
        ::idempotent_runtime::__v0_1_0::BegunIn::Answer(__idempotent_answer) => {
            __idempotent_answer
        }
        ::idempotent_runtime::__v0_1_0::BegunIn::Run(
            __idempotent_running,
            __idempotent_closing,
        ) => {
            let __idempotent_answer = {
                let tx = &mut *tx;
                ::idempotent_runtime::__v0_1_0::run_in(
                        &__idempotent_running,
                        async move {
                            if false {
                                return ::idempotent_runtime::__v0_1_0::pinned::<Reply>();
                            }
                            let _ = &order;
                            let _ = &tx;
                            { pay(tx, order).await }
                        },
                    )
                    .await
            };
            let __idempotent_ending = __idempotent_closing
                .ending(
                    &__idempotent_running,
                    &__idempotent_policy,
                    &__idempotent_answer,
                );
            let __idempotent_recorded = ::idempotent_runtime::__v0_1_0::record_in(
                    __idempotent_running,
                    __idempotent_ending,
                    ::idempotent_runtime::__v0_1_0::connection(&mut *tx),
                )
                .await;
            __idempotent_closing.answer(__idempotent_recorded, __idempotent_answer)
        }
    }
}
