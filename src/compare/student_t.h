// Student's t distribution, for any real number of degrees of freedom above 0.
#pragma once

namespace fdbench::compare {

// P(T > t). Relative error below 1e-10 for degrees up to 1e6. Source: the regularised incomplete beta
// function, P(T > t) = I_x(v/2, 1/2) / 2 with x = v / (v + t^2) for t >= 0 (Abramowitz and Stegun 26.5.27),
// by its continued fraction (26.5.8) in Lentz's form.
double student_t_upper(double t, double degrees);

// The t with P(T > t) = p, for p in (0, 1/2]; Newton's method within a bracket.
double student_t_quantile(double p, double degrees);

}  // namespace fdbench::compare
