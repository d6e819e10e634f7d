// The curve of entmax for one alpha: the function that gives a score its probability.
//
// An ordinary header, which native.cpp and lstm.cpp include.

#pragma once

#include <math.h>

namespace {

// A value of `Curve::whole`: the order is not a whole number, or is not treated as one.
const int NOT_WHOLE = -1;

// Loops are compiled for four kinds of orders: 1 and 2 (alpha 2 and 1.5), other whole numbers, and
// any number.
enum Form { ONE, TWO, WHOLE, ANY };

// The probability of a score is p = (beta u)^order, with beta = alpha - 1 and order = 1 / beta. The
// margin u is the difference by which the score exceeds the threshold, or 0.
struct Curve {
    double alpha, beta, order;
    double energy_factor;      // in p^alpha = energy_factor u^(order + 1)
    double norm_at_threshold;  // the norm of the margins, in the order's norm, if p sums to 1
    double negligible_margin;  // up to this, a margin is rounding, and the score is outside
    int whole;                 // the order if it is a whole number, else NOT_WHOLE

    static Curve of(double alpha, int whole) {
        const double beta = alpha - 1, order = whole > 0 ? whole : 1 / beta;
        return {alpha, beta, order, pow(beta, order + 1), order, ROUNDING * order, whole};
    }

    // An order counts as whole if the rounding of alpha explains its difference to a whole number.
    static Curve of(double alpha) {
        const double order = 1 / (alpha - 1), whole = nearbyint(order);
        const bool exact = fabs(order - whole) <= ROUNDING_OF_ALPHA * whole * whole;
        return of(alpha, exact && whole >= 1 && whole <= MOST_WHOLE ? (int)whole : NOT_WHOLE);
    }

    // Returns a curve that gives lower bounds of thresholds: the same with the order rounded up to
    // a whole number, whose powers are products. Margins are at most the norm at the threshold, so
    // a higher order makes norms smaller and thresholds lower.
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

    // Returns the order's norm of margins, given the sum of their powers.
    double norm(double total) const {
        if (order == 1) return total;
        return order == 2 ? sqrt(total) : pow(total, 1 / order);
    }

    // Returns the threshold of one-hot probabilities, relative to the largest score. No threshold
    // is lower.
    double lowest_threshold() const { return -order; }

  private:
    // The rounding of a threshold, in relation to the order: 16 times the machine epsilon.
    static constexpr double ROUNDING = 0x1p-48;
    // A little more than 2^-52, the most by which rounding changes an alpha from 1 to 2. It changes
    // the order by this times the order's square.
    static constexpr double ROUNDING_OF_ALPHA = 3e-16;
    // Up to this order, products are cheaper than a power.
    static constexpr int MOST_WHOLE = 10;
};

}  // namespace
