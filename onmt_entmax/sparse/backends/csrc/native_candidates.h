// The candidates for the support of a row, under one instruction set: see native_threshold.h.
// native.cpp and lstm.cpp include native_memory.h before.
//
// Candidates are the scores above a cut. A row is divided into blocks of vectors, of which the
// maximum of each lane is kept. Blocks without a maximum above the cut are skipped.

#include "sparse/backends/csrc/native_newton.h"

// A row of fewer than LENGTH_OF_BLOCKS scores is a single block. Longer rows have blocks of SHALLOW
// vectors; rows from LENGTH_OF_DEEP_BLOCKS on have blocks of DEEP vectors, for fewer maxima.
const long LENGTH_OF_BLOCKS = 512, LENGTH_OF_DEEP_BLOCKS = 4096;
const long SHALLOW = 4, DEEP = 16;

// Replaces the number of candidates if they are not listed: because there are too many, or because
// the row has no solution.
const long NO_LIST = -1;

// The memory in which a thread solves its rows, one after the other.
template <class T>
struct Scratch {
    T *maxima;    // (blocks, lanes)
    T *score;     // (candidates,); later their probabilities
    int *column;  // (candidates,)

    // Takes memory for rows of up to n scores.
    static Scratch up_to(long n, Memory &memory) {
        const long lanes = Vector<T>::size, blocks = n / (SHALLOW * lanes) + 1;
        const long most = n + lanes;  // `append` stores whole vectors
        return {(T *)memory.take(blocks * lanes * sizeof(T)), (T *)memory.take(most * sizeof(T)),
                (int *)memory.take(most * sizeof(int))};
    }
};

// The blocks of a row, each of `depth` vectors.
template <class T>
struct Blocks {
    long depth, count;

    static INLINE Blocks of(long n) {
        if (n < LENGTH_OF_BLOCKS) return {n / Vector<T>::size + 1, 1};
        const long depth = n < LENGTH_OF_DEEP_BLOCKS ? SHALLOW : DEEP;
        return {depth, (n + depth * Vector<T>::size - 1) / (depth * Vector<T>::size)};
    }
};

// ---- maxima ----------------------------------------------------------------------------------

// The largest of some scores, nan if one is nan; comparisons alone would skip it.
template <class T>
struct Maximum {
    typedef typename Vector<T>::Type V;
    V largest = V{} - (T)INFINITY;
    typename Vector<T>::Mask is_nan = {};

    INLINE void add(V v) {
        largest = v > largest ? v : largest;
        is_nan |= v != v;
    }
    INLINE void add(const Maximum &other) {
        largest = other.largest > largest ? other.largest : largest;
        is_nan |= other.is_nan;
    }
    INLINE T value() const { return bits(is_nan) ? (T)NAN : largest_of<T>(largest); }
};

// Writes the maxima (blocks, lanes) of a row (n,), and returns its maximum, nan if a score is nan.
template <class T>
TARGET T block_maxima(const T *x, long n, T *maxima) {
    const long lanes = Vector<T>::size, length = Blocks<T>::of(n).depth * lanes;
    Maximum<T> row;
    for (long i = 0; i < n; maxima += lanes) {
        Maximum<T> block;
        const long end = i + length < n ? i + length : n;
        for (; i + lanes <= end; i += lanes) block.add(Load<T, T>::from(x + i));
        if (i < end) {
            block.add(load_part<T, T>(x + i, end - i));
            i = end;
        }
        store<T>(maxima, block.largest);
        row.add(block);
    }
    return row.value();
}

// ---- the list --------------------------------------------------------------------------------

// The next smaller number. With it as the cut, the number itself is a candidate.
INLINE float below_of(float x) { return nextafterf(x, -INFINITY); }
INLINE double below_of(double x) { return nextafter(x, -INFINITY); }

// Appends the lanes of a vector, at place i of its row, that are above a cut, to the `count`
// entries of the list; returns the new count. It has no branches, which no processor would predict.
#if ENTMAX_SET == ENTMAX_AVX512
INLINE long append(Floats v, long i, float cut, long count, Scratch<float> scratch) {
    const __mmask16 above = (__mmask16)bits(v > cut);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i places = _mm512_add_epi32(lanes, _mm512_set1_epi32((int)i));
    _mm512_storeu_ps(scratch.score + count, _mm512_maskz_compress_ps(above, (__m512)v));
    _mm512_storeu_si512(scratch.column + count, _mm512_maskz_compress_epi32(above, places));
    return count + __builtin_popcount(above);
}
INLINE long append(Doubles v, long i, double cut, long count, Scratch<double> scratch) {
    const __mmask8 above = (__mmask8)bits(v > cut);
    const __m256i places =
        _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)i));
    _mm512_storeu_pd(scratch.score + count, _mm512_maskz_compress_pd(above, (__m512d)v));
    _mm256_storeu_si256((__m256i *)(scratch.column + count),
                        _mm256_maskz_compress_epi32(above, places));
    return count + __builtin_popcount(above);
}
#else
template <class T, class V>
INLINE long append(V v, long i, T cut, long count, Scratch<T> scratch) {
    if (!bits(v > cut)) return count;
    for (long lane = 0; lane < Vector<T>::size; ++lane) {
        scratch.score[count] = v[lane];
        scratch.column[count] = (int)(i + lane);
        count += v[lane] > cut;
    }
    return count;
}
#endif

// Lists the scores of a row (n,) above a cut, in their order. Returns their number, or NO_LIST if
// there are more than `most`. `block_maxima` must have written `scratch.maxima` of this row.
template <class T>
TARGET long list_candidates(const T *x, long n, T cut, long most, Scratch<T> scratch) {
    const long lanes = Vector<T>::size, length = Blocks<T>::of(n).depth * lanes;
    long count = 0;
    for (long i = 0, block = 0; i < n; ++block) {
        const long end = i + length < n ? i + length : n;
        if (!bits(Load<T, T>::from(scratch.maxima + block * lanes) > cut)) {
            i = end;
            continue;
        }
        for (; i + lanes <= end; i += lanes)
            count = append(Load<T, T>::from(x + i), i, cut, count, scratch);
        if (i < end) {
            count = append(load_part<T, T>(x + i, end - i), i, cut, count, scratch);
            i = end;
        }
        if (count > most) return NO_LIST;
    }
    return count;
}
