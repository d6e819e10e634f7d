// Dropout of attention's weights, under one instruction set: see native_instruction_sets.h. The
// noise is a hash of the seed and the weight's position, so nothing is drawn. Weights that are
// dropped become negative, so the gradient needs no noise.

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

// The key of hashes for a row of weights; `row` is its number among all rows.
INLINE uint64_t key_of(int64_t seed, long row) { return mixed(seed + GOLDEN_64 * row); }

// A hash of 24 bits for the number in each lane; the shifts and factors are those of lowbias32
// (C. Wellons 2018, "Prospecting for Hash Functions").
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

// What remaining weights are multiplied by: 1 over the probability of remaining.
INLINE double enlargement(double dropped_part) {
    return dropped_part < 1 ? 1 / (1 - dropped_part) : 0;
}

// Make the weights (n,) negative that dropout drops, and write the others, enlarged, to `used`.
template <class T>
TARGET void drop(T *weights, T *used, long n, uint64_t key, double dropped_part) {
    typedef typename Vector<T>::Type V;
    const T enlarged = (T)enlargement(dropped_part);
    const unsigned limit = (unsigned)(dropped_part * 0x1p24 + 0.5);  // of hashes
    typename Bits<T>::Type lane;
    for (long at = 0; at < Vector<T>::size; ++at) lane[at] = at;
    for (long i = 0; i < n; i += Vector<T>::size) {
        const typename Vector<T>::Mask dropped = hash_of<T>(lane + (unsigned)i, key) < limit;
        const V p = load_at<T>(weights, i, n);
        store_at(weights, i, n, dropped ? -p : p);
        store_at(used, i, n, dropped ? V{} : p * enlarged);
    }
}
