// Dropout of attention's weights, under one instruction set: see native_dispatch.h. A hash of the
// seed and of a weight's position decides whether it is dropped, so the result is the same for any
// number of threads. Dropped weights become negative, which tells the gradient about them.
//
// native_kernels.h includes native_row.h before, and with it native_vectors.h.

// 2^32 and 2^64 divided by the golden ratio, whose multiples spread evenly (Knuth, The Art of
// Computer Programming 3, section 6.4).
const unsigned GOLDEN_32 = 0x9e3779b9;
const uint64_t GOLDEN_64 = 0x9e3779b97f4a7c15;

// Unsigned numbers as wide as scores.
template <class T>
struct Bits;
template <>
struct Bits<float> {
    typedef unsigned Type __attribute__((vector_size(VECTOR_BYTES)));
};
template <>
struct Bits<double> {
    typedef uint64_t Type __attribute__((vector_size(VECTOR_BYTES)));
};

// A hash of 64 bits: the finaliser of SplitMix64.
INLINE uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

// The key of the hashes of a row of weights; `row` is its number among the rows of all heads.
INLINE uint64_t key_of(int64_t seed, long row) { return mixed(seed + GOLDEN_64 * row); }

// A hash of 24 bits of the number in each lane. Shifts and factors are those of lowbias32 (C.
// Wellons 2018, "Prospecting for Hash Functions"). `low` keeps 32 bits in the 64-bit lanes of
// double, so that both types drop the same weights.
template <class T>
INLINE typename Bits<T>::Type hash_of(typename Bits<T>::Type number, uint64_t key) {
    const typename Bits<T>::Type low = typename Bits<T>::Type{} + 0xffffffffu;
    typename Bits<T>::Type hash = number * GOLDEN_32 + (unsigned)key;
    hash = hash & low, hash = (hash ^ hash >> 16) * 0x7feb352du;
    hash = hash & low, hash = (hash ^ hash >> 15) * 0x846ca68bu;
    hash = hash & low, hash = (hash ^ hash >> 16) + (unsigned)(key >> 32);
    hash = hash & low, hash = (hash ^ hash >> 16) * 0x7feb352du;
    return (hash & low) >> 8;
}

// The factor of the weights that are kept: 1 over the probability of being kept.
INLINE double enlargement(double dropped_part) {
    return dropped_part < 1 ? 1 / (1 - dropped_part) : 0;
}

// Makes the weights (n,) that dropout drops negative. Writes 0 for these to `used`, and the others
// times their factor.
template <class T>
TARGET void drop(T *weights, T *used, long n, uint64_t key, double dropped_part) {
    typedef typename Vector<T>::Type V;
    const T enlarged = (T)enlargement(dropped_part);
    const unsigned limit = (unsigned)(dropped_part * 0x1p24 + 0.5);  // hashes below it are dropped
    typename Bits<T>::Type lane;
    for (long at = 0; at < Vector<T>::size; ++at) lane[at] = at;
    for (long i = 0; i < n; i += Vector<T>::size) {
        const typename Vector<T>::Mask dropped = hash_of<T>(lane + (unsigned)i, key) < limit;
        const V p = load_at<T>(weights, i, n);
        store_at(weights, i, n, dropped ? -p : p);
        store_at(used, i, n, dropped ? V{} : p * enlarged);
    }
}
