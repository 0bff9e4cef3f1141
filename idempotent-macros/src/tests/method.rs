pub async fn charge(
    &self,
    mut order: Order,
    _note: String,
) -> Result<Receipt, ChargeError> {
    #[allow(clippy::used_underscore_binding, clippy::no_effect_underscore_binding)]
    let __idempotent_call = {
        static __IDEMPOTENT_SITE: ::idempotent_runtime::__v0_1_0::Site = ::idempotent_runtime::__v0_1_0::Site::new(
            "charge",
        );
        let mut __idempotent_call = ::idempotent_runtime::__v0_1_0::prepare(
            &__IDEMPOTENT_SITE,
            ::idempotent_runtime::__v0_1_0::handle(&self.idempotency),
        );
        ::idempotent_runtime::__v0_1_0::key(
            &mut __idempotent_call,
            &self.tenant.id,
            "self.tenant.id",
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
        ::idempotent_runtime::__v0_1_0::argument(
            &mut __idempotent_call,
            &_note,
            "_note",
            &[],
        );
        let _ = &mut order;
        __idempotent_call
    };
    let __idempotent_policy = ::idempotent_runtime::__v0_1_0::decided(
        ::idempotent_runtime::__v0_1_0::error_of::<Result<Receipt, ChargeError>>(),
        decide,
    );
    let __idempotent_begun = ::idempotent_runtime::__v0_1_0::begin::<
        Result<Receipt, ChargeError>,
        _,
    >(__idempotent_call, &__idempotent_policy)
        .await;
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
                    __idempotent_policy,
                    ::idempotent_runtime::__v0_1_0::Boxed::pin(async move {
                        if false {
                            return ::idempotent_runtime::__v0_1_0::pinned::<
                                Result<Receipt, ChargeError>,
                            >();
                        }
                        let _ = &self;
                        #[allow(clippy::shadow_same)]
                        let mut order = order;
                        #[allow(
                            clippy::used_underscore_binding,
                            clippy::no_effect_underscore_binding
                        )]
                        #[allow(clippy::shadow_same)]
                        let _note = _note;
                        {
                            order.amount += 1;
                            self.gateway.charge(order).await
                        }
                    }),
                )
                .await
        }
    }
}
