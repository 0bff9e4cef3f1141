async fn charge(gateway: &Gateway, order: Order) -> Result<Receipt, ChargeError> {
    let __idempotent_call = {
        static __IDEMPOTENT_SITE: ::idempotent_runtime::__v0_1_0::Site = ::idempotent_runtime::__v0_1_0::Site::new(
                ::core::concat!(::core::module_path!(), "::", "charge"),
            )
            .reconciles();
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
    let __idempotent_begun = ::idempotent_runtime::__v0_1_0::begin::<
        Result<Receipt, ChargeError>,
        _,
    >(__idempotent_call, &::idempotent_runtime::__v0_1_0::Retry)
        .await;
    let __idempotent_begun = match __idempotent_begun {
        ::idempotent_runtime::__v0_1_0::Begun::Run(
            __idempotent_running,
        ) if __idempotent_running.is_after_another() => {
            ::idempotent_runtime::__v0_1_0::reconcile::<
                Result<Receipt, ChargeError>,
                _,
                _,
            >(
                    __idempotent_running,
                    &::idempotent_runtime::__v0_1_0::Retry,
                    ::idempotent_runtime::__v0_1_0::asked::<
                        Result<Receipt, ChargeError>,
                        _,
                    >(gateway.find(&order.id)),
                )
                .await
        }
        __idempotent_begun => __idempotent_begun,
    };
    match __idempotent_begun {
        ::idempotent_runtime::__v0_1_0::Begun::Answer(__idempotent_answer) => {
            __idempotent_answer
        }
        ::idempotent_runtime::__v0_1_0::Begun::Run(__idempotent_running) => {
            ::idempotent_runtime::__v0_1_0::run::<
                Result<Receipt, ChargeError>,
                _,
                _,
            >(
                    __idempotent_running,
                    ::idempotent_runtime::__v0_1_0::Retry,
                    ::idempotent_runtime::__v0_1_0::Boxed::pin(async move {
                        if false {
                            return ::idempotent_runtime::__v0_1_0::pinned::<
                                Result<Receipt, ChargeError>,
                            >();
                        }
                        let _ = &order;
                        let _ = &gateway;
                        { gateway.charge(order).await }
                    }),
                )
                .await
        }
    }
}
