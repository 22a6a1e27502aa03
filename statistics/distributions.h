// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::statistics {

/// The distributions behind tests and intervals, by Boost.Math in double precision. What cannot be computed
/// is NaN: callers answer "not known" to it.

double normal_cdf(double z);
double normal_quantile(double p);

double t_quantile(double p, double df);
/// P(|T| ≥ |t|).
double t_two_sided_p(double t, double df);
/// P(T ≤ t) of the noncentral t, the t of samples whose means differ.
double noncentral_t_cdf(double t, double df, double noncentrality);

/// P(F ≥ f).
double f_upper_p(double f, double df_of_effect, double df_of_residual);

double beta_quantile(double p, double a, double b);

}  // namespace abl::statistics
