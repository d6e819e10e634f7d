// Rows of attention, under one instruction set: see native_dispatch.h. `forward` scales and masks
// the scores of each query, maps them to weights, and drops some of these. A row has the scores of
// one query. It is short, so it is mapped in place, in the type of the scores.
//
// native.cpp has `Heads` and the kinds of masks, and includes `Memory`. native_kernels.h includes
// before:
//
//     native_row.h, native_newton.h    `write_row` and `climb`, for alpha 1.5 and 2
//     native_logarithms.h              `solve_in_logarithms`, for other alphas up to 2
//     native_anchor.h                  `solve_above_two`
//     native_dropout.h                 `drop`

// ---- masks -----------------------------------------------------------------------------------

// Loads booleans of a mask for the lanes of a vector; they are false beyond the first `count`.
template <class T>
INLINE typename Vector<T>::Mask load_booleans(const uint8_t *mask, long count) {
    typedef uint8_t Bytes __attribute__((vector_size(Vector<T>::size)));
    Bytes bytes = {};
    memcpy(&bytes, mask, count < Vector<T>::size ? count : Vector<T>::size);
    return __builtin_convertvector(bytes, typename Vector<T>::Mask) != 0;
}

// Scales and masks a row (n,) of scores, in place. Returns its maximum, nan if a score is nan.
template <class T, int kind>
TARGET T scale_and_mask_in(T *x, long n, T scale, const void *mask) {
    typedef typename Vector<T>::Type V;
    const V masked = V{} - (T)INFINITY;
    Maximum<T> maximum;
    for (long i = 0; i < n; i += Vector<T>::size) {
        V v = load_at<T>(x, i, n) * scale;
        if (kind == BOOLEANS) v = load_booleans<T>((const uint8_t *)mask + i, n - i) ? v : masked;
        if (kind == NUMBERS) v += load_at<T>((const T *)mask, i, n);
        store_at(x, i, n, v);
        // Lanes beyond the row must be -inf for the maximum. They were, before a scale of 0 or
        // below has changed them, so they are loaded again.
        if (i + Vector<T>::size > n) v = load_at<T>(x, i, n);
        maximum.add(v);
    }
    return maximum.value();
}

template <class T>
INLINE T scale_and_mask(T *x, long n, T scale, int64_t kind, const void *mask) {
    if (kind == BOOLEANS) return scale_and_mask_in<T, BOOLEANS>(x, n, scale, mask);
    if (kind == NUMBERS) return scale_and_mask_in<T, NUMBERS>(x, n, scale, mask);
    return scale_and_mask_in<T, NO_MASK>(x, n, scale, mask);
}

// The address of the mask's row for a query; without a mask it must not be read.
template <class T>
INLINE const char *mask_row(const Heads &heads, long outer, long head, long query) {
    const long offset = outer * heads.mask_outer + head * heads.mask_head + query * heads.mask_row;
    return heads.mask + offset * (heads.mask_kind == NUMBERS ? sizeof(T) : 1);
}

// How many keys, from the first, a query may attend to: under a causal mask, those up to its own
// place.
INLINE long attended(const Heads &heads, long query, long keys) {
    return heads.mask_kind == CAUSAL && query < keys ? query + 1 : keys;
}

// Writes zeros for the keys of a row (keys,) that are not attended to.
template <class T>
INLINE void clear_rest(T *row, long attended, long keys) {
    if (attended < keys) memset(row + attended, 0, (keys - attended) * sizeof(T));
}

// ---- weights ---------------------------------------------------------------------------------

// Softmax of a row (n,), in place.
template <class T>
TARGET void softmax(T *x, long n, T maximum) {
    typename Vector<T>::Type sums = {};
    for (long i = 0; i < n; i += Vector<T>::size) {
        const auto e = exponential<T>(load_at<T>(x, i, n) - maximum);
        sums += e;
        store_at(x, i, n, e);
    }
    const T factor = (T)(1 / sum_of<T>(sums));
    for (long i = 0; i < n; i += Vector<T>::size) store_at(x, i, n, load_at<T>(x, i, n) * factor);
}

// The curve for an alpha of attention. Up to alpha 2, only 1.5 and 2 count as whole orders, which
// are solved in the power form; all others are solved in logarithms.
INLINE Curve attention_curve(double alpha) {
    if (alpha == 2) return Curve::of(alpha, 1);
    if (alpha == 1.5) return Curve::of(alpha, 2);
    return Curve::of(alpha, NOT_WHOLE);
}

// Replaces the scores (n,) of a query by its weights: zeros if it has no keys, nan if a score is
// nan or +inf. `scratch` is used above alpha 2 only, and needs memory only then.
template <class T>
TARGET void solve_weights(T *x, long n, T maximum, const Curve &curve, Scratch<T> scratch) {
    if (maximum == -INFINITY) {
        memset(x, 0, n * sizeof(T));
    } else if (!(maximum < INFINITY)) {
        for (long i = 0; i < n; ++i) x[i] = (T)NAN;
    } else if (curve.beta == 0) {
        softmax(x, n, maximum);
    } else if (curve.alpha > 2) {
        const Solved solved = solve_above_two(x, n, curve, scratch);
        finish_support(scratch, solved, curve, false);
        spread_list(scratch, solved.count, n, (T)0, x);
    } else if (curve.whole == NOT_WHOLE) {
        solve_in_logarithms(x, n, maximum, curve, x, false);
    } else {
        const Climb last =
            climb<T, T>(x, n, maximum, curve.lowest_threshold(), curve, short_step<T>(n, curve));
        write_row(x, n, maximum, last.threshold, curve, x);
    }
}

// Turns the scores of attention into weights, a row (keys,) for each query of each head; see
// `Heads`. Returns false: a query without keys is not an error, its weights are zeros.
template <class T>
TARGET bool forward(const void *packed, long keys, long first, long last, Memory &memory) {
    const Heads &heads = *(const Heads *)packed;
    Scratch<T> scratch = {};
    for (long row = first; row < last; ++row) {
        // Heads are counted over all outer indices.
        const long query = row % heads.queries, number = heads.first + row / heads.queries;
        const long head = number % heads.heads, outer = number / heads.heads;
        const Curve curve = attention_curve(heads.alpha[head]);
        if (curve.alpha > 2 && !scratch.score) scratch = Scratch<T>::up_to(keys, memory);
        T *x = (T *)heads.weights + row * keys;
        const long n = attended(heads, query, keys);
        clear_rest(x, n, keys);
        const T maximum = scale_and_mask(x, n, (T)heads.scale, heads.mask_kind,
                                         mask_row<T>(heads, outer, head, query));
        solve_weights(x, n, maximum, curve, scratch);
        if (heads.used)
            drop(x, (T *)heads.used + row * keys, keys,
                 key_of(heads.seed, number * heads.queries + query), heads.dropped_part);
    }
    return false;
}
