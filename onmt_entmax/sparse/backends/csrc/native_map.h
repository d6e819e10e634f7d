// Loops over rows of scores, under one instruction set: see native_dispatch.h.
//
//   - `map_rows` writes entmax of rows or its logarithm, and conjugates.
//   - `scale_rows` writes the probabilities of rows that were solved before, times a factor.
//
// The alpha of a row decides which of three solvers solves it: see `Solved` in native_threshold.h.
// native.cpp has `Rows`, and includes `Memory`. native_kernels.h includes native_row.h (and with it
// native_threshold.h), native_logarithms.h and native_anchor.h before.

// Writes the logarithms of the probabilities of `count` scores; `out` may be the scores.
template <class T>
TARGET void write_logs_of(const T *x, long count, const Solved &solved, const Curve &curve,
                          T *out) {
    for (long k = 0; k < count; ++k) {
        const double u = margins((double)x[k], solved.maximum, solved.threshold, curve);
        out[k] = u > 0 ? (T)(curve.order * log(u * curve.beta)) : -(T)INFINITY;
    }
}

// Writes the logarithms of the probabilities of a row (n,) that `solve` solved. If there is a list,
// they replace its scores.
template <class T>
TARGET void write_logs(const T *x, long n, const Solved &solved, Scratch<T> scratch,
                       const Curve &curve, T *out) {
    if (!solved.has_list()) {
        write_logs_of(x, n, solved, curve, out);
        return;
    }
    write_logs_of(scratch.score, solved.count, solved, curve, scratch.score);
    spread_list(scratch, solved.count, n, -(T)INFINITY, out);
}

// Writes a row (n,) that `solve_above_two` solved, and whose list `finish_support` finished; nan if
// it has no solution.
template <class T>
INLINE void spread_support(Scratch<T> list, long n, const Solved &solved, bool logs, T *out) {
    const T zero = logs ? -(T)INFINITY : (T)0;
    spread_list(list, solved.count, n, solved.has_solution() ? zero : (T)NAN, out);
}

// Solves a row (n,). Unless `out` is null, writes probabilities or their logarithms.
template <class T>
INLINE Solved solve_and_write(const T *x, long n, const Curve &curve, Scratch<T> scratch, bool logs,
                              T *out) {
    if (curve.alpha > 2) {
        const Solved solved = solve_above_two(x, n, curve, scratch);
        finish_support(scratch, solved, curve, logs);
        if (out) spread_support(scratch, n, solved, logs, out);
        return solved;
    }
    if (takes_logarithms(curve)) {
        const T maximum = block_maxima(x, n, scratch.maxima);
        return solve_in_logarithms(x, n, maximum, curve, out, logs);
    }
    const Solved solved = solve(x, n, curve, scratch);
    if (out && logs && solved.has_solution())
        write_logs(x, n, solved, scratch, curve, out);
    else if (out)
        write_solved(x, n, solved, scratch, curve, out);
    return solved;
}

// The size of the support of a row with a list. Up to alpha 2, some listed scores may be on the
// threshold or below it, and so outside. Above 2, the list is the support.
template <class T>
INLINE long size_of_support(const Solved &solved, const Curve &curve, Scratch<T> list) {
    if (curve.alpha > 2) return solved.count;
    long size = 0;
    for (long k = 0; k < solved.count; ++k)
        size += list.score[k] - solved.maximum - solved.threshold > curve.negligible_margin;
    return size;
}

// Stores the support of a row that was solved without `out`, if it has a list, and `Rows` has room
// for it. Returns its size, or NO_LIST if it was not stored.
template <class T>
TARGET long keep_support(const Solved &solved, const Curve &curve, Scratch<T> list,
                         const Rows &rows, long row) {
    if (!solved.has_list()) return NO_LIST;
    const long size = size_of_support(solved, curve, list);
    if (size > rows.room) return NO_LIST;
    if (curve.alpha <= 2) write_list(list.score, list.score, solved.count, solved, curve);
    int32_t *column = rows.column + row * rows.room;
    T *value = (T *)rows.value + row * rows.room;
    for (long k = 0; k < solved.count; ++k) {
        if (!(list.score[k] > 0)) continue;
        *column++ = list.column[k];
        *value++ = list.score[k];
    }
    return size;
}

// Solves rows (rows, n), and writes everything for which `Rows` has memory: probabilities or their
// logarithms, conjugates, and what `scale_rows` needs. Returns whether a row is -inf everywhere.
template <class T>
TARGET bool map_rows(const void *packed, long n, long first, long last, Memory &memory) {
    const Rows &rows = *(const Rows *)packed;
    const Scratch<T> scratch = Scratch<T>::up_to(n, memory);
    Curve curve = Curve::of(rows.alpha);
    bool impossible = false;
    for (long row = first; row < last; ++row) {
        if (rows.alphas && rows.alphas[row] != curve.alpha) curve = Curve::of(rows.alphas[row]);
        const T *x = (const T *)rows.scores + row * n;
        T *out = rows.out ? (T *)rows.out + row * n : nullptr;
        const Solved solved = solve_and_write(x, n, curve, scratch, rows.logs, out);
        impossible |= solved.maximum == -INFINITY;
        if (rows.shifted) ((T *)rows.shifted)[row] = (T)solved.shifted;
        if (rows.maxima) ((T *)rows.maxima)[row] = (T)solved.maximum;
        if (rows.threshold) {
            rows.threshold[2 * row] = solved.threshold;
            rows.threshold[2 * row + 1] = solved.least;
        }
        if (rows.sizes) rows.sizes[row] = keep_support(solved, curve, scratch, rows, row);
    }
    return impossible;
}

// Writes the probabilities of a row (n,), given its threshold and its smallest probability.
template <class T>
INLINE void write_again(const T *x, long n, T maximum, double threshold, double least,
                        const Curve &curve, T *out) {
    const bool has_solution = threshold == threshold;
    if (takes_logarithms(curve) && has_solution)
        write_at_shift(x, n, maximum, threshold, curve, out, false);
    else if (curve.alpha > 2 && has_solution)
        write_above_two(x, n, threshold, least, curve, out);
    else
        write_row(x, n, maximum, threshold, curve, out);
}

// Writes the probabilities of rows (rows, n) that `map_rows` has solved, times a factor for each
// row. Returns false: `map_rows` has refused rows without probabilities.
template <class T>
TARGET bool scale_rows(const void *packed, long n, long first, long last, Memory &) {
    const Rows &rows = *(const Rows *)packed;
    Curve curve = Curve::of(rows.alpha);
    for (long row = first; row < last; ++row) {
        if (rows.alphas && rows.alphas[row] != curve.alpha) curve = Curve::of(rows.alphas[row]);
        const T *x = (const T *)rows.scores + row * n, factor = ((const T *)rows.factor)[row];
        T *out = (T *)rows.out + row * n;
        if (rows.sizes[row] != NO_LIST) {
            memset(out, 0, n * sizeof(T));
            for (long k = row * rows.room; k < row * rows.room + rows.sizes[row]; ++k)
                out[rows.column[k]] = ((const T *)rows.value)[k] * factor;
            continue;
        }
        const T maximum = ((const T *)rows.maxima)[row];
        const double *threshold = rows.threshold + 2 * row;  // and the smallest probability
        write_again(x, n, maximum, threshold[0], threshold[1], curve, out);
        for (long i = 0; i < n; ++i) out[i] *= factor;
    }
    return false;
}
