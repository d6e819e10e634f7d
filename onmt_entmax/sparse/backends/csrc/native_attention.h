// Rows of attention, under one instruction set: scale and mask the scores, map them, drop weights.
// The rows are short, and are mapped in place in the type of the scores.

// Booleans of a mask, for the lanes of a vector.
template <class T>
INLINE typename Vector<T>::Mask load_booleans(const uint8_t *given, long count) {
    typedef uint8_t Bytes __attribute__((vector_size(Vector<T>::size)));
    Bytes bytes = {};
    memcpy(&bytes, given, count < Vector<T>::size ? count : Vector<T>::size);
    return __builtin_convertvector(bytes, typename Vector<T>::Mask) != 0;
}

// Scale and mask a row; return its maximum, nan if a score is nan.
template <class T, int kind>
TARGET T prepare_in(T *x, long n, T scale, const void *mask) {
    typedef typename Vector<T>::Of V;
    const V least = V{} - (T)INFINITY;
    V largest = least;
    typename Vector<T>::Mask broken = {};
    for (long i = 0; i < n; i += Vector<T>::size) {
        V v = load_some(x, i, n) * scale;
        if (kind == BOOLEANS) v = load_booleans<T>((const uint8_t *)mask + i, n - i) ? v : least;
        if (kind == NUMBERS) v += load_some((const T *)mask, i, n);
        store_some(x, i, n, v);
        // Beyond the row -inf again, which a scale of 0 or below has changed.
        if (i + Vector<T>::size > n) v = load_some(x, i, n);
        largest = v > largest ? v : largest;
        broken |= v != v;
    }
    return bits(broken) ? (T)NAN : largest_of<T>(largest);
}

template <class T>
INLINE T prepare(T *x, long n, T scale, int64_t kind, const void *mask) {
    if (kind == BOOLEANS) return prepare_in<T, BOOLEANS>(x, n, scale, mask);
    if (kind == NUMBERS) return prepare_in<T, NUMBERS>(x, n, scale, mask);
    return prepare_in<T, NO_MASK>(x, n, scale, mask);
}

// Softmax of a row, in place.
template <class T>
TARGET void softmax(T *x, long n, T maximum) {
    typename Vector<T>::Of sums = {};
    for (long i = 0; i < n; i += Vector<T>::size) {
        const auto e = exponential<T>(load_some(x, i, n) - maximum);
        sums += e;
        store_some(x, i, n, e);
    }
    const T factor = (T)(1 / sum_of<T>(sums));
    for (long i = 0; i < n; i += Vector<T>::size) store_some(x, i, n, load_some(x, i, n) * factor);
}

// Replace the scores of a query by its weights: zeros if it has no keys, nan if a score is nan or
// +inf.
template <class T>
TARGET void solve_weights(T *x, long n, T maximum, const Curve &curve, Room<T> room) {
    if (maximum == -INFINITY) {
        memset(x, 0, n * sizeof(T));
    } else if (!(maximum < INFINITY)) {
        for (long i = 0; i < n; ++i) x[i] = (T)NAN;
    } else if (curve.beta == 0) {
        softmax(x, n, maximum);
    } else if (curve.alpha > 2) {
        const Solved solved = solve_above_two(x, n, curve, room);
        finish_support(room, solved, curve, false);
        spread_support(room, n, solved, false, x);
    } else if (curve.whole < 0) {
        in_logarithms(x, n, maximum, curve, x, false);
    } else {
        Totals last;
        double before;
        const double threshold = climb<T, T>(x, n, maximum, -curve.order, curve,
                                             short_step<T>(n, curve), 100, last, before);
        write_row(x, n, maximum, threshold, curve, x);
    }
}

// A hash of 64 bits: the finaliser of SplitMix64.
INLINE uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

// Make the weights negative that dropout drops, and write the others, enlarged, to ``used``.
template <class T>
TARGET void drop(T *weights, T *used, long n, uint64_t key, double part) {
    typedef typename Vector<T>::Of V;
    typedef typename Bits<T>::Of B;
    const T enlarged = (T)(part < 1 ? 1 / (1 - part) : 0);
    const unsigned limit = (unsigned)(part * 0x1p24 + 0.5);
    B lane;
    for (long at = 0; at < Vector<T>::size; ++at) lane[at] = at;
    const B low = B{} + 0xffffffffu;
    for (long i = 0; i < n; i += Vector<T>::size) {
        // A hash of 32 bits, of which 24 decide; its shifts and factors are those of lowbias32
        // (C. Wellons 2018, "Prospecting for Hash Functions").
        B hash = (lane + (unsigned)i) * 0x9e3779b9u + (unsigned)key;
        hash = hash & low, hash = (hash ^ hash >> 16) * 0x7feb352du;
        hash = hash & low, hash = (hash ^ hash >> 15) * 0x846ca68bu;
        hash = hash & low, hash = (hash ^ hash >> 16) + (unsigned)(key >> 32);
        hash = hash & low, hash = (hash ^ hash >> 16) * 0x7feb352du;
        hash = (hash & low) >> 8;
        const typename Vector<T>::Mask dropped = hash < limit;
        const V p = load_some(weights, i, n);
        store_some(weights, i, n, dropped ? -p : p);
        store_some(used, i, n, dropped ? V{} : p * enlarged);
    }
}

// The keys that a query may attend to; the weights of the others become 0.
template <class T>
INLINE long attended(const Heads &heads, long query, long n, T *weights) {
    if (!weights || heads.mask_kind != CAUSAL || query + 1 >= n) return n;
    memset(weights + query + 1, 0, (n - query - 1) * sizeof(T));
    return query + 1;
}

// Turn the scores of attention into weights, a row for each query of each head; see `Heads`.
template <class T>
TARGET bool forward(const void *packed, long keys, long first, long last, Memory &memory) {
    const Heads &heads = *(const Heads *)packed;
    Room<T> room = {};
    for (long row = first; row < last; ++row) {
        const long query = row % heads.queries, head = heads.first + row / heads.queries;
        const long of_alpha = head % heads.heads, outer = head / heads.heads;
        const double alpha = heads.alpha[of_alpha];
        T *x = (T *)heads.weights + row * keys;
        const long offset = outer * heads.mask_outer + of_alpha * heads.mask_head +
                            query * heads.mask_row;
        const char *mask = heads.mask + offset * (heads.mask_kind == NUMBERS ? sizeof(T) : 1);
        const long n = attended(heads, query, keys, x);
        const T maximum = prepare(x, n, (T)heads.scale, heads.mask_kind, mask);
        if (alpha > 2 && !room.score) room = room_up_to<T>(keys, memory);
        // Loops are compiled for these orders.
        solve_weights(x, n, maximum, Curve::of(alpha, alpha == 2 ? 1 : alpha == 1.5 ? 2 : -1),
                      room);
        if (heads.used)
            drop(x, (T *)heads.used + row * keys, keys,
                 mixed(heads.seed + 0x9e3779b97f4a7c15 * (head * heads.queries + query)),
                 heads.dropped_part);
    }
    return false;
}
