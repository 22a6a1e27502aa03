// SPDX-License-Identifier: Apache-2.0
#include "statistics/distributions.h"

#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/gamma.hpp>

#include <cmath>
#include <limits>

namespace abl::statistics {
namespace {

namespace of = boost::math::policies;
using Policy = of::policy<of::domain_error<of::ignore_error>, of::pole_error<of::ignore_error>,
                          of::overflow_error<of::ignore_error>, of::evaluation_error<of::ignore_error>,
                          of::rounding_error<of::ignore_error>, of::promote_double<false>>;
using Normal = boost::math::normal_distribution<double, Policy>;
using StudentsT = boost::math::students_t_distribution<double, Policy>;
using NoncentralT = boost::math::non_central_t_distribution<double, Policy>;
using FisherF = boost::math::fisher_f_distribution<double, Policy>;
using Beta = boost::math::beta_distribution<double, Policy>;

/// P(Z + δ ≤ t·√(χ²/df)) = ∫ φ(z) · P(χ² ≥ df·((z + δ)/t)²) dz by the trapezoidal rule, whose error vanishes
/// exponentially where the second factor is no steeper than the first: from t = √(2·df). z + δ is positive.
double far_noncentral_t_cdf(double t, double df, double noncentrality) {
  constexpr double kStep = 0.4;
  double sum = 0;
  for (int i = -21; i <= 21; ++i) {
    const double z = kStep * i, s = (z + noncentrality) / t;
    sum += pdf(Normal{}, z) * boost::math::gamma_q(df / 2, df * s * s / 2, Policy{});
  }
  return kStep * sum;
}

}  // namespace

double normal_cdf(double z) { return cdf(Normal{}, z); }

double normal_quantile(double p) { return quantile(Normal{}, p); }

double t_quantile(double p, double df) { return quantile(StudentsT{df}, p); }

double t_two_sided_p(double t, double df) { return 2 * cdf(complement(StudentsT{df}, std::abs(t))); }

double noncentral_t_cdf(double t, double df, double noncentrality) {
  if (noncentrality < 0) return 1 - noncentral_t_cdf(-t, df, -noncentrality);
  // Boost's series takes as many terms as the noncentrality is large, and ends with an exception
  if (noncentrality > 30 && t * t > 2 * df && t > 0) return far_noncentral_t_cdf(t, df, noncentrality);
  if (noncentrality > 1000) return df < 1e5 ? 0 : std::numeric_limits<double>::quiet_NaN();
  return cdf(NoncentralT{df, noncentrality}, t);
}

double f_upper_p(double f, double df_of_effect, double df_of_residual) {
  return cdf(complement(FisherF{df_of_effect, df_of_residual}, f));
}

double beta_quantile(double p, double a, double b) { return quantile(Beta{a, b}, p); }

}  // namespace abl::statistics
