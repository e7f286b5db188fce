// Least squares with coefficients that are not negative, and small where few rows tell them apart (ridge regression).
#pragma once

#include <vector>

namespace tenon::estimate {

struct Fit {
  std::vector<double> coefficients;
  double largest_error = 0;  // relative, over all rows, each predicted from the others
  double mean_error = 0;     // relative, likewise

  double operator()(const std::vector<double>& features) const;
};

// Minimizes the sum of squares of relative errors. `features` has one list for each of `values`, all of one length;
// values are positive.
Fit fit(const std::vector<std::vector<double>>& features, const std::vector<double>& values);

}  // namespace tenon::estimate
