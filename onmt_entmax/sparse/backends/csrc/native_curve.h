// The curve of entmax for one alpha: what turns a score and the threshold into a probability.
//
// An ordinary header, which native.cpp and lstm.cpp include after native_instruction_sets.h.

namespace {

// For `Curve::whole`: the order is no whole number, or is not treated as one.
const int NOT_WHOLE = -1;

// The orders that loops are compiled for: 1 and 2 (alpha 2 and 1.5), other whole ones, any.
enum Form { ONE, TWO, WHOLE, ANY };

// The probability of a score is p = (beta u)^order, with beta = alpha - 1 and order = 1 / beta. The
// margin u is what the score exceeds the threshold by.
struct Curve {
    double alpha, beta, order;
    double energy_factor;      // p^alpha = energy_factor u^(order + 1)
    double norm_at_threshold;  // of the margins, in the norm of the order
    double negligible_margin;  // up to this, a margin is rounding: the score is outside
    int whole;                 // the order if it is a whole number, else NOT_WHOLE

    static Curve of(double alpha, int whole) {
        const double beta = alpha - 1, order = whole > 0 ? whole : 1 / beta;
        return {alpha, beta, order, pow(beta, order + 1), order, ROUNDING * order, whole};
    }

    // The order counts as whole if only the rounding of alpha makes a difference.
    static Curve of(double alpha) {
        const double order = 1 / (alpha - 1), whole = nearbyint(order);
        const bool exact = fabs(order - whole) <= ROUNDING_OF_ALPHA * whole * whole;
        return of(alpha, exact && whole >= 1 && whole <= MOST_WHOLE ? (int)whole : NOT_WHOLE);
    }

    // The same with a whole order, which needs products only, for a lower bound of the threshold.
    // Margins are at most the norm at the threshold, so a higher order makes norms smaller and
    // thresholds lower.
    Curve bounding() const {
        Curve curve = *this;
        if (whole == NOT_WHOLE) curve.order = curve.whole = (int)ceil(order);
        return curve;
    }

    Form form() const {
        if (whole == NOT_WHOLE) return ANY;
        if (whole == 1) return ONE;
        return whole == 2 ? TWO : WHOLE;
    }

    // The norm of margins, given the sum of their powers.
    double norm(double total) const {
        if (order == 1) return total;
        return order == 2 ? sqrt(total) : pow(total, 1 / order);
    }

    // The threshold of one-hot probabilities, relative to the largest score: none is lower.
    double lowest_threshold() const { return -order; }

  private:
    // The rounding of a threshold, in relation to the order: 16 times the machine epsilon.
    static constexpr double ROUNDING = 0x1p-48;
    // A little more than 2^-52, the most by which rounding moves alpha. The order moves by its
    // square times that.
    static constexpr double ROUNDING_OF_ALPHA = 3e-16;
    // Up to this order, products are cheaper than a power.
    static constexpr int MOST_WHOLE = 10;
};

}  // namespace
