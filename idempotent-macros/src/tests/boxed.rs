fn charge<'life0, 'async_trait>(
    &'life0 self,
    __arg1: Json<Order>,
) -> ::core::pin::Pin<
    Box<dyn ::core::future::Future<Output = Reply> + ::core::marker::Send + 'async_trait>,
>
where
    'life0: 'async_trait,
    Self: 'async_trait,
{
    Box::pin(async move {
        if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
            Reply,
        > {
            #[allow(unreachable_code)] return __ret;
        }
        let __self = self;
        let Json(order) = {
            let __arg1 = __arg1;
            __arg1
        };
        let __idempotent_call = {
            static __IDEMPOTENT_SITE: ::idempotent_runtime::__v0_1_0::Site = ::idempotent_runtime::__v0_1_0::Site::new(
                "charge",
            );
            let mut __idempotent_call = ::idempotent_runtime::__v0_1_0::prepare(
                &__IDEMPOTENT_SITE,
                ::idempotent_runtime::__v0_1_0::current(),
            );
            ::idempotent_runtime::__v0_1_0::key(
                &mut __idempotent_call,
                &__self.tenant.id,
                "self.tenant.id",
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
            Reply,
            _,
        >(__idempotent_call, &::idempotent_runtime::__v0_1_0::Retry)
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
                        ::idempotent_runtime::__v0_1_0::Retry,
                        ::idempotent_runtime::__v0_1_0::Boxed::pin(async move {
                            if false {
                                return ::idempotent_runtime::__v0_1_0::pinned::<Reply>();
                            }
                            let _ = &order;
                            let _ = &__self;
                            {
                                let __ret: Reply = { __self.gateway.charge(order).await };
                                #[allow(unreachable_code)] __ret
                            }
                        }),
                    )
                    .await
            }
        }
    })
}
