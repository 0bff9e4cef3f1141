async fn charge(
    State(pool): State<Pool>,
    Json(order): Json<Order>,
    #[cfg(unix)]
    uid: u32,
) -> Reply {
    let __idempotent_call = {
        static __IDEMPOTENT_SITE: ::idempotent_runtime::__v0_1_0::Site = ::idempotent_runtime::__v0_1_0::Site::new(
                ::core::concat!(::core::module_path!(), "::", "charge"),
            )
            .detached();
        let mut __idempotent_call = ::idempotent_runtime::__v0_1_0::prepare(
            &__IDEMPOTENT_SITE,
            ::idempotent_runtime::__v0_1_0::current(),
        );
        __idempotent_call.key_from_fingerprint();
        ::idempotent_runtime::__v0_1_0::argument(
            &mut __idempotent_call,
            &order,
            "order",
            &[],
        );
        #[cfg(unix)]
        ::idempotent_runtime::__v0_1_0::argument(
            &mut __idempotent_call,
            &uid,
            "uid",
            &[],
        );
        __idempotent_call
    };
    let __idempotent_begun = ::idempotent_runtime::__v0_1_0::begin::<
        Reply,
        _,
    >(__idempotent_call, &::idempotent_runtime::__v0_1_0::Retry)
        .await;
    match __idempotent_begun {
        ::idempotent_runtime::__v0_1_0::Begun::Answer(__idempotent_answer) => {
            __idempotent_answer
        }
        ::idempotent_runtime::__v0_1_0::Begun::Run(__idempotent_running) => {
            ::idempotent_runtime::__v0_1_0::run_detached::<
                Reply,
                _,
                _,
            >(
                    __idempotent_running,
                    ::idempotent_runtime::__v0_1_0::Retry,
                    ::idempotent_runtime::__v0_1_0::detachable::<
                        Reply,
                        _,
                    >(
                        ::idempotent_runtime::__v0_1_0::Boxed::pin(async move {
                            if false {
                                return ::idempotent_runtime::__v0_1_0::pinned::<Reply>();
                            }
                            #[cfg(unix)]
                            let _ = &uid;
                            let _ = &order;
                            let _ = &pool;
                            { pool.charge(order).await }
                        }),
                    ),
                )
                .await
        }
    }
}
