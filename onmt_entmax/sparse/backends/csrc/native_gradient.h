// The gradients of one row up to alpha 2, with respect to its scores and to alpha, under one
// instruction set: see native_dispatch.h.
//
// Let beta = alpha - 1, and for each score of the support
//
//     p    probability; if dropout dropped it, the row has the weight -p, and v is 0
//     v    upstream gradient with respect to p, `incoming` in structs
//     s    Jacobian weight, p^(1 - beta)
//     m    mean of v, weighted by s: sum(s v) / sum(s)
//     k    (log p)^2 (exp(w) - 1 - w) / w^2 with w = -beta log p, `curvature` of derivatives.py
//
// The gradient with respect to the scores is s (v - m); the gradient with respect to alpha is
// m sum(p k) - sum(p k v). `gradients` of derivatives.py derives them.
//
// native_kernels.h includes native_row.h before, whose headers have what is used here: vectors
// (native_vectors.h), and `logarithm` and `exponential` (native_elementary.h). native.cpp includes
// `Memory`.

// (exp(w) - 1 - w) / w^2 for w >= 0, given e = exp(w). Near 0, its series computes it.
template <class T>
INLINE typename Vector<T>::Type second_order(typename Vector<T>::Type w,
                                             typename Vector<T>::Type e) {
    typedef typename Vector<T>::Type V;
    const auto small = w < (T)0.5;
    const V near = small ? w : V{}, far = small ? V{} + 1 : w;
    // The series is sum(w^(n - 2) / n!). At w = 1/2, its last term is below the rounding of 1/2!.
    const int last = sizeof(T) == 4 ? 9 : 16;
    V series = V{} + (T)OVER_FACTORIAL[last];
    for (int n = last - 1; n >= 2; --n) series = series * near + (T)OVER_FACTORIAL[n];
    return small ? series : (e - 1 - far) / (far * far);
}

// The square root of each lane, for which the compiler's vectors have no function.
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
// p k in addition, for the gradient with respect to alpha.
enum Derivative { OF_SOFTMAX, OF_ENTMAX15, OF_SPARSEMAX, OF_ANY, OF_ANY_WITH_ALPHA };

// s and p k of a vector of probabilities; p k is 0 unless the form computes it.
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

// The rows (n,) that a gradient reads and writes. Like `Inside`, it is passed by value: by
// reference, the compiler would reload it after each store, since the store might have changed it.
template <class T>
struct GradientRow {
    long n;
    const T *weights;   // p, and -p where dropout dropped it
    T *used;            // receives the weights after dropout; null without dropout
    const T *incoming;  // v
    T *gradient;        // receives that with respect to the scores; may be `incoming`
    T enlarged;         // the factor by which dropout multiplies the weights that it keeps
    double scale;       // factor of the scores, and so of the gradient
};

// What the second pass needs: s and v of the vectors in which some weight is not 0.
template <class T>
struct Inside {
    T *s, *incoming;  // (vectors, lanes)
    int *column;      // (vectors,), of a vector's first lane

    // Takes memory for rows of up to n scores.
    static Inside up_to(long n, Memory &memory) {
        const long lanes = Vector<T>::size, vectors = n / lanes + 1;
        return {(T *)memory.take(vectors * lanes * sizeof(T)),
                (T *)memory.take(vectors * lanes * sizeof(T)),
                (int *)memory.take(vectors * sizeof(int))};
    }
};

// Sums over a row: of s, s v, p k and p k v.
struct GradientSums {
    double s = 0, sv = 0, pk = 0, pkv = 0;
};

// Loads a vector of a row from i on, padded with 0.
template <class T>
INLINE typename Vector<T>::Type load_or_zero(const T *x, long i, long n) {
    if (i + Vector<T>::size <= n) return Load<T, T>::from(x + i);
    typename Vector<T>::Type v = {};
    memcpy(&v, x + i, (n - i) * sizeof(T));
    return v;
}

// The first pass: adds up the sums, keeps what the second one needs, and writes the weights after
// dropout. Returns the number of vectors in `inside`.
template <class T, Derivative form>
INLINE long collect_inside(GradientRow<T> row, T beta, Inside<T> inside, GradientSums &sums) {
    typedef typename Vector<T>::Type V;
    const long n = row.n, lanes = Vector<T>::size;
    long count = 0;
    for (long begin = 0; begin < n; begin += CHUNK<T>) {
        V s = {}, sv = {}, pk = {}, pkv = {};
        for (long i = begin; i < n && i < begin + CHUNK<T>; i += lanes) {
            V p = load_or_zero(row.weights, i, n);
            if (!bits(p != 0)) {  // all outside the support, as most vectors of a long row
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

// Writes the gradient with respect to the scores. Returns the gradient with respect to alpha; it
// has no meaning unless `form` computes p k.
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

// Writes the gradient of a row up to alpha 2 with respect to its scores. Returns the gradient with
// respect to alpha, which has no meaning unless it is wanted.
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
