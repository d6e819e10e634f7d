// The gradient of one row up to alpha 2, in the scores and in alpha, under one instruction set: see
// native_instruction_sets.h.
//
// With beta = alpha - 1, and for the scores of the support,
//
//     p    probability; where dropout dropped it, the row has the weight -p, and v is 0
//     v    incoming gradient, `incoming` in structs
//     s    Jacobian weight, p^(1 - beta)
//     m    mean of v, weighted by s: sum(s v) / sum(s)
//     k    (log p)^2 (exp(w) - 1 - w) / w^2 with w = -beta log p, `curvature` of derivatives.py
//
// the gradients are s (v - m) in the scores, and m sum(p k) - sum(p k v) in alpha. `gradients` of
// derivatives.py derives them.

// (exp(w) - 1 - w) / w^2 for w >= 0, given exp(w); by its series near 0.
template <class T>
INLINE typename Vector<T>::Type second_order(typename Vector<T>::Type w,
                                             typename Vector<T>::Type e) {
    typedef typename Vector<T>::Type V;
    const auto small = w < (T)0.5;
    const V near = small ? w : V{}, far = small ? V{} + 1 : w;
    // The last term of the series, which is below the rounding of the first.
    const int last = sizeof(T) == 4 ? 9 : 16;
    V series = V{} + (T)OVER_FACTORIAL[last];
    for (int n = last - 1; n >= 2; --n) series = series * near + (T)OVER_FACTORIAL[n];
    return small ? series : (e - 1 - far) / (far * far);
}

// The square root of each lane; the vectors of the compiler have none.
template <class T>
INLINE typename Vector<T>::Type square_root(typename Vector<T>::Type p) {
    T lane[Vector<T>::size];
    memcpy(lane, &p, sizeof p);
    for (long at = 0; at < Vector<T>::size; ++at)
        lane[at] = sizeof(T) == 4 ? (T)sqrtf((float)lane[at]) : (T)sqrt((double)lane[at]);
    return Load<T, T>::from(lane);
}

// ---- Jacobian weights ------------------------------------------------------------------------

// How s is computed: for alpha 1, 1.5, 2, or any alpha. The last form, also for any alpha, computes
// p k in addition, for the gradient in alpha.
enum Derivative { OF_SOFTMAX, OF_ENTMAX15, OF_SPARSEMAX, OF_ANY, OF_ANY_WITH_ALPHA };

// Of some probabilities: s, and p k for the gradient in alpha.
template <class T>
struct Derivatives {
    typename Vector<T>::Type s, pk;
};

template <class T, Derivative form>
INLINE Derivatives<T> derivatives_of(typename Vector<T>::Type p, T beta) {
    typedef typename Vector<T>::Type V;
    if (form == OF_SPARSEMAX) return {p > 0 ? V{} + 1 : V{}, V{}};
    if (form == OF_SOFTMAX) return {p, V{}};
    if (form == OF_ENTMAX15) return {square_root<T>(p), V{}};
    const auto inside = p > 0;
    const V logs = logarithm<T>(p, p - 1);
    if (form == OF_ANY) {
        const V s = exponential<T>(logs * (1 - beta));
        return {inside ? s : V{}, V{}};
    }
    const V w = logs * -beta, e = exponential<T>(w);
    const V pk = p * logs * logs * second_order<T>(w, e);
    return {inside ? p * e : V{}, inside ? pk : V{}};
}

// ---- two passes ------------------------------------------------------------------------------

// The rows (n,) of a gradient. Like `Inside` it is passed by value: by reference, the compiler
// would reload it after each store, since the store might have changed it.
template <class T>
struct GradientRow {
    long n;
    const T *weights;   // p, and -p where dropout dropped it
    T *used;            // receives the weights after dropout; null without dropout
    const T *incoming;  // v
    T *gradient;        // receives that in the scores; may be the memory of `incoming`
    T enlarged;         // what dropout multiplies the remaining weights by
    double scale;       // of the scores, so also of the gradient
};

// What the second pass needs: the vectors in which a weight is not 0.
template <class T>
struct Inside {
    T *s, *incoming;  // (vectors, lanes)
    int *column;      // (vectors,), of a vector's first lane

    // For rows of up to n scores.
    static Inside up_to(long n, Memory &memory) {
        const long lanes = Vector<T>::size, vectors = n / lanes + 1;
        return {(T *)memory.take(vectors * lanes * sizeof(T)),
                (T *)memory.take(vectors * lanes * sizeof(T)),
                (int *)memory.take(vectors * sizeof(int))};
    }
};

// Sums over a row.
struct GradientSums {
    double s = 0, sv = 0, pk = 0, pkv = 0;
};

// A vector of a row from i on, padded with 0.
template <class T>
INLINE typename Vector<T>::Type load_or_zero(const T *x, long i, long n) {
    if (i + Vector<T>::size <= n) return Load<T, T>::from(x + i);
    typename Vector<T>::Type v = {};
    memcpy(&v, x + i, (n - i) * sizeof(T));
    return v;
}

// The first pass: add up the sums, keep what the second needs, and write the weights as used.
// Returns the number of vectors inside.
template <class T, Derivative form>
INLINE long collect_inside(GradientRow<T> row, T beta, Inside<T> inside, GradientSums &sums) {
    typedef typename Vector<T>::Type V;
    const long n = row.n, lanes = Vector<T>::size;
    long count = 0;
    for (long begin = 0; begin < n; begin += CHUNK<T>) {
        V s = {}, sv = {}, pk = {}, pkv = {};
        for (long i = begin; i < n && i < begin + CHUNK<T>; i += lanes) {
            V p = load_or_zero(row.weights, i, n);
            if (!bits(p != 0)) {  // as most of a long row
                if (row.used) store_at(row.used, i, n, p);
                continue;
            }
            V v = load_or_zero(row.incoming, i, n);
            if (row.used) {
                const auto kept = p > 0;
                v = kept ? v * row.enlarged : V{};
                store_at(row.used, i, n, kept ? p * row.enlarged : V{});
                p = kept ? p : -p;
            }
            const Derivatives<T> at = derivatives_of<T, form>(p, beta);
            store<T>(inside.s + count * lanes, at.s);
            store<T>(inside.incoming + count * lanes, p != 0 ? v : V{});
            inside.column[count++] = (int)i;
            s += at.s;
            sv += p != 0 ? at.s * v : V{};
            if (form == OF_ANY_WITH_ALPHA) pk += at.pk, pkv += p != 0 ? at.pk * v : V{};
        }
        sums.s += sum_of<T>(s), sums.sv += sum_of<T>(sv);
        if (form == OF_ANY_WITH_ALPHA) sums.pk += sum_of<T>(pk), sums.pkv += sum_of<T>(pkv);
    }
    return count;
}

// Write the gradient in the scores; return that in alpha, where `form` computes it.
template <class T, Derivative form>
TARGET double write_gradient(GradientRow<T> row, T beta, Inside<T> inside) {
    typedef typename Vector<T>::Type V;
    const long n = row.n, lanes = Vector<T>::size;
    const T scale = (T)row.scale;
    GradientSums sums;
    const long count = collect_inside<T, form>(row, beta, inside, sums);
    const double mean = sums.s > 0 ? sums.sv / sums.s : 0;
    if (count * lanes < n) memset(row.gradient, 0, n * sizeof(T));
    for (long k = 0; k < count; ++k) {
        const V s = Load<T, T>::from(inside.s + k * lanes);
        const V v = Load<T, T>::from(inside.incoming + k * lanes);
        store_at(row.gradient, inside.column[k], n, s * ((v - (T)mean) * scale));
    }
    return mean * sums.pk - sums.pkv;
}

// Write the gradient of a row up to alpha 2 in its scores; return that in alpha, if it is wanted.
template <class T>
INLINE double gradient_up_to_two(GradientRow<T> row, double alpha, bool wants_alpha,
                                 Inside<T> inside) {
    const T beta = (T)(alpha - 1);
    if (wants_alpha) return write_gradient<T, OF_ANY_WITH_ALPHA>(row, beta, inside);
    if (alpha == 1) return write_gradient<T, OF_SOFTMAX>(row, beta, inside);
    if (alpha == 1.5) return write_gradient<T, OF_ENTMAX15>(row, beta, inside);
    if (alpha == 2) return write_gradient<T, OF_SPARSEMAX>(row, beta, inside);
    return write_gradient<T, OF_ANY>(row, beta, inside);
}
