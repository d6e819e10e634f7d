// The gradients of rows of attention, under one instruction set: see native_dispatch.h.
//
// They are also the gradients of entmax of rows of scores: each row is a head with one query,
// without mask, scale and dropout.
//
// native.cpp has `Heads`. native_kernels.h includes native_gradient.h, native_gradient_above_two.h,
// native_dropout.h (`enlargement`) and native_attention.h (`attended`, `clear_rest`) before.

// The first n keys of the rows of weights and gradients that begin at `start`.
template <class T>
INLINE GradientRow<T> gradient_row(const Heads &heads, long start, long n) {
    GradientRow<T> row;
    row.n = n;
    row.weights = (const T *)heads.weights + start;
    row.used = heads.used ? (T *)heads.used + start : nullptr;
    row.incoming = (const T *)heads.incoming + start;
    row.gradient = (T *)heads.gradient + start;
    row.enlarged = (T)enlargement(heads.dropped_part);
    row.scale = heads.scale;
    return row;
}

// Turns gradients with respect to weights into gradients with respect to scores, and to alpha if
// these are wanted; see `Heads`. Returns false: there is always a gradient.
template <class T>
TARGET bool backward(const void *packed, long keys, long first, long last, Memory &memory) {
    const Heads &heads = *(const Heads *)packed;
    const bool wants_alpha = heads.alpha_gradient != nullptr;
    const Inside<T> inside = Inside<T>::up_to(keys, memory);
    Support support = {};
    for (long row = first; row < last; ++row) {
        const long n = attended(heads, row % heads.queries, keys);
        const double alpha = heads.alpha[(heads.first + row / heads.queries) % heads.heads];
        const GradientRow<T> values = gradient_row<T>(heads, row * keys, n);
        clear_rest(values.gradient, n, keys);
        if (values.used) clear_rest(values.used, n, keys);
        double grad_alpha;
        if (alpha > 2) {
            if (!support.column) support = Support::up_to(keys, memory);
            grad_alpha = gradient_above_two(values, alpha, wants_alpha, support);
        } else {
            grad_alpha = gradient_up_to_two(values, alpha, wants_alpha, inside);
        }
        if (wants_alpha) heads.alpha_gradient[row] = grad_alpha;
    }
    return false;
}
