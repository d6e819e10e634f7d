// The gradient of rows of attention, in the scores and in alpha, under one instruction set. Rows of
// any mapping take it, too: as heads with one query, without mask, scale and dropout. Weights that
// dropout drops are negative here, see `drop`.

// (exp(w) - 1 - w) / w ** 2 for w >= 0, given exp(w); by its series near 0.
template <class T>
INLINE typename Vector<T>::Of second_order(typename Vector<T>::Of w, typename Vector<T>::Of e) {
    typedef typename Vector<T>::Of V;
    const auto small = w < (T)0.5;
    const V near = small ? w : V{}, far = small ? V{} + 1 : w;
    const int terms = sizeof(T) == 4 ? 9 : 16;
    V series = V{} + (T)OVER_FACTORIAL[terms];
    for (int n = terms - 1; n >= 2; --n) series = series * near + (T)OVER_FACTORIAL[n];
    return small ? series : (e - 1 - far) / (far * far);
}

// The square root of each lane; the vectors of the compiler have none.
template <class T>
INLINE typename Vector<T>::Of square_root(typename Vector<T>::Of p) {
    T lane[Vector<T>::size];
    memcpy(lane, &p, sizeof p);
    for (long at = 0; at < Vector<T>::size; ++at)
        lane[at] = sizeof(T) == 4 ? (T)sqrtf((float)lane[at]) : (T)sqrt((double)lane[at]);
    return Load<T, T>::from(lane);
}

// What the gradients of a row need: Jacobian weights s = p ** (2 - alpha), and p k with the k of
// derivatives.py for the gradient in alpha.
template <class T>
struct Slopes {
    typename Vector<T>::Of s, bend;
};
// How s is computed: for alpha 1, 1.5, 2, any other up to 2; and with the gradient in alpha.
enum { PLAIN, ROOT, LINEAR, POWERS, POWERS_AND_BEND };

template <class T, int form>
INLINE Slopes<T> slopes_of(typename Vector<T>::Of p, T beta) {
    typedef typename Vector<T>::Of V;
    if (form == LINEAR) return {p > 0 ? V{} + 1 : V{}, V{}};
    if (form == PLAIN) return {p, V{}};
    if (form == ROOT) return {square_root<T>(p), V{}};
    const auto inside = p > 0;
    const V logs = logarithm<T>(p, p - 1);
    if (form == POWERS) {
        const V s = exponential<T>(logs * (1 - beta));
        return {inside ? s : V{}, V{}};
    }
    const V w = logs * -beta, e = exponential<T>(w);
    const V bend = p * logs * logs * second_order<T>(w, e);
    return {inside ? p * e : V{}, inside ? bend : V{}};
}

// What the second pass of a gradient needs: vectors with a member of the support.
template <class T>
struct Inside {
    T *slope, *incoming;
    int *place;
};

// The gradient ``g`` of a row in the scores from that in the weights as used, which may lie there;
// returns that in alpha, where ``form`` asks for it (Correia, Niculae and Martins 2019,
// Proposition 1).
template <class T, int form>
TARGET double gradient_in(const T *weights, T *used, const T *incoming, T *g, Inside<T> inside,
                          long n, T beta, T enlarged, T scale) {
    typedef typename Vector<T>::Of V;
    const long size = Vector<T>::size, flush = 64 * size;
    double all = 0, along = 0, bends = 0, bent = 0;
    long count = 0;
    for (long begin = 0; begin < n; begin += flush) {
        V a = {}, b = {}, c = {}, d = {};  // of all, along, bends and bent
        for (long i = begin; i < n && i < begin + flush; i += size) {
            const bool whole = i + size <= n;
            V p = {}, v = {};
            memcpy(&p, weights + i, whole ? sizeof p : (n - i) * sizeof(T));
            if (!bits(p != 0)) {  // as most of a long row
                if (used) store_some(used, i, n, p);
                continue;
            }
            memcpy(&v, incoming + i, whole ? sizeof v : (n - i) * sizeof(T));
            if (used) {
                const auto kept = p > 0;
                v = kept ? v * enlarged : V{};
                store_some(used, i, n, kept ? p * enlarged : V{});
                p = kept ? p : -p;
            }
            const Slopes<T> slopes = slopes_of<T, form>(p, beta);
            store<T>(inside.slope + count * size, slopes.s);
            store<T>(inside.incoming + count * size, p != 0 ? v : V{});
            inside.place[count++] = (int)i;
            a += slopes.s;
            b += p != 0 ? slopes.s * v : V{};
            if (form == POWERS_AND_BEND) c += slopes.bend, d += p != 0 ? slopes.bend * v : V{};
        }
        all += sum_of<T>(a), along += sum_of<T>(b);
        if (form == POWERS_AND_BEND) bends += sum_of<T>(c), bent += sum_of<T>(d);
    }
    const double mean = all > 0 ? along / all : 0;
    if (count * size < n) memset(g, 0, n * sizeof(T));
    for (long k = 0; k < count; ++k) {
        const V s = Load<T, T>::from(inside.slope + k * size);
        const V v = Load<T, T>::from(inside.incoming + k * size);
        store_some(g, inside.place[k], n, s * ((v - (T)mean) * scale));
    }
    return mean * bends - bent;
}

// Where exp ends in float64.
static constexpr double LARGEST_EXPONENT = 709;

// The support of a row for alpha above 2, in whole vectors of 8.
struct Support {
    double *probability, *incoming, *log_weight;
    int *place;
    long count;
    bool broken;  // something is nan

    static Support up_to(long n, Memory &memory) {
        const long size = (n + 8) * sizeof(double);
        return {(double *)memory.take(size), (double *)memory.take(size),
                (double *)memory.take(size), (int *)memory.take(size), 0, false};
    }
};

// Collect the support of a row, and write the weights as used, where dropout wants them.
template <class T>
INLINE void collect(Support &support, const T *weights, T *used, const T *incoming, long n,
                    double enlarged) {
    support.count = 0, support.broken = false;
    for (long i = 0; i < n; ++i) {
        const T p = weights[i];
        const bool kept = !used || p > 0;
        if (used) used[i] = kept ? (T)(p * enlarged) : (T)0;
        if (p == 0) continue;
        const double v = !used ? incoming[i] : kept ? incoming[i] * enlarged : 0;
        support.broken |= p != p || v != v;
        support.probability[support.count] = p < 0 ? -p : p;
        support.incoming[support.count] = v;
        support.place[support.count++] = (int)i;
    }
    for (long k = support.count; k % 8; ++k) support.probability[k] = 1, support.incoming[k] = 0;
}

// Compute the logarithms of the Jacobian weights s, and return where the largest is.
INLINE long weigh(Support &support, double beta) {
    for (long k = 0; k < support.count; k += 8) {
        const Doubles p = Load<double, double>::from(support.probability + k);
        store<double>(support.log_weight + k, logarithm<double>(p, p - 1) * (1 - beta));
    }
    for (long k = support.count; k % 8; ++k) support.log_weight[k] = -INFINITY;
    double largest = -INFINITY;
    long lead = 0;
    for (long k = 0; k < support.count; ++k)
        if (support.log_weight[k] > largest) largest = support.log_weight[lead = k];
    return lead;
}

// The mean of the incoming gradients, weighted by s.
INLINE double mean_incoming(const Support &support, double largest) {
    Doubles all = {}, along = {};
    for (long k = 0; k < support.count; k += 8) {
        const Doubles logs = Load<double, double>::from(support.log_weight + k);
        const Doubles share = exponential<double>(logs - largest);
        all += share;
        along += share * Load<double, double>::from(support.incoming + k);
    }
    return sum_of<double>(along) / sum_of<double>(all);
}

// As `gradient_in` for alpha above 2, where Jacobian weights s may be huge: in float64, with means
// over s relative to the largest. Gradients add up to 0, and that of the largest s is computed so.
// In the gradient in alpha, multiples of s add nothing, which leaves -p (1 - beta log p) / beta^2 of
// p k. See gradients in derivatives.py.
template <class T>
TARGET double gradient_above_two(const T *weights, T *used, const T *incoming, T *g,
                                 Support &support, long n, double beta, double enlarged,
                                 double scale) {
    collect(support, weights, used, incoming, n, enlarged);
    for (long i = 0; i < n; ++i) g[i] = support.broken ? (T)NAN : (T)0;
    if (support.broken || !support.count) return support.broken ? NAN : 0;
    const long lead = weigh(support, beta);
    const double mean = mean_incoming(support, support.log_weight[lead]);
    Doubles bent = {}, others = {};
    for (long k = 0; k < support.count; k += 8) {
        const Doubles p = Load<double, double>::from(support.probability + k);
        const Doubles logs = Load<double, double>::from(support.log_weight + k);
        const Doubles v = Load<double, double>::from(support.incoming + k) - mean;
        const Doubles log_p = logs > -INFINITY ? logs / (1 - beta) : Doubles{};
        bent += (logs > -INFINITY ? p : Doubles{}) * (1 - beta * log_p) * v;
        const auto fits = logs < LARGEST_EXPONENT;
        Doubles s = exponential<double>(fits ? logs : Doubles{});
        s = (fits ? s : Doubles{} + INFINITY) * v;
        if (lead - k >= 0 && lead - k < 8) s[lead - k] = 0;
        others += s;
        for (long lane = 0; lane < 8 && k + lane < support.count; ++lane)
            g[support.place[k + lane]] = (T)(s[lane] * scale);
    }
    g[support.place[lead]] = (T)(-sum_of<double>(others) * scale);
    return sum_of<double>(bent) / (beta * beta);
}

// Turn gradients in weights into those in scores, and in alpha where they are wanted; see `Heads`.
// Returns false: there is always a gradient.
template <class T>
TARGET bool backward(const void *packed, long keys, long first, long last, Memory &memory) {
    const Heads &heads = *(const Heads *)packed;
    const long size = Vector<T>::size, vectors = keys / size + 1;
    const Inside<T> s = {(T *)memory.take(vectors * size * sizeof(T)),
                         (T *)memory.take(vectors * size * sizeof(T)),
                         (int *)memory.take(vectors * sizeof(int))};
    const double part = heads.dropped_part;
    const T enlarged = (T)(part < 1 ? 1 / (1 - part) : 0), scale = (T)heads.scale;
    Support support = {};
    for (long row = first; row < last; ++row) {
        const long query = row % heads.queries, start = row * keys;
        const double alpha = heads.alpha[(heads.first + row / heads.queries) % heads.heads];
        const T beta = (T)(alpha - 1), *weights = (const T *)heads.weights + start;
        T *used = heads.used ? (T *)heads.used + start : nullptr, *g = (T *)heads.gradient + start;
        const T *in = (const T *)heads.incoming + start;
        attended(heads, query, keys, used);
        const long n = attended(heads, query, keys, g);
        if (alpha > 2) {
            if (!support.place) support = Support::up_to(keys, memory);
            const double in_alpha = gradient_above_two(weights, used, in, g, support, n,
                                                       alpha - 1, enlarged, heads.scale);
            if (heads.alpha_gradient) heads.alpha_gradient[row] = in_alpha;
        } else if (heads.alpha_gradient)
            heads.alpha_gradient[row] = gradient_in<T, POWERS_AND_BEND>(
                weights, used, in, g, s, n, beta, enlarged, scale);
        else if (alpha == 1)
            gradient_in<T, PLAIN>(weights, used, in, g, s, n, beta, enlarged, scale);
        else if (alpha == 1.5)
            gradient_in<T, ROOT>(weights, used, in, g, s, n, beta, enlarged, scale);
        else if (alpha == 2)
            gradient_in<T, LINEAR>(weights, used, in, g, s, n, beta, enlarged, scale);
        else
            gradient_in<T, POWERS>(weights, used, in, g, s, n, beta, enlarged, scale);
    }
    return false;
}
