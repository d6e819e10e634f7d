// Loops over rows of scores, under one instruction set: the mapping, its logarithm and its conjugate
// (`map_rows`), and the probabilities of a row that was solved before, times a factor (`scale_rows`).
// Each row is solved in the form that suits its alpha: native_threshold.h, native_logarithms.h below
// 1.1, native_anchor.h above 2.

// Write the logarithms of the probabilities of a solved row up to alpha 2.
template <class T>
TARGET void write_logs(const T *x, long n, const Solved &solved, Room<T> room, const Curve &curve,
                       T *out) {
    const T *score = solved.count < 0 ? x : room.score;
    if (solved.count >= 0)
        for (long i = 0; i < n; ++i) out[i] = -(T)INFINITY;
    for (long k = 0; k < (solved.count < 0 ? n : solved.count); ++k) {
        const double u = margins((double)score[k], solved.maximum, solved.threshold, curve);
        out[solved.count < 0 ? k : room.column[k]] =
            u > 0 ? (T)(curve.order * log(u * curve.beta)) : -(T)INFINITY;
    }
}

// Copy the probabilities of a support above 0, if there is room for them; return their number, else
// -1.
template <class T>
TARGET long keep_list(long count, long members, Room<T> room, const Rows &work, long row) {
    if (count < 0 || members > work.room) return -1;
    int32_t *column = work.column + row * work.room;
    T *value = (T *)work.value + row * work.room;
    for (long k = 0; k < count; ++k) {
        if (!(room.score[k] > 0)) continue;
        *column++ = room.column[k];
        *value++ = room.score[k];
    }
    return members;
}

// Keep the support of a solved row, if there is room for it; return its size, else -1.
template <class T>
TARGET long keep_support(const Solved &solved, const Curve &curve, Room<T> room, const Rows &work,
                         long row) {
    long members = 0;
    for (long k = 0; k < solved.count; ++k)
        members += room.score[k] - solved.maximum - solved.threshold > curve.least;
    if (solved.count < 0 || members > work.room) return -1;
    finish(room.score, room.score, solved.count, solved, curve);
    return keep_list(solved.count, members, room, work, row);
}

// Solve rows; write what `Rows` has memory for: probabilities or their logarithms, conjugates, and
// what `scale_rows` needs.
template <class T>
TARGET bool map_rows(const void *packed, long n, long first, long last, Memory &memory) {
    const Rows &work = *(const Rows *)packed;
    const Room<T> room = room_up_to<T>(n, memory);
    Curve curve = Curve::of(work.alpha);
    bool impossible = false;
    for (long row = first; row < last; ++row) {
        if (work.alphas && work.alphas[row] != curve.alpha) curve = Curve::of(work.alphas[row]);
        const T *x = (const T *)work.scores + row * n;
        T *out = work.out ? (T *)work.out + row * n : nullptr;
        Solved solved;
        const bool above_two = curve.alpha > 2;
        if (above_two) {
            solved = solve_above_two(x, n, curve, room);
            finish_support(room, solved, curve, work.logs);
            if (out) spread_support(room, n, solved, work.logs, out);
        } else if (takes_logarithms(curve)) {
            const T maximum = block_maxima(x, n, depth_of<T>(n), room.maxima);
            solved = in_logarithms(x, n, maximum, curve, out, work.logs);
        } else {
            solved = solve(x, n, curve, room);
            if (work.logs && solved.threshold == solved.threshold)
                write_logs(x, n, solved, room, curve, out);
            else if (out)
                write_solved(x, n, solved, room, curve, out);
        }
        impossible |= solved.maximum == -INFINITY;
        if (work.shifted) ((T *)work.shifted)[row] = (T)solved.shifted;
        if (work.maxima) ((T *)work.maxima)[row] = (T)solved.maximum;
        if (work.threshold) {
            work.threshold[2 * row] = solved.threshold;
            work.threshold[2 * row + 1] = solved.least;
        }
        if (work.count)
            work.count[row] = above_two ? keep_list(solved.count, solved.count, room, work, row)
                                        : keep_support(solved, curve, room, work, row);
    }
    return impossible;
}

// Write the probabilities of rows that `map_rows` has solved, times a factor for each row.
template <class T>
TARGET bool scale_rows(const void *packed, long n, long first, long last, Memory &) {
    const Rows &work = *(const Rows *)packed;
    Curve curve = Curve::of(work.alpha);
    for (long row = first; row < last; ++row) {
        if (work.alphas && work.alphas[row] != curve.alpha) curve = Curve::of(work.alphas[row]);
        const T *x = (const T *)work.scores + row * n, factor = ((const T *)work.factor)[row];
        T *out = (T *)work.out + row * n;
        const T maximum = ((const T *)work.maxima)[row];
        const double threshold = work.threshold[2 * row], least = work.threshold[2 * row + 1];
        if (work.count[row] >= 0) {
            memset(out, 0, n * sizeof(T));
            for (long k = row * work.room; k < row * work.room + work.count[row]; ++k)
                out[work.column[k]] = ((const T *)work.value)[k] * factor;
            continue;
        }
        if (takes_logarithms(curve) && threshold == threshold)
            at_shift(x, n, maximum, threshold, curve, out, false);
        else if (curve.alpha > 2 && threshold == threshold)
            write_above_two(x, n, threshold, least, curve, out);
        else
            write_row(x, n, maximum, threshold, curve, out);
        for (long i = 0; i < n; ++i) out[i] *= factor;
    }
    return false;
}
